# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire.c of scripts/amalgamate where meson has no libraries to build with: another C library, and 32 bits.

usage: ports.py SOURCE_ROOT
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "static"))

from amalgamate import CUDA, PLUGIN, WARNINGS, build_unit, run_unit
from code_blocks import run
from tap import Tap

FOLDERS = ("base", "space", "plan", "core", "trace", "render")
# those of checked builds, and those that read JSON with jansson
LEFT_OUT = ("core/debug/", "core/device/kind_profiles.c", "base/json.c", "render/dump.c")
# the headers of the kernel, which musl's package and the one for 32 bits leave to others
KERNEL = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]


def unit_sources(root):
    for folder in FOLDERS:
        for path in sorted((root / "tests/unit" / folder).rglob("*.c")):
            if not str(path.relative_to(root / "tests/unit")).startswith(LEFT_OUT):
                yield path


def check_musl(tap, root, place):
    compiler = shutil.which("musl-gcc")
    if not compiler:
        tap.skip("musl", "musl-gcc is not installed")
        return
    musl = [compiler, *KERNEL]
    _, problems = run([*musl, *WARNINGS, *CUDA, *PLUGIN, "-c", place / "quire.c", "-o", place / "quire.o"])
    tap.case("musl: quire.c compiles without a warning", problems)
    if problems:
        return
    problems = build_unit(root, musl, unit_sources(root), place / "quire.o", place / "unit")
    tap.case("musl: the unit tests pass", problems or run_unit(place / "unit", 1000))


def check_32_bits(tap, place):
    """Refused, with the reason."""
    command = ["gcc", "-m32", *KERNEL[2:], "-std=c11", "-fsyntax-only"]
    if subprocess.run([*command, "-x", "c", "-"], input="#include <stdio.h>\n", text=True,
                      capture_output=True).returncode:
        tap.skip("32 bits", "the headers of the C library for 32 bits are not installed")
        return
    done = subprocess.run([*command, place / "quire.c"], text=True, capture_output=True)
    expected = "quire needs pointers of 64 bits"
    tap.case("32 bits: the compiler says what quire needs",
             [] if done.returncode and expected in done.stderr else [done.stderr or "it compiled"])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="quire-ports-") as folder:
        place = pathlib.Path(folder)
        _, problems = run([root / "scripts/amalgamate", place])
        tap.case("quire.c is written", problems)
        if not problems:
            check_musl(tap, root, place)
            check_32_bits(tap, place)
    tap.end()


main()
