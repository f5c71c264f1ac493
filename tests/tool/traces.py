# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output of the tool for traces: the page of a replay has its course, times count from the first
event, and a file that is no trace is rejected without much memory.

usage: traces.py PATH_TO_QUIRE SOURCE_ROOT
"""

import collections
import itertools
import json
import os
import resource
import statistics
import struct

from html_tables import Course
from tool_run import HEADER, MIB, ROOT, TRACES, Figures, Skipped, here, result, run, run_all, without_times, write


# ---- the page -----------------------------------------------------------------------------------


def case_shipped():
    """After every event the page has the requested bytes of the trace; its peaks are those of the report."""
    for path in sorted(TRACES.glob("*.csv")):
        course = Course(path)
        if course.requested() != Figures(path).course:
            yield f"{path.name}: the requested bytes differ from those of the trace"
        steps = collections.Counter()
        for begin, end, _, _, size, _, _ in course.ranges:
            steps[begin] += size
            steps[end] -= size
        held = itertools.accumulate(steps[moment] for moment in range(1, int(course.data["events"]) + 1))
        reserved, pages = [0], {}
        for _, page, size in course.changes:
            reserved.append(reserved[-1] + size - pages.get(page, 0))
            pages[page] = size
        for name, sums in (("live", held), ("reserved", reserved)):
            if max(sums) != course.values[f"peak_{name}_bytes"]:
                yield f"{path.name}: the most {name} bytes are not {course.values[f'peak_{name}_bytes']}"


def case_steps():
    """Each of the three training steps has the same peak at its place."""
    path = TRACES / "transformer-training.csv"
    figures = Figures(path)
    live, frames = figures.course, figures.frame_events
    for args in (("--fit", "first"), ("--page-size", "8M")):
        if Course(path, *args).requested() != live:
            yield f"{args}: the requested bytes differ from those of the trace"
    if len(frames) != 3 or len({max(live[b:e + 1]) for b, e in zip([0, *frames], frames)}) != 1:
        yield f"frames {frames}: the trace is not what this test is about"


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
    one, other = (Course(path) for path in (early, late))
    if (one.ranges, one.changes, one.frames) != (other.ranges, other.changes, other.frames):
        yield "the courses differ"
    if one.times[:-1] != other.times[:-1]:  # the last frames have times of their own
        yield "the times differ"
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
