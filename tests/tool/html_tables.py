# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of a page of quire replay, quire plan or quire page (src/tool/page/data.h), and what lives at a moment
by them."""

import html
import re

from tool_run import execute, here, result

WIDTHS = {"pages": 4, "changes": 3, "stretches": 5, "ranges": 7, "refusals": 3, "free": 3, "frames": 1, "times": 2,
          "columns": 6, "backed": 2}


class Tables:
    """The tables of a page. Begins and ends are moments: numbers of events that were replayed."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")
        self.names = [html.unescape(name) for name in self.table("names").split("\n")[:-1]]
        tables = {name: [tuple(map(int, row.split(" "))) for row in self.table(name).splitlines()] for name in WIDTHS}
        if any(len(row) != WIDTHS[name] for name, rows in tables.items() for row in rows):
            raise ValueError("a row has another number of columns than its table")
        (self.pages, self.changes, self.stretches, ranges, self.refusals, self.free, self.frames, self.times,
         self.columns, self.backed) = tables.values()
        self.ranges, before = [], 0
        for begin, life, page, offset, size, requested, name in ranges:
            before += begin
            self.ranges.append((before, before + life if life else None, page, offset, size, requested,
                                self.names[name]))
        self.data = dict(re.findall(r'data-(\w+)="(\d+)"', self.text))

    def table(self, name):
        return re.search(rf'<pre hidden id="data-{name}">\n(.*?)</pre>', self.text, re.S)[1]

    def requested(self):
        """The requested bytes at each moment."""
        events = int(self.data["events"])
        steps = [0] * (events + 2)
        for begin, end, _, _, _, requested, _ in self.ranges:
            steps[begin] += requested
            if end is not None:
                steps[end] -= requested
        sums, now = [], 0
        for step in steps[:events + 1]:
            now += step
            sums.append(now)
        return sums

    def bytes_of_pages(self):
        """The bytes of each page at each moment, as a function."""
        def at(moment):
            now = {}
            for begin, page, size in self.changes:
                if begin <= moment:
                    now[page] = size
            return {page: size for page, size in now.items() if size}
        return at

    def at(self, moment):
        """What lives at a moment."""
        ranges = [one for one in self.ranges if one[0] <= moment and (one[1] is None or moment < one[1])]
        return State(self.pages, self.bytes_of_pages()(moment), ranges)


class Course(Tables):
    """The tables of the page of a replay."""

    def __init__(self, trace, *args):
        self.values = result("replay", trace, "--html", "course.html", *args)
        super().__init__(here() / "course.html")


class Plan(Tables):
    """The tables of the page of a plan. Without a trace, moments are ranks of times."""

    def __init__(self, path, *args):
        execute("plan", path, "--html", "course.html", "--csv", "course.csv", *args)
        super().__init__(here() / "course.html")

    def time(self, moment):
        """The time of a moment by the points of the table."""
        first = int(self.data["first"])
        if len(self.times) < 2:
            return first
        pairs = zip(self.times, self.times[1:])
        (low, start), (high, stop) = next(pair for pair in pairs if pair[0][0] <= moment <= pair[1][0])
        passed, rest = divmod((moment - low) * (stop - start), high - low)
        if rest:
            raise ValueError(f"moment {moment} has no whole time")
        return first + start + passed

    def rows(self):
        """Name, lower, upper, arena, offset and size of each range, sorted."""
        return sorted((name, self.time(begin), self.time(end), str(self.pages[page][0]), offset, size)
                      for begin, end, page, offset, size, _, name in self.ranges)


class State:
    """The ranges and the pages of a moment; `pages` has (number of the page, its bytes, its ranges) in the order of
    the numbers, with the ranges in the order of the offsets."""

    def __init__(self, pages, sizes, ranges):
        by_page = {page: [] for page in sizes}
        for one in sorted(ranges, key=lambda one: one[3]):
            by_page[one[2]].append(one)
        self.pages = sorted(((pages[page][0], sizes[page], inside) for page, inside in by_page.items()),
                            key=lambda page: page[0])
        self.ranges = ranges
        self.held = sum(one[4] for one in ranges)
        self.reserved = sum(sizes.values())

    def split(self):
        """The free bytes of pages that also have ranges."""
        return sum(size - sum(one[4] for one in ranges) for _, size, ranges in self.pages if ranges)

    def by_name(self):
        """The held bytes and the number of ranges of each name."""
        sums = {}
        for one in self.ranges:
            held, count = sums.get(one[6], (0, 0))
            sums[one[6]] = (held + one[4], count + 1)
        return sums
