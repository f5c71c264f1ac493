# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The chart of a page in Chromium: its zoom, what it says under the pointer, and the layers of its picture.

usage: chart.py PATH_TO_QUIRE SOURCE_ROOT
"""

import random
import re

import colours
from browsing import (WIDTH, browser, bytes_text, click, drawn_texts, focus, middle_of, run_pages, script_text, show,
                      sums_text, text_of, value_of, visible)
from tool_run import HEADER, TRACES, here, run, write


def case_chart():
    """The chart zooms by key, button and wheel, and a click on it chooses an event"""
    course = show(TRACES / "transformer-training.csv")
    last = int(course.data["events"])

    def window():
        label = browser.evaluate("document.getElementById('course').getAttribute('aria-label')")
        return re.search("event (.*),", label)[1]

    whole = f"0 to {last}"
    focus("course")
    for step, zoom in (("+", lambda: browser.press("+")), ("the button", lambda: click("zoom-in")),
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


def chart_size():
    """The numbers by which chart.js places its plot, with the width and the height of the plot."""
    line = re.search(r"const (LEFT = .*, AXIS = .*);", script_text())[1]
    sizes = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", line)}
    strip = int(re.search(r"STRIP = hasFree \? (\d+)", script_text())[1]) + 6
    wide, high = browser.evaluate("(chart => [chart.clientWidth, chart.clientHeight])"
                                  "(document.getElementById('course'))")
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


# The pixels of a column of the chart, from the bottom of its plot to the top.
COLUMN = """(copy => {
    copy.width = 1;
    copy.height = %d;
    const c = copy.getContext('2d');
    c.drawImage(document.getElementById('course'), -%d, 0);
    const {data} = c.getImageData(0, 0, 1, copy.height);
    return Array.from({length: copy.height}, (_, y) => [...data.slice(4 * y, 4 * y + 3)]).reverse();
})(document.createElement('canvas'))"""


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


def case_refusals():
    """A refused request has a mark above the plot, which hides no layer; the page says what its marks are"""
    huge = "".join(f"alloc,{i},{1 << 30},,0,0,huge\n" for i in range(3, 50))
    trace = write("refused.csv", HEADER + "alloc,1,1048576,,0,0,small\nalloc,2,1048576,,0,0,other\n" + huge)
    done = run("replay", trace, "--limit", "4M", "--html", "course.html")
    if "cannot allocate 'huge'" not in done.err:
        yield done.err
    browser.open(here() / "course.html")
    sizes, mark, last = chart_size(), colours.parse("#d55e00"), 49
    for moment in (10, 20, 40):
        x = sizes["LEFT"] + int(moment / last * sizes["width"])
        pixels = [browser.evaluate(COLUMN % (sizes["TOP"] + sizes["height"], near)) for near in (x - 1, x)]
        marked = [[max(abs(a - b) for a, b in zip(pixel, mark)) < 5 for pixel in column] for column in pixels]
        if any(any(column[:sizes["height"]]) for column in marked) or \
                not any(any(column[sizes["height"]:]) for column in marked):
            yield f"event {moment}: {[sum(column) for column in marked]} pixels of a mark"
    if visible(("frames-help", "refused-help")) != ["refused-help"]:
        yield f"with refusals the page explains {visible(('frames-help', 'refused-help'))}"
    show(TRACES / "transformer-training.csv")
    if visible(("frames-help", "refused-help")) != ["frames-help"]:
        yield f"with frames the page explains {visible(('frames-help', 'refused-help'))}"


def case_axis():
    """The moments below the chart do not touch in narrow windows, and lie inside"""
    for name in ("transformer-training", "llm-serving"):
        for width, count in ((360, 3), (WIDTH - 50, 5)):
            show(TRACES / f"{name}.csv")
            texts = [one for one in drawn_texts(width) if one[0] == "" and one[1] != "fragmentation"]
            wide = browser.evaluate("document.getElementById('course').clientWidth")
            yield from (f"{name}: {one} lies outside {wide} pixels" for one in texts if one[2] < 0 or one[3] > wide)
            for row in {one[4] for one in texts if "event 0" in one[1] or one[1] == "0 ns"}:
                ends = sorted(one[2:4] for one in texts if one[4] == row)
                if len(ends) != count or any(after[0] < before[1] + 4 for before, after in zip(ends, ends[1:])):
                    yield f"{name}: in {width} pixels the moments lie at {ends}"


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


run_pages(globals())
