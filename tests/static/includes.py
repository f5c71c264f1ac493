# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds every #include line to the table in docs/design.md: to the headers that a folder may include,
and to the order of the folders. With that order no cycle between folders is possible.

usage: includes.py SOURCE_ROOT
"""

import pathlib
import re
import sys

import layers
from tap import Tap

GENERATED = {"volk_names.h"}  # the build makes it

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


class Source:
    def __init__(self, path, root):
        self.name = str(path.relative_to(root))
        text = path.read_text()
        # (line, header in quotes or "", header in angles or "")
        self.includes = [(text[:m.start()].count("\n") + 1, m[1] or "", m[2] or "") for m in INCLUDE.finditer(text)]


def target_of(header, names):
    """The file that a header in quotes names; None if there is none."""
    return next((n for n in (header, "include/" + header) if n in names), None)


def wrong_headers(source, folder):
    for line, own, system in source.includes:
        where = f"{source.name}:{line}"
        if own and not any(own == o or (o.endswith("/") and own.startswith(o)) for o in folder.own):
            yield f"{where} includes {own}; allowed: {', '.join(folder.own)}"
        if system and "any" not in folder.system and system not in folder.system:
            yield f"{where} includes <{system}>; allowed: {', '.join(folder.system)}"


def check_folders(tap, folders, order, sources):
    for folder in folders:
        files = [s for s in sources if order.folder(s.name) == folder.name]
        problems = [p for s in files for p in wrong_headers(s, folder)]
        tap.case(f"{folder.name} includes only what it may",
                 problems if files else [f"{folder.name} has no sources"])
    tap.case("every source is in a folder of the table", [s.name for s in sources if order.folder(s.name) is None])


def check_order(tap, order, sources):
    names = {s.name for s in sources}
    missing, upward, edges = [], [], {}
    for source in sources:
        edges[source.name] = []
        for line, own, _ in source.includes:
            target = target_of(own, names)
            if target:
                edges[source.name].append(target)
            elif own and own not in GENERATED and not own.endswith(".hpp"):  # headers.py compiles these
                missing.append(f"{source.name}:{line} includes {own}, which does not exist")
            if target and order.is_upward(source.name, target):
                upward.append(f"{source.name}:{line} includes {target}, whose folder is above")
    tap.case("every header exists", missing)
    tap.case("no source includes a header of a folder above", upward)
    # x.c and x.h are one node: a header needs what the source behind it includes
    modules = {}
    for name, targets in edges.items():
        modules.setdefault(name[:-2], set()).update(t[:-2] for t in targets if t[:-2] != name[:-2])
    tap.case(f"no cycle of more than {layers.MAX_CYCLE} files within a folder",
             [" ".join(c) for c in order.inner_cycles(modules)])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    folders = layers.read_folders(root)
    order = layers.Order(folders)
    sources = [Source(p, root) for part in layers.PARTS for p in sorted((root / part).rglob("*.[ch]"))]
    check_folders(tap, folders, order, sources)
    check_order(tap, order, sources)
    tap.end()


main()
