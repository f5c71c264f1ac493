"""The tool on the fake CUDA driver, and without a driver.

usage: cuda.py TOOL SOURCE_ROOT DRIVER_FOLDER

DRIVER_FOLDER has the libcuda.so.1 of the tests.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tap import Tap


def run(tool, folder, *args, **env):
    return subprocess.run([tool, *args], text=True, capture_output=True,
                          env={**os.environ, "LD_LIBRARY_PATH": folder, **env})


def check_devices(tool, folder):
    done = run(tool, folder, "devices", "--backend", "cuda", "--json")
    if done.returncode:
        return [done.stderr]
    device = json.loads(done.stdout)["devices"][0]
    problems = [] if device["backend"] == "cuda" else [f"backend {device['backend']}"]
    choices = device["choices"]
    if choices["device"] != 0 or choices["upload"] is None or choices["readback"] is None:
        problems.append(f"choices: {choices}")
    return problems + ([] if not done.stderr else [done.stderr])


def check_tour(tool, folder):
    done = run(tool, folder, "tour", "--backend", "cuda", "--json")
    if done.returncode:
        return [done.stderr]
    image, buffer, staging = json.loads(done.stdout)["allocations"]
    problems = [f"{a['name']}: {a}" for a in (image, buffer, staging) if a["page"] or a["size"] < 1024]
    if buffer["offset"] - buffer["left_padding"] < image["offset"] + image["size"]:
        problems.append(f"image {image}, buffer {buffer}")
    return problems


def check_copy(tool, folder):
    """Every pair of kinds has a copy path. The tool fails if the received bytes differ."""
    done = run(tool, folder, "copy", "--backend", "cuda", "--size", "1000001", "--repeats", "1",
               "--json")
    if done.returncode:
        return [done.stderr]
    copies = json.loads(done.stdout)["copies"]
    return [f"{c}" for c in copies if c["path"] != "direct"] + \
        ([] if len(copies) >= 8 else [f"{copies}"])


def check_replay(tool, folder, root):
    trace = root / "docs/traces/ncnn-mobilenet_v2.csv"
    done = run(tool, folder, "replay", str(trace), "--backend", "cuda", "--json")
    if done.returncode:
        return [done.stderr]
    value = json.loads(done.stdout)
    host = json.loads(run(tool, folder, "replay", str(trace), "--json").stdout)
    return [f"{key}: {value[key]}, on the host backend {host[key]}"
            for key in ("operations", "allocations", "frees", "failures", "peak_requested_bytes")
            if value[key] != host[key]] + ([] if value["backend"] == "cuda" else [value["backend"]])


def check_refusals(tool, folder, root):
    profile = str(root / "docs/profiles/raspberrypi-v3dv-mesa-25.0.json")
    with tempfile.TemporaryDirectory() as empty:
        # a file that is no library hides a driver that the machine may have
        (pathlib.Path(empty) / "libcuda.so.1").write_text("no driver\n")
        cases = [
            (2, "--profile requires the host", run(tool, folder, "devices", "--backend", "cuda", "--profile", profile)),
            (1, "matches 'no such device'", run(tool, folder, "devices", "--backend", "cuda",
                                             QUIRE_CUDA_DEVICE="no such device")),
            (1, "matches 'no such device'", run(tool, folder, "devices", "--backend", "cuda",
                                             "--device", "no such device", QUIRE_CUDA_DEVICE="0")),
            (1, "CUDA driver not found", run(tool, empty, "devices", "--backend", "cuda")),
            (1, "CUDA driver not found", run(tool, empty, "tour", "--backend", "cuda")),
        ]
    return [f"{done.returncode}: {done.stderr}" for code, part, done in cases
            if done.returncode != code or part not in done.stderr or done.stdout]


def main():
    tool, root, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    tap = Tap()
    tap.case("devices", check_devices(tool, folder))
    tap.case("tour", check_tour(tool, folder))
    tap.case("copy", check_copy(tool, folder))
    tap.case("replay", check_replay(tool, folder, root))
    tap.case("errors", check_refusals(tool, folder, root))
    tap.end()


main()
