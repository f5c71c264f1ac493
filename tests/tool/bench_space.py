# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench_space and the tables and chart of its results: a very short run.

usage: bench_space.py BENCH_SPACE SOURCE_ROOT
"""

import pathlib
import sys
import tempfile
import xml.etree.ElementTree

from bench_run import list_problems, page_problems, run, script, short_run, spread_problems, usage_problems
from tap import Tap

ROOT = pathlib.Path(sys.argv[2])
SHORT = ("--reps", "1", "--max-steps", "2000", "--workload", "c1k", "--workload", "ramp-tex",
         "--workload", "fill-tex", "--workload", "m_dnn", "--workload", "g4", "--without", "VMA, *",
         "--subject", "segregated*", "--subject", "VMA*", "--subject", "exact best fit")
PARTS = ("speed", "ramp", "fill", "smallest_arena")


def row_problems(figures):
    present = [s["name"] for s in figures["subjects"] if not s["absent"]]
    wanted = [n for n in present if n.startswith("segregated") or n in ("VMA", "exact best fit")]
    for part in PARTS:
        found = {row["subject"] for row in figures[part]}
        expected = {n for n in wanted if part == "speed" or "batch" not in n}
        if found != expected:
            yield f"{part}: {sorted(found)}, not {sorted(expected)}"
    for row in figures["speed"]:
        if row["refused"]:
            yield str(row)
        yield from spread_problems(row, "pair_ns")
    for row in figures["ramp"] + figures["smallest_arena"]:
        if not 0.4 < row["utilisation"] <= 1:
            yield str(row)


def refusal_problems(figures):
    """A space remembers a refusal: 1000 cost far less than 1000 times the first."""
    rows = {row["subject"]: row for row in figures["adversaries"]}
    row = rows["segregated"]
    if row["workload"] != "g4" or row["found"] or row["requests"] != 1000:
        yield str(row)
    if not 0 < row["request_ns"] * row["requests"] < 200 * row["first_ns"]:
        yield f"refusals are not remembered: {row}"


def chart_problems(folder, figures):
    chart = folder / "chart.svg"
    done = script(ROOT / "bench/chart.py", figures, chart)
    if done.returncode:
        yield done.stderr
    elif xml.etree.ElementTree.parse(chart).getroot().tag != "{http://www.w3.org/2000/svg}svg":
        yield "the chart is no SVG"


def main():
    tap = Tap()
    tap.case("bad usage is rejected", usage_problems(
        ("--reps", "0"), ("--reps", "x"), ("--nothing",), ("stray",), ("--count", "a1k"),
        ("--count", "none", "--subject", "segregated"), chooses="--workload"))
    tap.case("a peer that is not there is refused",
             [] if run("--peer", "/no/such/peer").returncode == 1 else ["it is taken"])
    tap.case("subjects are listed",
             list_problems("segregated", "first", "VMA", "exact best fit", "mimalloc", "jemalloc"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "space.json"
        figures = short_run(tap, path, *SHORT)
        if figures:
            tap.case("it measures everything requested", row_problems(figures))
            tap.case("a refusal is remembered", refusal_problems(figures))
            tap.case("its tables are written into a page",
                     page_problems(folder, ROOT / "bench/tables.py", "figures", path,
                                   wanted=("reached", "| segregated |", "`c1k`", "`tex`", "`m_dnn`")))
            tap.case("its chart is drawn", chart_problems(folder, path))
    tap.end()


main()
