# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of programs with the Vulkan layer share: its name, and its statistics."""

import json
import pathlib

LAYER = "VK_LAYER_QUIRE_suballocate"
VALIDATION = "VK_LAYER_KHRONOS_validation"
SYSTEM_LAYERS = "/usr/share/vulkan/explicit_layer.d"


def has_validation():
    return pathlib.Path(SYSTEM_LAYERS, "VkLayer_khronos_validation.json").exists()


def layer_path(folder, layers):
    """VK_LAYER_PATH for layers in this order: loader 1.3.239 takes the order of the folders."""
    return ":".join([SYSTEM_LAYERS, folder] if VALIDATION in layers[:1] else [folder, SYSTEM_LAYERS])


def read_statistics(*paths):
    """One JSON document for each device, of the files that exist."""
    found, decoder = [], json.JSONDecoder()
    for path in paths:
        text = path.read_text().strip() if path.exists() else ""
        while text:
            document, end = decoder.raw_decode(text)
            found.append(document)
            text = text[end:].strip()
    return found


def total(devices, key):
    return sum(device[key] for device in devices)
