# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the results of a run: speed as a ratio to VMA, and the occupancy that an arena reaches.

usage: chart.py FIGURES.json CHART.svg
"""

import sys
from xml.sax.saxutils import escape

from figures_file import SIZES, SPEED, VMA, Figures

WIDTH, LEFT, RIGHT, TOP = 860, 110, 70, 34
ROW, BAR, GAP = 22, 7, 56
MAX_RATIO, MIN_SHARE = 1.6, 0.65
COLOURS = ("#2f6fde", "#12a594", "#e5484d", "#e08a00", "#8e4ec6", "#7c8794", "#c2528b", "#5b8c00")
FAST = ("segregated", "segregated, batch free", "slabs")
FULL = ("segregated", "segregated, least fragmentation", "first", VMA, "VMA, min memory",
        "exact best fit")
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 15px; }
.small { font-size: 11px; fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.one { stroke: #57606a; stroke-width: 1.5; stroke-dasharray: 4 3; }
.back { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; }
  .grid { stroke: #3d444d; } .one { stroke: #9198a1; } .back { fill: #0d1117; }
}"""


class Panel:
    """A chart with a title, a legend, an axis from `low` to `high`, and rows."""

    def __init__(self, top, title, low, high, step, form):
        self.top, self.low, self.high, self.form = top, low, high, form
        self.out = [f'<text class="title" x="16" y="{top}">{escape(title)}</text>']
        self.ticks = [low + step * i for i in range(round((high - low) / step) + 1)]
        self.y = top + 22

    def x(self, value):
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def text(self, x, y, words, style="", anchor="start"):
        self.out.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
                        f"{escape(words)}</text>")

    def legend(self, names):
        """Writes the names side by side and wraps them to the width."""
        x = 16
        for index, name in enumerate(names):
            room = 26 + 7.2 * len(name)
            if x + room > WIDTH - 16:
                x, self.y = 16, self.y + 20
            self.out.append(f'<rect x="{x}" y="{self.y - 10}" width="11" height="11" rx="2" '
                            f'fill="{COLOURS[index % len(COLOURS)]}"/>')
            self.text(x + 16, self.y, name)
            x += room
        self.y += 14

    def axis(self, height, marked=None):
        for tick in self.ticks:
            x, style = self.x(tick), "one" if tick == marked else "grid"
            self.out.append(f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{self.y}" '
                            f'y2="{self.y + height}"/>')
            self.text(x, self.y + height + 14, self.form.format(tick), "small", "middle")

    def end(self, height):
        self.y += height + GAP
        return self.out


def present(names, find):
    return [name for name in names if any(find(name))]


def speed_panel(figures, top):
    names = present(FAST, lambda s: [figures.ratio(w, s, [VMA]) for w in SPEED])
    loads = [w for w in SPEED if figures.ratio(w, names[0], [VMA])] if names else []
    if not loads:
        return None
    panel = Panel(top, "Time of a free and an allocation relative to VMA", 0, MAX_RATIO, 0.2,
                  "{:.1f}")
    panel.legend(names)
    row = BAR * len(names) + 10
    panel.axis(row * len(loads), marked=1.0)
    for number, load in enumerate(loads):
        y = panel.y + number * row + 5
        panel.text(LEFT - 10, y + BAR * len(names) / 2 + 4, load, anchor="end")
        for index, name in enumerate(names):
            value = figures.ratio(load, name, [VMA])
            if value is None:
                continue
            panel.out.append(f'<rect x="{LEFT}" y="{y + index * BAR:.1f}" height="{BAR - 1}" '
                             f'width="{panel.x(value) - LEFT:.1f}" fill="{COLOURS[index]}"/>')
        best = min(v for v in (figures.ratio(load, n, [VMA]) for n in names) if v)
        panel.text(WIDTH - 16, y + BAR * len(names) / 2 + 4, f"{best:.2f}", "small", "end")
    return panel, panel.end(row * len(loads))


def share_panel(figures, top):
    names = present(FULL, lambda s: [figures.ramp(sizes, s) for sizes in SIZES])
    sizes = [s for s in SIZES if names and figures.ramp(s, names[0])]
    if not sizes:
        return None
    panel = Panel(top, "Share of the arena that is live when the first request fails", MIN_SHARE,
                  1.0, 0.05, "{:.0%}")
    panel.legend(names)
    row = ROW + 6
    panel.axis(row * len(sizes))
    for number, size in enumerate(sizes):
        y = panel.y + number * row + row / 2
        panel.text(LEFT - 10, y + 4, size, anchor="end")
        panel.out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        # the first name is drawn last, so that it covers the others
        for index, name in reversed(list(enumerate(names))):
            value = figures.ramp(size, name)
            if value is not None:
                panel.out.append(f'<circle cx="{panel.x(value):.1f}" cy="{y}" r="5.5" '
                                 f'fill="{COLOURS[index % len(COLOURS)]}"/>')
        own = figures.ramp(size, names[0])
        panel.text(WIDTH - 16, y + 4, f"{own:.1%}", "small", "end")
    return panel, panel.end(row * len(sizes))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    figures = Figures(sys.argv[1])
    top, parts = TOP, []
    for draw in (speed_panel, share_panel):
        drawn = draw(figures, top)
        if drawn:
            parts += drawn[1]
            top = drawn[0].y
    height = top - 10
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
                   f'width="{WIDTH}" height="{height:.0f}">\n<style>{STYLE}\n</style>\n'
                   f'<rect class="back" width="{WIDTH}" height="{height:.0f}" rx="8"/>\n')
        file.write("\n".join(parts) + "\n</svg>\n")


main()
