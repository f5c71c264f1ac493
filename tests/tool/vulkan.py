# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tool on the Vulkan driver of this machine.

usage: vulkan.py TOOL SOURCE_ROOT

Skipped without a driver (VK_ICD_FILENAMES names one) or without the tool's Vulkan backend.
"""

import os
import re

from backend_run import PROFILE, Backend, refusal_problems
from tap import Tap

VULKAN = Backend("vulkan")

# that quire does not enable on the fake driver's layout amd-bar, or that the layout does not have
AMD_UNUSED = {"protectedMemory", "deviceCoherentMemory", "external_memory_win32", "debug_utils",
              "sparseResidencyAliased", "pageableDeviceLocalMemory", "zeroInitializeDeviceMemory"}


def device_problems():
    device = VULKAN.device()
    if device["backend"] != "vulkan" or None in (device["choices"]["device"], device["choices"]["upload"]):
        yield f"{device}"
    features, text = device["features"], VULKAN.run("devices").stdout
    for name, is_used in features.items():
        if not re.search(rf"^  {name} +{'yes' if is_used else 'no'}$", text, re.MULTILINE):
            yield f"{name} is {is_used}, and the text differs"
    unused = {name for name, is_used in features.items() if not is_used}
    if len(features) != 20 or os.environ.get("QUIRE_FAKE_LAYOUT") == "amd-bar" and unused != AMD_UNUSED:
        yield f"unused features: {unused}"


def tour_problems():
    """An image of 32 x 32 bytes, followed by a buffer; in the next page where images have their own."""
    apart = VULKAN.device()["limits"]["bufferImageGranularity"] > 1024
    image, buffer, staging = VULKAN.tour()
    yield from (f"{a['name']}: {a}" for a, page in ((image, 0), (buffer, int(apart)), (staging, 0))
                if a["page"] != page or a["size"] < 1024)
    # the guard bytes of a checked build before them count as left padding
    end = 0 if apart else image["offset"] + image["size"]
    if image["offset"] != image["left_padding"] or buffer["offset"] - buffer["left_padding"] < end:
        yield f"image {image}, buffer {buffer}"


def apart_problems():
    """A driver that prefers a dedicated page for the image; only texels are copied to it."""
    image, buffer, _ = VULKAN.tour(QUIRE_FAKE_FLAGS="prefer-dedicated")
    if image["page"] == buffer["page"]:
        yield f"image {image}, buffer {buffer}"


def refused():
    return refusal_problems(
        (2, "--profile requires the host", VULKAN.run("devices", "--profile", PROFILE)),
        (1, "matches 'no such device'", VULKAN.run("devices", QUIRE_VULKAN_DEVICE="no such device")),
        (1, "matches 'no such device'",
         VULKAN.run("devices", "--device", "no such device", QUIRE_VULKAN_DEVICE="0")),
        (1, "", VULKAN.run("devices", VK_ICD_FILENAMES="/nonexistent")))


def main():
    tap = Tap()
    there = VULKAN.run("devices")
    cases = [("devices", device_problems, ()), ("tour", tour_problems, ()),
             ("copy", VULKAN.copy_problems, (("direct", "staged"), 3)),
             ("replay", VULKAN.replay_problems, ()), ("refusals", refused, ())]
    for name, check, args in cases:
        if there.returncode:
            tap.skip(name, there.stderr.strip())
        else:
            tap.attempt(name, check, *args)
    if "quire-fake-vulkan" in os.environ.get("VK_ICD_FILENAMES", ""):
        tap.attempt("tour, the image apart", apart_problems)
    tap.end()


main()
