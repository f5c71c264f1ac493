# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the results of a run of bench_vulkan into a page, between its marks
`<!-- vulkan figures -->`.

usage: vulkan_tables.py FIGURES.json PAGE.md
"""

from memory_figures import MemoryFigures, object_goals, peer_goal
from memory_tables import goal_table, head, pages, parsed, titled
from page import replace

PARTS = {
    "ranges": "Ranges: nanoseconds per pair of free and allocate, minimum / median.",
    "buffers": "Buffers: nanoseconds per pair of destruction and creation, minimum / median.",
    "images": "Images: nanoseconds per pair of destruction and creation, minimum / median.",
    "uploads": "Uploads, which are buffers that are mapped, written and flushed: nanoseconds per pair"
               " of destruction and creation, minimum / median.",
}
BEGIN, END = "<!-- vulkan figures -->", "<!-- end of vulkan figures -->"


def main():
    options = parsed(__doc__)
    ranges = MemoryFigures(options.figures, "ranges")
    lines = head(ranges, options)
    parts = [part for part in PARTS if part in ranges.data]
    goals = [peer_goal(ranges)] if "ranges" in parts else []
    for part in parts:
        if part != "ranges":
            goals += object_goals(MemoryFigures(options.figures, part))
    lines += ["Goals.", "", *goal_table(goals)]
    for part in parts:
        lines += titled([(PARTS[part], pages)], MemoryFigures(options.figures, part))
    replace(options.page, BEGIN, END, lines)


main()
