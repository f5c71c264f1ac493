"""bench_vma and the compile times of its headers: very short runs.

usage: bench_vma.py BENCH_VMA SOURCE_ROOT [FOLDER_OF_VMA]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from tap import Tap

PROGRAM, ROOT, VMA = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
SCENARIOS = ("frame", "uploads", "full", "transients", "textures", "small", "threads-1", "threads-2", "threads-4",
             "virtual", "information", "mapping", "mapping-2", "opening")
TIMES = ("mean_ns", "median_ns", "p99_ns", "max_ns")


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def subjects():
    lines = run("--list").stdout.splitlines()
    return [line.split(": ")[1] for line in lines if line.startswith("subject: ")]


def usage_problems():
    for words in (("--reps", "0"), ("--operations", "x"), ("--nothing",), ("stray",), ("--once",)):
        done = run(*words)
        if done.returncode != 2 or not done.stderr:
            yield f"{words}: {done.returncode} {done.stderr[:80]}"
    if run("--scenario", "none", "--json", "/no/such/folder/file").returncode != 1:
        yield "a file that cannot be made is taken"


def row_problems(rows, names):
    found = [(row["scenario"], row["subject"]) for row in rows]
    if found != [(scenario, name) for scenario in SCENARIOS for name in names]:
        yield str(found)
    for row in rows:
        if any(not 0 < row[key]["min"] <= row[key]["median"] for key in TIMES):
            yield str(row)
        if row["median_ns"]["median"] > row["max_ns"]["median"] or not row["operations"]:
            yield str(row)
        is_virtual = row["scenario"] in ("virtual", "opening")
        if is_virtual != (row["peak_bytes"] == 0) or row["live_bytes"] > row["peak_bytes"]:
            yield str(row)


def compile_problems(folder, has_vma):
    """The implementation of VMA compiles longer than any file that uses it."""
    path = folder / "compile.json"
    done = subprocess.run([sys.executable, ROOT / "bench/vma_compile.py", "--reps", "1", "--json", path,
                           *(["--vma", VMA[0]] if VMA else [])],
                          capture_output=True, text=True, check=False)
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


def page_problems(folder, has_vma):
    page = folder / "page.md"
    page.write_text("before\n<!-- vma figures -->\nold\n<!-- end of vma figures -->\nafter\n")
    done = subprocess.run([sys.executable, ROOT / "bench/vma_tables.py", folder / "vma.json",
                           folder / "compile.json", page], capture_output=True, text=True, check=False)
    text = page.read_text()
    if done.returncode or "old" in text or not text.startswith("before\n") or not text.endswith("\nafter\n"):
        yield f"{done.returncode} {done.stderr} {text}"
    if text.count("one of 10,000 buffers and images replaced") != (2 if has_vma else 0):
        yield text


def main():
    tap = Tap()
    names = subjects()
    tap.case("the programs are listed",
             [] if names in (["quire_vma.h"], ["VMA", "quire_vma.h"]) else [str(names)])
    tap.case("bad usage is rejected", usage_problems())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vma.json"
        done = run("--reps", "1", "--operations", "3000", "--pause", "1", "--json", path)
        tap.case("a short run succeeds", [done.stderr] if done.returncode or done.stderr else [])
        if not done.returncode:
            tap.case("every scenario is measured",
                     row_problems(json.loads(path.read_text())["program"], names))
        tap.case("compilers are timed",
                 compile_problems(pathlib.Path(folder), "VMA" in names))
        tap.case("the tables are written into a page", page_problems(pathlib.Path(folder), "VMA" in names))
    done = run("--once", "--scenario", "virtual", "--subject", "quire_vma.h", "--operations", "64")
    tap.case("a run for an instruction counter",
             [] if done.stdout == "64 operations\n" else [done.stdout + done.stderr])
    tap.end()


main()
