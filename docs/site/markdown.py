# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns the pages of the repository into Markdown that Doxygen reads. make.py uses it.

 - Headings get the anchors that GitHub gives them, behind the name of the page: anchors are unique in the site.
 - Links lead to pages of the site: a document, the page of a header, the page of an example. Other files that
   a page links to are copied.
 - Tables and code become what Doxygen takes literally: its own Markdown reads commands in them.
"""

import html
import posixpath
import re

HEADING = re.compile(r"(#+) (.+)")
FENCE = re.compile(r"( *)```(\w*)$")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
LINK = re.compile(r"\[((?:[^\[\]`]|`[^`]*`)+)\]\(([^)\s]+)\)")
ITEM = re.compile(r" *(?:[-*]|\d{1,2}\.) +")
COMMENT = re.compile(r"<!--.*-->")
ROW = re.compile(r" *\|.*\|$")
# Doxygen has no reader for the others
LANGUAGES = {"c": "c", "cpp": "cpp", "python": "py"}
EXAMPLES, EXAMPLES_URL = "docs/examples", "examples.html"


def page_name(path):
    """The name of the page of a document: docs/traces/README.md is page traces."""
    if path == "README.md":
        return "index"
    name = path.removesuffix(".md").removeprefix("docs/").removesuffix("/README")
    return re.sub(r"[^\w]", "_", name).lower()


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"`|\[|\]\([^)]*\)", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def is_source(path):
    """Whether the site has a page of the text of a file: the examples, and headers without a reference."""
    folder, name = posixpath.split(path)
    if folder == EXAMPLES:
        return name != "meson.build"
    return folder in ("include/quire/hpp", "include/quire/vma") or folder == "include/quire" and name.endswith(".hpp")


def source_name(path):
    return path.removeprefix(EXAMPLES + "/").removeprefix("include/")


def source_url(path):
    """The page of the text of a file, as Doxygen names it."""
    return source_name(path).replace(".", "_8").replace("/", "_2") + "-example.html"


def escape(text):
    """Text that is not code. Doxygen would read its characters as commands, links, tags and dashes."""
    text = re.sub(r"([\\@#%<>])", r"\\\1", text)
    text = re.sub(r"(?<=\n)( *\d+)\.", r"\1\.", text)  # a number at the start of a line begins no list
    return re.sub(r"-(?=-)", r"\-", text)


class Page:
    """One document. `root` is the folder of the sources, `path` that of the document in it."""

    def __init__(self, root, path):
        self.root, self.path, self.name = root, path, page_name(path)
        self.lines = (root / path).read_text().splitlines()
        self.title = self.lines[0].removeprefix("# ")
        self.files = []  # what the page links to and the site must contain
        self.links = []  # targets in the repository
        self.headings = []  # (anchor, text)
        self.text = self.convert()

    def url(self, target):
        """Where a link leads in the site."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), path)) if path else self.path
        self.links.append(found)
        if found.endswith(".md"):
            page = page_name(found)
            return f"{page}.html" + (f"#{page}_{anchor}" if anchor else "")
        if found == EXAMPLES:
            return EXAMPLES_URL
        if posixpath.dirname(found) == "include/quire" and found.endswith(".h"):
            return f"group__{posixpath.basename(found)[:-2].replace('_', '__')}.html"
        if is_source(found):
            return source_url(found)
        self.files.append(found)
        return found

    def inline(self, text):
        """A paragraph, an item or a cell."""
        kept = []

        def keep(piece):
            kept.append(piece)
            return f"\0{len(kept) - 1}\0"

        # Doxygen reads `it' as a quotation; two marks are code whatever is between them
        text = re.sub(r"`([^`]+)`", lambda m: keep("``" + m[1].replace("\n", " ") + "``"), text)
        text = re.sub(r"<(https?://[^>\s]+)>", lambda m: keep(f'<a href="{m[1]}">{m[1]}</a>'), text)
        text = IMAGE.sub(lambda m: keep(f'<img src="{self.url(m[2])}" alt="{html.escape(m[1])}"/>'), text)
        text = LINK.sub(lambda m: keep(f'<a href="{self.url(m[2])}">') + m[1] + keep("</a>"), text)
        text = escape(text)
        text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text, flags=re.S)
        text = re.sub(r"(?<![\w*])\*(?! )([^*]+?)\*(?![a-z*])", r"<em>\1</em>", text)
        return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)

    def heading(self, marks, text):
        plain = text.replace("`", "")
        if len(marks) == 1:
            return f"# {escape(plain)} {{#{'mainpage' if self.name == 'index' else self.name}}}"
        anchor = f"{self.name}_{slug(text)}"
        self.headings.append((anchor, plain))
        return f"{marks} {escape(plain)} {{#{anchor}}}"

    def table(self, rows):
        cells = [[self.inline(cell.strip().replace("\\|", "|"))
                  for cell in re.split(r"(?<!\\)\|", row.strip()[1:-1])] for row in rows]
        right = [cell.strip().endswith(":") for cell in rows[1].strip()[1:-1].split("|")]
        out = ['<table class="markdownTable">']
        for number, row in enumerate(cells):
            if number == 1 or not any(row):
                continue
            tag = "td" if number else "th"
            out.append("<tr>" + "".join(
                f'<{tag} align="right">{cell}</{tag}>' if is_right else f"<{tag}>{cell}</{tag}>"
                for cell, is_right in zip(row, right)) + "</tr>")
        return "\n".join([*out, "</table>"])

    def blocks(self):
        """(kind, lines) of the document: heading, code, table, text, and blank lines between them."""
        at, lines, in_item = 0, self.lines, False
        while at < len(lines):
            start, line = at, lines[at]
            fence = FENCE.match(line)
            at += 1
            if fence:
                while not lines[at].strip() == "```":
                    at += 1
                at += 1
                yield "fence", lines[start:at]
            elif HEADING.match(line):
                in_item = False
                yield "heading", [line]
            elif ROW.match(line):
                while at < len(lines) and ROW.match(lines[at]):
                    at += 1
                yield "table", lines[start:at]
            elif line.startswith("    ") and not in_item:
                while at < len(lines) and (lines[at] or "".join(lines[at + 1:at + 2])).startswith("    "):
                    at += 1
                yield "indented", lines[start:at]
            elif not line or COMMENT.fullmatch(line):
                yield "blank", [line]
            else:
                in_item = bool(ITEM.match(line)) or in_item and line.startswith(" ")
                while at < len(lines) and lines[at] and not ITEM.match(lines[at]) and \
                        not FENCE.match(lines[at]) and not ROW.match(lines[at]) and not HEADING.match(lines[at]):
                    at += 1
                yield "text", lines[start:at]

    def convert(self):
        out = []
        for kind, lines in self.blocks():
            if kind == "heading":
                out.append(self.heading(*HEADING.match(lines[0]).groups()))
            elif kind == "fence":
                indent, language = FENCE.match(lines[0]).groups()
                out += code_block([line.removeprefix(indent) for line in lines[1:-1]], language, indent)
            elif kind == "indented":
                out += code_block([line[4:] for line in lines], "", "")
            elif kind == "table":
                out.append(self.table(lines))
            elif kind == "text":
                first = ITEM.match(lines[0])
                mark = first[0] if first else ""
                out.append(mark + self.inline("\n".join([lines[0][len(mark):], *lines[1:]])))
            else:
                out.append("")
        if len(self.headings) > 3 and self.name != "index":
            out.insert(1, "\n@tableofcontents\n")
        return "\n".join(out) + "\n"


def code_block(lines, language, indent):
    kind = LANGUAGES.get(language, "unparsed")
    return [f"{indent}@code{{.{kind}}}", *(indent + line for line in lines), f"{indent}@endcode"]

