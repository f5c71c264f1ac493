# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits the length of files and functions. A function counts from its first line to its last brace.

usage: sizes.py SOURCE_ROOT
"""

import pathlib
import sys

import layers
from tap import Tap

MAX_FILE = 800
MAX_FUNCTION = 60

# file: the reason why it may be longer
LONG_FILES = {}


def functions(lines):
    """(first line, last line) of each function. clang-format leaves its braces alone on a line."""
    first = None
    for i, line in enumerate(lines):
        if line == "{":
            first = i
            while first > 0 and lines[first - 1] and not lines[first - 1].startswith(("}", "#", " */", "/*")):
                first -= 1
        elif line == "}" and first is not None:
            yield first + 1, i + 1
            first = None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    files, long_functions, long_files, count = 0, [], [], 0
    for path in (p for part in layers.PARTS for kind in ("*.[ch]", "*.hpp")
                 for p in sorted((root / part).rglob(kind))):
        name = str(path.relative_to(root))
        lines = path.read_text().splitlines()
        files += 1
        if len(lines) > MAX_FILE and name not in LONG_FILES:
            long_files.append(f"{name} has {len(lines)} lines")
        for first, last in functions(lines):
            count += 1
            if last - first + 1 > MAX_FUNCTION:
                long_functions.append(f"{name}:{first} has {last - first + 1} lines")
    tap.case(f"no file has more than {MAX_FILE} lines", long_files if files else ["no file was found"])
    tap.case(f"no function has more than {MAX_FUNCTION} lines",
             long_functions if count else ["no function was found"])
    tap.case("every exception is a file", [n for n in LONG_FILES if not (root / n).exists()])
    tap.end()


main()
