/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// dawn_client.mjs - computes with Dawn (npm's webgpu) in many small buffers and textures, and prints one line:
// the adapter and a hash of the results.
//
// usage: node dawn_client.mjs WEBGPU_PACKAGE

import { createHash } from "node:crypto";

const { create, globals } = await import(process.argv[2]);
Object.assign(globalThis, globals);

const COUNT = 200; // buffers of each kind
const SIZE = 40000; // bytes
const SHADER = `
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&input)) { output[id.x] = input[id.x] * 1664525u + id.x; }
}`;

const gpu = create(["backend=vulkan"]);
const adapter = await gpu.requestAdapter();
if (!adapter) {
  console.error("Dawn has no Vulkan adapter");
  process.exit(3);
}
const device = await adapter.requestDevice();
device.addEventListener("uncapturederror", (event) => {
  console.error(event.error.message);
  process.exit(1);
});
const pipeline = device.createComputePipeline({
  layout: "auto",
  compute: { module: device.createShaderModule({ code: SHADER }), entryPoint: "main" },
});

function buffer(usage) {
  return device.createBuffer({ size: SIZE, usage });
}

const parts = [];
for (let i = 0; i < COUNT; i++) {
  const part = {
    input: buffer(GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST),
    output: buffer(GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC),
    result: buffer(GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST),
    texture: device.createTexture({
      size: [100, 100], format: "rgba8unorm", usage: GPUTextureUsage.COPY_DST | GPUTextureUsage.COPY_SRC,
    }),
  };
  device.queue.writeBuffer(part.input, 0, new Uint32Array(SIZE / 4).map((_, j) => i * 7919 + j));
  parts.push(part);
}

// the results of the shader go through a texture: 100 rows of 400 bytes, which a copy of buffers pads to 512
const encoder = device.createCommandEncoder();
for (const part of parts) {
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [
      { binding: 0, resource: { buffer: part.input } },
      { binding: 1, resource: { buffer: part.output } },
    ],
  }));
  pass.dispatchWorkgroups(Math.ceil(SIZE / 4 / 64));
  pass.end();
  const image = { bytesPerRow: 512, rowsPerImage: 78 };
  encoder.copyBufferToTexture({ buffer: part.output, ...image }, { texture: part.texture }, [100, 78]);
  encoder.copyTextureToBuffer({ texture: part.texture }, { buffer: part.result, ...image }, [100, 78]);
}
device.queue.submit([encoder.finish()]);

const hash = createHash("sha256");
for (const part of parts) {
  await part.result.mapAsync(GPUMapMode.READ);
  hash.update(new Uint8Array(part.result.getMappedRange()));
  part.result.unmap();
}
console.log(`result ${hash.digest("hex")} on ${adapter.info.device || adapter.info.description}`);
for (const part of parts) {
  for (const object of Object.values(part)) object.destroy();
}
device.destroy();
