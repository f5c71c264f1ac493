# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of PyTorch on its Vulkan device, each compared with the CPU. Prints the hash of all results
and how many blocks the allocator of the library holds.

usage: torch_operators.py none|LIBRARY, which replaces the Vulkan kernels of libtorch
"""

import ctypes
import hashlib
import json
import pathlib
import sys

import torch
from torch.nn import functional

CLOSE = 1e-4 # sums in another order
STEPS = 50


def cases():
    """(name, function of the device)"""
    torch.manual_seed(1)
    x, y = torch.rand(1, 8, 32, 32), torch.rand(1, 8, 32, 32)
    weight, bias = torch.rand(16, 8, 3, 3), torch.rand(16)
    left, right = torch.rand(24, 32), torch.rand(32, 16)

    def many(on):
        value, factor = on(x), on(y)
        for _ in range(STEPS):
            value = torch.clamp(value * factor + 0.1, 0, 1)
        return value

    yield "add", lambda on: on(x) + on(y)
    yield "multiply", lambda on: on(x) * on(y)
    yield "relu", lambda on: torch.relu(on(x) - on(y))
    yield "sigmoid", lambda on: torch.sigmoid(on(x))
    yield "interpolate", lambda on: functional.interpolate(on(x), scale_factor=2)
    yield "cat", lambda on: torch.cat([on(x), on(y)], 1)
    yield "softmax", lambda on: torch.softmax(on(x), 1)
    yield "mean", lambda on: on(x).mean(3, keepdim=True)
    yield "conv2d", lambda on: functional.conv2d(on(x), weight, bias, padding=1)
    yield "mm", lambda on: torch.mm(on(left), on(right))
    yield "many steps", many


def main():
    library = sys.argv[1]
    if library != "none":
        torch.ops.load_library(library)
    digest, wrong = hashlib.sha256(), []
    with torch.no_grad():
        for name, function in cases():
            result = function(lambda tensor: tensor.to("vulkan")).cpu().contiguous()
            digest.update(result.numpy().tobytes())
            if (result - function(lambda tensor: tensor)).abs().max().item() > CLOSE:
                wrong.append(name)
    blocks = 0
    if library != "none":
        counter = ctypes.CDLL(library).client_blocks
        counter.restype = ctypes.c_uint64
        blocks = counter()
    maps = pathlib.Path("/proc/self/maps").read_text()
    print(json.dumps({"hash": digest.hexdigest(), "wrong": wrong, "blocks": blocks,
                      "quire": "libquire_vma" in maps, "layer": "VkLayer_khronos_validation" in maps}))


if __name__ == "__main__":
    main()
