# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the page of a million events takes in Chromium: to open, and for a step of the slider.

usage: million.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import random
import statistics

from browsing import browser, run_pages, show
from tool_run import HEADER, here, write

# A million events. Other programs on the machine only add time, so the least of some tries counts, and for opening,
# in which one thread works, its time on a processor.
MOST_OPEN_S, MOST_STEP_MS, TRIES, STEPS = 3, 50, 3, 100


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


run_pages(globals())
