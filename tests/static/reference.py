# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The API reference: Doxygen makes it of the headers without a warning, and every public function is in
it with its text.

usage: reference.py SOURCE_ROOT DOXYGEN-or-none
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from tap import Tap

FUNCTION = re.compile(r"QUIRE_API[^;]*?\b(quire_\w+)\(")
MISSING = "quire_no_such_function"


def write(doxygen, root, place, *options):
    script = root / "docs/reference/reference.py"
    return subprocess.run([sys.executable, "-B", str(script), doxygen, str(root), "0", str(place), *options],
                          text=True, capture_output=True)


def described(place):
    """{name of a function: length of its text}"""
    found = {}
    for path in place.glob("xml/group__*.xml"):
        for member in xml.etree.ElementTree.parse(path).iter("memberdef"):
            if member.get("kind") == "function":
                words = [*member.find("briefdescription").itertext(),
                         *member.find("detaileddescription").itertext()]
                found[member.findtext("name")] = len("".join(words).strip())
    return found


def check_reference(tap, root, doxygen, place):
    done = write(doxygen, root, place, "--xml")
    tap.case("Doxygen makes the reference without a warning", [done.stderr] if done.returncode else [])
    public = {name for path in (root / "include/quire").glob("*.h") for name in FUNCTION.findall(path.read_text())}
    found = described(place)
    tap.case("every public function is in the reference with its text",
             sorted(f"{name}: {found.get(name, 'missing')}" for name in public
                    if found.get(name, 0) < 20) or ([] if len(public) > 100 else [f"{len(public)}"]))
    pages = {path.stem for path in (root / "include/quire").glob("*.h")} - {"quire"}
    tap.case("every header has its page, and quire.h is the main page",
             sorted(page for page in pages
                    if not (place / f"html/group__{page.replace('_', '__')}.html").exists()) +
             ([] if "quire_memory_create" in (place / "html/index.html").read_text() else ["index.html"]))


def check_warning(tap, root, doxygen, place):
    """A comment that names a function which is not there must fail."""
    copy = place / "copy"
    shutil.copytree(root / "docs/reference", copy / "docs/reference")
    header = copy / "include/quire/base.h"  # one header is enough, and fast
    header.parent.mkdir(parents=True)
    text = (root / "include/quire/base.h").read_text()
    header.write_text(text.replace("quire_last_error", MISSING, 1))
    done = write(doxygen, copy, place / "out")
    tap.case("a name that does not exist fails the reference",
             [] if done.returncode and MISSING in done.stderr else [done.returncode, done.stderr])


def main():
    root, doxygen = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    tap = Tap()
    if doxygen == "none":
        tap.skip("the API reference", "there is no doxygen")
        tap.end()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place).resolve()
        check_reference(tap, root, doxygen, place / "reference")
        check_warning(tap, root, doxygen, place)
    tap.end()


main()
