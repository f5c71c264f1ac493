# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the calls between files to the order of the folders in docs/design.md. With that order no cycle
between folders is possible.

The symbols of the object files show the calls: a file uses another one if it needs a symbol that the
other one defines. Calls through a function table, and inline functions, do not show.

usage: calls.py SOURCE_ROOT NM ARCHIVE
"""

import pathlib
import re
import subprocess
import sys

import layers
from tap import Tap

# Constants, not calls: space.c selects the function table of the fit. The fits are above it.
FIT_TABLES = {("src/space/space.c", f"qi_{fit}_fit") for fit in ("segregated", "first", "buddy", "linear")}

BELOW_API = ("src/base/", "src/plan/", "src/space/", "src/core/")

# A line of `nm -A -P`: ARCHIVE[MEMBER]: SYMBOL TYPE ..., where a member may have a path
LINE = re.compile(r"\[(?:.*/)?([^/\]]+)\]: (\S+) (\w)")


def read_symbols(root, nm, archive):
    """({symbol: file that defines it}, {file: symbols that it needs}, members without a source)."""
    sources = {}
    for path in (p for part in ("src", "backends") for p in (root / part).rglob("*.c")):
        name = str(path.relative_to(root))
        sources[name.replace("/", "_") + ".o"] = name
    for backend in ("vulkan", "cuda", "plugin"):  # written by scripts/interface.py if the backend is not built
        sources[f"meson-generated_.._backends_absent_{backend}.c.o"] = f"backends/{backend}/absent.c"
    text = subprocess.run([nm, "-A", "-P", archive], text=True, check=True, capture_output=True).stdout
    defined, needed, unknown = {}, {}, set()
    for member, symbol, kind in LINE.findall(text):
        name = sources.get(member)
        if not name:
            unknown.add(member)
        elif kind == "U":
            needed.setdefault(name, []).append(symbol)
        elif kind.isupper():
            defined[symbol] = name
    return defined, needed, sorted(unknown)


def check_public(tap, defined, needed):
    problems = [f"{name} defines {symbol}" for symbol, name in sorted(defined.items())
                if symbol.startswith("quire_") and name.startswith(BELOW_API)]
    problems += [f"{name} calls {symbol}" for name, symbols in sorted(needed.items())
                 for symbol in symbols if symbol.startswith("quire_") and name.startswith(BELOW_API)]
    tap.case("no source below src/api defines or calls a public function", problems)


def check_order(tap, order, defined, needed):
    upward, edges = [], {}
    for name, symbols in sorted(needed.items()):
        edges[name] = []
        for symbol in symbols:
            target = defined.get(symbol)
            if not target or target == name or (name, symbol) in FIT_TABLES:
                continue
            edges[name].append(target)
            if order.is_upward(name, target):
                upward.append(f"{name} calls {symbol} of {target}, whose folder is above")
    tap.case("no source calls a function of a folder above", upward)
    tap.case(f"no cycle of more than {layers.MAX_CYCLE} files within a folder",
             [" ".join(c) for c in order.inner_cycles(edges)])


def main():
    root, nm, archive = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    tap = Tap()
    order = layers.Order(layers.read_folders(root))
    defined, needed, unknown = read_symbols(root, nm, archive)
    tap.case("every object file has a source in a folder of the table",
             [f"{u} has no source" for u in unknown] +
             [name for name in needed if order.folder(name) is None] or
             ([] if len(needed) > 100 else [f"only {len(needed)} object files were read"]))
    check_public(tap, defined, needed)
    check_order(tap, order, defined, needed)
    tap.end()


main()
