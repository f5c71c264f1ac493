# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries export the public functions and nothing else.

usage: symbols.py SOURCE_ROOT NM SHARED_LIBRARY STATIC_LIBRARY [VMA_LIBRARY]
"""

import pathlib
import re
import subprocess
import sys

from tap import Tap

ELSEWHERE = {"nvtx.h", "onnxruntime.h"}  # of adapters, which are libraries of their own
DECLARATION = re.compile(r"QUIRE_API\s[^;{]*?\b(quire_\w+)\s*\(", re.S)


def symbols(nm, library, *options):
    text = subprocess.run([nm, *options, "--defined-only", library], text=True, check=True,
                          capture_output=True).stdout
    return {line.split()[2].split("@")[0] for line in text.splitlines() if len(line.split()) == 3}


def numbers(version):
    return [int(number) for number in re.findall(r"[0-9]+", version)]


def public_functions(root):
    """Those of libquire."""
    return functions(path for path in (root / "include/quire").glob("*.h") if path.name not in ELSEWHERE)


def functions(headers):
    declared = set()
    for header in headers:
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        declared |= set(DECLARATION.findall(re.sub(r"#define[^\n]*", "", code)))
    return declared


def main():
    root, nm, shared, static = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    tap = Tap()
    declared = public_functions(root)
    exported = {s for s in symbols(nm, shared, "-D") if not s.startswith("QUIRE_")}
    tap.case("every declared function is in src/quire.map and exported", sorted(declared - exported))
    tap.case("nothing else is exported", sorted(exported - declared))
    versions = re.findall(r"^(QUIRE_\S+) \{", (root / "src/quire.map").read_text(), re.M)
    release = re.search(r"version: '([^']+)'", (root / "meson.build").read_text())[1]
    tap.case("the versions of symbols are releases, the latest at most that of meson.build",
             [str(versions)] * (versions != sorted(versions, key=numbers) or numbers(versions[-1]) > numbers(release)))
    in_archive = symbols(nm, static, "-g")
    tap.case("the archive defines quire_ and qi_ names only",
             sorted(s for s in in_archive if not s.startswith(("quire_", "qi_"))))
    tap.case("the archive has every declared function", sorted(declared - in_archive))
    for vma in sys.argv[5:]:
        behind = functions((root / "include/quire/vma").glob("*.h"))
        tap.case("libquire_vma exports what quire_vma.h calls and nothing else",
                 sorted(behind ^ symbols(nm, vma, "-D")))
    tap.end()


if __name__ == "__main__":
    main()
