# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the links of a folder of HTML: what is inside must exist, with its anchor; the others need the form of a
URL.

usage: links.py FOLDER
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# Doxygen writes the navigation and the search as data of scripts
SCRIPT_LINK = re.compile(r"""['"]((?:\.\./)?[\w\-]+\.html(?:#[\w\-:.]*)?)['"]""")
ANCHOR_LINKS = ("href", "src")


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.anchors, self.links = {""}, []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        self.links += [attrs[name] for name in ANCHOR_LINKS if attrs.get(name)]


def read(path):
    """(anchors, links) of a file."""
    text = path.read_text()
    if path.suffix == ".js":
        return {""}, SCRIPT_LINK.findall(text)
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader.anchors, reader.links


def problem_of(folder, path, link, files):
    """What is wrong with a link of a file, or None."""
    try:
        url = urllib.parse.urlsplit(link)
    except ValueError as error:
        return str(error)
    if url.scheme == "javascript":
        return None
    if url.scheme or url.netloc:
        is_url = url.scheme in ("http", "https") and re.fullmatch(r"[\w.-]+\.[a-z]+(:\d+)?", url.netloc)
        return None if is_url and not re.search(r"\s", link) else "not a URL"
    # the data of the navigation is relative to the page that loads it
    target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path.resolve()
    if not target.is_relative_to(folder):
        return "leads out of the folder"
    if not target.is_file():
        return "does not exist"
    if target in files and urllib.parse.unquote(url.fragment) not in files[target][0]:
        return "has no such anchor"
    return None


def check(folder):
    """(number of pages, number of links, problems)"""
    folder = pathlib.Path(folder).resolve()
    files = {path: read(path) for kind in ("*.html", "*.js") for path in sorted(folder.rglob(kind))}
    count, problems = 0, []
    for path, (_, links) in files.items():
        count += len(links)
        for link in sorted(set(links)):
            problem = problem_of(folder, path, link, files)
            if problem:
                problems.append(f"{path.relative_to(folder)}: {link}: {problem}")
    return sum(path.suffix == ".html" for path in files), count, problems


def main():
    pages, links, problems = check(sys.argv[1])
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{pages} pages, {links} links, {len(problems)} broken")
    sys.exit(1 if problems or not links else 0)


if __name__ == "__main__":
    main()
