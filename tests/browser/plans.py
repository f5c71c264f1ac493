# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of quire plan in Chromium: what is in use at any time of a file or event of a trace.

usage: plans.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import random
import re

from browsing import (browser, bytes_text, click, count_text, focus, middle_of, rows_of, run_pages, search, show,
                      sums_text, text_of, value_of)
from html_tables import Plan
from tool_run import TRACES, write

PLAN = "id,lower,upper,size,arena\n"


def sparse_plan():
    """Items in two arenas at times that no double has, with distances from 1 to 10^9 between them."""
    chosen, time_now, lines = random.Random(4), 2**63 + 12345, []
    for i in range(80):
        time_now += chosen.choice((1, 1, 1, 1000, 10**9))
        upper = time_now + chosen.choice((1, 5, 3000, 2 * 10**9))
        lines.append(f"block{i % 7}/t{i},{time_now},{upper},{chosen.randrange(1, 5000)},{1 + i % 2}\n")
    return write("sparse.csv", PLAN + "".join(lines))


def plan_text(course, moment):
    state = course.at(moment)
    return (f"At time {course.time(moment)}: {bytes_text(state.held)} held in "
            f"{count_text(len(state.ranges), 'range')}, "
            f"{bytes_text(state.reserved)} reserved in {count_text(len(state.pages), 'arena')}.")


def case_plan_times():
    """A plan shows what is in use at any time of its file, by the slider and by the field"""
    course = show(sparse_plan(), "--capacity", "0,0", kind=Plan)
    last, peak = int(course.data["events"]), int(course.data["peak"])
    if text_of("sums") != plan_text(course, peak):
        yield f"it opens with {text_of('sums')!r}, not {plan_text(course, peak)!r}"
    times = [course.time(moment) for moment in range(last + 1)]
    tries = [("slider", "input", moment, moment) for moment in range(last + 1)]
    tries += [("moment", "change", str(at), moment) for moment, at in enumerate(times)]
    tries += [("moment", "change", str(after - 1), moment) for moment, after in enumerate(times[1:])]
    tries += [("moment", "change", "0", 0), ("moment", "change", str(2 * times[-1]), last)]
    shown = browser.evaluate("""(tries => tries.map(([name, event, value]) => {
        const [field, slider, sums] = ['moment', 'slider', 'sums'].map(one => document.getElementById(one));
        document.getElementById(name).value = value;
        document.getElementById(name).dispatchEvent(new Event(event));
        return [field.value, Number(slider.value), sums.textContent, slider.getAttribute('aria-valuetext')];
    }))""" + f"({json.dumps(tries)})")
    for (name, _, value, moment), found in zip(tries, shown):
        expected = [str(times[moment]), moment, plan_text(course, moment), f"at time {times[moment]}"]
        if found != expected:
            yield f"{name} {value}: {found}, not {expected}"


def case_plan_words():
    """A plan has times and arenas in its texts: of the map, the chart, the tables and the search"""
    course = show(sparse_plan(), "--capacity", "0,0", kind=Plan)
    state = course.at(int(course.data["peak"]))
    focus("map")
    browser.press("ArrowDown")
    begin, end, page, offset, size, _, name = state.pages[0][2][0]
    text = (f"{name}: {bytes_text(size)} requested, {bytes_text(size)} held, arena {course.pages[page][0]}, "
            f"offset {offset}, lives from time {course.time(begin)} to {course.time(end) - 1}")
    if text_of("pointed") != text:
        yield f"{text_of('pointed')!r}, not {text!r}"
    label = browser.evaluate("document.getElementById('course').getAttribute('aria-label')")
    if f"from time {course.time(0)} to {course.time(int(course.data['events']))}," not in label:
        yield label
    click("by-time")
    browser.click(*middle_of("course"))
    span = course.time(int(course.data["events"])) - course.time(0)
    if abs((int(value_of("moment")) - course.time(0)) / span - 0.47) > 0.1:
        yield f"a click in the middle chooses {value_of('moment')}"
    if not re.match(r"Time \d+: ", text_of("hovered")):
        yield f"the pointer is over {text_of('hovered')!r}"
    heads = browser.evaluate("[...document.querySelectorAll('#all th')].map(one => one.textContent)")
    if heads != ["name", "allocations", "largest", "held at the peak", "longest life, times"]:
        yield f"the columns are {heads}"
    browser.evaluate("document.querySelectorAll('#all thead button')[4].click()")
    longest = max(course.time(one[1]) - course.time(one[0]) for one in course.ranges)
    if rows_of("all")[0][4] != str(longest):
        yield f"the longest life is {rows_of('all')[0]}, not {longest}"
    for at, names in ((course.time(begin), {one[6] for one in course.ranges if one[0] == begin}),
                      (course.time(begin) + 1, {one[6] for one in course.ranges
                                                if course.time(one[0]) == course.time(begin) + 1})):
        browser.evaluate("document.getElementById('find').select()")
        search(f"#{at}")
        if {row[0] for row in rows_of("all")} != names:
            yield f"#{at} finds {rows_of('all')}, not {names}"


def case_plan_others():
    """A plan of a trace has events, one of no items is empty, and items without names have their sizes"""
    course = show(TRACES / "ncnn-mobilenet_v2.csv", kind=Plan)
    text = sums_text(course, int(course.data["peak"])).replace("page", "arena")
    if text_of("sums") != text:
        yield f"{text_of('sums')!r}, not {text!r}"
    show(write("none.csv", PLAN), kind=Plan)
    if text_of("sums") != "0 B held in 0 ranges, 0 B reserved in 0 arenas.":
        yield text_of("sums")
    show(write("sizes.csv", PLAN + ",3,4,64,\n,4,6,128,\n"), kind=Plan)
    if {row[0] for row in rows_of("all")} != {"64 B", "128 B"} or value_of("moment") != "4":
        yield f"{rows_of('all')} at {value_of('moment')}"
    if "The file has no names" not in text_of("unnamed"):
        yield text_of("unnamed")


run_pages(globals())
