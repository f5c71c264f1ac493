# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The HTML report of a replay: where it ran, and the numbers of its report.

usage: html_report.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import re

from tool_run import HEADER, ROOT, TRACES, Figures, here, result, run_all, write



class Report:
    """One replay: its HTML and its JSON."""

    def __init__(self, trace, *args):
        self.values = result("replay", trace, "--html", "report.html", *args)
        self.text = (here() / "report.html").read_text(encoding="utf-8")

    def lacks(self, *parts):
        return [f"{part!r} is missing" for part in parts if part not in self.text]

    def row(self, name):
        found = re.search(rf"<td>{re.escape(name)}</td><td>([^<]*)</td>", self.text)
        return found.group(1) if found else None


def case_setup():
    """Backend, device, memory kind, page policy, fit."""
    trace = TRACES / "ncnn-mobilenet_v2.csv"
    cases = {(): ("pages that follow use, from 1 MiB", "fit segregated", "granule 256 B"),
             ("--page-size", "8M", "--fit", "first"): ("pages of 8 MiB", "fit first"),
             ("--elastic",): ("one page with chunks of",),
             ("--fit", "linear"): ("pages of 32 MiB", "fit linear")}
    for args, parts in cases.items():
        report = Report(trace, *args)
        yield from report.lacks("Backend host, device host", "memory kind 0 (DEVICE_LOCAL)", "granule ", *parts)
    profile = ROOT / "docs/profiles/raspberrypi-v3dv-mesa-25.0.json"
    name = json.loads(profile.read_text())["name"]
    yield from Report(trace, "--profile", profile).lacks(f"device {name}")


def case_numbers():
    """The tables have the numbers of the JSON, with the four measures of fragmentation."""
    report = Report(TRACES / "transformer-training.csv")
    values, shares = report.values, report.values["fragmentation"]
    wanted = {"events": values["operations"], "frees": values["frees"], "frames": values["frames"],
              "peak pages": values["peak_pages"], "backend calls": values["backend_calls"],
              "live at the end": values["left_at_end"],
              "fragmentation: reserved and not held, at the peaks": f"{100 * shares['reserved']:.2f} %",
              "at the peak: free and not in the largest free range": f"{100 * shares['free']:.2f} %"}
    yield from (f"{name}: {report.row(name)}, not {value}" for name, value in wanted.items()
                if report.row(name) != str(value))
    yield from (f"there is no row {name!r}" for name in
                ("at the peak: unused inside allocations", "at the peak: free in pages in use")
                if not report.row(name))


run_all(globals())
