# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The diagrams of the documents are what their script writes, and every picture has its words.

usage: diagrams.py SOURCE_ROOT
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from tap import Tap

SVG = "{http://www.w3.org/2000/svg}"


def check_files(tap, folder):
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([sys.executable, "-B", str(folder / "diagrams.py"), place],
                              text=True, capture_output=True)
        written = {path.name: path.read_text() for path in pathlib.Path(place).iterdir()}
    committed = {path.name: path.read_text() for path in folder.glob("*.svg")}
    problems = [done.stderr] if done.returncode else []
    problems += [f"{name} differs; run docs/diagrams/diagrams.py"
                 for name in sorted(written.keys() | committed.keys())
                 if written.get(name) != committed.get(name)]
    tap.case("docs/diagrams has what its script writes", problems or
             ([] if len(committed) >= 5 else [f"only {sorted(committed)}"]))
    return committed


def texts_outside(root):
    """Texts that begin outside the picture."""
    width, height = (float(root.get(name)) for name in ("width", "height"))
    return [text.text for text in root.iter(f"{SVG}text")
            if not (0 <= float(text.get("x")) <= width and 10 <= float(text.get("y")) <= height - 3)]


def check_words(tap, committed):
    problems = []
    for name, text in sorted(committed.items()):
        root = xml.etree.ElementTree.fromstring(text)
        words = [root.findtext(f"{SVG}{tag}") or "" for tag in ("title", "desc")]
        problems += [f"{name}: {words}"] if not words[0] or len(words[1]) < 80 else []
        problems += [f"{name}: outside: {text}" for text in texts_outside(root)]
        problems += [] if "prefers-color-scheme: dark" in text else [f"{name} has no dark colours"]
    tap.case("every diagram has a title, a description, and its texts inside", problems)


def check_embedded(tap, root):
    """A screen reader reads the alt text of a picture."""
    problems = []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        problems += [f"{page.relative_to(root)}: {target} has no alt text" for alt, target in
                     re.findall(r"!\[([^\]]*)\]\(([^)]+\.svg)\)", page.read_text())
                     if len(alt.split()) < 2]
    tap.case("pictures in the documents have an alt text", problems)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    committed = check_files(tap, root / "docs/diagrams")
    check_words(tap, committed)
    check_embedded(tap, root)
    tap.end()


main()
