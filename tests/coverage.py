# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints how many lines of each folder of src and backends the tests have executed.

usage: coverage.py BUILD

BUILD was configured with -Db_coverage=true by gcc, and its tests have run. A line counts as executed if
any program of the build executed it, and a line of a header once.
"""

import collections
import json
import pathlib
import subprocess
import sys

PARTS = ("src/", "backends/")


def read(build, root):
    """{source: {line: whether it was executed}}"""
    sources = collections.defaultdict(dict)
    for data in sorted(build.rglob("*.gcda")):
        text = subprocess.run(["gcov", "--json-format", "--stdout", data.relative_to(build)], cwd=build,
                              capture_output=True, text=True, check=True).stdout
        for report in map(json.loads, text.splitlines()):
            for file in report["files"]:
                path = (build / file["file"]).resolve()
                name = str(path.relative_to(root)) if path.is_relative_to(root) else ""
                if name.startswith(PARTS):
                    lines = sources[name]
                    for line in file["lines"]:
                        number = line["line_number"]
                        lines[number] = lines.get(number, False) or line["count"] > 0
    return sources


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(json.loads((build / "meson-info/meson-info.json").read_text())
                        ["directories"]["source"]).resolve()
    folders = collections.defaultdict(lambda: [0, 0])
    for name, lines in read(build, root).items():
        for folder in (str(pathlib.Path(name).parent), "all"):
            folders[folder][0] += sum(lines.values())
            folders[folder][1] += len(lines)
    print(f"{'folder':34} {'executed':>8} {'lines':>8} {'%':>7}")
    for folder, (executed, count) in sorted(folders.items()):
        print(f"{folder:34} {executed:8} {count:8} {100 * executed / count:7.2f}")


main()
