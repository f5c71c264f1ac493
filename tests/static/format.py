# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every source is formatted as .clang-format says, and the text of the project keeps its rules.

usage: format.py SOURCE_ROOT CLANG_FORMAT-or-none
"""

import pathlib
import re
import subprocess
import sys

from tap import Tap

FOLDERS = ("include", "src", "backends", "tests", "bench", "docs")
CODE = (".c", ".h", ".cpp", ".hpp", ".py", ".sh", ".awk", ".mjs", ".comp", ".vert")
# Formatting differs between versions; this is the one the sources follow.
VERSION = "14."


def sources(root):
    return sorted(p for folder in FOLDERS for kind in ("*.[ch]", "*.hpp") for p in (root / folder).rglob(kind))


def check_format(tap, root, clang_format):
    if clang_format == "none":
        tap.skip("sources are formatted", "there is no clang-format")
        return
    version = subprocess.run([clang_format, "--version"], text=True, capture_output=True).stdout
    if f"version {VERSION}" not in version:
        tap.skip("sources are formatted", f"needs clang-format {VERSION}x, this is {version.strip()}")
        return
    # one process for all of them, as starting it takes longer than reading a file
    done = subprocess.run([clang_format, "--dry-run", "-Werror", *sources(root)], text=True, capture_output=True)
    problems = sorted({line.split(":")[0] for line in done.stderr.splitlines() if " error: " in line})
    if done.returncode and not problems:
        problems = done.stderr.splitlines()
    tap.case("sources are formatted", problems)


def licences(root):
    """The files of code whose first lines do not name the licence of meson.build."""
    name = re.search(r"license: '(.*)'", (root / "meson.build").read_text())[1]
    for folder in (*FOLDERS, "scripts", "packaging"):
        for path in sorted((root / folder).rglob("*")):
            is_code = path.suffix in CODE or path.name == "meson.build" or path.parent.name == "scripts"
            if is_code and path.is_file() and f"SPDX-License-Identifier: {name}" not in path.read_text()[:200]:
                yield f"{path.relative_to(root)} does not name its licence"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    check_format(tap, root, sys.argv[2])
    wide, tabs, guards = [], [], []
    for path in sources(root):
        name = path.relative_to(root)
        text = path.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > 100:
                wide.append(f"{name}:{number}: {len(line)} columns")
            if "\t" in line or line != line.rstrip():
                tabs.append(f"{name}:{number}")
        if path.suffix != ".c" and not re.search(r"#ifndef (\w+_H(?:PP)?)\n#define \1\n", text):
            guards.append(f"{name} has no include guard")
    tap.case("no line is wider than 100 columns", wide)
    tap.case("no tabs, no blanks at line ends", tabs)
    tap.case("every header has its guard", guards)
    tap.case("every source names the licence", licences(root))
    allocating = []
    for path in sorted((root / "src").rglob("*.c")) + sorted((root / "backends").rglob("*.c")):
        # the tool, and the adapters that have nothing but the public headers, have no callbacks
        own = {"tool", "nvtx", "torch", "torch_cpu", "host_allocator", "onnxruntime", "vma"}
        if own & set(path.relative_to(root).parts) or path.name == "host_memory.c":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\b(malloc|calloc|realloc|strdup|aligned_alloc|free)\s*\(", line):
                allocating.append(f"{path.relative_to(root)}:{number}: {line.strip()}")
    tap.case("host_memory.c alone calls malloc", allocating)
    tap.end()


main()
