# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of quire replay, quire plan and quire page in Chromium, for the tests beside this file: they are opened,
used by hand and by keyboard, and read, with the texts that they must have. Whatever a page reports to the console,
and each request, fails the case.
"""

import functools
import pathlib
import re
import sys
from fractions import Fraction

from chromium import Browser, find_program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tool"))
from html_tables import Course, Tables  # noqa: E402
from tool_run import here, run, run_all  # noqa: E402

NAMES = ("transformer-training", "llm-serving", "ncnn-mobilenet_v2")
WIDTH, HEIGHT = 1250, 1000
MOST_PAGES, MOST_ROWS = 500, 20  # that the page draws, and lists
# Controls in the order of the keyboard.
CONTROLS = ("course", "zoom-in", "zoom-out", "zoom-all", "moment", "to-peak", "to-end", "find", "same-width",
            "slider", "map")

browser = Browser(find_program())  # which run_pages starts


# ---- opened -------------------------------------------------------------------------------------


def show(trace, *args, kind=Course):
    """Replays or plans a file, and opens its page. Returns the tables of the page."""
    course = kind(trace, *args)
    if not any(course.names):  # then the page calls ranges by their requested sizes
        course.ranges = [(*one[:6], bytes_text(one[5])) for one in course.ranges]
    browser.set_size(WIDTH, HEIGHT)
    browser.set_scheme("light")
    browser.open(here() / "course.html")
    return course


def show_dump(path):
    """Opens the page of the JSON of a memory or a device. Returns the tables of the page."""
    done = run("page", path, "--html", "page.html")
    if done.code:
        raise ValueError(done.err)
    browser.set_size(WIDTH, HEIGHT)
    browser.open(here() / "page.html")
    return Tables(here() / "page.html")


# ---- read and used ------------------------------------------------------------------------------


def text_of(name):
    return browser.evaluate(f"document.getElementById('{name}').textContent")


def value_of(name):
    return browser.evaluate(f"document.getElementById('{name}').value")


def rows_of(table):
    return browser.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')]"
                            ".map(row => [...row.cells].map(cell => cell.textContent))")


def script_text():
    return browser.evaluate("document.querySelector('script').textContent")


def visible(names):
    return [name for name in names if browser.evaluate(f"document.getElementById('{name}').checkVisibility()")]


# Each text that a canvas draws from now on: the name of the canvas, the text, its left and its right end, its line.
RECORD_TEXTS = """(texts => {
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const wide = this.measureText(text).width;
        const left = x - ({right: wide, center: wide / 2}[this.textAlign] || 0);
        texts.push([this.canvas.id, text, left, left + wide, y]);
        draw.call(this, text, x, y);
    };
    window.drawnTexts = texts;
})([])"""


def drawn_texts(width):
    """What the canvases draw when the window gets another width. The chart draws on a canvas without a name."""
    browser.evaluate(RECORD_TEXTS)
    browser.set_size(width, HEIGHT)
    return browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(drawnTexts))))")


def focus(name):
    browser.evaluate(f"document.getElementById('{name}').focus()")


def focused():
    return browser.evaluate("document.activeElement.id")


def click(name):
    """Clicks an element, wherever it lies."""
    browser.evaluate(f"document.getElementById('{name}').click()")


def search(text):
    """Types into the empty field of the search."""
    focus("find")
    browser.type(text)


def middle_of(name):
    """The point of the window in the middle of an element, which is scrolled to."""
    return browser.evaluate(f"""(element => {{
        element.scrollIntoView({{block: 'center'}});
        const box = element.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    }})(document.getElementById('{name}'))""")


# ---- the map ------------------------------------------------------------------------------------


def layout():
    """The numbers by which the script of the page places the bars."""
    script = script_text()
    line = re.search(r"const (ROW = .*);", script)[1]
    return {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", line)}


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


# ---- all cases ----------------------------------------------------------------------------------


def quiet(case):
    """The case, which also fails if the page reports something."""
    @functools.wraps(case)
    def whole():
        browser.take_problems()
        yield from case()
        yield from browser.take_problems()
    return whole


def run_pages(names):
    """Runs the functions case_* of a file, in one browser. Ends the program."""
    if not browser.program:
        print("ok 1 - the page in a browser # SKIP chromium is missing\n1..1")
        return
    with browser:
        run_all({name: quiet(value) for name, value in names.items() if name.startswith("case_")})
