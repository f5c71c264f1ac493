# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory kinds that `quire devices --json` chooses match the table in docs/vulkan.md.

usage: choices.py TOOL SOURCE_ROOT

Layouts come from docs/profiles, and from the folder "devices" in $QUIRE_TEST_DATA.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from tap import Tap

COLUMNS = ("device", "upload", "readback", "both", "shared")
ROW = re.compile(r"^\| ([\w.-]+) \| [^|]*\| [^|]*\|" + r" (\d+|–) \|" * 5 + "$", re.M)

SPECIAL = {"LAZILY_ALLOCATED", "PROTECTED", "DEVICE_COHERENT_AMD", "DEVICE_UNCACHED_AMD"}


def read_table(root):
    rows = ROW.findall((root / "docs/vulkan.md").read_text())
    return {name: [None if c == "–" else int(c) for c in cells] for name, *cells in rows}


def find_layouts(root):
    files = {p.stem: p for p in (root / "docs/profiles").glob("*.json")}
    data = os.environ.get("QUIRE_TEST_DATA")
    if data:
        files.update({p.stem: p for p in (pathlib.Path(data) / "devices").glob("*.json")})
    return files


def problems_of(tool, path, expected):
    done = subprocess.run([tool, "devices", "--profile", str(path), "--json"], text=True, capture_output=True)
    if done.returncode:
        return [done.stderr]
    device = json.loads(done.stdout)["devices"][0]
    heaps, types = device["heaps"], device["types"]
    found = [device["choices"][c] for c in COLUMNS]
    problems = [] if found == expected else [f"chosen: {found}, the table says {expected}"]
    for name, kind in zip(COLUMNS, found):
        if kind is not None and SPECIAL & set(types[kind]["flags"]):
            problems.append(f"{name} takes kind {kind}, which the table does not name")
    if found[0] is not None and "HOST_VISIBLE" in types[found[0]]["flags"]:
        size = heaps[types[found[0]]["heap"]]["size"]
        problems += [f"kind {i} is plain and in a heap as large" for i, t in enumerate(types)
                     if t["flags"] == ["DEVICE_LOCAL"] and heaps[t["heap"]]["size"] >= size]
    return problems


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    tap = Tap()
    table, files = read_table(root), find_layouts(root)
    tap.case("the table has rows", [] if len(table) >= 36 else [f"{len(table)} rows"])
    tap.case("every layout has its row", sorted(set(files) - set(table)))
    for name, expected in table.items():
        if name in files:
            tap.case(name, problems_of(tool, files[name], expected))
        else:
            tap.skip(name, "QUIRE_TEST_DATA names no folder with it")
    tap.end()


main()
