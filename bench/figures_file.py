# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the results of one run: the JSON documents of bench_space and of instructions.py."""

import json

VMA = "VMA"
SPEED = ("a1k", "a10k", "a100k", "a1m", "a100k_raw", "b1k", "b100k", "c1k", "c100k", "d1k", "d100k",
         "e_dnn", "e_dyn")
SIZES = ("logu", "bimod", "small", "mid", "pow2", "tex")


class Figures:
    """The results of a run. Look-ups return None if the run has no such result."""

    def __init__(self, path, instructions=None):
        with open(path, encoding="utf-8") as file:
            self.data = json.load(file)
        self.data["instructions"] = []
        if instructions:
            with open(instructions, encoding="utf-8") as file:
                self.data.update(json.load(file))
        self.kinds = {s["name"]: s["kind"] for s in self.data["subjects"] if not s["absent"]}
        self.absent = {s["name"]: s["absent"] for s in self.data["subjects"] if s["absent"]}

    def row(self, part, **wanted):
        for row in self.data[part]:
            if all(row[key] == value for key, value in wanted.items()):
                return row
        return None

    def subjects(self, *kinds):
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def others(self):
        """The peers given with --peer, as opposed to the built-in ones."""
        return [name for name in self.subjects("peer") if not name.startswith(VMA)]

    def pair(self, workload, subject, which="min"):
        row = self.row("speed", workload=workload, subject=subject)
        return row["pair_ns"][which] if row else None

    def best_pair(self, workload, subjects):
        found = [ns for ns in (self.pair(workload, s) for s in subjects) if ns]
        return min(found) if found else None

    def ratio(self, workload, subject, rivals):
        own, rival = self.pair(workload, subject), self.best_pair(workload, rivals)
        return own / rival if own and rival else None

    def refused(self, workload, subject):
        row = self.row("speed", workload=workload, subject=subject)
        return row["refused"] / row["allocations"] if row else 0

    def metadata(self, workload, subject):
        row = self.row("speed", workload=workload, subject=subject)
        return row.get("metadata_per_live") if row else None

    def latency(self, workload, subject):
        return self.row("latency", workload=workload, subject=subject)

    def ramp(self, sizes, subject):
        row = self.row("ramp", sizes=sizes, subject=subject)
        return row["utilisation"] if row else None

    def fill(self, sizes, subject, target):
        row = self.row("fill", sizes=sizes, subject=subject, target=target)
        return row["failures_per_1000"] if row else None

    def adversary(self, workload, subject):
        return self.row("adversaries", workload=workload, subject=subject)
