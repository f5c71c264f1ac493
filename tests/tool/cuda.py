# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tool on the fake CUDA driver, and without a driver.

usage: cuda.py TOOL SOURCE_ROOT DRIVER_FOLDER

DRIVER_FOLDER has the libcuda.so.1 of the tests.
"""

import pathlib
import sys
import tempfile

from backend_run import PROFILE, Backend, refusal_problems
from tap import Tap

CUDA = Backend("cuda", LD_LIBRARY_PATH=sys.argv[3])


def device_problems():
    device = CUDA.device()
    choices = device["choices"]
    if device["backend"] != "cuda" or choices["device"] != 0 or None in (choices["upload"], choices["readback"]):
        yield f"{device}"


def tour_problems():
    image, buffer, staging = CUDA.tour()
    yield from (f"{a['name']}: {a}" for a in (image, buffer, staging) if a["page"] or a["size"] < 1024)
    if buffer["offset"] - buffer["left_padding"] < image["offset"] + image["size"]:
        yield f"image {image}, buffer {buffer}"


def refused():
    with tempfile.TemporaryDirectory() as empty:
        # a file that is no library hides a driver that the machine may have
        (pathlib.Path(empty) / "libcuda.so.1").write_text("no driver\n")
        return refusal_problems(
            (2, "--profile requires the host", CUDA.run("devices", "--profile", PROFILE)),
            (1, "matches 'no such device'", CUDA.run("devices", QUIRE_CUDA_DEVICE="no such device")),
            (1, "matches 'no such device'", CUDA.run("devices", "--device", "no such device", QUIRE_CUDA_DEVICE="0")),
            (1, "CUDA driver not found", CUDA.run("devices", LD_LIBRARY_PATH=empty)),
            (1, "CUDA driver not found", CUDA.run("tour", LD_LIBRARY_PATH=empty)))


def main():
    tap = Tap()
    tap.attempt("devices", device_problems)
    tap.attempt("tour", tour_problems)
    tap.attempt("copy", CUDA.copy_problems, ("direct",), 8)
    tap.attempt("replay", CUDA.replay_problems)
    tap.attempt("errors", refused)
    tap.end()


main()
