# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The course of a replay in its HTML page (src/tool/page/data.h): every range with its life and its place, the bytes
of the pages, the names, and what was refused. tests/browser shows it in a browser.

usage: html_course.py PATH_TO_QUIRE SOURCE_ROOT
"""

import html
import math
import random
import re

from html_tables import Course
from tool_run import HEADER, TRACES, Figures, here, run, run_all, write


def overlaps(course):
    """The ranges of a page that share bytes at a moment, and those that lie outside it."""
    by_page = {}
    for one in course.ranges:
        by_page.setdefault(one[2], []).append(one)
    for page, ranges in by_page.items():
        sizes = [size for _, index, size in course.changes if index == page]
        yield from (f"{one} lies outside its page" for one in ranges if one[3] + one[4] > max(sizes))
        events = sorted([(one[0], 1, one) for one in ranges] + [(one[1], 0, one) for one in ranges if one[1]])
        live = set()
        for _, begins, one in events:
            if begins and any(one[3] < other[3] + other[4] and other[3] < one[3] + one[4] for other in live):
                yield f"page {page}: {one} overlaps another range"
            live.add(one) if begins else live.discard(one)


def case_traces():
    """After every event the ranges hold what the trace requested; they do not overlap."""
    for name in ("transformer-training", "ncnn-mobilenet_v2", "llm-serving"):
        trace = TRACES / f"{name}.csv"
        course, figures = Course(trace), Figures(trace)
        if course.requested() != figures.course:
            yield f"{name}: the requested bytes differ from those of the trace"
        if len(course.ranges) != figures.allocations or int(course.data["events"]) != figures.operations:
            yield f"{name}: {len(course.ranges)} ranges in {course.data['events']} events"
        if int(course.data["peak"]) != figures.peak_event or int(course.data["omitted"]) or course.columns:
            yield f"{name}: {course.data}"
        yield from list(overlaps(course))[:3]


def case_pages():
    """Pages begin, and end, with the events that cause it; a page may have the number of an earlier one."""
    trace = write("pages.csv", HEADER + "alloc,1,1048576,,0,0,a\nfree,1,,,0,0,\nalloc,2,4194304,,0,0,b\n"
                  "free,2,,,0,0,\nalloc,3,1024,,0,0,c\n")
    course = Course(trace, "--page-size", "1M")
    at = course.bytes_of_pages()
    sums = [sum(at(moment).values()) for moment in range(6)]
    if sums[:2] != [0, 1 << 20] or max(sums) != course.values["peak_reserved_bytes"]:
        yield f"reserved bytes {sums}, peak {course.values['peak_reserved_bytes']}"
    if len(course.pages) < 2 or {page[0] for page in course.pages} != {0}:
        yield f"the pages are {course.pages}"
    elastic = Course(trace, "--elastic")
    if [page[2] for page in elastic.pages] != [1]:
        yield f"an elastic memory has the pages {elastic.pages}"
    moments = [moment for moment, _, _ in elastic.changes]
    if moments != sorted(moments) or max(size for _, _, size in elastic.changes) < 4 << 20:
        yield f"its bytes change by {elastic.changes}"


def case_elastic():
    """The stretches of an elastic page that have memory are as many bytes as it has, and the ranges lie in them."""
    trace = TRACES / "llm-serving.csv"
    course = Course(trace, "--elastic")
    if Course(trace).stretches:
        yield "pages that are not elastic have stretches"
    chunk = math.gcd(*(number for part in course.stretches for number in part[2:4]))
    backed, bytes_at, by_moment = set(), {}, {}
    for part in course.stretches:
        by_moment.setdefault(part[0], []).append(part)
    for moment, stretches in by_moment.items():
        for _, _, begin, end, has_memory in stretches:
            chunks = set(range(begin // chunk, end // chunk))
            if chunks & backed if has_memory else chunks - backed:
                yield f"moment {moment}: bytes {begin} to {end} get or lose memory twice"
            backed = backed | chunks if has_memory else backed - chunks
        bytes_at[moment] = len(backed) * chunk
        if moment % 50 == 0:
            yield from (f"moment {moment}: {one} lacks memory" for one in course.at(moment).ranges
                        if not set(range(one[3] // chunk, (one[3] + one[4] - 1) // chunk + 1)) <= backed)
    changed = {moment: size for moment, _, size in course.changes}
    yield from [f"{moment}: {size} bytes, and stretches of {bytes_at.get(moment)}" for moment, size in changed.items()
                if bytes_at.get(moment) != size][:3]
    if len(changed) < 100 or not any(not part[4] for part in course.stretches):
        yield f"{len(changed)} changes, none of which takes memory away"


def case_free():
    """What is free between ranges, and the largest free range, are those of the tables of pages and ranges."""
    sizes = random.Random(4).choices(range(1, 40), k=400)
    lives = "".join(f"alloc,{i + 1},{size * 4096},,0,0,\n" + (f"free,{i // 2 + 1},,,0,0,\n" if i % 2 else "")
                    for i, size in enumerate(sizes))
    course = Course(write("free.csv", HEADER + lives), "--page-size", "1M")
    if [moment for moment, _, _ in course.free] != list(range(601)):
        yield f"{len(course.free)} moments"
    for moment, split, largest in course.free[1::7]:
        state = course.at(moment)
        gaps = [0]
        for _, size, ranges in state.pages:
            ends = [0, *(one[3] + one[4] for one in ranges)]
            begins = [*(one[3] for one in ranges), size]
            gaps += [begin - end for begin, end in zip(begins, ends)]
        if (split, largest) != (state.split(), max(gaps)):
            yield f"moment {moment}: {split} and {largest}, not {state.split()} and {max(gaps)}"
    if len(Course(TRACES / "llm-serving.csv").free) > 2001:
        yield "a long trace has more than 2000 moments"


def case_frames():
    """Every frame of the trace is at its event; of more than 1000 every n-th."""
    trace = TRACES / "transformer-training.csv"
    frames = [moment for moment, in Course(trace).frames]
    if frames != Figures(trace).frame_events or not frames:
        yield f"frames at {frames}"
    many = write("many.csv", HEADER + "alloc,1,4096,,0,0,\n" + "frame,,,,1,0,\n" * 5000)
    if not 500 <= len(Course(many).frames) <= 1000:
        yield f"{len(Course(many).frames)} of 5000 frames"
    if Course(TRACES / "ncnn-mobilenet_v2.csv").frames:
        yield "a trace without frames has some"


def case_times():
    """Events have the times of the trace, if it has any; the last event always."""
    trace = write("times.csv", HEADER + "alloc,1,256,,0,0,\nalloc,2,256,,1500,0,\nalloc,3,256,,2500000,0,\n")
    if Course(trace).times != [(1, 0), (2, 1500), (3, 2500000)]:
        yield f"times {Course(trace).times}"
    times = Course(TRACES / "llm-serving.csv").times
    if times[-1] != (9420, 86400000000000) or times != sorted(times) or len(times) > 2001:
        yield f"{len(times)} times, the last {times[-1]}"
    if Course(write("times.csv", HEADER + "alloc,1,256,,0,0,\nfree,1,,,0,0,\n")).times:
        yield "a trace without times has some"


def case_names():
    """Any name is text: it ends no element. A range without a name has the empty one."""
    odd = "</pre><script>alert(1)</script>&amp;"
    trace = write("names.csv", HEADER + f"alloc,1,100,,0,0,\nalloc,2,200,,0,0,{odd}\nalloc,3,300,,0,0,\n")
    course = Course(trace)
    if [one[6] for one in course.ranges] != ["", odd, ""]:
        yield f"the names are {[one[6] for one in course.ranges]}"
    again = write("again.csv", HEADER + "".join(f"alloc,{i + 1},100,,0,0,{'abc'[i % 3]}\n" for i in range(30)))
    if Course(again).names != ["a", "b", "c"]:
        yield f"names that alternate are {Course(again).names}"
    if course.text.count("<script>") != 1:
        yield "a name begins a script"


def case_refused():
    """A refused request is in a table of its own, with its event."""
    trace = write("refused.csv", HEADER + "alloc,1,1000,,0,0,small\nalloc,2,100000000,,0,0,huge\nfree,2,,,0,0,\n")
    done = run("replay", trace, "--limit", "2M", "--html", "course.html")
    if done.code != 1:
        yield f"exit code {done.code}"
    text = (here() / "course.html").read_text(encoding="utf-8")
    rows = re.search(r'<pre hidden id="data-refusals">\n(.*?)</pre>', text, re.S)[1].split()
    if rows[:2] != ["2", "100000000"] or len(rows) != 3:
        yield f"refusals {rows}"
    if "cannot allocate 'huge'" not in html.unescape(text):
        yield "the page lacks the report of the refused request"
    huge = "".join(f"alloc,{i + 2},{100000000 + i},,0,0,huge {i}\nfree,{i + 2},,,0,0,\n" for i in range(22))
    run("replay", write("refused.csv", HEADER + "alloc,1,1000,,0,0,small\n" + huge), "--limit", "2M", "--html",
        "course.html")
    text = html.unescape((here() / "course.html").read_text(encoding="utf-8"))
    reports = re.findall(r"<summary>Event (\d+): .*? for (huge \d+)</summary>.*?cannot allocate '(huge \d+)'", text,
                         re.S)
    if reports != [(str(2 * i + 2), f"huge {i}", f"huge {i}") for i in range(20)]:
        yield f"the page has the reports {reports}"
    if "2 later requests were refused too" not in text:
        yield "the page does not say how many reports it lacks"


def case_empty():
    """A trace without events has empty tables."""
    course = Course(write("empty.csv", HEADER))
    if course.ranges or course.pages or course.data != {"events": "0", "peak": "0", "omitted": "0", "column": "0"}:
        yield f"{course.data}, {course.ranges}, {course.pages}"


def case_alone():
    """The page loads nothing: it names no address, and forbids its browser to ask for any."""
    text = Course(TRACES / "ncnn-mobilenet_v2.csv").text
    yield from (f"the page has {word}" for word in ("http:", "https:", "src=", "@import", "url(") if word in text)
    if "default-src 'none'" not in text:
        yield "the page has no policy of what it may load"


run_all(globals())
