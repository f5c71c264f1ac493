# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The HTML report of a replay: where it ran, axes, frames, peak, numbers under the pointer.

usage: html_report.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import re

from tool_run import HEADER, ROOT, TRACES, Figures, here, result, run_all, write

LEFT, WIDTH = 90, 1000  # src/tool/html.c


class Report:
    """One replay: its HTML, its JSON, and its chart."""

    def __init__(self, trace, *args):
        self.values = result("replay", trace, "--html", "report.html", *args)
        self.text = (here() / "report.html").read_text(encoding="utf-8")
        chart = re.search(r'<svg class="c".*?</svg>', self.text, re.S)
        self.chart = chart.group(0) if chart else ""

    def lacks(self, *parts):
        return [f"{part!r} is missing" for part in parts if part not in self.text]

    def marks(self, kind):
        """The events at the vertical lines of a kind."""
        events = self.values["operations"]
        return [round((float(x) - LEFT) / WIDTH * events) for x in
                re.findall(rf'<line class="{kind}" x1="([\d.]+)"', self.chart)]

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


def case_frames():
    """Every frame of the trace is a line at its event; beyond 200 frames every n-th."""
    trace = TRACES / "transformer-training.csv"
    report = Report(trace)
    frames = Figures(trace).frame_events
    if report.marks("m") != frames or not frames:
        yield f"frames at {report.marks('m')}, not {frames}"
    yield from report.lacks("ends of frames")
    many = write("many.csv", HEADER + "alloc,1,4096,,0,0,\n" + "frame,,,,1,0,\n" * 1000)
    marks = Report(many).marks("m")
    if not 100 <= len(marks) <= 200:
        yield f"{len(marks)} lines for 1000 frames"
    none = Report(TRACES / "ncnn-mobilenet_v2.csv")
    if none.marks("m") or "ends of frames" in none.text:
        yield "a trace without frames has lines of frames"


def case_times():
    """The axis has events and the times of the trace, if it has any."""
    report = Report(TRACES / "llm-serving.csv")
    yield from report.lacks(">event 0<", ">9420<", ">24.00 h<")
    trace = write("times.csv", HEADER + "alloc,1,256,,0,0,\nalloc,2,256,,1500,0,\n"
                  "alloc,3,256,,2500000,0,\nalloc,4,256,,61000000000,0,\n")
    yield from Report(trace).lacks(">0 ns<", ">1.50 \u00b5s<", ">2.50 ms<", ">1.02 min<")
    write("times.csv", HEADER + "alloc,1,256,,0,0,\nfree,1,,,0,0,\n")
    if "0 ns" in Report(trace).chart:
        yield "a trace without times has times on its axis"


def case_peak():
    """The peak is marked."""
    trace = write("peak.csv", HEADER + "alloc,1,65536,,0,0,alpha.a\nalloc,2,131072,,0,0,second\n"
                  "free,1,,,0,0,\nalloc,3,256,,0,0,third\n")
    report = Report(trace)
    if report.marks("k") != [2]:
        yield f"the peak is at {report.marks('k')}"
    empty = write("empty.csv", HEADER)
    report = Report(empty)
    if report.marks("k"):
        yield "an empty trace has a peak"


def case_pointer():
    """Strips without gaps carry the numbers; one of them has the peaks of the report."""
    for name in ("transformer-training", "ncnn-mobilenet_v2"):
        report = Report(TRACES / f"{name}.csv")
        strips = re.findall(r"<title>events (\d+) to (\d+)[^<]*\nreserved ([^<\n]*)\nheld ([^<\n]*)\n"
                            r"requested ([^<\n]*)</title>", report.chart)
        if not 50 <= len(strips) <= 251:
            yield f"{name}: {len(strips)} strips"
            continue
        if int(strips[0][0]) or int(strips[-1][1]) != report.values["operations"] or any(
                int(a[1]) + 1 != int(b[0]) for a, b in zip(strips, strips[1:])):
            yield f"{name}: the strips leave events out"
        for place, row in ((2, "peak reserved"), (3, "peak held"), (4, "peak requested")):
            if report.row(row) not in [strip[place] for strip in strips]:
                yield f"{name}: no strip has {row} {report.row(row)}"


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


def case_lines():
    """Requested bytes are drawn over held ones, whose line is broader, so that both are visible."""
    report = Report(TRACES / "ncnn-mobilenet_v2.csv")
    order = re.findall(r'<polyline class="(\w)"', report.chart)
    if order != ["r", "l", "q"]:
        yield f"the order is {order}"
    widths = {name: float(width) for name, width in
              re.findall(r"(?<=\.)(l)\{[^}]*stroke-width:([\d.]+)", report.text)}
    if widths.get("l", 0) < 4:
        yield f"the line of held bytes: {widths}"


def case_narrow():
    """The chart is not wider than a narrow window: it has a view box and scrolls in its own box."""
    report = Report(TRACES / "ncnn-mobilenet_v2.csv")
    if "viewBox" not in report.chart:
        yield "the chart has no view box"
    yield from report.lacks('<div class="x">\n<svg', ".x{overflow-x:auto}", ".x svg{width:100%;")


run_all(globals())
