# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench_vma and the compile times of its headers: very short runs.

usage: bench_vma.py BENCH_VMA SOURCE_ROOT [FOLDER_OF_VMA]
"""

import json
import pathlib
import sys
import tempfile

from bench_run import page_problems, run, script, short_run, spread_problems, usage_problems
from tap import Tap

ROOT, VMA = pathlib.Path(sys.argv[2]), sys.argv[3:]
SCENARIOS = ("frame", "uploads", "full", "transients", "textures", "small", "threads-1", "threads-2", "threads-4",
             "virtual", "information", "mapping", "mapping-2", "opening")
TIMES = ("mean_ns", "median_ns", "p99_ns", "max_ns")


def subjects():
    lines = run("--list").stdout.splitlines()
    return [line.split(": ")[1] for line in lines if line.startswith("subject: ")]


def row_problems(rows, names):
    found = [(row["scenario"], row["subject"]) for row in rows]
    if found != [(scenario, name) for scenario in SCENARIOS for name in names]:
        yield str(found)
    for row in rows:
        yield from spread_problems(row, *TIMES)
        if row["median_ns"]["median"] > row["max_ns"]["median"] or not row["operations"]:
            yield str(row)
        is_virtual = row["scenario"] in ("virtual", "opening")
        if is_virtual != (row["peak_bytes"] == 0) or row["live_bytes"] > row["peak_bytes"]:
            yield str(row)


def compile_problems(folder, has_vma):
    """The implementation of VMA compiles longer than any file that uses it."""
    path = folder / "compile.json"
    done = script(ROOT / "bench/vma_compile.py", "--reps", "1", "--json", path, *(["--vma", VMA[0]] if VMA else []))
    if done.returncode:
        yield done.stderr
        return
    rows = {row["file"]: row for row in json.loads(path.read_text())["compile"]}
    wanted = {"quire_vma.h, C", "quire_vma.h, C++"}
    if has_vma:
        wanted |= {"VMA, C", "VMA, C++", "VMA, implementation"}
    if not wanted <= set(rows):
        yield f"{sorted(rows)}, not {sorted(wanted)}: {done.stderr}"
    elif has_vma and rows["VMA, implementation"]["min_s"] < 3 * rows["quire_vma.h, C++"]["min_s"]:
        yield str(rows)
    for row in rows.values():
        if row["lines"] < 100 or not row["object_bytes"] or not 0 < row["min_s"] <= row["median_s"]:
            yield str(row)


def table_problems(text, has_vma):
    if text.count("one of 10,000 buffers and images replaced") != (2 if has_vma else 0):
        yield text


def main():
    tap = Tap()
    names = subjects()
    tap.case("the programs are listed", [] if names in (["quire_vma.h"], ["VMA", "quire_vma.h"]) else [str(names)])
    tap.case("bad usage is rejected", usage_problems(
        ("--reps", "0"), ("--operations", "x"), ("--nothing",), ("stray",), ("--once",), chooses="--scenario"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        figures = short_run(tap, folder / "vma.json", "--reps", "1", "--operations", "3000", "--pause", "1")
        if figures:
            tap.case("every scenario is measured", row_problems(figures["program"], names))
        tap.case("compilers are timed", compile_problems(folder, "VMA" in names))
        tap.case("the tables are written into a page", [
            *page_problems(folder, ROOT / "bench/vma_tables.py", "vma figures", folder / "vma.json",
                           folder / "compile.json"),
            *table_problems((folder / "page.md").read_text(), "VMA" in names)])
    done = run("--once", "--scenario", "virtual", "--subject", "quire_vma.h", "--operations", "64")
    tap.case("a run for an instruction counter",
             [] if done.stdout == "64 operations\n" else [done.stdout + done.stderr])
    tap.end()


main()
