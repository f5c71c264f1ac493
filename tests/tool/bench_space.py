"""bench_space and the tables and chart of its results: a very short run.

usage: bench_space.py BENCH_SPACE SOURCE_ROOT
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from tap import Tap

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SHORT = ("--reps", "1", "--max-steps", "2000", "--workload", "c1k", "--workload", "ramp-tex",
         "--workload", "fill-tex", "--workload", "m_dnn", "--workload", "g4", "--without", "VMA, *",
         "--subject", "segregated*", "--subject", "VMA*", "--subject", "exact best fit")
PARTS = ("speed", "ramp", "fill", "smallest_arena")


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def usage_problems():
    for words in (("--reps", "0"), ("--reps", "x"), ("--nothing",), ("stray",), ("--count", "a1k"),
                  ("--count", "none", "--subject", "segregated")):
        done = run(*words)
        if done.returncode != 2 or not done.stderr:
            yield f"{words}: {done.returncode} {done.stderr[:80]}"
    if run("--peer", "/no/such/peer").returncode != 1:
        yield "a peer that is not there is taken"


def list_problems():
    """Each subject is listed, as available or with the reason why not."""
    done = run("--list")
    for name in ("segregated", "first", "VMA", "exact best fit", "mimalloc", "jemalloc"):
        if f"  {name} " not in done.stdout:
            yield f"{name} is not listed"
    if done.returncode:
        yield done.stderr


def row_problems(figures):
    present = [s["name"] for s in figures["subjects"] if not s["absent"]]
    wanted = [n for n in present if n.startswith("segregated") or n in ("VMA", "exact best fit")]
    for part in PARTS:
        found = {row["subject"] for row in figures[part]}
        expected = {n for n in wanted if part == "speed" or "batch" not in n}
        if found != expected:
            yield f"{part}: {sorted(found)}, not {sorted(expected)}"
    for row in figures["speed"]:
        if row["refused"] or not 0 < row["pair_ns"]["min"] <= row["pair_ns"]["median"]:
            yield str(row)
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


def page_problems(folder, figures):
    page = folder / "page.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")
    done = subprocess.run([sys.executable, ROOT / "bench/tables.py", figures, page],
                          capture_output=True, text=True, check=False)
    text = page.read_text()
    if done.returncode:
        yield done.stderr
    if "old" in text or not text.startswith("before\n") or not text.endswith("\nafter\n"):
        yield "the rest of the page is not kept"
    for words in ("reached", "| segregated |", "`c1k`", "`tex`", "`m_dnn`"):
        if words not in text:
            yield f"{words} is not on the page"


def chart_problems(folder, figures):
    chart = folder / "chart.svg"
    done = subprocess.run([sys.executable, ROOT / "bench/chart.py", figures, chart],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        yield done.stderr
    elif xml.etree.ElementTree.parse(chart).getroot().tag != "{http://www.w3.org/2000/svg}svg":
        yield "the chart is no SVG"


def main():
    tap = Tap()
    tap.case("bad usage is rejected", usage_problems())
    tap.case("subjects are listed", list_problems())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "space.json"
        done = run(*SHORT, "--json", path)
        tap.case("a short run succeeds", [done.stderr] if done.returncode or done.stderr else [])
        if not done.returncode:
            tap.case("it measures everything requested", row_problems(json.loads(path.read_text())))
            tap.case("a refusal is remembered", refusal_problems(json.loads(path.read_text())))
            tap.case("its tables are written into a page", page_problems(folder, path))
            tap.case("its chart is drawn", chart_problems(folder, path))
    tap.end()


main()
