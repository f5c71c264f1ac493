# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes for the diagrams: boxes, texts and arrows that are readable on light and dark backgrounds."""

from xml.sax.saxutils import escape

WIDTH = 760

# Colours of both themes. A kind of box always has its words next to it, so no meaning is in the
# colour alone.
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
.head { font-weight: 600; }
.small { font-size: 11.5px; fill: #59636e; }
.code { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; }
.back { fill: #ffffff; }
.frame { fill: none; stroke: #818b98; }
.live { fill: #ddf4ff; stroke: #0969da; }
.other { fill: #dafbe1; stroke: #1a7f37; }
.pad { fill: #fff8c5; stroke: #9a6700; }
.free { fill: none; stroke: #818b98; stroke-dasharray: 4 3; }
.rule { fill: none; stroke: #d1d9e0; }
.line { fill: none; stroke: #59636e; stroke-width: 1.5; }
.wait { fill: none; stroke: #9a6700; stroke-width: 1.5; stroke-dasharray: 5 3; }
.tip { fill: #59636e; } .wait-tip { fill: #9a6700; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; } .small { fill: #9198a1; }
  .back { fill: #0d1117; } .frame, .free { stroke: #656c76; }
  .live { fill: #0c2d6b; stroke: #4493f8; } .other { fill: #0f3d1e; stroke: #3fb950; }
  .pad { fill: #3d2e00; stroke: #d29922; }
  .rule { stroke: #3d444d; } .line { stroke: #9198a1; } .wait { stroke: #d29922; }
  .tip { fill: #9198a1; } .wait-tip { fill: #d29922; }
}"""


class Drawing:
    """A picture of `height` pixels. `title` and `text` say the same in words, for screen readers."""

    def __init__(self, name, height, title, text):
        self.name, self.height, self.title, self.alt = name, height, title, text
        self.out = []

    def add(self, element):
        self.out.append(element)

    def text(self, x, y, words, style="", anchor="start"):
        """Writes lines of text; `y` is the base line of the first one."""
        for number, line in enumerate(words.split("\n")):
            kind = f' class="{style}"' if style else ""
            place = f' text-anchor="{anchor}"' if anchor != "start" else ""
            self.add(f'<text x="{x:g}" y="{y + 16 * number:g}"{kind}{place}>{escape(line)}</text>')

    def box(self, x, y, width, height, style="frame", words="", text_style=""):
        """A rectangle with its lines of text in the middle."""
        self.add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" '
                 f'class="{style}"/>')
        if words:
            lines = words.count("\n") + 1
            self.text(x + width / 2, y + height / 2 + 4.5 - 8 * (lines - 1), words, text_style,
                      "middle")

    def group(self, x, y, width, height, words):
        """A frame with its name at the top left."""
        self.box(x, y, width, height)
        self.text(x + 12, y + 20, words, "head")

    def line(self, points, style="line"):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.add(f'<polyline points="{path}" class="{style}"/>')

    def arrow(self, points, style="line"):
        """A line whose last part is horizontal or vertical, with a tip at its end."""
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        self.line(points[:-1] + [(x - 6 * dx, y - 6 * dy)], style)
        back_x, back_y = x - 9 * dx, y - 9 * dy
        self.add(f'<path d="M{x:g},{y:g} L{back_x - 4.5 * dy:g},{back_y - 4.5 * dx:g} '
                 f'L{back_x + 4.5 * dy:g},{back_y + 4.5 * dx:g} Z" '
                 f'class="{"wait-tip" if style == "wait" else "tip"}"/>')

    def svg(self):
        body = "\n".join(self.out)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
                f'width="{WIDTH}" height="{self.height}" role="img" aria-labelledby="t d">\n'
                f'<title id="t">{escape(self.title)}</title>\n<desc id="d">{escape(self.alt)}</desc>\n'
                f"<style>{STYLE}\n</style>\n"
                f'<rect class="back" width="{WIDTH}" height="{self.height}"/>\n{body}\n</svg>\n')
