"""bench_layer and the table of its results, on the fake Vulkan driver: a very short run.

usage: bench_layer.py BENCH_LAYER LAYER_FOLDER FAKE_MANIFEST SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tap import Tap

PROGRAM, FOLDER, MANIFEST, ROOT = sys.argv[1:5]
SHORT = ("--reps", "2", "--objects", "10", "--size", "4096")
PAGE = "before\n<!-- layer figures -->\nold\n<!-- end of layer figures -->\nafter\n"


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False,
                          env=dict(os.environ, VK_ICD_FILENAMES=MANIFEST))


def usage_problems():
    for words in (("--reps", "0"), ("--objects", "5000"), ("--size", "x"), ("stray",)):
        done = run(PROGRAM, *words)
        if done.returncode != 2 or not done.stderr:
            yield f"{words}: {done.returncode} {done.stderr[:80]}"


def figure_problems():
    done = run(PROGRAM, *SHORT)
    if done.returncode:
        yield done.stderr
        return
    figures = json.loads(done.stdout)
    if (figures["objects"], figures["size"], figures["reps"]) != (10, 4096, 2) or not figures["device"]:
        yield str(figures)
    yield from (f"{call} takes {figures[call]}" for call in ("allocate", "bind", "map", "unmap", "free")
                if not figures[call] > 0)


def page_problems():
    with tempfile.TemporaryDirectory() as where:
        page = pathlib.Path(where, "page.md")
        page.write_text(PAGE)
        done = run(sys.executable, str(pathlib.Path(ROOT, "bench/layer_tables.py")), PROGRAM, FOLDER, str(page),
                   "--rounds", "1", "--", *SHORT)
        text = page.read_text()
        if done.returncode or not text.startswith("before\n") or not text.endswith("\nafter\n") or "old" in text:
            yield f"{done.returncode} {done.stderr} {text}"
        rows = re.findall(r"^\| `vk\w+` \| \d+ \| \d+ \| \d+\.\d\d \|$", text, re.M)
        if len(rows) != 5:
            yield text


def main():
    tap = Tap()
    tap.case("options that are no options are refused", usage_problems())
    tap.case("every call has a time", figure_problems())
    tap.case("the table has a row for each call", page_problems())
    tap.end()


main()
