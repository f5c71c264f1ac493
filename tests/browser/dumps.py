# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of quire page in Chromium: what the memories of a dump hold at its one moment.

usage: dumps.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import re

from browsing import (CONTROLS, HEIGHT, MOST_ROWS, WIDTH, browser, bytes_text, count_text, layout, point, rows_of,
                      run_pages, script_text, search, show_dump, text_of, visible)
from tool_run import ROOT, TRACES, result, write

DUMPED = ROOT / "docs/examples/device_dump.json"


def moment_text(state):
    return (f"{bytes_text(state.held)} held in {count_text(len(state.ranges), 'range')}, "
            f"{bytes_text(state.reserved)} reserved in {count_text(len(state.pages), 'page')}.")


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
        tops = browser.evaluate("['sums', 'legend', 'map'].map(name => "
                                "document.getElementById(name).getBoundingClientRect().top)")
        if tops != sorted(tops):
            yield f"{path.name}: sums, legend and map are at {tops}"
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


def case_dump_lazy():
    """A lazy allocation holds what has memory: in the sums, by name, and under the pointer"""
    def one(offset, size, requested, name, **more):
        return {"offset": offset, "size": size, "kind": "range", "left_padding": 0, "requested": requested, **more,
                "allocation": 1, "user_data": 0, "name": name}
    page = {"page": 0, "size": 1 << 20, "bytes": 320 << 10, "dedicated": False, "ranges": [
        one(0, 512 << 10, 512 << 10, "lazy", backed=192 << 10), one(512 << 10, 256 << 10, 256 << 10, "none", backed=0),
        one(768 << 10, 64 << 10, 1000, "plain"), {"offset": 832 << 10, "size": 64 << 10, "kind": "free"}]}
    memory = {"schema": 1, "what": "memory", "name": "m", "kind": 0, "flags": [], "fit": "segregated",
              "granule": 256, "page_size": 64 << 10, "stats": {}, "pages": [page]}
    show_dump(write("lazy.json", memory))
    if text_of("sums") != "256 KiB held in 3 ranges, 320 KiB reserved in 1 page.":
        yield text_of("sums")
    rows = rows_of("now")
    if rows != [["lazy", "192 KiB", "75.0 %", "1"], ["plain", "64 KiB", "25.0 %", "1"], ["none", "0 B", "0.0 %", "1"]]:
        yield f"the names are {rows}"
    wide = browser.evaluate("document.getElementById('map').clientWidth")
    room = wide - layout()["LEFT"] - layout()["RIGHT"]
    for at, expected in ((0.25, "lazy: 192 KiB of 512 KiB have memory, page 0, offset 0"),
                         (0.6, "none: 0 B of 256 KiB have memory, page 0, offset 524288"),
                         (0.9, "plain: 1000 B requested, 64 KiB held, page 0, offset 786432")):
        text, _ = point(layout()["LEFT"] + at * room, layout()["BAR"] / 2)
        if text != expected:
            yield f"{text!r}, not {expected!r}"


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
            narrow = browser.evaluate("Math.min(...[...document.querySelectorAll('#stats td:first-child')]"
                                      ".map(cell => cell.clientWidth))")
            if narrow < 100:
                yield f"{path.name}: the names of statistics have {narrow} pixels in a window of {window}"


run_pages(globals())
