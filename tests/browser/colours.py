# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Colours as people see them: contrast of text, and distances also without one kind of cones. A colour is a tuple of
red, green and blue from 0 to 255 of sRGB (IEC 61966-2-1).
"""

import re

# Matrices on linear sRGB. Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color
# Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15(6), 2009, table 1, severity 1.0.
VISIONS = {
    "usual vision": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# XYZ of linear sRGB, and of its white (D65)
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = tuple(map(sum, XYZ))


def parse(text):
    """A colour of CSS: #rrggbb, #rgb, or what computed styles have. Transparent ones have no value here."""
    if found := re.fullmatch(r"#([0-9a-f]{6}|[0-9a-f]{3})", text):
        digits = found[1] if len(found[1]) == 6 else "".join(2 * digit for digit in found[1])
        return tuple(bytes.fromhex(digits))
    if found := re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", text):
        return tuple(map(int, found.groups()))
    raise ValueError(f"{text} is no opaque colour")


def linear(colour):
    shares = (value / 255 for value in colour)
    return tuple(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)


def times(matrix, vector):
    return tuple(sum(a * b for a, b in zip(row, vector)) for row in matrix)


def contrast(one, other):
    """WCAG 2.2, "contrast ratio": from 1 to 21."""
    dark, light = sorted(times(XYZ, linear(colour))[1] for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(colour, vision="usual vision"):
    """CIELAB of a colour, as people of a vision see it."""
    seen = (min(max(share, 0), 1) for share in times(VISIONS[vision], linear(colour)))
    shares = (value / white for value, white in zip(times(XYZ, tuple(seen)), WHITE))
    x, y, z = (s ** (1 / 3) if s > (6 / 29) ** 3 else s / (3 * (6 / 29) ** 2) + 4 / 29 for s in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other, vision):
    """CIE76."""
    return sum((a - b) ** 2 for a, b in zip(lab(one, vision), lab(other, vision))) ** 0.5
