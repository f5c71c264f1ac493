"""Writes the results of a run of bench_vulkan into a page, between its marks
`<!-- vulkan figures -->`.

usage: vulkan_tables.py FIGURES.json PAGE.md
"""

from memory_figures import MemoryFigures, buffer_goal, peer_goal
from memory_tables import goal_table, head, pages, parsed, titled
from page import replace

BEGIN, END = "<!-- vulkan figures -->", "<!-- end of vulkan figures -->"


def main():
    options = parsed(__doc__)
    ranges = MemoryFigures(options.figures, "ranges")
    buffers = MemoryFigures(options.figures, "buffers")
    lines = head(ranges, options)
    lines += ["Goals.", "", *goal_table([peer_goal(ranges), buffer_goal(buffers)])]
    lines += titled([("Ranges: nanoseconds per pair of free and allocate, minimum / median.", pages)],
                    ranges)
    lines += titled([("Buffers: nanoseconds per pair of destruction and creation, minimum / median.",
                      pages)], buffers)
    replace(options.page, BEGIN, END, lines)


main()
