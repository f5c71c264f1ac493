# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output of the tool for traces: the chart over time shows its peaks, times count from the first
event, and a file that is no trace is rejected without much memory.

usage: traces.py PATH_TO_QUIRE SOURCE_ROOT
"""

import itertools
import json
import os
import re
import resource
import statistics
import struct

from tool_run import HEADER, MIB, ROOT, TRACES, Figures, Skipped, here, result, run, run_all, without_times, write

LEFT, WIDTH, TOP, HEIGHT = 90, 1000, 20, 320  # of the chart

# ---- the chart ----------------------------------------------------------------------------------


def lines_of(text):
    return {name: [tuple(map(float, point.split(","))) for point in points.split()]
            for name, points in re.findall(r'<polyline class="(\w)" points="([^"]*)"', text)}


class Chart:
    """Converts the lines of a chart back to events and bytes."""

    def __init__(self, path, *args):
        self.report = result("replay", path, "--html", "c.html", *args)
        self.events, self.most = self.report["operations"], self.report["peak_reserved_bytes"]
        self.lines = lines_of((here() / "c.html").read_text())
        self.pixel = self.most / HEIGHT * 0.0051  # bytes that the rounding of a point hides

    def levels(self, line, begin, end):
        """Returns the bytes of a line between two events, half a column away from both."""
        low, high = (LEFT + at / self.events * WIDTH for at in (begin, end))
        return [(TOP + HEIGHT - y) / HEIGHT * self.most
                for x, y in self.lines[line] if low + 0.5 <= x <= high - 0.5 or begin == end]

    def shows(self, line, found, wanted, what):
        if abs(found - wanted) > self.pixel:
            yield f"line {line}: {what} is {found:.0f}, not {wanted}"


def whole_course(chart, live):
    """The chart shows the peaks of the report, from left to right, from start to end."""
    events = chart.events
    wanted = {"q": "peak_requested_bytes", "l": "peak_live_bytes", "r": "peak_reserved_bytes"}
    for line, key in wanted.items():
        points = chart.lines[line]
        top = (TOP + HEIGHT - min(y for _, y in points)) / HEIGHT * chart.most
        yield from chart.shows(line, top, chart.report[key], "the highest point")
        if any(a[0] > b[0] for a, b in itertools.pairwise(points)):
            yield f"line {line} goes back"
        if points[0] != (LEFT, TOP + HEIGHT) or abs(points[-1][0] - LEFT - WIDTH) > 0.006:
            yield f"line {line} goes from {points[0]} to {points[-1]}"
        if not min(events, 500) <= len(points) <= 2003:
            yield f"line {line} has {len(points)} points for {events} events"
    at_end = (TOP + HEIGHT - chart.lines["q"][-1][1]) / HEIGHT * chart.most
    yield from chart.shows("q", at_end, live[-1], "the end")


def case_steps():
    """Each of the three training steps shows the same peak at its place."""
    path = TRACES / "transformer-training.csv"
    figures = Figures(path)
    live, frames = figures.course, figures.frame_events
    for args in ((), ("--fit", "first"), ("--page-size", "8M")):
        chart = Chart(path, *args)
        yield from whole_course(chart, live)
        for begin, end in zip([0, *frames], frames):
            inner = chart.levels("q", begin, end)
            step = live[begin:end + 1]
            yield from chart.shows("q", max(inner), max(step), f"the peak of {begin} to {end}")
            if begin:  # the first starts with no live bytes
                yield from chart.shows("q", min(inner), min(step), f"the least of {begin} to {end}")
    if len(frames) != 3 or len({max(live[b:e + 1]) for b, e in zip([0, *frames], frames)}) != 1:
        yield f"frames {frames}: the trace is not what this test is about"


def case_shipped():
    for path in sorted(TRACES.glob("*.csv")):
        yield from (f"{path.name}: {p}" for p in whole_course(Chart(path), Figures(path).course))


def case_spikes():
    """One event among thousands, up or down, is visible at every position."""
    for events, at in ((10000, 1), (10000, 2503), (10000, 9999), (9999, 5001), (1000, 7), (999, 3),
                       (1001, 1000), (5, 2)):
        rows = [f"alloc,1,{MIB},,0,0,\n"]
        for i in range(2, events + 1):
            rows.append(f"use,1,,,{i},0,\n")
        up, down = list(rows), list(rows)
        up[at:at + 2] = [f"alloc,2,{3 * MIB},,{at},0,\n", f"free,2,,,{at},0,\n"]
        down[at:at + 2] = [f"free,1,,,{at},0,\n", f"alloc,1,{MIB},,{at},0,\n"]
        for rows, top, least in ((up, 4 * MIB, MIB), (down, MIB, 0)):
            path = write("spike.csv", HEADER + "".join(rows))
            chart = Chart(path, "--page-size", "4M")
            yield from whole_course(chart, Figures(path).course)
            inner = chart.levels("q", 0, 0)[1:]  # before the first event no bytes live
            yield from chart.shows("q", max(inner), top, f"the spike at {at} of {events}")
            if at > events / 500:
                yield from chart.shows("q", min(inner), least, f"the dip at {at} of {events}")


def replays(*options):
    """{trace: (peak requested bytes, reserved / requested, backend calls)} of the shipped traces"""
    found = {}
    for path in TRACES.glob("*.csv"):
        value = result("replay", path, *options)
        asked, reserved = value["peak_requested_bytes"], value["peak_reserved_bytes"]
        found[path.name] = (asked, reserved / asked, value["backend_calls"])
    return found


def case_readme():
    """The README states the median and the worst of the small shipped traces, and the large ones."""
    readme = (ROOT / "README.md").read_text()
    columns = [replays(*options) for options in ((), ("--preset", "vma"), ("--preset", "pytorch"))]
    large = {name for name, row in columns[0].items() if row[0] >= 2 ** 28}
    small = [[row for name, row in found.items() if name not in large] for found in columns]
    median = [[statistics.median(row[i] for row in rows) for i in (1, 2)] for rows in small]
    wanted = [f"| median of the {len(small[0])} programs below 256 MiB | "
              + " | ".join(f"{ratio:.2f}, {calls:.0f}" for ratio, calls in median) + " |",
              "| worst of them | " + " | ".join(f"{max(row[1] for row in rows):.2f}" for rows in small) + " |"]
    for name in large:
        asked = columns[0][name][0] / 2 ** 30
        wanted.append(f"| `{name}`, {asked:.0f} GiB, computed from a model | "
                      + " | ".join(f"{found[name][1]:.2f}, {found[name][2]}" for found in columns) + " |")
    yield from (f"the README does not state {line}" for line in wanted if line not in readme)


# ---- times --------------------------------------------------------------------------------------


def case_late_start():
    """A trace that starts late, its frames on streams, is the same trace."""
    lines = (TRACES / "transformer-training.csv").read_text().splitlines()[1:2000]
    first = 2 ** 64 - 1 - int(lines[-1].split(",")[4])
    moved = []
    for line in lines:
        fields = line.split(",")
        fields[4] = str(int(fields[4]) + first)
        if fields[0] == "frame":
            fields[5] = "7"
        moved.append(",".join(fields))
    early = write("early.csv", HEADER + "\n".join([*lines, f"frame,,,,{2 ** 63},,"]) + "\n")
    late = write("late.csv", HEADER + "\n".join([*moved, f"frame,,,,{2 ** 64 - 1},3,"]) + "\n")
    if int(moved[-1].split(",")[4]) != 2 ** 64 - 1:
        yield "the last time is not the largest there is"
    for args in (["replay"], ["map"], ["map", "--at", "end"], ["tune", "--fit", "first", "--page-size", "64M"]):
        one, other = (without_times(result(args[0], path, *args[1:]), "trace") for path in (early, late))
        if one != other:
            yield f"{args}: {one} {other}"
    charts = [Chart(path).lines for path in (early, late)]
    if charts[0] != charts[1]:
        yield "the charts differ"
    for text, place in (("frame,,,,9,,\nframe,,,,8,,\n", "3:10"), ("frame,,,,9,x,\n", "2:12"),
                        ("frame,,,,9,1,x\n", "2:14"), ("frame,1,,,9,,\n", "2:7")):
        path = write("bad.csv", HEADER + text)
        done = run("replay", path)
        if done.code != 1 or not done.err.startswith(f"{path}:{place}: "):
            yield f"{text!r}: exit {done.code}, {done.err}"


# ---- recordings ---------------------------------------------------------------------------------


def block(*records, end=2000):
    content = b"".join(records)
    return struct.pack("<8sIIQQQ24x", b"\x89quire1\n", 0x01020304, 64 + len(content), 1000, end, 100) + content


def record(number, ticks, kind, alignment=0):
    return struct.pack("<QIHBB", number, ticks, 0, alignment, kind)


def case_recordings():
    """A recording is replayed as the same trace of text; an incomplete block at its end is left out."""
    name = record(3, 0, 4) + b"abc".ljust(16, b"\0")
    alloc = record(77, 10, 1, alignment=8) + struct.pack("<QII", 4096, 64, 0)
    whole = block(name, alloc, record(0, 20, 3), record(77, 100, 2))
    text = write("text.csv", HEADER + "alloc,1,4096,256,0,0,abc\nframe,,,,100,0,\nfree,1,,,900,0,\n")
    path = here() / "program.trace"
    path.write_bytes(whole)
    expected = without_times(result("replay", text), "trace")
    if without_times(result("replay", path), "trace") != expected:
        yield "a recording and its text differ"
    if json.loads(run("plan", path, "--json").out)["peak_bytes"] != 4096:
        yield "quire plan does not read recordings"
    path.write_bytes(whole + whole[:70])
    done = run("replay", path, "--json")
    if done.code or done.err.strip() != f"{path}: the recording ends in an incomplete block, whose 70 bytes are left out":
        yield f"exit {done.code}, {done.err}"
    if without_times(json.loads(done.out), "trace") != expected:
        yield "an incomplete block changes the result"
    path.write_bytes(whole + whole)
    done = run("replay", path)
    if done.code != 1 or not done.err.startswith(f"{path}: byte {len(whole)}: the time of the block"):
        yield f"exit {done.code}, {done.err}"


# ---- memory -------------------------------------------------------------------------------------


def case_memory():
    """Line ends, comments and bytes that are no trace take no more host memory than their size."""
    if "QUIRE_SANITIZED" in os.environ:
        raise Skipped("a sanitizer needs more address space than the limit")
    size, limit = 16 * MIB, 128 * MIB

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    header = HEADER.encode()
    for text, place in ((b"\n" * size, "1:1"), (b"\r\n" * (size // 2), "1:1"),
                        (b"#\n" * (size // 2), "1:1"), (b"\0" * size, "1:1"),
                        (b"x" * size, "1:1"), (header + b"\n" * size, "2:1"),
                        (header + b"alloc,1,1,,0,0,\n" + b"\r\n" * (size // 2), "3:1")):
        done = run("replay", "-", stdin=text, preexec_fn=bound)
        if done.code != 1 or not done.err.startswith(f"-:{place}: "):
            yield f"{text[:60]!r}...: exit {done.code}, {done.err[:200]!r}"


run_all(globals())
