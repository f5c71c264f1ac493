/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// llama_client.mjs - generates tokens with llama.cpp (npm's node-llama-cpp) on Vulkan and prints one line: the
// tokens. The most probable token is taken each time.
//
// usage: node llama_client.mjs PACKAGE MODEL

const { getLlama, LlamaLogLevel } = await import(process.argv[2]);

const PROMPT = "a page is divided into buffers and images";
const TOKENS = 24;

const llama = await getLlama({ gpu: "vulkan", build: "never", logLevel: LlamaLogLevel.error });
if (llama.gpu !== "vulkan") {
  console.error(`llama.cpp uses ${llama.gpu} instead of Vulkan`);
  process.exit(3);
}
const model = await llama.loadModel({ modelPath: process.argv[3], gpuLayers: "max" });
const context = await model.createContext({ contextSize: 256, batchSize: 64 });
const tokens = [];
for await (const token of context.getSequence().evaluate(model.tokenize(PROMPT), { temperature: 0 })) {
  tokens.push(token);
  if (tokens.length === TOKENS) break;
}
console.log(`result ${tokens.join(" ")} in ${model.gpuLayers} layers on the device`);
await context.dispose();
await model.dispose();
await llama.dispose();
