# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records the traces of docs/traces from programs of others: five models in ONNX Runtime of npm with the
adapter, Dawn and llama.cpp of npm with the Vulkan layer.

usage: record_traces.py ONNX_CLIENT LAYER_FOLDER MANIFEST OUT_FOLDER

QUIRE_NPM names the folder of npm's packages. MANIFEST is that of the Vulkan driver.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import gguf_model
import onnx_runs

KNOWN = ("densenet121", "resnet50")  # of Debian's libonnx-testdata

CLIENTS = pathlib.Path(__file__).resolve().parent


def record_models(program, folder, out):
    library, reason = onnx_runs.runtimes()["npm"]
    if not library:
        sys.exit(reason)
    client = onnx_runs.Client(program, library, folder)
    known = [model for model in onnx_runs.known_models() if model.name in KNOWN]
    if len(known) < len(KNOWN):
        sys.exit("libonnx-testdata is not installed")
    for model in onnx_runs.write_models(folder) + known:
        trace = out / f"onnxruntime-{model.name}.csv"
        answer, error = client.run(model, "quire", runs=2, ONNX_CLIENT_TRACE=str(trace))
        if not answer:
            sys.exit(f"{model.name}: {error}")


def record_layer(layer, manifest, trace, command):
    environment = dict(os.environ, VK_ICD_FILENAMES=manifest, VK_LAYER_PATH=layer, GGML_VK_VISIBLE_DEVICES="0",
                       VK_INSTANCE_LAYERS="VK_LAYER_QUIRE_suballocate", QUIRE_LAYER_TRACE=str(trace))
    subprocess.run(command, env=environment, check=True)


def main():
    program, layer, manifest, out = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:5])
    out, modules = pathlib.Path(out), pathlib.Path(os.environ["QUIRE_NPM"], "node_modules").resolve()
    with tempfile.TemporaryDirectory() as where:
        folder = pathlib.Path(where)
        record_models(program, folder, out)
        record_layer(layer, manifest, out / "dawn.csv",
                     ["node", CLIENTS / "dawn_client.mjs", modules / "webgpu/index.js"])
        gguf_model.write(folder / "random.gguf")
        record_layer(layer, manifest, out / "llama.csv",
                     ["node", CLIENTS / "llama_client.mjs", modules / "node-llama-cpp/dist/index.js",
                      folder / "random.gguf"])


main()
