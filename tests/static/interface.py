# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/interface.py writes from the headers: the tables of the Python package, and backends that are not built.

usage: interface.py SOURCE_ROOT C_COMPILER

The test abi.py of the Python package compares its tables with a program of C.
"""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tap import Tap

ROOT = pathlib.Path(sys.argv[1])
COMPILER = sys.argv[2].split()
UNSUPPORTED = -7
BACKENDS = {"vulkan": ("vulkan_device.h", "vulkan.h", "vulkan_share.h", "vulkan_sparse.h", "lluvia.h"),
            "cuda": ("cuda.h", "cuda_array.h", "cuda_pool.h", "cuda_share.h"),
            "plugin": ("plugin.h",)}
# what the functions call, in place of the library
RESULT = """
#include "src/base/result.h"
quire_result qi_fail(quire_result result, const char *message) { return message ? result : QUIRE_SUCCESS; }
"""


def run(*words):
    return subprocess.run([sys.executable, "-B", ROOT / "scripts/interface.py", *words], capture_output=True,
                          text=True, check=False)


def table_problems():
    package = ROOT / "src/adapters/python/quire"
    done = run(ROOT / "include/quire", "python", package)
    if done.returncode or done.stdout != (package / "_tables.py").read_text():
        yield f"{done.stderr}_tables.py differs: scripts/interface.py include/quire python {package.relative_to(ROOT)}"
    if done.stdout.count("(Structure)") < 40 or len(re.findall('^    "quire_', done.stdout, re.M)) < 60:
        yield "the tables are too short"


def declared(headers):
    text = "".join((ROOT / "include/quire" / name).read_text() for name in headers)
    return set(re.findall(r"^QUIRE_API [^;()]*?\b(quire_\w+)\(", text, re.M))


def absent(name, folder):
    """The library of a backend's functions, and what the compiler says."""
    done = run(ROOT / "include/quire", "absent", name)
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(done.stdout + RESULT)
    built = subprocess.run(
        [*COMPILER, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-shared", "-fPIC",
         f"-I{ROOT / 'include'}", f"-I{ROOT}", f"-I{ROOT / 'backends/vulkan/stand_in'}", source, "-o", library],
        capture_output=True, text=True, check=False,
        env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"})
    return library, done.stderr + built.stderr


def absent_problems(name, folder):
    library, messages = absent(name, folder)
    if messages:
        yield messages
        return
    loaded = ctypes.CDLL(str(library))
    missing = [function for function in declared(BACKENDS[name]) if not hasattr(loaded, function)]
    if missing:
        yield f"missing: {missing}"


def call_problems(folder):
    cuda, vulkan = (ctypes.CDLL(str(absent(name, folder)[0])) for name in ("cuda", "vulkan"))
    kind, device = ctypes.c_uint32(7), ctypes.c_void_p(7)
    if cuda.quire_cuda_find_kind(None, 0, 0, ctypes.byref(kind)) != UNSUPPORTED or kind.value:
        yield f"an output keeps {kind.value}"
    if vulkan.quire_vulkan_open(None, ctypes.byref(device)) != UNSUPPORTED or device.value:
        yield f"a handle keeps {device.value}"
    if vulkan.quire_vulkan_open(None, None) != UNSUPPORTED or vulkan.quire_vulkan_format(0, 1):
        yield "null is no output"
    view = ctypes.c_void_p(7)
    if vulkan.quire_lluvia_view_destroy(None, ctypes.byref(view)) != UNSUPPORTED or view.value != 7:
        yield "a handle that stays is lost"


def usage_problems(folder):
    wrong = folder / "base.h"
    for name in (ROOT / "include/quire").glob("*.h"):
        (folder / name.name).write_text(name.read_text())
    wrong.write_text(wrong.read_text() + "QUIRE_API void quire_version(unknown by_value);\n")
    if run().returncode != 2 or run(ROOT / "include/quire", "nothing", "x").returncode != 2:
        yield "wrong words are accepted"
    if run(ROOT / "include/quire", "absent", "metal").returncode != 2:
        yield "an unknown backend is accepted"
    done = run(folder, "python", ROOT / "src/adapters/python/quire")
    if not done.returncode or "unknown" not in done.stderr:
        yield f"an unknown type is accepted: {done.stderr}"


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        tap.case("the tables of the Python package are those of the headers", table_problems())
        for name in BACKENDS:
            tap.case(f"a build without {name} has its functions", absent_problems(name, folder))
        tap.case("absent functions zero their outputs and refuse", call_problems(folder))
        tap.case("wrong words, and types that are not known, are refused", usage_problems(folder))
    tap.end()


main()
