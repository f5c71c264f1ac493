# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The goals of the project, compared with the results of a run.

A goal looks up its values for several subjects and the best subject counts. Subjects that the build
does not support are skipped. A value is a tuple (what, value, must, stretch). It reaches a limit if
it is not above it, or with `at_least` not below it.
"""

from figures_file import SIZES, VMA

SEGREGATED = "segregated"
BATCHED = ("segregated, batch free", SEGREGATED)
SMALL = ("slabs",)
FULLER = (SEGREGATED, "segregated, least fragmentation")
NO_LIMIT = -100.0  # the must of values that have only a stretch limit, in percentage points


class Goal:
    def __init__(self, line, text, must, stretch, find, subjects=(SEGREGATED,), at_least=False,
                 form="{:.2f}"):
        self.line, self.text, self.must, self.stretch = line, text, must, stretch
        self.find, self.subjects, self.at_least, self.form = find, subjects, at_least, form

    def within(self, value, limit):
        return value >= limit if self.at_least else value <= limit

    def judged(self, found):
        """Rates the worst value: 2 stretch, 1 must, 0 neither; None if a value is missing."""
        if any(value is None for _, value, _, _ in found):
            return None
        rank = 2
        for _, value, must, stretch in found:
            rank = min(rank, self.within(value, must) + (self.within(value, must) and
                                                         self.within(value, stretch)))
        return rank

    def margin(self, found):
        """The smallest distance of a value to its limit; positive if the limit is reached."""
        sign = 1 if self.at_least else -1
        return min(sign * (value - must) for _, value, must, _ in found if value is not None)

    def best(self, figures):
        """Returns (rank, subject, values) of the best subject, or None without values."""
        tried = []
        for subject in self.subjects:
            found = self.find(figures, subject) if subject in figures.kinds else []
            if any(value is not None for _, value, _, _ in found):
                tried.append((self.judged(found), self.margin(found), subject, found))
        if not tried:
            return None
        rank, _, subject, found = max(tried, key=lambda one: (one[0] or 0, one[1]))
        return rank, subject, found

    def missing(self, figures):
        """The reason why no value was found."""
        if not any(subject in figures.kinds for subject in self.subjects):
            return f"not supported: {', '.join(self.subjects)}"
        return "not in this run"


def against(workloads, rivals, must, stretch):
    """Ratios of pair times. `rivals` returns the peers of a run, of which the fastest counts."""
    return lambda figures, subject: [
        (w, figures.ratio(w, subject, rivals(figures)), must, stretch) for w in workloads]


def both(*finders):
    return lambda figures, subject: [one for find in finders for one in find(figures, subject)]


def vma(_):
    return [VMA]


def others(figures):
    return figures.others()


def either(figures):
    return [VMA, *figures.others()]


def unrounded(figures, subject):
    raw, even = figures.pair("a100k_raw", subject), figures.pair("a100k", subject)
    peer = figures.pair("a100k_raw", VMA)
    return [("to rounded sizes", raw / even if raw and even else None, 1.15, 1.02),
            ("to VMA", raw / peer if raw and peer else None, 1.15, 0.05)]


def ramp_against_all(figures, subject):
    """Compares with the best of all peers and references, in percentage points of the arena."""
    rivals = figures.subjects("peer", "reference")
    rows = []
    for sizes in SIZES:
        own = figures.ramp(sizes, subject)
        best = max((figures.ramp(sizes, r) or 0 for r in rivals), default=0)
        rows.append((sizes, 100 * (own - best) if own and best else None, -0.3, 0.0))
    return rows


def ramp_against_vma(figures, subject):
    rows = []
    for sizes, points in (("logu", 3), ("pow2", 15), ("tex", 15)):
        own, rival = figures.ramp(sizes, subject), figures.ramp(sizes, VMA)
        rows.append((f"{sizes} to VMA", 100 * (own - rival) if own and rival else None, NO_LIMIT,
                     points))
    return rows


def failures(figures, subject):
    limits = (("logu", 31, 18), ("tex", 19, 19), ("pow2", 0.2, 0.2), ("bimod", 38, 29),
              ("small", 0, 0))
    return [(sizes, figures.fill(sizes, subject, 0.95), must, stretch)
            for sizes, must, stretch in limits]


def metadata(figures, subject):
    return [(w, figures.metadata(w, subject), 48, 40) for w in ("a100k", "a1m")]


def slab_metadata(figures, subject):
    return [("b100k", figures.metadata("b100k", subject), 48, 5)]


def worst_cases(figures, subject):
    latency = figures.latency("a100k", subject)
    g1, g2 = figures.adversary("g1", subject), figures.adversary("g2", subject)
    slowest = max(latency[kind]["max"] for kind in ("allocate_ns", "free_ns")) if latency else None
    return [("slowest call of a100k", slowest, 500, 300),
            ("misaligned holes", g2["request_ns"] if g2 else None, 1000, 120),
            ("failure", g1["request_ns"] if g1 else None, 100, 35)]


def late_frees(figures, subject):
    own = figures.latency("a1m", subject)
    rivals = [figures.latency("a1m", peer) for peer in figures.others()]
    rivals = [r["free_ns"]["p999"] for r in rivals if r]
    return [("a1m", own["free_ns"]["p999"] if own and rivals else None, min(rivals, default=0), 80)]


def instructions(figures, subject):
    row = figures.row("instructions", workload="a10k", subject=subject)
    return [("allocate", row["allocate"] if row else None, 190, 155),
            ("free", row["free"] if row else None, 150, 115)]


A_UP_TO_100K = ("a1k", "a10k", "a100k")
PATTERNS = ("c1k", "c100k", "d1k", "d100k", "e_dnn", "e_dyn")

GOALS = (
    Goal(1, "pair of free and allocate, relative to VMA", "≤ 0.70", "≤ 0.57",
         against((*A_UP_TO_100K, "a1m", "b1k"), vma, 0.70, 0.57)),
    Goal(2, "the same, relative to the fastest other peer", "≤ 1.20; a1m ≤ 1.0",
         "≤ 1.0; a1m ≤ 0.93",
         both(against(A_UP_TO_100K, others, 1.20, 1.0), against(("a1m",), others, 1.0, 0.93))),
    Goal(3, "batched or deferred frees, relative to the fastest other peer",
         "a100k ≤ 1.0; a1m ≤ 0.6", "a100k ≤ 0.85; a1m ≤ 0.47",
         both(against(("a100k",), others, 1.0, 0.85), against(("a1m",), others, 0.6, 0.47)),
         BATCHED),
    Goal(3, "batched or deferred frees, relative to VMA", "a1m ≤ 0.40", "a1m ≤ 0.30",
         against(("a1m",), vma, 0.40, 0.30), BATCHED),
    Goal(4, "small ranges, relative to the fastest other peer", "b100k ≤ 0.65", "b100k ≤ 0.50",
         against(("b100k",), others, 0.65, 0.50), SMALL),
    Goal(4, "small ranges, relative to VMA", "b100k ≤ 0.40", "b100k ≤ 0.27",
         against(("b100k",), vma, 0.40, 0.27), SMALL),
    Goal(5, "last in first out, rings, networks, relative to the fastest peer", "≤ 1.4", "≤ 1.15",
         against(PATTERNS, either, 1.4, 1.15)),
    Goal(6, "sizes without rounding: a100k_raw", "≤ 1.15 of a100k", "≤ 1.02; ≤ 0.05 of VMA",
         unrounded),
    Goal(7, "live share at the first failure minus that of the best peer or exact best fit, "
         "percentage points", "≥ −0.3", "≥ 0; to VMA logu ≥ +3, pow2 and tex ≥ +15",
         both(ramp_against_all, ramp_against_vma), FULLER, at_least=True, form="{:+.2f}"),
    Goal(8, "failures per 1000 requests at 95 %",
         "logu ≤ 31, tex ≤ 19, pow2 ≤ 0.2, bimod ≤ 38, small 0", "logu ≤ 18, bimod ≤ 29", failures,
         FULLER, form="{:.1f}"),
    Goal(9, "metadata bytes per live range", "≤ 48", "≤ 40", metadata, form="{:.1f}"),
    Goal(9, "the same, small ranges", "≤ 48", "≤ 5", slab_metadata, SMALL, form="{:.1f}"),
    Goal(10, "worst cases, ns", "call of a100k ≤ 500; misaligned holes ≤ 1000; failure ≤ 100",
         "≤ 300; ≤ 120; ≤ 35", worst_cases, form="{:.0f}"),
    Goal(11, "99.9 % of frees with a million live ranges, ns", "≤ the fastest other peer", "≤ 80",
         late_frees,
         form="{:.0f}"),
    Goal(16, "instructions, a10k", "allocate ≤ 190, free ≤ 150", "≤ 155, ≤ 115", instructions,
         form="{:.0f}"),
)
