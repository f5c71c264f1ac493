# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results of a run of bench_memory or bench_vulkan, and the project's goals for them.

A goal is a tuple (what, line, must, stretch, form, values, at_least). A value is a tuple (what,
value, must, stretch). It reaches a limit if it is not above it, or with `at_least` not below it.
"""

import json

QUIRE, SHARDED, VMA = "quire", "quire, a shard each", "VMA"
SLABS = "quire, a shard each, slabs"


class MemoryFigures:
    """The results of a run. Look-ups return None if the run has no such result. `part` names the
    array that contains the series."""

    def __init__(self, path, part="pages"):
        with open(path, encoding="utf-8") as file:
            self.data = json.load(file)
        self.part = part
        self.names = [s["name"] for s in self.data["subjects"]]
        self.absent = {s["name"]: s["absent"] for s in self.data["subjects"] if s["absent"]}

    def rows(self, part, **wanted):
        return [row for row in self.data[part]
                if all(row[key] == value for key, value in wanted.items())]

    def row(self, part, **wanted):
        return next(iter(self.rows(part, **wanted)), None)

    def series(self, name):
        """The points (page size, live ranges) of a series, by number of pages."""
        return list(dict.fromkeys((row["page_size"], row["live"])
                                  for row in self.rows(self.part, series=name)))

    def at(self, series, subject, point):
        return self.row(self.part, series=series, subject=subject, page_size=point[0], live=point[1])

    def pages_ratio(self, series, subject, at):
        """The pair time at point `at` of a series divided by that at point 0."""
        points = self.series(series)
        found = [self.at(series, subject, points[i]) for i in (at, 0)] if points else [None]
        return ratio(*(row["pair_ns"]["min"] for row in found)) if all(found) else None

    def pages_to(self, series, subject, peer, at, which="min"):
        points = self.series(series)
        found = [self.at(series, one, points[at]) for one in (subject, peer)] if points else [None]
        return ratio(*(row["pair_ns"][which] for row in found)) if all(found) else None

    def pair(self, subject, threads, sizes="mixed", handed=False):
        row = self.row("threads", subject=subject, threads=threads, sizes=sizes, handed=handed)
        return row["pair_ns"]["min"] if row else None

    def growth(self, subject, sizes="mixed", handed=False):
        """Pairs per second of two threads divided by those of one."""
        return ratio(self.pair(subject, 1, sizes, handed), self.pair(subject, 2, sizes, handed))

    def lock(self, name, threads=True):
        row = self.row("locks", lock=name, threads=threads)
        return row["over_none_ns"]["min"] if row else None

    def wait(self, name, **scene):
        """The waits for a contended lock: medians in ns, by percentile. None if every repeat was
        disturbed by other programs."""
        row = self.row("lock_latency", lock=name, is_valid=True, **scene)
        return row and [row[key]["median"] for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")]


def ratio(one, other):
    return one / other if one and other else None


# ---- goals --------------------------------------------------------------------------------------

# The points with about 256 and about 10,000 pages.
AT_256, AT_10000 = 5, 2


def peer_goal(f):
    return ("pair, relative to VMA", 13, "1 page ≤ 0.45; 256 pages ≤ 0.05", "≤ 0.30; ≤ 0.03",
            "{:.3f}", [("1 page", f.pages_to("pages", QUIRE, VMA, 0), 0.45, 0.30),
                       ("256 pages", f.pages_to("pages", QUIRE, VMA, AT_256), 0.05, 0.03)], False)


def object_goals(f):
    """Buffers, images or uploads: by the least times at every number of pages, and by the medians in
    one page."""
    values = [("1 page by median", f.pages_to("pages", QUIRE, VMA, 0, "median"), 1.0, 1.0)]
    for at, point in enumerate(f.series("pages")):
        row = f.at("pages", QUIRE, point)
        if row:
            what = f"{row['pages']} page{'s' * (row['pages'] > 1)}"
            values.append((what, f.pages_to("pages", QUIRE, VMA, at), 1.0, 1.0))
    yield (f"pair of {f.part}, relative to VMA", "-", "≤ 1.0", "≤ 1.0", "{:.2f}", values, False)


def page_goals(f):
    yield ("pair with many pages, relative to one page", 12, "256 pages ≤ 1.25; 10,000 ≤ 1.3",
           "≤ 1.02; ≤ 1.1", "{:.2f}",
           [("256 pages", f.pages_ratio("pages", QUIRE, AT_256), 1.25, 1.02),
            ("10,000 pages", f.pages_ratio("many-pages", QUIRE, AT_10000), 1.3, 1.1)], False)
    yield peer_goal(f)


def thread_goals(f):
    for sizes in ("mixed", "small"):
        rival = f.growth(VMA, sizes)
        own = f.growth(QUIRE, sizes) if rival else None
        to_vma = ratio(f.pair(VMA, 2, sizes), f.pair(SHARDED, 2, sizes))
        contended = ratio(f.pair(VMA, 2, sizes), f.pair(QUIRE, 2, sizes))
        yield (f"two threads relative to one, {sizes} sizes, a shard each", 14,
               "≥ 1.8; handed over ≥ 1.6", "≥ 1.9; ≥ 1.9", "{:.2f}",
               [("own frees", f.growth(SHARDED, sizes), 1.8, 1.9),
                ("handed over", f.growth(SHARDED, sizes, True), 1.6, 1.9)], True)
        yield (f"the same, one shard, {sizes} sizes", 14, "≥ VMA", "≥ VMA", "{:.2f}",
               [(f"VMA {rival or 0:.2f}, quire", own, rival, rival)], True)
        yield (f"pairs per second of two threads, relative to VMA, {sizes} sizes", 14,
               "a shard each ≥ 10; one shard ≥ 1", "≥ 10; ≥ 2", "{:.1f}",
               [("a shard each", to_vma, 10, 10), ("one shard", contended, 1, 2)], True)
    with_slabs = ratio(f.pair(VMA, 2, "small"), f.pair(SLABS, 2, "small"))
    yield ("the same, small sizes, with slabs", 14, "a shard each ≥ 10", "≥ 10", "{:.1f}",
           [("a shard each", with_slabs, 10, 10)], True)


def lock_goals(f):
    yield ("uncontended lock, ns", 15, "≤ 4", "≤ 2", "{:.1f}",
           [("two threads", f.lock("quire's"), 4, 2),
            ("one thread", f.lock("quire's", False), 4, 2)], False)


def rank(values, at_least):
    """Rates the worst value: 2 stretch, 1 must, 0 neither; None if a value is missing."""
    if not values or any(value is None for _, value, _, _ in values):
        return None
    sign = 1 if at_least else -1
    within = [[sign * value >= sign * limit for limit in limits] for _, value, *limits in values]
    if not all(must for must, _ in within):
        return 0
    return 2 if all(stretch for _, stretch in within) else 1


def find_goals(f):
    found = {row["way"]: row for row in f.data.get("find", []) if row["reps"]}
    if not found:
        return
    ratios = [ratio(found["first byte"][key]["min"], found["hash table"][key]["min"])
              for key in ("median_ns", "p99_ns")]
    yield ("look-up by address, relative to a hash table of the program", "-", "≤ 1.5", "≤ 1.2",
           "{:.2f}", [("median", ratios[0], 1.5, 1.2), ("99 %", ratios[1], 1.5, 1.2)], False)


def goals(figures):
    return [*page_goals(figures), *thread_goals(figures), *lock_goals(figures),
            *find_goals(figures)]
