# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions with holes back hardly more than what lives: a goal for each trace and size of chunks.

usage: bench_holes.py BENCH_HOLES SOURCE_ROOT

QUIRE_TEST_DATA names a folder with further traces.
"""

import os
import pathlib
import subprocess
import sys

from tap import Tap

KIB, MIB = 1 << 10, 1 << 20
# bytes that are backed beside bytes that live, at most
GOALS = [
    (2 * MIB, 1.01, "llm-serving transformer-training llm-kv-conversation pytorch-*"),
    (8 * MIB, 1.02, "llm-serving transformer-training llm-kv-conversation pytorch-*"),
    (256 * KIB, 1.06, "torch-cpu-* recorded-imagemagick onnxruntime-* ncnn-resnet50 ncnn-yolov4-tiny"),
    (256 * KIB, 1.10, "dawn"),
]


def traces(folders, patterns):
    return [str(path) for folder in folders for pattern in patterns.split()
            for path in sorted(folder.glob(pattern + ".csv"))]


def main():
    program, root = sys.argv[1:3]
    folders = [pathlib.Path(root) / "docs/traces"]
    if os.environ.get("QUIRE_TEST_DATA"):
        folders.append(pathlib.Path(os.environ["QUIRE_TEST_DATA"]) / "traces")
    tap = Tap()
    for chunk, goal, patterns in GOALS:
        done = subprocess.run([program, "--chunk", str(chunk), "--goal", str(goal), *traces(folders, patterns)],
                              capture_output=True, text=True, check=False)
        problems = [done.stdout + done.stderr] if done.returncode else []
        tap.case(f"chunks of {chunk // KIB} KiB: at most {goal} of what lives, {patterns}", problems)
    for what, words in (("a chunk that is no power of two", ["--chunk", "3"]), ("an unknown option", ["--goals", "1"])):
        usage = subprocess.run([program, *words, "x.csv"], capture_output=True, text=True, check=False)
        tap.case(f"{what} is refused", [] if usage.returncode == 2 else [usage.stderr])
    missing = subprocess.run([program, "/no/such/trace.csv"], capture_output=True, text=True, check=False)
    tap.case("a trace that is not there is named",
             [] if missing.returncode == 1 and "trace.csv" in missing.stderr else [missing.stderr])
    tap.end()


main()
