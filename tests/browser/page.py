# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of quire replay, quire plan and quire page in Chromium: what they show at any event or time, by hand and
by keyboard, for any eyes, on paper, and how long it takes. Whatever a page reports to the console, and each request,
fails the case.

usage: page.py PATH_TO_QUIRE SOURCE_ROOT
"""

import functools
import itertools
import json
import pathlib
import random
import re
import statistics
import struct
import sys
import time
from fractions import Fraction

import colours
from chromium import Browser, BrowserError, find_program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tool"))
from html_tables import Course, Plan, Tables  # noqa: E402
from tool_run import HEADER, ROOT, TRACES, here, result, run, run_all, write  # noqa: E402

NAMES = ("transformer-training", "llm-serving", "ncnn-mobilenet_v2")
WIDTH, HEIGHT = 1250, 1000
MOST_PAGES, MOST_ROWS = 500, 20  # that the page draws, and lists
# Controls in the order of the keyboard.
CONTROLS = ("course", "zoom-in", "zoom-out", "zoom-all", "moment", "to-peak", "to-end", "find", "same-width",
            "slider", "map")
NAMED = ("button", "checkbox", "image", "img", "link", "radio", "searchbox", "slider", "spinbutton", "textbox")
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
LEAST_DISTANCE = 15  # CIE76 of two colours of the map
# A million events. Other programs on the machine only add time, so the least of some tries counts, and for opening,
# in which one thread works, its time on a processor.
MOST_OPEN_S, MOST_STEP_MS, TRIES, STEPS = 3, 50, 3, 100

browser = None  # of all cases


def show(trace, *args, kind=Course):
    """Replays or plans a file, and opens its page. Returns the tables of the page."""
    course = kind(trace, *args)
    if not any(course.names):  # then the page calls ranges by their requested sizes
        course.ranges = [(*one[:6], bytes_text(one[5])) for one in course.ranges]
    browser.set_size(WIDTH, HEIGHT)
    browser.set_scheme("light")
    browser.open(here() / "course.html")
    return course


def text_of(name):
    return browser.evaluate(f"document.getElementById('{name}').textContent")


def value_of(name):
    return browser.evaluate(f"document.getElementById('{name}').value")


def focus(name):
    browser.evaluate(f"document.getElementById('{name}').focus()")


def focused():
    return browser.evaluate("document.activeElement.id")


def rows_of(table):
    return browser.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')]"
                            ".map(row => [...row.cells].map(cell => cell.textContent))")


def script_text():
    return browser.evaluate("document.querySelector('script').textContent")


def search(text):
    """Types into the empty field of the search."""
    focus("find")
    browser.type(text)


# ---- the texts of the page ----------------------------------------------------------------------


def bytes_text(count):
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    unit = 0
    while count >= 1024 ** (unit + 1) and unit + 1 < len(units):
        unit += 1
    hundredths = int(Fraction(100 * count, 1024 ** unit) + Fraction(1, 2))
    text = f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")
    return f"{text} {units[unit]}"


def count_text(count, what):
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def sums_text(course, moment):
    state = course.at(moment)
    more = f", of which the first {MOST_PAGES} are drawn" if len(state.pages) > MOST_PAGES else ""
    return (f"After event {moment} of {course.data['events']}: {bytes_text(state.held)} held in "
            f"{count_text(len(state.ranges), 'range')}, {bytes_text(state.reserved)} reserved in "
            f"{count_text(len(state.pages), 'page')}{more}.")


def range_text(course, one):
    begin, end, page, offset, size, requested, name = one
    until = "to the end" if end is None else f"to {end - 1}"
    return (f"{name or '(unnamed)'}: {bytes_text(requested)} requested, {bytes_text(size)} held, "
            f"page {course.pages[page][0]}, offset {offset}, lives from event {begin} {until}")


# ---- what the page shows ------------------------------------------------------------------------


def case_any_event():
    """After any event the sums are those of the tables, by the field and by the slider"""
    for name in NAMES:
        course = show(TRACES / f"{name}.csv")
        last, peak = int(course.data["events"]), int(course.data["peak"])
        moments = [0, 1, last, peak, *random.Random(1).sample(range(last + 1), 50)]
        shown = browser.evaluate("""(moments => moments.map((moment, index) => {
            const [field, slider] = ['moment', 'slider'].map(name => document.getElementById(name));
            const [by, event] = index % 2 ? [slider, 'input'] : [field, 'change'];
            by.value = moment;
            by.dispatchEvent(new Event(event));
            return [Number(field.value), Number(slider.value), document.getElementById('sums').textContent];
        }))""" + f"({json.dumps(moments)})")
        for moment, found in zip(moments, shown):
            expected = [moment, moment, sums_text(course, moment)]
            if found != expected:
                yield f"{name}: {found}, not {expected}"


def case_peak():
    """The page opens at the peak, with the names that hold most"""
    for name in NAMES:
        course = show(TRACES / f"{name}.csv")
        peak = int(course.data["peak"])
        state = course.at(peak)
        if text_of("sums") != sums_text(course, peak):
            yield f"{name}: it opens with {text_of('sums')!r}"
        sums, rows = state.by_name(), rows_of("now")
        most = sorted((held for held, _ in sums.values()), reverse=True)
        named = [row for row in rows[:MOST_ROWS] if len(row) == 4]
        for (text, held, share, ranges), expected in zip(named, most):
            held_by_it, count = sums.get("" if text == "(unnamed)" else text, (0, 0))
            if held_by_it != expected or held != bytes_text(expected) or ranges != str(count) or \
                    abs(float(share.removesuffix(" %")) - 100 * expected / state.held) > 0.0501:
                yield f"{name}: the row {text}, {held}, {share}, {ranges}, not {held_by_it}, {count}"
        if len(named) != min(len(sums), MOST_ROWS) or len({row[0] for row in named}) != len(named):
            yield f"{name}: {len(named)} rows of {len(sums)} names"
        rest = most[MOST_ROWS:]
        if rest and rows[MOST_ROWS][:2] != [count_text(len(rest), "more name"), bytes_text(sum(rest))]:
            yield f"{name}: the last row is {rows[-1]}"


def whole_run(course):
    """The figures of each name over the whole run, in the order of the columns."""
    peak, last = int(course.data["peak"]), int(course.data["events"])
    figures = {}
    for begin, end, _, _, size, _, name in course.ranges:
        sums = figures.setdefault(name or "(unnamed)", [0, 0, 0, 0, 0])
        sums[0] += 1
        sums[1] = max(sums[1], size)
        sums[2] += size if begin <= peak and (end is None or peak < end) else 0
        sums[3] += size if end is None else 0
        sums[4] = max(sums[4], (last + 1 if end is None else end) - begin)
    return {name: [name, *sums] for name, sums in figures.items()}


def case_sorting():
    """The names of the whole run are sorted by the heading that is clicked"""
    form = (str, str, bytes_text, bytes_text, bytes_text, str)
    for name in NAMES:
        figures = whole_run(show(TRACES / f"{name}.csv"))
        for column, text in enumerate(form):
            browser.evaluate(f"document.querySelectorAll('#all thead button')[{column}].click()")
            rows = rows_of("all")[:MOST_ROWS]
            values = sorted((row[column] for row in figures.values()), reverse=column > 0)[:MOST_ROWS]
            if [row[column] for row in rows] != [text(value) for value in values]:
                yield f"{name}, column {column}: {rows}"
            yield from (f"{name}: {row}" for row in rows
                        if row != [text(value) for text, value in zip(form, figures[row[0]])])
            marks = browser.evaluate("[...document.querySelectorAll('#all th')].map(one => one.ariaSort)")
            if [bool(mark) for mark in marks] != [at == column for at in range(len(form))]:
                yield f"{name}: sorted by column {column}, marked as {marks}"


def case_search():
    """A search for a part of a name, in capitals too, applies to both tables until it is cleared"""
    course = show(TRACES / "transformer-training.csv")
    before = rows_of("now"), rows_of("all")
    state, figures = course.at(int(course.data["peak"])), whole_run(course)
    part = before[0][1][0][1:-1]  # of a name that is not the first one
    search(part.upper())
    for table, names in (("now", state.by_name()), ("all", figures)):
        found = [name for name in names if part.lower() in name.lower()]
        shown = [row[0] for row in rows_of(table)]
        if not 0 < len(found) < len(names):
            yield f"{part} is a part of {len(found)} of {len(names)} names"
        if set(shown[:MOST_ROWS]) - set(found) or len(shown[:MOST_ROWS]) != min(len(found), MOST_ROWS):
            yield f"{table} has {shown}, not {found}"
    browser.evaluate("document.getElementById('find').select()")
    event = next(begin for begin, _, _, _, _, _, name in course.ranges if name == before[0][1][0])
    browser.type(f"#{event}")
    if [row[0] for row in rows_of("all")] != [before[0][1][0]]:
        yield f"#{event}: {rows_of('all')}"
    browser.evaluate("document.getElementById('find').select()")
    browser.type("no name has this")
    if rows_of("now") or rows_of("all"):
        yield f"names that nothing has: {rows_of('now')}, {rows_of('all')}"
    browser.evaluate("document.getElementById('find').select(), document.execCommand('delete')")
    if (rows_of("now"), rows_of("all")) != before:
        yield f"without a search: {rows_of('now')}, {rows_of('all')}"


# ---- plans --------------------------------------------------------------------------------------

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
    browser.evaluate(CLICK % "by-time")
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


# ---- keyboard and pointer -----------------------------------------------------------------------


def case_tab():
    """Tab reaches every control in their order, and back"""
    show(TRACES / "transformer-training.csv")
    reached = []
    while len(reached) < 100 and reached[-1:] != [CONTROLS[-1]]:
        browser.press("Tab")
        reached.append(focused())
    if [name for name in reached if name in CONTROLS] != list(CONTROLS):
        yield f"Tab reaches {reached}"
    browser.press("Tab", shift=True)
    if focused() != CONTROLS[-2]:
        yield f"before the map comes {focused()}"
    outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    if outline in ("", "none"):
        yield "the focus is not visible"


def case_keys():
    """Every control works by keyboard: field, buttons, search, box, slider, and the names of the tables"""
    course = show(TRACES / "ncnn-mobilenet_v2.csv")
    peak, last = int(course.data["peak"]), int(course.data["events"])

    def after(moment, what):
        if text_of("sums") != sums_text(course, moment):
            yield f"{what}: {text_of('sums')!r}, not after event {moment}"

    while focused() != "moment":
        browser.press("Tab")  # which selects the text of the field
    browser.type("100")
    browser.press("Enter")
    yield from after(100, "the field")
    for name, key, moment in (("to-end", "Enter", last), ("to-peak", " ", peak)):
        focus(name)
        browser.press(key)
        yield from after(moment, name)
    focus("slider")
    for key, moment in (("ArrowRight", peak + 1), ("ArrowUp", peak + 2), ("ArrowLeft", peak + 1), ("Home", 0),
                        ("ArrowRight", 1), ("End", last), ("ArrowDown", last - 1)):
        browser.press(key)
        yield from after(moment, f"{key} on the slider")
        if value_of("moment") != str(moment):
            yield f"the field says {value_of('moment')}"
    focus("same-width")
    browser.press(" ")
    if not browser.evaluate("document.getElementById('same-width').checked"):
        yield "the box is not checked"
    name = browser.evaluate("(button => (button.focus(), button.textContent))"
                            "(document.querySelector('#all tbody button'))")
    browser.press("Enter")
    if value_of("find") != name or rows_of("all")[0][0] != name:
        yield f"the search is for {value_of('find')!r}, not for {name!r}"


def moved(state, one, key):
    """The range that an arrow key selects after another one."""
    filled = [ranges for _, _, ranges in state.pages if ranges]
    row = next(row for row, ranges in enumerate(filled) if one in ranges)
    at = filled[row].index(one) + {"ArrowRight": 1, "ArrowLeft": -1}.get(key, 0)
    if key in ("ArrowRight", "ArrowLeft"):
        return filled[row][at] if 0 <= at < len(filled[row]) else one
    row += 1 if key == "ArrowDown" else -1
    return filled[row][0] if 0 <= row < len(filled) else one


def case_arrows():
    """Arrow keys select a range of the map: along its page, or the first one of the page above or below"""
    for name in NAMES:
        course = show(TRACES / f"{name}.csv")
        state = course.at(int(course.data["peak"]))
        focus("map")
        browser.press("ArrowDown")
        one = next(ranges for _, _, ranges in state.pages if ranges)[0]
        chosen = random.Random(2)
        for key in (None, *chosen.choices(("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"), (2, 4, 2, 3), k=60)):
            if key:
                browser.press(key)
                one = moved(state, one, key)
            if text_of("pointed") != range_text(course, one):
                yield f"{name}, {key}: {text_of('pointed')!r}, not {range_text(course, one)!r}"
                break
        if browser.evaluate("document.getElementById('map').getAttribute('aria-describedby')") != "pointed":
            yield "the map does not refer to the description of the range"


def case_chart():
    """The chart zooms by key, button and wheel, and a click on it chooses an event"""
    course = show(TRACES / "transformer-training.csv")
    last = int(course.data["events"])

    def window():
        label = browser.evaluate("document.getElementById('course').getAttribute('aria-label')")
        return re.search("event (.*),", label)[1]

    whole = f"0 to {last}"
    focus("course")
    for step, zoom in (("+", lambda: browser.press("+")), ("the button", lambda: browser.evaluate(CLICK % "zoom-in")),
                       ("the wheel", lambda: browser.turn_wheel(*middle_of("course"), -100))):
        zoom()
        first, end = map(int, window().split(" to "))
        if not 0 <= first < end <= last or end - first == last:
            yield f"after {step} the chart shows {window()}"
        browser.press("0")
        if window() != whole:
            yield f"the whole course is {window()}"
    before = text_of("sums")
    browser.click(*middle_of("course"))
    chosen = int(value_of("moment"))
    if text_of("sums") != sums_text(course, chosen) or text_of("sums") == before or abs(chosen / last - 0.47) > 0.1:
        yield f"a click in the middle chooses {chosen} of {last}"
    if not text_of("hovered").startswith("Event "):
        yield f"the pointer is over {text_of('hovered')!r}"


# The pixels of a column of the chart, from the bottom of its plot to the top.
COLUMN = """(copy => {
    copy.width = 1;
    copy.height = %d;
    const c = copy.getContext('2d');
    c.drawImage(document.getElementById('course'), -%d, 0);
    const {data} = c.getImageData(0, 0, 1, copy.height);
    return Array.from({length: copy.height}, (_, y) => [...data.slice(4 * y, 4 * y + 3)]).reverse();
})(document.createElement('canvas'))"""


def part_of(name):
    """The part of a name up to a separator."""
    return re.match("[./:]*[^./:]*", name)[0] or "(unnamed)"


def chart_layers(course):
    """The parts of names in the order of the layers: those that hold most at the peak are below."""
    peak = int(course.data["peak"])
    held = {}
    for begin, end, _, _, size, _, name in course.ranges:
        sums = held.setdefault(part_of(name), [0, 0])
        sums[0] += size if begin <= peak and (end is None or peak < end) else 0
        sums[1] += size
    return sorted(held, key=lambda part: held[part], reverse=True)


def chart_size(element="course"):
    """The numbers by which chart.js places its plot, with the width and the height of the plot."""
    names = dict(re.findall(r"(LEFT|RIGHT|TOP|AXIS) = (\d+)", script_text()[script_text().index("makeChart"):]))
    sizes = {name: int(value) for name, value in names.items()}
    strip = int(re.search(r"STRIP = hasFree \? (\d+)", script_text())[1]) + 6
    wide, high = browser.evaluate(f"(chart => [chart.clientWidth, chart.clientHeight])"
                                  f"(document.getElementById('{element}'))")
    return sizes | {"width": wide - sizes["LEFT"] - sizes["RIGHT"],
                    "height": high - sizes["TOP"] - sizes["AXIS"] - strip}


def hover(x, y):
    """Moves the pointer to a point of the chart, from its corner. Returns the text about it."""
    left, top = browser.evaluate("""(chart => {
        chart.scrollIntoView({block: 'center'});
        const box = chart.getBoundingClientRect();
        return [box.left, box.top];
    })(document.getElementById('course'))""")
    browser.move_mouse(left + x, top + y)
    return text_of("hovered")


def case_hover():
    """The pointer over the chart names the moment, its sums, the part of the names, and one allocation of it"""
    course = show(TRACES / "transformer-training.csv")
    sizes, layers = chart_size(), chart_layers(course)
    chosen, named = random.Random(5), 0
    for _ in range(40):
        text = hover(sizes["LEFT"] + chosen.randrange(sizes["width"]) + 0.5,
                     sizes["TOP"] + chosen.randrange(sizes["height"]))
        moment = int(re.match(r"Event (\d+)", text)[1])
        state = course.at(moment)
        free = [row for row in course.free if row[0] <= moment][-1:]
        if f": {bytes_text(state.held)} held, " not in text or \
                (free and f"largest free range {bytes_text(free[0][2])})" not in text):
            yield f"{text!r}, not {state.held} held and {free}"
        one = re.search(r"requested; (.*?): (.*?), here (.*?) for (.*), from event (\d+) to (.*)$", text)
        if not one:
            continue
        named += 1
        part, held, size, name, begin, end = one.groups()
        parts = [part] if part != "others" else layers[14:]  # the parts without a colour of their own
        inside = [other for other in state.ranges if part_of(other[6]) in parts]
        until = None if end == "the end" else int(end) + 1
        if held != bytes_text(sum(other[4] for other in inside)) or \
                not any((bytes_text(other[4]), other[6], other[0], other[1]) == (size, name, int(begin), until)
                        for other in inside):
            yield f"{text!r} is none of {len(inside)} allocations"
    if named < 10:
        yield f"{named} points name an allocation"


def case_structure():
    """The picture of the chart has the layers of the tables, one above the other, with their colours and heights"""
    course = show(TRACES / "transformer-training.csv")
    sizes, layers, most = chart_size(), chart_layers(course), course.values["peak_reserved_bytes"]
    palette = [colours.parse(one) for one in re.findall("#[0-9a-f]{6}", re.search(r"PALETTE = \[(.*?)\]",
                                                                                script_text(), re.S)[1])]
    last, marks = int(course.data["events"]), [moment for moment, in course.frames] + [int(course.data["peak"])]
    marked = {round(moment / last * sizes["width"]) + side for moment in marks for side in (-1, 0, 1)}
    compared = other = 0
    for x in sorted(set(range(20, sizes["width"], 41)) - marked):
        moment = int(re.match(r"Event (\d+)", hover(sizes["LEFT"] + x + 0.5, 1))[1])
        held = dict.fromkeys(layers, 0)
        for one in course.at(moment).ranges:
            held[part_of(one[6])] += one[4]
        pixels = browser.evaluate(COLUMN % (sizes["TOP"] + sizes["height"], sizes["LEFT"] + x))
        above = 0
        for part, colour in zip(layers, palette):
            below, above = above, above + held[part] / most * sizes["height"]
            inside = [tuple(pixel) for pixel in pixels[round(below) + 2:max(round(above) - 2, 0)]]
            compared += len(inside)
            other += sum(pixel != colour for pixel in inside)
    if compared < 500 or other > 0.05 * compared:  # lines of bytes lie over some layers
        yield f"{other} of {compared} pixels have not the colour of their layer"


def case_sizes():
    """If the names do not tell ranges apart, sizes have the colours"""
    for rows, is_by_size in ((["all alike"] * 40, True), ([f"name {i}" for i in range(90)], True),
                             ([f"name {i % 3}" for i in range(40)], False)):
        show(write("sizes.csv", HEADER + "".join(f"alloc,{i + 1},{4096 << i % 4},,0,0,{name}\n"
                                                 for i, name in enumerate(rows))))
        legend = browser.evaluate("[...document.querySelectorAll('#legend li')].map(one => one.textContent)")
        wanted = {f"from {4 << i} KiB" for i in range(4)} if is_by_size else set(rows)
        if set(legend) != wanted or ("colours stand for sizes" in text_of("unnamed")) != is_by_size:
            yield f"{rows[:2]}: {legend}, {text_of('unnamed')!r}"


CLICK = "document.getElementById('%s').click()"


def middle_of(name):
    """The point of the window in the middle of an element, which is scrolled to."""
    return browser.evaluate(f"""(element => {{
        element.scrollIntoView({{block: 'center'}});
        const box = element.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    }})(document.getElementById('{name}'))""")


def layout():
    """The numbers by which the script of the page places the bars."""
    script = script_text()
    line = re.search(r"const (ROW = .*);", script)[1]
    return {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", line)}


def places(state, row, wide, same_width):
    """Each range of a page of the map with the point at its middle, from the corner of the map, and its width."""
    sizes = layout()
    extents = [max([size] + [one[3] + one[4] for one in ranges]) for _, size, ranges in state.pages]
    room = wide - sizes["LEFT"] - sizes["RIGHT"]
    width = room if same_width else max(extents[row] / max(extents) * room, 2)
    for one in state.pages[row][2]:
        yield (one, sizes["LEFT"] + (one[3] + one[4] / 2) / extents[row] * width,
               row * sizes["ROW"] + sizes["BAR"] / 2, one[4] / extents[row] * width)


def point(x, y):
    """Moves the pointer to a point of the map. Returns what is below it and the colour there."""
    left, top = browser.evaluate(f"""(map => {{
        scrollTo(0, map.getBoundingClientRect().top + scrollY + {y} - innerHeight / 2);
        const box = map.getBoundingClientRect();
        return [box.left, box.top];
    }})(document.getElementById('map'))""")
    browser.move_mouse(left + x, top + y)
    colour = browser.evaluate(f"""(copy => {{
        copy.width = copy.height = 1;
        const c = copy.getContext('2d');
        c.drawImage(document.getElementById('map'), {int(x)}, {int(y)}, 1, 1, 0, 0, 1, 1);
        return [...c.getImageData(0, 0, 1, 1).data];
    }})(document.createElement('canvas'))""")
    return text_of("pointed"), tuple(colour[:3])


def case_pointer():
    """The pointer over the middle of a bar's range describes it; the range has a colour of its own"""
    free = colours.parse("#e4e4e8")
    for name, same_width in itertools.product(NAMES[:2], (False, True)):
        course = show(TRACES / f"{name}.csv")
        state = course.at(int(course.data["peak"]))
        if same_width:
            browser.evaluate("document.getElementById('same-width').click()")
        wide = browser.evaluate("document.getElementById('map').clientWidth")
        tried = [place for row in range(len(state.pages)) for place in places(state, row, wide, same_width)
                 if place[3] >= 4]
        for one, x, y, _ in random.Random(3).sample(tried, min(len(tried), 25)):
            text, colour = point(x, y)
            if text != range_text(course, one):
                yield f"{name}: at {x:.1f}, {y:.1f}: {text!r}, not {range_text(course, one)!r}"
            if colour in (free, (0, 0, 0)):
                yield f"{name}: at {x:.1f}, {y:.1f} the colour is {colour}"
        if point(2, 2)[0]:
            yield f"{name}: beside the bars the text is {point(2, 2)[0]!r}"


# ---- one moment ---------------------------------------------------------------------------------


def show_dump(path):
    """Opens the page of the JSON of a memory or a device. Returns the tables of the page."""
    done = run("page", path, "--html", "page.html")
    if done.code:
        raise ValueError(done.err)
    browser.set_size(WIDTH, HEIGHT)
    browser.open(here() / "page.html")
    return Tables(here() / "page.html")


def visible(names):
    return [name for name in names if browser.evaluate(f"document.getElementById('{name}').checkVisibility()")]


def moment_text(state):
    return (f"{bytes_text(state.held)} held in {count_text(len(state.ranges), 'range')}, "
            f"{bytes_text(state.reserved)} reserved in {count_text(len(state.pages), 'page')}.")


DUMPED = ROOT / "docs/examples/device_dump.json"


def case_dump():
    """The page of a dump has the sums, the names and a search, and nothing that chooses a moment"""
    for path in (DUMPED, write("memory.json", result("map", TRACES / "llm-serving.csv", "--elastic"))):
        tables = show_dump(path)
        state = tables.at(0)
        if text_of("sums") != moment_text(state):
            yield f"{path.name}: it shows {text_of('sums')!r}, not {moment_text(state)!r}"
        shown = visible([*CONTROLS, "by-time", "course-help", "all"])
        if shown != ["find", "same-width", "map"] or not visible(["now", "legend", "explorer"]):
            yield f"{path.name}: {shown} are visible"
        found = [word for word in ("event", "moment") if word in browser.evaluate("document.body.innerText")]
        if found:
            yield f"{path.name}: it names {found}"
        held = {name: bytes_text(size) for name, (size, _) in state.by_name().items()}
        rows = [row for row in rows_of("now") if len(row) == 4 and "more name" not in row[0]]
        if not rows or any(held[row[0]] != row[1] for row in rows) or len(rows) != min(len(held), MOST_ROWS):
            yield f"{path.name}: the names are {rows}"
        wanted = rows[-1][0]
        search(wanted)
        if {row[0] for row in rows_of("now")} != {name for name in held if wanted.lower() in name.lower()}:
            yield f"{path.name}: a search for {wanted} finds {rows_of('now')}"


def case_dump_pointer():
    """The pointer over a range describes it with its memory, by whose names the pages are in order"""
    tables = show_dump(DUMPED)
    names = tables.table("memories").splitlines()
    wide = browser.evaluate("document.getElementById('map').clientWidth")
    beside = int(re.search(r"MEMORY = (\d+)", script_text())[1])
    sizes, layout_left = dict(enumerate(one for _, _, one in tables.changes)), layout()["LEFT"]
    order = sorted(sizes, key=lambda page: (tables.pages[page][3], tables.pages[page][0]))
    extents = {page: max([size] + [one[3] + one[4] for one in tables.ranges if one[2] == page])
               for page, size in sizes.items()}
    room = wide - layout_left - beside - layout()["RIGHT"]
    tried = 0
    for one in tables.ranges:
        _, _, page, offset, size, requested, name = one
        scale = room / max(extents.values())
        if size * scale < 4:
            continue
        tried += 1
        text, _ = point(layout_left + beside + (offset + size / 2) * scale,
                        order.index(page) * layout()["ROW"] + layout()["BAR"] / 2)
        number, memory = tables.pages[page][0], names[tables.pages[page][3]]
        expected = (f"{name}: {bytes_text(requested)} requested, {bytes_text(size)} held, memory {memory}, "
                    f"page {number}, offset {offset}")
        if text != expected:
            yield f"{text!r}, not {expected!r}"
    if tried < 6 or len(names) < 3:
        yield f"{tried} ranges of {names}"


def case_dump_widths():
    """On a telephone and on a desk the page of a dump needs no scrolling sideways, also with long names"""
    dump = json.loads(DUMPED.read_text())
    dump["name"] = "device" * 40
    for memory in dump["memories"]:
        memory["name"] *= 40
    for path in (DUMPED, write("long.json", dump)):
        show_dump(path)
        for width in (360, WIDTH):
            browser.set_size(width, HEIGHT)
            whole, window = browser.evaluate("[document.documentElement.scrollWidth, "
                                             "document.documentElement.clientWidth]")
            if whole > window:
                yield f"{path.name}: {whole} pixels in a window of {window}"


# ---- for any eyes -------------------------------------------------------------------------------


def case_accessible():
    """Every control and every picture has an accessible name"""
    show(TRACES / "transformer-training.csv")
    elements = [(role, name) for role, name in browser.accessible() if role in NAMED]
    yield from (f"a {role} has no name" for role, name in elements if not name.strip())
    wanted = {"button", "checkbox", "image", "searchbox", "slider", "spinbutton"}
    if wanted - {role for role, _ in elements}:
        yield f"there is no {wanted - {role for role, _ in elements}}"


def case_widths():
    """On a telephone and on a desk the page needs no scrolling sideways, also with long names"""
    long = write("long.csv", HEADER + "".join(f"alloc,{i + 1},{4096 << i},,0,0,{str(i) * 300}\n" for i in range(9)))
    for trace in (*(TRACES / f"{name}.csv" for name in NAMES), long):
        show(trace)
        for width in (360, WIDTH):
            browser.set_size(width, HEIGHT)
            whole, window = browser.evaluate("[document.documentElement.scrollWidth, "
                                             "document.documentElement.clientWidth]")
            if whole > window or not width - 20 <= window <= width:
                yield f"{trace.name}: {whole} pixels in a window of {window}"


# The colour of each text that is visible, its background, and the text.
TEXTS = """(() => {
    const transparent = colour => /, 0\\)$/.test(colour);
    const found = new Map();
    const add = (element, text) => {
        const style = getComputedStyle(element);
        let behind = element;
        while (behind.parentElement && transparent(getComputedStyle(behind).backgroundColor))
            behind = behind.parentElement;
        const colour = element instanceof SVGElement ? style.fill : style.color;
        const pair = [colour, getComputedStyle(behind).backgroundColor];
        found.set(pair.join() + element.tagName, [...pair, `${element.tagName} ${text.trim().slice(0, 40)}`]);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (walker.currentNode.data.trim() && element.checkVisibility())
            add(element, walker.currentNode.data);
    }
    document.querySelectorAll('input[type=number], input[type=search]').forEach(input => add(input, input.id));
    return [...found.values()];
})()"""


def case_contrast():
    """Text stands out from its background by 4.5 or more, light and dark"""
    pictures = []
    for scheme in ("light", "dark"):
        show(TRACES / "transformer-training.csv")
        browser.set_scheme(scheme)
        texts = browser.evaluate(TEXTS)
        yield from (f"{scheme}: {text}: {colour} on {behind}" for colour, behind, text in texts
                    if colours.contrast(colours.parse(colour), colours.parse(behind)) < LEAST_CONTRAST)
        tags = {text.split()[0] for _, _, text in texts}
        if {"H1", "P", "TD", "LI", "BUTTON", "INPUT"} - tags:
            yield f"{scheme}: the texts are {texts}"
        pictures.append(browser.screenshot())
        if struct.unpack(">II", pictures[-1][16:24]) != (WIDTH, HEIGHT):
            yield f"{scheme}: the picture has not the size of the window"
    if pictures[0] == pictures[1]:
        yield "dark is like light"


def too_near(palette, least):
    """The pairs of colours that people of a vision confuse."""
    for (one, other), vision in itertools.product(itertools.combinations(palette, 2), colours.VISIONS):
        away = colours.distance(colours.parse(one), colours.parse(other), vision)
        if away < least:
            yield f"{vision}: {one} and {other} differ by {away:.1f}"


def case_palette():
    """The colours of the map differ for every vision, by a distance that red and green of one lightness lack"""
    show(TRACES / "ncnn-mobilenet_v2.csv")
    script = script_text()
    palette = re.findall(r"#[0-9a-f]{6}", re.search(r"PALETTE = \[(.*?)\]", script, re.S)[1])
    if len(set(palette)) != 7:
        yield f"the palette is {palette}"
    yield from too_near(palette, LEAST_DISTANCE)
    red_green = ("#9e6644", "#5a7e3c")
    seen = {problem.split(":")[0] for problem in too_near(red_green, LEAST_DISTANCE)}
    if seen != {"protanopia", "deuteranopia"}:
        yield f"{red_green} are confused by {seen}"
    if abs(colours.contrast((0, 0, 0), (255, 255, 255)) - 21) > 0.001 or colours.parse("#fff") != (255, 255, 255):
        yield "black on white has not the contrast 21"


def case_print():
    """It can be printed"""
    show(TRACES / "llm-serving.csv")
    paper = browser.print()
    pages = len(re.findall(rb"/Type\s*/Page\b", paper))
    print(f"# PDF: {len(paper)} bytes, {pages} pages")
    if not paper.startswith(b"%PDF") or not pages:
        yield f"{len(paper)} bytes, {pages} pages"


# ---- how long it takes --------------------------------------------------------------------------


def million():
    """A trace of a million events: 500,000 allocations with 200 names, of which at most 5,000 live at a time."""
    chosen = random.Random(4)
    names = [f"{part}.{layer}.{what}" for part in ("encoder", "decoder") for layer in range(25)
             for what in ("weight", "gradient", "activation", "workspace")]
    sizes = {name: [int(chosen.lognormvariate(10, 2)) + 16 for _ in range(8)] for name in names}
    lines, live = [], []
    for number in range(1, 500001):
        name = chosen.choice(names)
        if len(live) == 5000 or len(live) > 100 and chosen.random() < 0.01:
            for _ in range(chosen.randrange(1, 100)):
                at = int(len(live) * chosen.random() ** 3)  # most often one of the newest
                live[-1 - at], live[-1] = live[-1], live[-1 - at]
                lines.append(f"free,{live.pop()},,,{len(lines)},0,\n")
        live.append(number)
        lines.append(f"alloc,{number},{chosen.choice(sizes[name])},,{len(lines)},0,{name}\n")
    lines += [f"free,{number},,,{len(lines)},0,\n" for number in live]
    return write("million.csv", HEADER + "".join(lines))


# The milliseconds of steps of the slider, each with its frame.
STEP_TIMES = """(async moments => {
    const slider = document.getElementById('slider'), times = [];
    for (const moment of moments) {
        const begin = performance.now();
        slider.value = moment;
        slider.dispatchEvent(new Event('input'));
        await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - begin);
    }
    return times;
})(%s)"""


def case_million():
    """A million events: the page opens within 3 s, and a step of the slider takes at most 50 ms"""
    course = show(million())
    last = int(course.data["events"])
    if last != 1000000 or len(course.ranges) != 500000:
        yield f"{len(course.ranges)} ranges in {last} events"
    page = here() / "course.html"
    print(f"# a page of {page.stat().st_size / 1e6:.1f} MB")
    opened, stepped = [], []
    moments = [last * step // STEPS for step in range(1, STEPS + 1)]
    while len(opened) < TRIES and (not opened or min(opened) > MOST_OPEN_S or min(stepped) > MOST_STEP_MS):
        seconds = browser.open(page)
        busy = browser.processor_time()
        opened.append(min(seconds, busy))
        times = browser.evaluate(STEP_TIMES % json.dumps(moments))
        stepped.append(statistics.median(times))
        print(f"# opened in {seconds:.2f} s, {busy:.2f} s of a processor; "
              f"a step takes {stepped[-1]:.1f} ms, at most {max(times):.1f} ms")
    if min(opened) > MOST_OPEN_S or min(stepped) > MOST_STEP_MS:
        yield f"at best {min(opened):.2f} s to open, {min(stepped):.1f} ms for a step"


# ---- the driver ---------------------------------------------------------------------------------


def case_reports():
    """What a page reports is noticed: messages, exceptions, requests, files that are missing, and endless waits"""
    page = write("bad.html", "<!doctype html><link rel=icon href=data:,><script>console.error('one', 1);"
                 "console.warn('two'); console.log('three'); fetch('http://quire.invalid/four').catch(() => 0);"
                 "setTimeout(() => { throw new Error('five'); });</script>")
    browser.open(page)
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    reports = "\n".join(browser.take_problems())
    for words in ("console error: one 1", "console warning: two", "request of http://quire.invalid/four",
                  "exception: Error: five"):
        if words not in reports:
            yield f"no {words!r} in {reports!r}"
    if "three" in reports:
        yield "a plain message is a problem"
    for words, wait in (("no answer in 0.5 s", lambda: browser.evaluate("new Promise(() => 0)", limit=0.5)),
                        ("missing.html", lambda: browser.open(here() / "missing.html")),
                        ("Error: six", lambda: browser.evaluate("(() => { throw new Error('six'); })()")),
                        ("not within 0.5 s", lambda: browser.wait_for("Page.none", limit=0.5))):
        try:
            wait()
            yield f"nothing refused: {words}"
        except BrowserError as error:
            if words not in str(error):
                yield str(error)
    browser.take_problems()


def case_end():
    """A program that fails to start is reported; after its end nothing of it is left"""
    program = write("no-browser", "#!/bin/sh\necho it says why >&2\nexit 1\n")
    program.chmod(0o700)
    before = set(pathlib.Path(browser.folder).parent.glob("quire-chromium-*"))
    try:
        with Browser(str(program)):
            yield "a program that ends at once is a browser"
    except BrowserError as error:
        if "it says why" not in str(error):
            yield str(error)
    with Browser(find_program()) as other:
        leader = other.process
    if set(browser.folder.parent.glob("quire-chromium-*")) != before:
        yield "a folder is left"
    for state in alive(leader):
        yield f"a process is left: {state}"


def alive(group):
    """The states of the processes of a group that have not ended within five seconds."""
    end = time.monotonic() + 5
    while (left := [state for state, its in processes() if its == group and state != "Z"]) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def processes():
    """The state and the group of each process."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has ended
            continue
        yield state, int(group)


# ---- all cases ----------------------------------------------------------------------------------


def quiet(case):
    """The case, which also fails if the page reports something."""
    @functools.wraps(case)
    def whole():
        browser.take_problems()
        yield from case()
        yield from browser.take_problems()
    return whole


def main():
    global browser
    program = find_program()
    if not program:
        print("ok 1 - the page in a browser # SKIP chromium is missing\n1..1")
        return
    with Browser(program) as browser:
        run_all({name: quiet(value) for name, value in list(globals().items()) if name.startswith("case_")})


main()
