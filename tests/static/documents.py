"""The documents say what the sources say: results, features and links.

usage: documents.py SOURCE_ROOT
"""

import pathlib
import re
import sys

from tap import Tap


def results_of_header(root):
    text = (root / "include/quire/base.h").read_text()
    text = re.sub(r"\\\n\s*", " ", text)
    return re.findall(r'X\((QUIRE_\w+), (-?\d+), "([^"]+)"\)', text)


def check_results(tap, root):
    rows = re.findall(r"^\| `(QUIRE_\w+)` \| (-?\d+) \| (.+?) \|", (root / "docs/results.md").read_text(),
                      re.M)
    expected = results_of_header(root)
    tap.case("docs/results.md has every result of the header, in order",
             [] if rows == expected and expected else
             [f"header: {e}, page: {r}" for e, r in zip(expected, rows) if e != r] or
             [f"{len(expected)} in the header, {len(rows)} on the page"])


def check_features(tap, root):
    """Every test that docs/features.md names is there."""
    text = (root / "docs/features.md").read_text()
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    tap.case("docs/features.md names tests that exist",
             sorted(n for n in named if not (root / n).exists()) or ([] if named else ["it names none"]))
    functions = set(re.findall(r"`(quire_\w+)\(?\)?`", text))
    headers = "".join(p.read_text() for p in (root / "include/quire").glob("*.h"))
    tap.case("docs/features.md names functions that exist",
             sorted(f for f in functions if f not in headers))


def check_links(tap, root):
    problems = []
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md",
             *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http") and not (page.parent / target).exists():
                problems.append(f"{page.relative_to(root)} links to {target}")
    tap.case("links in the documents lead somewhere", problems)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    check_results(tap, root)
    check_features(tap, root)
    check_links(tap, root)
    tap.end()


main()
