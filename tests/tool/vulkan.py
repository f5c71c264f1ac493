"""The tool on the Vulkan driver of this machine.

usage: vulkan.py TOOL SOURCE_ROOT

Skipped without a driver (VK_ICD_FILENAMES names one) or without the tool's Vulkan backend.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from tap import Tap


def run(tool, *args, **env):
    return subprocess.run([tool, *args], text=True, capture_output=True, env={**os.environ, **env})


# that quire does not enable on the fake driver's layout amd-bar, or that the layout does not have
AMD_UNUSED = {"protectedMemory", "deviceCoherentMemory", "external_memory_win32", "debug_utils",
              "sparseResidencyAliased", "pageableDeviceLocalMemory", "zeroInitializeDeviceMemory"}


def check_devices(tool):
    done = run(tool, "devices", "--backend", "vulkan", "--json")
    device = json.loads(done.stdout)["devices"][0]
    problems = [] if device["backend"] == "vulkan" else [f"backend {device['backend']}"]
    if device["choices"]["device"] is None or device["choices"]["upload"] is None:
        problems.append(f"choices: {device['choices']}")
    features, text = device["features"], run(tool, "devices", "--backend", "vulkan").stdout
    for name, is_used in features.items():
        if not re.search(rf"^  {name} +{'yes' if is_used else 'no'}$", text, re.MULTILINE):
            problems.append(f"{name} is {is_used}, and the text differs")
    unused = {name for name, is_used in features.items() if not is_used}
    if len(features) != 20 or os.environ.get("QUIRE_FAKE_LAYOUT") == "amd-bar" and unused != AMD_UNUSED:
        problems.append(f"unused features: {unused}")
    return problems + ([] if not done.stderr else [done.stderr])


def check_tour(tool):
    """An image of 32 x 32 bytes, followed by a buffer; in the next page where images have their own."""
    done = run(tool, "tour", "--backend", "vulkan", "--json")
    if done.returncode:
        return [done.stderr]
    device = json.loads(run(tool, "devices", "--backend", "vulkan", "--json").stdout)["devices"][0]
    apart = device["limits"]["bufferImageGranularity"] > 1024
    image, buffer, staging = json.loads(done.stdout)["allocations"]
    problems = [f"{a['name']}: {a}" for a, page in ((image, 0), (buffer, int(apart)), (staging, 0))
                if a["page"] != page or a["size"] < 1024]
    # the guard bytes of a checked build before them count as left padding
    end = 0 if apart else image["offset"] + image["size"]
    if image["offset"] != image["left_padding"] or buffer["offset"] - buffer["left_padding"] < end:
        problems.append(f"image {image}, buffer {buffer}")
    return problems


def check_tour_apart(tool):
    """A driver that prefers a dedicated page for the image; only texels are copied to it."""
    done = run(tool, "tour", "--backend", "vulkan", "--json", QUIRE_FAKE_FLAGS="prefer-dedicated")
    if done.returncode:
        return [done.stderr]
    image, buffer, _ = json.loads(done.stdout)["allocations"]
    return [f"image {image}, buffer {buffer}"] if image["page"] == buffer["page"] else []


def check_copy(tool):
    """Every pair of kinds has a copy path. The tool fails if the received bytes differ."""
    done = run(tool, "copy", "--backend", "vulkan", "--size", "1000001", "--repeats", "1", "--json")
    if done.returncode:
        return [done.stderr]
    copies = json.loads(done.stdout)["copies"]
    return [f"{c}" for c in copies if c["path"] not in ("direct", "staged")] + \
        ([] if len(copies) >= 3 else [f"{copies}"])


def check_replay(tool, root):
    trace = root / "docs/traces/ncnn-mobilenet_v2.csv"
    done = run(tool, "replay", str(trace), "--backend", "vulkan", "--json")
    if done.returncode:
        return [done.stderr]
    value, host = json.loads(done.stdout), json.loads(run(tool, "replay", str(trace), "--json").stdout)
    return [f"{key}: {value[key]}, on the host backend {host[key]}"
            for key in ("operations", "allocations", "frees", "failures", "peak_requested_bytes")
            if value[key] != host[key]] + ([] if value["backend"] == "vulkan" else [value["backend"]])


def check_refusals(tool, root):
    profile = str(root / "docs/profiles/raspberrypi-v3dv-mesa-25.0.json")
    cases = [
        (2, "--profile requires the host", run(tool, "devices", "--backend", "vulkan", "--profile", profile)),
        (1, "matches 'no such device'", run(tool, "devices", "--backend", "vulkan",
                                            QUIRE_VULKAN_DEVICE="no such device")),
        (1, "matches 'no such device'", run(tool, "devices", "--backend", "vulkan", "--device",
                                            "no such device", QUIRE_VULKAN_DEVICE="0")),
        (1, "", run(tool, "devices", "--backend", "vulkan", VK_ICD_FILENAMES="/nonexistent")),
    ]
    return [f"{done.returncode}: {done.stderr}" for code, part, done in cases
            if done.returncode != code or part not in done.stderr or not done.stderr or done.stdout]


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    tap = Tap()
    there = run(tool, "devices", "--backend", "vulkan")
    cases = [("devices", check_devices, ()), ("tour", check_tour, ()),
             ("copy", check_copy, ()),
             ("replay", check_replay, (root,)), ("refusals", check_refusals, (root,))]
    for name, check, args in cases:
        if there.returncode:
            tap.skip(name, there.stderr.strip())
        else:
            tap.case(name, check(tool, *args))
    if "quire-fake-vulkan" in os.environ.get("VK_ICD_FILENAMES", ""):
        tap.case("tour, the image apart", check_tour_apart(tool))
    tap.end()


main()
