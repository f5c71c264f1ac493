# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the results of bench_memory about locks into a page, between its marks
`<!-- lock figures -->`.

usage: lock_tables.py FIGURES.json PAGE.md
"""

from memory_figures import MemoryFigures
from memory_tables import head, locks, parsed, titled
from page import replace, table

BEGIN, END = "<!-- lock figures -->", "<!-- end of lock figures -->"


def cell(waits):
    return waits and " / ".join(f"{ns / 1000:.3g}" if ns < 1e5 else f"{ns / 1000:.0f}"
                                for ns in waits)


def scene_text(hold_ns, busy):
    hold = f"{hold_ns} ns" if hold_ns < 1000 else f"{hold_ns / 1000:g} µs"
    return f"{hold}{', busy' if busy else ''}"


def latency(figures):
    rows = figures.rows("lock_latency")
    counts = sorted({row["threads"] for row in rows})
    scenes = dict.fromkeys((row["hold_ns"], row["busy"], row["lock"]) for row in rows)
    cells = [(scene_text(hold_ns, busy), lock,
              *(cell(figures.wait(lock, threads=n, hold_ns=hold_ns, busy=busy)) for n in counts))
             for hold_ns, busy, lock in scenes]
    return table(("held for", "lock", *(f"{n} threads" for n in counts)), cells)


PARTS = (
    ("Nanoseconds to acquire and release an uncontended lock.", locks),
    ("Microseconds from requesting a contended lock to holding it: p50 / p99 / p99.9 / longest, "
     "medians of the undisturbed repeats (-: there were none).", latency),
)


def main():
    options = parsed(__doc__)
    figures = MemoryFigures(options.figures)
    figures.absent = {} # no part compares memories
    lines = head(figures, options) + titled(PARTS, figures)
    replace(options.page, BEGIN, END, lines)


if __name__ == "__main__":
    main()
