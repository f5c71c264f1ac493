# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Debian packages agree with the sources: functions, version, headers, and what meson installs beside them. The
recipes of other package managers have the version and the licence.

usage: packages.py SOURCE_ROOT
"""

import pathlib
import re
import sys

from symbols import public_functions
from tap import Tap

# adapters that the packages are built without
ABSENT = {"nvtx.h", "torch_cpu.h"}
# the packages with the soname, which a new one renames
NAMED = ("libquire0", "libquire-adapters0")


class Packages:
    def __init__(self, root):
        self.root, self.folder = root, root / "packaging/debian"
        self.build = (root / "meson.build").read_text()
        self.version = re.search(r"version: '([^']+)'", self.build)[1]
        self.soversion = re.search(r"^soversion = '(\d+)'", self.build, re.M)[1]
        self.names = re.findall(r"^Package: (\S+)", (self.folder / "control").read_text(), re.M)

    def patterns(self, package):
        return (self.folder / f"{package}.install").read_text().split()


def symbol_problems(packages):
    lines = (packages.folder / "libquire0.symbols").read_text().splitlines()
    if lines[0] != f"libquire.so.{packages.soversion} libquire0 #MINVER#":
        yield f"the first line is {lines[0]}"
    nodes = re.findall(r"^(QUIRE_\S+) \{", (packages.root / "src/quire.map").read_text(), re.M)
    listed = {}
    for line in lines[1:]:
        found = re.fullmatch(r" (\S+)@(QUIRE_(\d+\.\d+\.\d+)) \3", line)
        if found and found[2] in nodes:
            listed[found[1]] = found[3]
        elif not line.startswith("* "):
            yield f"the line '{line}' is none of a symbol of {nodes}"
    yield from (f"{node} is missing" for node in nodes if listed.pop(node, None) is None)
    functions = public_functions(packages.root)
    yield from (f"{name} is in one of the headers and libquire0.symbols" for name in sorted(functions ^ set(listed)))
    numbers = [tuple(map(int, text.split("."))) for text in (packages.version, *listed.values())]
    if max(numbers) > numbers[0]:
        yield "a symbol is of a later version"
    if len(functions) < 200:
        yield f"{len(functions)} functions are too few"


def version_problems(packages):
    first = (packages.folder / "changelog").read_text().splitlines()[0]
    if not re.match(rf"quire \({re.escape(packages.version)}-\d+\) ", first):
        yield f"debian/changelog begins with '{first}', meson.build has {packages.version}"
    yield from (f"{name} has another soname than {packages.soversion}" for name in NAMED
                if name not in packages.names or not re.search(rf"\D{packages.soversion}$", name))


def covers(pattern, path):
    """Whether dh_install takes the path by the pattern: itself or its folder. A star covers no slash."""
    expression = re.escape(pattern).replace(r"\*", "[^/]*")
    return re.match(expression + r"(/|$)", path)


def installed_headers(root):
    for build in (root / "include/meson.build", *sorted((root / "src").rglob("meson.build"))):
        text = build.read_text()
        yield from (f"usr/include/quire/{name}" for name in re.findall(r"'quire/(\S+\.h(?:pp)?)'", text))
        names = re.findall(r"install_headers\([^,]*?(\w+\.h)'", text)
        yield from (f"usr/include/quire/{name}" for name in names)
    for header in (root / "include/quire/vma").iterdir():
        yield f"usr/include/quire/vma/{header.name}"


def header_problems(packages):
    headers, patterns = set(installed_headers(packages.root)), packages.patterns("libquire-dev")
    known = {f"usr/include/quire/{path.relative_to(packages.root / 'include/quire')}"
             for path in (packages.root / "include/quire").rglob("*.h*")}
    yield from (f"{header} is not known to this test" for header in sorted(known - headers))
    yield from (f"no pattern of libquire-dev.install has {header}" for header in sorted(headers)
                if pathlib.Path(header).name not in ABSENT and not any(covers(p, header) for p in patterns))


def library_problems(packages):
    """Each library of an adapter is in one package."""
    for build in sorted((packages.root / "src/adapters").rglob("meson.build")):
        for kind, name in re.findall(r"= (library|shared_module)\('(quire_\w+|VkLayer_\w+)'", build.read_text()):
            file = f"lib{name}.so" + (f".{packages.soversion}" if kind == "library" else "")
            # debian/rules moves plugins
            place = "" if kind == "library" else "quire/paddle/" if "paddle" in name else "quire/"
            owners = [package for package in packages.names if package != "libquire-dev"
                      if any(covers(p, f"usr/lib/any/{place}{file}") for p in packages.patterns(package))]
            if f"{name.removeprefix('quire_')}.h" not in ABSENT and len(owners) != 1:
                yield f"{file} is in the packages {owners}"


def recipe_problems(packages):
    licence = re.search(r"license: '([^']+)'", packages.build)[1]
    for recipe in ("vcpkg/quire/vcpkg.json", "conan/conanfile.py"):
        text = (packages.root / "packaging" / recipe).read_text()
        for word, expected in (("version", packages.version), ("license", licence)):
            found = re.search(rf'\b{word}"?\s*[:=] "([^"]*)"', text)
            if not found or found[1] != expected:
                yield f"packaging/{recipe}: {word} is not {expected}"


def main():
    packages = Packages(pathlib.Path(sys.argv[1]).resolve())
    tap = Tap()
    tap.attempt("libquire0.symbols has every public function and no other", symbol_problems, packages)
    tap.attempt("the changelog has the version of meson.build, the packages its soname", version_problems, packages)
    tap.attempt("every header that meson installs is in libquire-dev", header_problems, packages)
    tap.attempt("every library that meson installs is in one package", library_problems, packages)
    tap.attempt("the recipes have the version and the licence", recipe_problems, packages)
    tap.end()


main()
