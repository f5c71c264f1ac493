"""Each public header compiles alone, as C11 and as C++17, with the strictest warnings as errors.

usage: headers.py SOURCE_ROOT C_COMPILER CXX_COMPILER-or-none
"""

import pathlib
import subprocess
import sys

from tap import Tap

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compile_alone(compiler, language, standard, root, header):
    command = compiler.split() + [f"-std={standard}", *WARNINGS, "-fsyntax-only",
                                  "-I", str(root / "include"), "-x", language, "-"]
    # included twice: the guard must hold
    text = f'#include "quire/{header}"\n#include "quire/{header}"\n'
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    return [done.stderr] if done.returncode else []


def main():
    root, c_compiler, cxx_compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    tap = Tap()
    headers = sorted(p.name for p in (root / "include/quire").glob("*.h"))
    has_vulkan = not subprocess.run(c_compiler.split() + ["-fsyntax-only", "-x", "c", "-"], text=True,
                                    input="#include <vulkan/vulkan_core.h>\n", capture_output=True).returncode
    for header in headers:
        if header.startswith("vulkan") and not has_vulkan:
            tap.skip(f"{header} alone", "there are no Vulkan headers")
            continue
        tap.case(f"{header} alone as C11", compile_alone(c_compiler, "c", "c11", root, header))
        if cxx_compiler == "none":
            tap.skip(f"{header} alone as C++17", "there is no C++ compiler")
        else:
            tap.case(f"{header} alone as C++17",
                     compile_alone(cxx_compiler, "c++", "c++17", root, header))
    tap.end()


main()
