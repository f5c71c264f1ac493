# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the results of a run of bench_memory into a page, between its marks
`<!-- memory figures -->`.

usage: memory_tables.py FIGURES.json PAGE.md
"""

import argparse
import os
import pathlib

from memory_figures import QUIRE, VMA, MemoryFigures, goals, rank
from page import formed, replace, table

BEGIN, END = "<!-- memory figures -->", "<!-- end of memory figures -->"
REACHED = ("no", "must", "stretch")
MIB = 1 << 20


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size >> 10} KiB"


# ---- the parts ----------------------------------------------------------------------------------

def goal_table(wanted):
    rows = []
    for text, line, must, stretch, form, values, at_least in wanted:
        measured = ", ".join(f"{what} {formed(form, value) or 'not in this run'}"
                             for what, value, _, _ in values)
        reached = rank(values, at_least)
        rows.append((text, line, must, stretch, measured,
                     "-" if reached is None else REACHED[reached]))
    return table(("goal", "line", "must", "stretch", "measured", "reached"), rows)


def subjects_of(figures, part, **wanted):
    found = {row["subject"] for row in figures.rows(part, **wanted)}
    return [name for name in figures.names if name in found]


def series_table(figures, series):
    points = figures.series(series)
    names = subjects_of(figures, figures.part, series=series)
    rows = []
    for at, point in enumerate(points):
        found = {name: figures.at(series, name, point) for name in names}
        pages = "; ".join(dict.fromkeys(str(row["pages"]) for row in found.values() if row))
        cells = [row and f"{row['pair_ns']['min']:.0f} / {row['pair_ns']['median']:.0f}"
                 for row in found.values()]
        rows.append((f"{point[1]} in pages of {size_text(point[0])}", pages, *cells,
                     formed("{:.2f}", figures.pages_ratio(series, QUIRE, at)),
                     formed("{:.3f}", figures.pages_to(series, QUIRE, VMA, at))))
    return table(("ranges", "pages", *names, "quire / quire with 1 page", "quire / VMA"), rows)


def pages(figures):
    lines = []
    for series in dict.fromkeys(row["series"] for row in figures.data[figures.part]):
        lines += [f"`{series}`", "", *series_table(figures, series)]
    return lines


def thread_cell(figures, subject, sizes, handed, threads):
    row = figures.row("threads", subject=subject, sizes=sizes, handed=handed, threads=threads)
    if not row:
        return None
    return " / ".join(f"{1e3 / row['pair_ns'][which]:.1f}" for which in ("min", "median"))


def threads(figures):
    counts = sorted({row["threads"] for row in figures.data["threads"]})
    rows = []
    for subject in subjects_of(figures, "threads"):
        for sizes in ("mixed", "small"):
            for handed in (False, True):
                cells = [thread_cell(figures, subject, sizes, handed, n) for n in counts]
                if any(cells):
                    rows.append((f"{subject}, {sizes}{', handed' if handed else ''}", *cells,
                                 formed("{:.2f}", figures.growth(subject, sizes, handed))))
    head = ("", *(f"{n} thread{'s' if n > 1 else ''}" for n in counts), "2 threads / 1")
    return table(head, rows)


def locks(figures):
    names = list(dict.fromkeys(row["lock"] for row in figures.data["locks"]))
    rows = [(name, *(formed("{:.1f}", figures.lock(name, alone)) for alone in (False, True)))
            for name in names if name != "none"]
    return table(("lock", "one thread", "two threads"), rows)


def transient(figures):
    rows = [(f"`{row['pattern']}`, {row['subject']}", row["made"], row["given_back"],
             f"{row['steady_calls']} in {row['steady_frames']} frames",
             row["peak_reserved"] // MIB)
            for row in figures.data["transient"]]
    return table(("", "blocks allocated", "freed", "calls after the tenth frame", "peak, MiB"), rows)


def slow(figures):
    rows = []
    for subject in subjects_of(figures, "slow_driver"):
        found = [figures.row("slow_driver", subject=subject, call=call)
                 for call in ("free", "allocate")]
        rows.append((subject, *(row and f"{row['waited_ms']['min']:.4f} / "
                                f"{row['waited_ms']['median']:.4f}" for row in found)))
    return table(("", "free", "allocate what fits"), rows)


def find(figures):
    rows = [(row["way"], *(f"{row[key]['min']:.1f}" for key in ("median_ns", "p99_ns", "row_ns")))
            for row in figures.data.get("find", []) if row["reps"]]
    return table(("", "median", "99 %", "in a row"), rows)


def free_at(figures):
    rows = [(row["way"], row["threads"],
             f"{row['pair_ns']['min']:.1f} / {row['pair_ns']['median']:.1f}")
            for row in figures.data.get("free_at", []) if row["reps"]]
    return table(("", "threads", "pair"), rows)


def record(figures):
    rows = [(row["way"], f"{row['pair_ns']['min']:.1f} / {row['pair_ns']['median']:.1f}", f"{row['event_ns']:.1f}")
            for row in figures.data.get("record", []) if row["reps"]]
    return table(("", "pair", "each event, beyond no recording"), rows)


PARTS = (
    ("Goals.", lambda figures: goal_table(goals(figures))),
    ("Nanoseconds per pair of free and allocate by number of pages, minimum / median.", pages),
    ("Million pairs per second of all threads together, best / median of the repeats.", threads),
    ("Nanoseconds to acquire and release an uncontended lock.", locks),
    ("Driver calls.", transient),
    ("Milliseconds of a call while another thread creates a page, minimum / median.", slow),
    ("Nanoseconds to look up an address among 100,000 allocations, least over the repeats.", find),
    ("Nanoseconds per pair of an allocation and a free by address, minimum / median.", free_at),
    ("Nanoseconds per pair of an allocation and a free with a recording, minimum / median.", record),
)


def head(figures, options):
    about = figures.data["machine"]
    near = os.path.relpath(options.figures, options.page.parent)
    lines = [f"Version {figures.data['version']}, compiler {about['compiler']}, "
             f"{about['processor']}, {about['processors']} processors, "
             f"{figures.data['reps']} repeats.", ""]
    lines += [f"- not in this run: {name} ({reason})" for name, reason in figures.absent.items()]
    if "device" in figures.data:
        lines[0] = f"{figures.data['device']}. {lines[0]}"
    return lines + [""] * bool(figures.absent) + [
        f"All results of the run: [{pathlib.Path(near).name}]({near}).", ""]


def parsed(about):
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("figures")
    parser.add_argument("page", type=pathlib.Path)
    return parser.parse_args()


def titled(parts, figures):
    lines = []
    for title, part in parts:
        rows = part(figures)
        if len(rows) > 3:
            lines += [title, "", *rows]
    return lines


def main():
    options = parsed(__doc__)
    figures = MemoryFigures(options.figures)
    replace(options.page, BEGIN, END, head(figures, options) + titled(PARTS, figures))


if __name__ == "__main__":
    main()
