# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of a replay in Chromium: its sums and names at any event, by field, slider and keyboard, and its map under
the pointer and the arrow keys.

usage: page.py PATH_TO_QUIRE SOURCE_ROOT
"""

import itertools
import json
import random

import colours
from browsing import (CONTROLS, MOST_ROWS, NAMES, WIDTH, browser, bytes_text, click, count_text, drawn_texts, focus,
                      focused, layout, point, rows_of, run_pages, search, show, sums_text, text_of, value_of)
from tool_run import TRACES


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


def case_shares():
    """Beside a page are its bytes and the whole percent that are held: 100 only if nothing is free"""
    for name in NAMES:
        course = show(TRACES / f"{name}.csv")
        pages = course.at(int(course.data["peak"])).pages
        wanted = [f"{bytes_text(size)}, {100 * sum(one[4] for one in ranges) // size} % held"
                  for _, size, ranges in pages]
        texts = [text for canvas, text, *_ in drawn_texts(WIDTH - 50) if canvas == "map" and " % held" in text]
        if texts != wanted:
            yield f"{name}: {[pair for pair in zip(texts, wanted) if pair[0] != pair[1]]}, {len(texts)} pages"


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


# ---- the keyboard -------------------------------------------------------------------------------


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


def range_text(course, one):
    begin, end, page, offset, size, requested, name = one
    until = "to the end" if end is None else f"to {end - 1}"
    return (f"{name or '(unnamed)'}: {bytes_text(requested)} requested, {bytes_text(size)} held, "
            f"page {course.pages[page][0]}, offset {offset}, lives from event {begin} {until}")


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


# ---- the pointer --------------------------------------------------------------------------------


def places(state, row, wide, same_width):
    """Each range of a page of the map with the point at its middle, from the corner of the map, and its width."""
    sizes = layout()
    extents = [max([size] + [one[3] + one[4] for one in ranges]) for _, size, ranges in state.pages]
    room = wide - sizes["LEFT"] - sizes["RIGHT"]
    width = room if same_width else max(extents[row] / max(extents) * room, 2)
    for one in state.pages[row][2]:
        yield (one, sizes["LEFT"] + (one[3] + one[4] / 2) / extents[row] * width,
               row * sizes["ROW"] + sizes["BAR"] / 2, one[4] / extents[row] * width)


def case_pointer():
    """The pointer over the middle of a bar's range describes it; the range has a colour of its own"""
    free = colours.parse("#e4e4e8")
    for name, same_width in itertools.product(NAMES[:2], (False, True)):
        course = show(TRACES / f"{name}.csv")
        state = course.at(int(course.data["peak"]))
        if same_width:
            click("same-width")
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


run_pages(globals())
