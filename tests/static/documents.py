# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documents say what the sources say: results, error sentences, features, names and links.

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
    rows = re.findall(r"^\| `(QUIRE_\w+)` \| (-?\d+) \| (.+?) \|", (root / "docs/results.md").read_text(), re.M)
    expected = results_of_header(root)
    tap.case("docs/results.md has every result of the header, in order",
             [] if rows == expected and expected else
             [f"header: {e}, page: {r}" for e, r in zip(expected, rows) if e != r] or
             [f"{len(expected)} in the header, {len(rows)} on the page"])


def check_backend_groups(tap, root):
    bits = set(re.findall(r"#define QUIRE_BACKEND_(\w+) \(UINT64_C\(1\) <<",
                          (root / "include/quire/backend.h").read_text()))
    section = (root / "docs/backends.md").read_text().partition("\n## Groups\n")[2].partition("\n## ")[0]
    rows = set(re.findall(r"^\| `(\w+)` \|", section, re.M))
    tap.case("docs/backends.md has every feature bit of the header and no other",
             sorted(bits ^ rows) or ([] if bits else ["the header has none"]))


def check_features(tap, root):
    """Every test that docs/features.md names is there."""
    text = (root / "docs/features.md").read_text()
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    tap.case("docs/features.md names tests that exist",
             sorted(n for n in named if not (root / n).exists()) or ([] if named else ["it names none"]))


STRING = r'"(?:[^"\\\n]|\\.)*"'
# A call of a function that fails, up to its semicolon; string literals that follow each other, with macros between.
FAILING_CALL = re.compile(rf"\b(\w*fail\w*)\(((?:{STRING}|[^;\"])*);")
LITERAL = re.compile(rf"{STRING}(?:[\s\\]+(?:{STRING}|[A-Z]\w*(?=\s*\")))*")
CONSTANT_TEXT = re.compile(rf"(?:#define \w+_SENTENCE|\bchar \w+\[\] =)[\s\\]+({LITERAL.pattern})")
CONVERSIONS = re.compile(r"(?<=[a-z])(%s)+|(?:%[-#0-9.*]*(?:ll|[lzjt])?[a-zA-Z])+")
# What a function adds to the pattern that it is given.
ADDED = {"qi_vulkan_fail": ": %s", "qi_cuda_fail": ": %s (CUresult %u)%s"}


def text_of(literals):
    """Literals that follow each other, as one; a macro between them is a conversion."""
    parts = re.findall(rf"({STRING})|(\w+)", literals)
    return "".join(string[1:-1] if string else "u" if macro.startswith("PRI") else "%s" for string, macro in parts)


def sentence_pattern(text):
    """What matches the text on a page: "…" for conversions, and the ending of a plural."""
    pattern, end = "", 0
    for run in CONVERSIONS.finditer(text):
        pattern += re.escape(text[end:run.start()]) + ("[a-z]*…?" if run[1] else "…")
        end = run.end()
    return pattern + re.escape(text[end:])


def sentences_of(source):
    """The texts of one source that a failing call can use: its arguments, constants and writers."""
    text = source.read_text()
    texts = {text_of(m[1]) for m in CONSTANT_TEXT.finditer(text)}
    for name, arguments in FAILING_CALL.findall(text):
        texts.update(text_of(literal) + ADDED.get(name, "") for literal in LITERAL.findall(arguments))
        if name == "qi_fail_later":
            writer = re.search(rf"\n[^\n;]*\b{arguments.split(',')[2].strip()}\(.*?\n}}", text, re.S)
            texts.update(map(text_of, LITERAL.findall(writer[0] if writer else "")))
    return texts


def check_errors(tap, root):
    """Every sentence of docs/errors.md is one of the library's."""
    texts = set().union(*(sentences_of(p) for part in ("src", "backends") for p in (root / part).rglob("*.[ch]")))
    known = re.compile("|".join(sorted(map(sentence_pattern, filter(None, texts)))))
    rows = re.findall(r"^\| `(.+?)` \|", (root / "docs/errors.md").read_text(), re.M)
    tap.case("docs/errors.md has sentences of the library, each once",
             [f"no call fails with: {row}" for row in rows if not known.fullmatch(row)] +
             sorted({f"twice: {row}" for row in rows if rows.count(row) > 1}) or ([] if rows else ["it has none"]))
    invented = [row.replace("…", "… more", 1) if "…" in row else row + " now" for row in rows]
    tap.case("a sentence that no call has is found out", [row for row in invented if known.fullmatch(row)])


CONSTANT = r"\bQUIRE_(?:ERROR|EVENT|FIT|USAGE|PRESET|DEDICATED|GROWTH|OBJECT)_\w+"


def check_names(tap, root):
    """Every name of the interface that a document uses is in a header."""
    headers = "".join(p.read_text() for p in (root / "include/quire").glob("*.h"))
    known = set(re.findall(r"\b(?:quire|QUIRE)_\w+", headers))
    problems = []
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for code in re.findall(r"`([^`\n]+)`", page.read_text()):
            problems += [f"{page.relative_to(root)} names {name}" for name in re.findall(CONSTANT, code)
                         if name not in known]
            problems += [f"{page.relative_to(root)} names {name}"
                         for name in re.findall(r"\b(quire_\w+[a-z0-9])\b(?![*/]|\.(?:h|c|hpp|py)\b)", code)
                         if name not in known and not names_files(name, root)]
    tap.case("the documents name functions that exist", sorted(set(problems)))


def names_files(name, root):
    """Libraries and build variables begin with quire_ too."""
    builds = "".join(p.read_text() for p in root.rglob("meson.build") if "build-" not in str(p))
    return re.search(rf"\b{name}\b", builds)


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"`|\[|\]\([^)]*\)", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def check_links(tap, root):
    problems = []
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md",
             *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
            if target.startswith("http"):
                continue
            found = page.parent / target if target else page
            if not found.exists():
                problems.append(f"{page.relative_to(root)} links to {target}")
            elif anchor and found.suffix == ".md":
                headings = re.findall(r"^#+ (.*)$", found.read_text(), re.M)
                if anchor not in map(slug, headings):
                    problems.append(f"{page.relative_to(root)} links to {target}#{anchor}")
    tap.case("links in the documents lead somewhere", problems)


def check_version(tap, root):
    header = (root / "include/quire/base.h").read_text()
    version = ".".join(re.search(rf"#define QUIRE_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR"))
    for page, pattern in (("README.md", r"\(version (\d+\.\d+)\)"),
                          ("docs/install.md", r"find_package\(quire (\d+\.\d+)"),
                          ("docs/faq.md", r"The version is (\d+\.\d+)")):
        found = re.findall(pattern, (root / page).read_text())
        tap.case(f"{page} names the version of the header",
                 [] if found and set(found) == {version} else [f"{found} instead of {version}"])


def check_readme(tap, root):
    lines = len((root / "README.md").read_text().splitlines())
    tap.case("README.md has at most 150 lines", [] if lines <= 150 else [f"{lines} lines"])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    check_results(tap, root)
    check_backend_groups(tap, root)
    check_features(tap, root)
    check_errors(tap, root)
    check_names(tap, root)
    check_links(tap, root)
    check_version(tap, root)
    check_readme(tap, root)
    tap.end()


main()
