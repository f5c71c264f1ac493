# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the figures of bench_vma and vma_compile.py into a page, between its marks `<!-- vma figures -->`.

usage: vma_tables.py PROGRAM.json COMPILE.json PAGE.md
"""

import json
import os
import pathlib
import sys

from page import replace, table

BEGIN, END = "<!-- vma figures -->", "<!-- end of vma figures -->"
VMA, QUIRE = "VMA", "quire_vma.h"
BUSY = 0.5  # load for each processor above which the page says that the machine was busy

WHAT = {
    "frame": "one of 10,000 buffers and images replaced",
    "uploads": "staging buffer made, written, destroyed",
    "full": "one of 16,384 buffers replaced, 256 full blocks of 16 MiB",
    "transients": "one of 10 targets of 64 MiB made and destroyed",
    "textures": "one of 2,000 textures and 20,000 buffers replaced, granules of 64 KiB",
    "small": "one of 20,000 textures of 4 to 32 KiB replaced, granules of 64 KiB",
    "threads-1": "buffer or image replaced, 1 thread",
    "threads-2": "the same, 2 threads",
    "threads-4": "the same, 4 threads",
    "virtual": "one of 10,000 virtual allocations replaced",
    "information": "`vmaGetAllocationInfo`",
    "mapping": "`vmaMapMemory` and `vmaUnmapMemory`",
    "mapping-2": "the same, with `MAPPED_BIT`",
    "opening": "allocator created and destroyed",
}


def pairs(rows):
    """Scenario, row of VMA, row of quire; in the order of the run."""
    by_name = {(row["scenario"], row["subject"]): row for row in rows}
    for name in dict.fromkeys(row["scenario"] for row in rows):
        if (name, VMA) in by_name and (name, QUIRE) in by_name:
            yield name, by_name[name, VMA], by_name[name, QUIRE]


def nanoseconds(row, key):
    return f"{row[key]['min']:.0f}"


def mebibytes(row, key):
    return f"{row[key] / 2**20:.0f}"


def times(rows):
    lines = [(WHAT.get(name, name), nanoseconds(vma, "median_ns"), nanoseconds(quire, "median_ns"),
              nanoseconds(vma, "p99_ns"), nanoseconds(quire, "p99_ns"),
              f"{quire['mean_ns']['min'] / vma['mean_ns']['min']:.2f}")
             for name, vma, quire in pairs(rows)]
    return table(("ns", "VMA, median", "quire", "VMA, 99 %", "quire", "mean, ratio"), lines)


def memory(rows):
    lines = [(WHAT.get(name, name), vma["driver_allocations"], quire["driver_allocations"],
              mebibytes(vma, "peak_bytes"), mebibytes(quire, "peak_bytes"),
              mebibytes(vma, "kept_bytes"), mebibytes(quire, "kept_bytes"))
             for name, vma, quire in pairs(rows) if vma["peak_bytes"]]
    return table(("", "`vkAllocateMemory`, VMA", "quire", "peak MiB, VMA", "quire", "kept MiB, VMA", "quire"),
                 lines)


def compilation(rows):
    return table(("compiled file", "ms"),
                 [(row["file"], f"{row['min_s'] * 1e3:.0f}") for row in rows])


def page_lines(program, compiled, load):
    machine = program["machine"]
    busy = f" The machine was busy (load {load:.1f}): compare the ratios." \
        if load > BUSY * os.cpu_count() else ""
    return [f"Device '{program['device']}', {machine['processor']}, {machine['processors']} processors, release build,",
            f"each figure from the least of {program['reps']} runs.{busy}", "", *times(program["program"]),
            "Calls of the driver while the operations were timed, bytes of its memory objects at the peak, and a second",
            "after everything was freed:", "", *memory(program["program"]), *compilation(compiled["compile"])]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, compiled, page = (pathlib.Path(word) for word in sys.argv[1:])
    replace(page, BEGIN, END, page_lines(json.loads(program.read_text()), json.loads(compiled.read_text()),
                                         os.getloadavg()[0]))


main()
