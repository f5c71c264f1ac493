# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/amalgamate: quire.c compiles alone without a warning, with each backend, and works as the library does.

usage: amalgamate.py SOURCE_ROOT C_COMPILER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from code_blocks import blocks, compare, readme_example, run
from tap import Tap

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
CUDA, PLUGIN, VULKAN = ["-DQUIRE_CUDA"], ["-DQUIRE_PLUGIN"], ["-DQUIRE_VULKAN"]
LINK = ["-pthread", "-lm", "-ldl"]


def compilers(compiler):
    """The one of the build, and clang."""
    names = {tuple(compiler.split()): compiler}
    if shutil.which("clang"):
        names[("clang",)] = "clang"
    return names.items()


def has_volk(compiler):
    return not subprocess.run([*compiler, "-fsyntax-only", "-x", "c", "-"], input="#include <volk.h>\n", text=True,
                              capture_output=True).returncode


def check_compilation(tap, place, compiler):
    for command, name in compilers(compiler):
        builds = {"alone": [], "with CUDA and plugins, checked": [*CUDA, *PLUGIN, "-DQUIRE_CHECKED"]}
        if name == "clang":  # the fastest
            builds.update({"with CUDA": CUDA, "with the plugin backend": PLUGIN})
        if has_volk(command):
            builds["with Vulkan"] = VULKAN
        else:
            tap.skip(f"quire.c with Vulkan, by {name}", "volk.h not found")
        for what, macros in builds.items():
            tap.case(f"quire.c {what}, by {name}",
                     run([*command, *WARNINGS, *macros, "-fsyntax-only", place / "quire.c"])[1])


def check_header(tap, place):
    for name in ("g++", "clang++"):
        if shutil.which(name):
            (place / "twice.cpp").write_text('#include "quire.h"\n#include "quire.h"\n')
            tap.case(f"quire.h as C++17, by {name}",
                     run([name, "-std=c++17", "-Wall", "-Wextra", "-Werror", *CUDA, *PLUGIN,
                          "-fsyntax-only", place / "twice.cpp"])[1])


def check_program(tap, root, place, command):
    """The README's program, with quire.h in place of its headers."""
    includes = re.compile(r"(#include <quire/\w+\.h>\n)+")
    text, count = includes.subn('#include "quire.h"\n', readme_example(root))
    (place / "program.c").write_text(text)
    _, problems = run([*command, *WARNINGS, place / "program.c", place / "quire.o", "-o", place / "program", *LINK])
    output = "" if problems else run([place / "program"])[0]
    tap.case("the README's program with quire.h and quire.c",
             problems or [f"{count} places include quire"] * (count != 1) or
             compare(blocks(root, "README.md", "text")[0], output))


def check_volk(tap, place, command):
    """A program that has volk itself."""
    if not has_volk(command):
        tap.skip("a program with volk and quire.c", "volk.h not found")
        return
    (place / "volk_program.c").write_text('#include <volk.c>\n#include "quire.h"\nint main(void)\n{\n'
                                          '    return !quire_vulkan_open || volkInitialize() == VK_SUCCESS + 7;\n}\n')
    tap.case("a program with volk and quire.c",
             run([*command, *VULKAN, "-I", place, place / "volk_program.c", place / "quire.c", "-o", place / "volk",
                  *LINK])[1])


def build_unit(root, command, tests, library, program):
    """One program of unit tests without Criterion, on a library; returns the problems."""
    listed = (root / "tests/support/meson.build").read_text()
    lists = re.findall(r"^(?:unit_)?support = files\((.*?)\)$", listed, re.M | re.S)
    support = [root / "tests/support" / name for text in lists for name in re.findall(r"'(\w+\.c)'", text)
               if name != "no_git.c"]  # which Criterion needs
    return run([*command, "-std=c11", "-D_GNU_SOURCE", "-DUNIT_IN_ONE_PROCESS", f"-I{root}", f"-I{root}/include",
                *tests, *support, library, "-o", program, *LINK])[1]


def run_unit(program, least):
    """The problems of a run: tests that failed, or fewer tests than `least`."""
    output, problems = run([program], timeout=600)
    problems = problems or [line for line in output.splitlines() if line.startswith("not ok")]
    return problems or ["few tests ran", output] * (output.count("\nok ") < least)


def check_spaces(tap, root, place, command):
    """The unit tests of the spaces, with the objects of quire.c below them."""
    tests = sorted((root / "tests/unit/space").rglob("*.c"))
    problems = build_unit(root, command, tests, place / "quire.o", place / "unit")
    tap.case("the unit tests of the spaces with quire.c", problems or run_unit(place / "unit", 200))


def check_names(tap, place):
    """What quire.c defines for other files begins with quire_ or qi_."""
    nm = shutil.which("nm")
    if not nm:
        tap.skip("the names that quire.c defines", "nm not found")
        return
    output, problems = run([nm, "-g", "--defined-only", place / "quire.o"])
    names = [line.split()[-1] for line in output.splitlines()]
    tap.case("the names that quire.c defines", problems or ["no names"] * (len(names) < 200) +
             [name for name in names if not name.startswith(("quire_", "qi_"))])


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="quire-amalgamate-") as folder:
        place = pathlib.Path(folder)
        _, problems = run([root / "scripts/amalgamate", place, *compiler.split()])
        tap.case("quire.h and quire.c are written", problems)
        if not problems:
            check_compilation(tap, place, compiler)
            check_header(tap, place)
            command = list(min(compilers(compiler), key=lambda found: found[1] != "clang")[0])  # the fastest
            run([*command, "-std=c11", "-c", place / "quire.c", "-o", place / "quire.o"])
            check_program(tap, root, place, command)
            check_volk(tap, place, command)
            check_spaces(tap, root, place, command)
            check_names(tap, place)
    tap.end()


if __name__ == "__main__":
    main()
