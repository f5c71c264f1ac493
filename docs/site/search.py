# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds to the search index of Doxygen what it leaves out: the headings of the pages under each of their words, and
the names of the interface without their prefix. make.py uses it.

The index is an array of [id, [shown, [place, is inside, where]]] for each first letter; a search finds what its
text begins, as an id.
"""

import ast
import html
import re
import shutil

ARRAY = re.compile(r"var searchData=\s*(\[.*\]);", re.S)
LETTERS = re.compile(r'(  0: ")(.*?)(")')
SHORT_WORD = 3


def encode(text):
    """Text as an id; as search.js turns what is typed into one."""
    return re.sub(r"[^a-z0-9\u0080-\uffff]", lambda m: f"_{ord(m[0]):02x}", text.lower())


def heading_entries(pages):
    """(searched, shown, place, where) for each word of a heading that says something."""
    for page in pages:
        for anchor, text in page.headings:
            starts = [match.start() for match in re.finditer(r"[\w']+", text)
                      if len(match[0]) > SHORT_WORD or not match.start()]
            for start in starts:
                yield text[start:], text, f"{page.name}.html#{anchor}", page.title


def name_entries(names):
    for name, place in names.items():
        if name.startswith(("quire_", "QUIRE_")):
            yield name[len("quire_"):], name, place, ""


def index_of(folder, number):
    return ast.literal_eval(ARRAY.search((folder / f"all_{number:x}.js").read_text())[1])


def extend(folder, pages, names):
    """Rewrites the index in the folder of Doxygen's search."""
    data = folder / "searchdata.js"
    letters = LETTERS.search(data.read_text())[2]
    # what is about a file of Markdown is about its page too
    found = {letter: [entry for entry in index_of(folder, number) if not entry[1][1][0].endswith("_8md.html")]
             for number, letter in enumerate(letters)}
    places = {place for entries in found.values() for entry in entries for place in (e[0] for e in entry[1][1:])}
    added = [entry for entry in heading_entries(pages) if f"../{entry[2]}" not in places]
    for number, (searched, shown, place, where) in enumerate([*added, *name_entries(names)]):
        entry = [f"{encode(searched)}_x{number}", [html.escape(shown), [f"../{place}", 1, html.escape(where)]]]
        found.setdefault(searched[0].lower(), []).append(entry)
    for number, letter in enumerate(sorted(found)):
        entries = sorted(found[letter], key=lambda entry: entry[0])
        text = ",\n  ".join(map(repr, entries))
        (folder / f"all_{number:x}.js").write_text(f"var searchData=\n[\n  {text}\n];\n")
        frame, first = folder / f"all_{number:x}.html", folder / "all_0.html"
        if first.exists() and not frame.exists():  # later releases have no frames
            shutil.copyfile(first, frame)
            frame.write_text(frame.read_text().replace("all_0.js", f"all_{number:x}.js"))
    data.write_text(LETTERS.sub(lambda m: m[1] + "".join(sorted(found)) + m[3], data.read_text(), count=1))
