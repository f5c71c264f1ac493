# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of a replay in Chromium for any eyes: names for screen readers, narrow windows, contrast, colours, paper.

usage: eyes.py PATH_TO_QUIRE SOURCE_ROOT
"""

import itertools
import re
import struct

import colours
from browsing import HEIGHT, NAMES, WIDTH, browser, run_pages, script_text, show
from tool_run import HEADER, TRACES, write

NAMED = ("button", "checkbox", "image", "img", "link", "radio", "searchbox", "slider", "spinbutton", "textbox")
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
LEAST_DISTANCE = 15  # CIE76 of two colours of the map


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
        heights = browser.evaluate("[...document.querySelectorAll('#now tbody tr')].map(row => row.clientHeight)")
        if trace != long and len(set(heights)) != 1:
            yield f"{trace.name}: the rows of names have the heights {heights}"


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


run_pages(globals())
