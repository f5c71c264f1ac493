# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench_vulkan and the tables of its results, on one Vulkan driver: a very short run.

usage: bench_vulkan.py BENCH_VULKAN SOURCE_ROOT

Skipped without a driver (VK_ICD_FILENAMES names one).
"""

import pathlib
import sys
import tempfile

from bench_run import page_problems, row_problems, run, short_run, usage_problems
from tap import Tap

ROOT = pathlib.Path(sys.argv[2])
SHORT = ("--reps", "1", "--pairs", "100", "--family", "full-pages", "--family", "writes")


def part_problems(figures):
    present = {s["name"] for s in figures["subjects"] if not s["absent"]}
    plain = {name for name in present if name != "quire, create info"}
    if "quire" not in present or not figures["device"]:
        yield str(figures["subjects"])
    for part in ("ranges", "buffers", "images", "uploads"):
        names = present if part == "buffers" else plain
        wanted = {(name, n) for name in names for n in (1, 16, 64, 256, 1024)}
        yield from row_problems(part, figures[part], ("subject", "pages"), wanted, "pair_ns")
        yield from (str(row) for row in figures[part] if row["pairs"] < 100)


def mock_problems():
    """Without a device: every part by name, and the run for an instruction counter."""
    for part in ("ranges", "buffers", "images", "uploads"):
        done = run("--mock", "--part", part, "--count", "a1k", "--subject", "quire")
        if done.returncode or len(done.stdout.split()) != 2 or int(done.stdout.split()[0]) < 1000:
            yield f"{part}: {done.returncode} {done.stdout[:80]} {done.stderr[:80]}"
    done = run("--mock", *SHORT, "--part", "buffers")
    if done.returncode or "device: mock" not in done.stdout or "-- images" in done.stdout:
        yield f"{done.returncode} {done.stdout[:200]} {done.stderr[:80]}"
    if run("--mock", "--count", "a1k", "--subject", "quire").returncode != 2:
        yield "a count of no part is taken"


def write_problems(figures):
    """All ways, or those without a stream on a driver without timeline semaphores."""
    ways = [row["way"] for row in figures["writes"]]
    if ways not in (["one by one", "batch"], ["one by one", "batch", "stream", "batch on stream"]):
        yield str(ways)
    for row in figures["writes"]:
        if not 0 < row["returned_ns"]["min"] <= row["written_ns"]["min"]:
            yield str(row)


def main():
    tap = Tap()
    tap.case("bad usage is rejected", usage_problems(("--reps", "0"), ("--pairs", "x"), ("--nothing",), ("stray",)))
    tap.case("the driver without a device", mock_problems())
    listed = run("--list")
    if "device: none" in listed.stdout:
        tap.skip("measurements", listed.stdout.split("not supported: ")[-1].splitlines()[0])
        tap.end()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "vulkan.json"
        figures = short_run(tap, path, *SHORT)
        if figures:
            tap.case("every part is measured", part_problems(figures))
            tap.case("writes are measured", write_problems(figures))
            tap.case("its tables are written into a page",
                     page_problems(folder, ROOT / "bench/vulkan_tables.py", "vulkan figures", path,
                                   wanted=("reached", "16384 in pages of 1 MiB", "Ranges:", "Buffers:", "Images:",
                                           "Uploads,")))
    tap.end()


main()
