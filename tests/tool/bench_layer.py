# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench_layer and the table of its results, on the fake Vulkan driver: a very short run.

usage: bench_layer.py BENCH_LAYER LAYER_FOLDER FAKE_MANIFEST SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import sys
import tempfile

from bench_run import page_problems, run, usage_problems
from tap import Tap

PROGRAM, FOLDER, MANIFEST, ROOT = sys.argv[1:5]
os.environ["VK_ICD_FILENAMES"] = MANIFEST
SHORT = ("--reps", "2", "--objects", "10", "--size", "4096")


def figure_problems():
    done = run(*SHORT)
    if done.returncode:
        yield done.stderr
        return
    figures = json.loads(done.stdout)
    if (figures["objects"], figures["size"], figures["reps"]) != (10, 4096, 2) or not figures["device"]:
        yield str(figures)
    yield from (f"{call} takes {figures[call]}" for call in ("allocate", "bind", "map", "unmap", "free")
                if not figures[call] > 0)


def table_problems(folder):
    yield from page_problems(folder, pathlib.Path(ROOT, "bench/layer_tables.py"), "layer figures", PROGRAM, FOLDER,
                             more=("--rounds", "1", "--", *SHORT))
    text = (folder / "page.md").read_text()
    if len(re.findall(r"^\| `vk\w+` \| \d+ \| \d+ \| \d+\.\d\d \|$", text, re.M)) != 5:
        yield text


def main():
    tap = Tap()
    tap.case("options that are no options are refused", usage_problems(
        ("--reps", "0"), ("--objects", "5000"), ("--size", "x"), ("stray",), chooses=None))
    tap.case("every call has a time", figure_problems())
    with tempfile.TemporaryDirectory() as where:
        tap.case("the table has a row for each call", table_problems(pathlib.Path(where)))
    tap.end()


main()
