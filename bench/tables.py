# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the results of a run of bench_space into a page, between its marks `<!-- figures -->`.

usage: tables.py FIGURES.json PAGE.md [--instructions FILE.json] [--chart FILE.svg]
"""

import argparse
import os
import pathlib

from figures_file import SIZES, SPEED, Figures
from goals import GOALS
from page import filled, formed, replace, table

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
REACHED = ("no", "must", "stretch")
ADVERSARIES = {"g1": "no hole is large enough", "g2": "no hole is aligned",
               "g3": "one hole of many fits", "g4": "refused again and again",
               "g5": "refused in many sizes"}


# ---- the parts ----------------------------------------------------------------------------------

def goal_row(figures, goal):
    best = goal.best(figures)
    if not best:
        return (f"{goal.text}", goal.line, goal.must, goal.stretch, goal.missing(figures), "-")
    rank, subject, found = best
    measured = ", ".join(f"{what} {formed(goal.form, value) or 'not in this run'}"
                         for what, value, _, _ in found)
    return (goal.text, goal.line, goal.must, goal.stretch, f"{measured} ({subject})",
            "-" if rank is None else REACHED[rank])


def goals(figures):
    head = ("goal", "line", "must", "stretch", "measured", "reached")
    return table(head, [goal_row(figures, goal) for goal in GOALS])


def speed_cell(figures, workload, subject):
    least, median = (figures.pair(workload, subject, which) for which in ("min", "median"))
    if least is None:
        return None
    refused = figures.refused(workload, subject)
    return f"{least:.0f} / {median:.0f}" + (f" ({refused:.0%} failed)" if refused > 0.0005 else "")


def speed(figures):
    subjects = figures.subjects("space", "peer", "reference", "heap", "floor")
    rows = [(name, *(speed_cell(figures, w, name) for w in SPEED)) for name in subjects]
    return table(("subject", *(f"`{w}`" for w in SPEED)), filled(rows))


def metadata(figures):
    names = ("a1k", "a10k", "a100k", "a1m", "a100k_raw", "b1k", "b100k")
    rows = [(s, *(formed("{:.1f}", figures.metadata(w, s)) for w in names))
            for s in figures.subjects("space", "peer", "reference")]
    return table(("subject", *(f"`{w}`" for w in names)), filled(rows))


def latency_cell(row, kind):
    if not row:
        return None
    return " ".join(f"{row[kind][key]:.0f}" for key in ("p50", "p99", "p999", "max"))


def latency(figures):
    head, rows = ["subject"], []
    names = ("a1k", "a100k", "b100k", "a1m")
    for name in names:
        head += [f"`{name}` allocate", f"`{name}` free"]
    for subject in figures.subjects("space", "peer", "heap"):
        row = [subject]
        for name in names:
            found = figures.latency(name, subject)
            row += [latency_cell(found, "allocate_ns"), latency_cell(found, "free_ns")]
        rows.append(row)
    return table(head, filled(rows))


def ramps(figures):
    rows = [(s, *(formed("{:.3f}", figures.ramp(sizes, s)) for sizes in SIZES))
            for s in figures.subjects("space", "peer", "reference")]
    return table(("subject", *(f"`{s}`" for s in SIZES)), filled(rows))


def fills(figures):
    head = ["subject"]
    for sizes in SIZES:
        head += [f"`{sizes}` 90 %", "95 %"]
    rows = [(s, *(formed("{:.1f}", figures.fill(sizes, s, target))
                  for sizes in SIZES for target in (0.90, 0.95)))
            for s in figures.subjects("space", "peer", "reference")]
    return table(head, filled(rows))


def arenas(figures):
    names = list(dict.fromkeys(row["workload"] for row in figures.data["smallest_arena"]))
    rows = []
    for subject in figures.subjects("space", "peer", "reference"):
        found = [figures.row("smallest_arena", workload=w, subject=subject) for w in names]
        rows.append((subject, *(formed("{:.3f}", row and row["utilisation"]) for row in found)))
    return table(("subject", *(f"`{w}`" for w in names)), filled(rows))


def adversary_cell(row):
    if not row:
        return None
    found = f", {row['found']} found" if row["found"] else ""
    return f"{row['request_ns']:.0f} / {row['worst_ns']:.0f}{found}"


def adversaries(figures):
    rows = [(s, *(adversary_cell(figures.adversary(name, s)) for name in ADVERSARIES))
            for s in figures.subjects("space", "peer", "reference")]
    return table(("subject", *(f"`{n}`: {what}" for n, what in ADVERSARIES.items())), filled(rows))


def counts(figures):
    rows = [(row["subject"], f"{row['allocate']:.0f}", f"{row['free']:.0f}")
            for row in figures.data["instructions"]]
    return table(("instructions, `a10k`", "allocate", "free"), rows) if rows else []


PARTS = (
    ("Goals. The best suitable subject of the project counts.", goals),
    ("Nanoseconds per pair of free and allocate, minimum / median.", speed),
    ("Metadata in host bytes per live range.", metadata),
    ("Latency of single calls in nanoseconds, the minimum of five runs of each call: 50 %, 99 %, "
     "99.9 % and the slowest.", latency),
    ("Live share of the arena at the first failure (`ramp-…`).", ramps),
    ("Failures per 1000 requests (`fill-…`).", fills),
    ("Live peak divided by the smallest arena in which a workload succeeds.", arenas),
    ("Layouts that cause long searches: nanoseconds per request, mean / slowest of 1000.",
     adversaries),
    ("Instructions per call, by callgrind.", counts),
)


def machine(figures):
    about, reps = figures.data["machine"], figures.data["reps"]
    lines = [f"Version {figures.data['version']}, compiler {about['compiler']}, "
             f"{about['processor']}, {reps} repeats (at most 5 of `a1m`).", ""]
    for name, reason in figures.absent.items():
        lines += [f"- not in this run: {name} ({reason})"]
    return lines + ([""] if figures.absent else [])


def links(options):
    """Links to the chart and to the results, relative to the page."""
    near = [os.path.relpath(path, options.page.parent) if path else None
            for path in (options.figures, options.chart)]
    lines = [f"All results of the run: [{pathlib.Path(near[0]).name}]({near[0]}).", ""]
    if near[1]:
        lines += [f"![Speed as a ratio to VMA, and the occupancy that an arena reaches]({near[1]})", ""]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--instructions")
    parser.add_argument("--chart")
    options = parser.parse_args()
    figures = Figures(options.figures, options.instructions)
    lines = machine(figures) + links(options)
    for title, part in PARTS:
        rows = part(figures)
        if len(rows) > 3:
            lines += [title, "", *rows]
    replace(options.page, BEGIN, END, lines)


main()
