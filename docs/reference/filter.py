# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns the comments of a public header into comments that Doxygen reads, on the standard output. The
headers themselves have plain comments, which people read.

usage: filter.py [--site] HEADER

 - The comment at the head of a header becomes the page of that header; that of quire.h the main page, except
   with --site: the main page of the site is another one.
 - A comment before a declaration documents it, and the declarations that follow without a blank line.
 - A comment after a field or a value documents that.
 - A line of dashes with words is the title of the functions below it.
 - Every name that begins with quire_ becomes a link. Doxygen warns if there is no such name.
"""

import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
SECTION = re.compile(r"/\* -{3,} (.*?) -+ \*/")
RESULT = re.compile(r'X\((QUIRE_\w+), (-?\d+),\s*"([^"]*)"\)')
FUNCTION_BODY = re.compile(r"\)\s*\n?\{")


def lines_of(comment):
    """The text of a comment without its frame. Lines without a star have no indentation of their own."""
    first, *rest = comment[2:-2].split("\n")
    if all(line.lstrip().startswith("*") for line in rest if line.strip()):
        rest = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in rest]
    else:
        rest = [line.strip().lstrip("* ") for line in rest]
    # a title within a struct
    lines = [re.sub(r"^-{3,} | -{3,}$", "", line) for line in (first.strip(), *rest)]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines if lines and lines[0] else lines[1:]


def escape(line):
    """A line of text: characters that Doxygen would read as commands, and links. Code stays."""
    if line.startswith("    "):
        return line
    parts = line.split("`")
    for number in range(0, len(parts), 2):  # the other parts are code
        text = re.sub(r"([\\@<>#])", r"\\\1", parts[number])
        parts[number] = re.sub(r"(?<![\w/.])quire_\w+(\.\w+)*(?![\w/*])(?!\.h)", link, text)
    return "`".join(parts)


def link(match):
    name = match.group(0)
    return name if name.endswith("_") else "#" + name.replace(".", "::")


def frame(lines, opening="/**"):
    if len(lines) == 1:
        return f"{opening} {lines[0]} */"
    return "\n".join([opening, *(f" * {line}".rstrip() for line in lines), " */"])


def doc(comment, opening="/**"):
    lines = [escape(line) for line in lines_of(comment)]
    if opening == "/**":  # the errors are a paragraph of their own
        lines = re.sub(r"(?:^|(?<=\.) |\n)(Errors(?::| as ))", r"\n\n\1", "\n".join(lines)).strip().split("\n")
    return frame(lines, opening)


def is_main_page(name):
    return name == "quire.h" and "--site" not in sys.argv


def head(name, comment):
    """The page of a header: "quire/X.h - what it has.", and the rest of its first comment."""
    lines = lines_of(comment)
    end = lines.index("") if "" in lines else len(lines)
    brief = " ".join(lines[:end]).split(" - ", 1)[1]
    text = [escape(brief[0].upper() + brief[1:]), *map(escape, lines[end:])]
    if is_main_page(name):
        return frame(["@mainpage", *text])
    text[0] = "@brief " + text[0]
    return frame([f"@defgroup {pathlib.Path(name).stem} quire/{name}", *text]) + "\n/** @{ */"


class Filter:
    def __init__(self, name, text):
        self.name, self.text = name, text
        self.out = []
        self.in_section = False
        self.shared = ""  # the comment of the declarations that follow

    def is_in_body(self, at):
        """Whether a place is in the body of an inline function."""
        for match in FUNCTION_BODY.finditer(self.text, 0, at):
            end = self.text.find("\n}", match.end())
            if end >= at:
                return True
        return False

    def section(self, title):
        closing = "/** @} */ " if self.in_section else ""
        self.in_section = True
        return f"{closing}/** @name {title} */ /** @{{ */"

    def comment(self, match):
        """What stands for a comment."""
        comment, at = match.group(0), match.start()
        before = self.text[self.text.rfind("\n", 0, at) + 1:at]
        after = self.text[match.end():]
        title = SECTION.fullmatch(comment)
        if at == 0:
            return head(self.name, comment)
        if title and not before:
            return self.section(title.group(1))
        if re.match(r"\s*#(?!define)", before) or self.is_in_body(at):
            return comment
        if before.strip():
            return doc(comment, "/**<")
        if after.startswith("\n\n") or re.match(r"\s*(/\*|\})", after):
            return comment
        if not before and "{" not in after.split("\n\n", 1)[0]:
            self.shared = doc(comment)
        return doc(comment)

    def code(self, code):
        """Code up to the next comment: every declaration of a paragraph gets the comment before it."""
        paragraph, blank, rest = code.partition("\n\n")
        if self.shared:
            paragraph = re.sub(r";\n(?=\S)", lambda _: ";\n" + self.shared + "\n", paragraph)
        self.shared = ""
        self.out.append(paragraph + blank + rest)

    def filter(self):
        at = 0
        for match in COMMENT.finditer(self.text):
            self.code(self.text[at:match.start()])
            self.out.append(self.comment(match))
            at = match.end()
        self.code(self.text[at:])
        return "".join(self.out)


def results(text):
    """The values of quire_result with their sentences instead of the macro that makes them."""
    values = "\n".join(f"    {name} = {value}, /**< {escape(sentence)} */"
                       for name, value, sentence in RESULT.findall(text))
    return re.sub(r"#define QUIRE_RESULT_ENUM.*?#undef QUIRE_RESULT_ENUM", lambda _: values, text,
                  flags=re.S)


def main():
    path = pathlib.Path(sys.argv[-1])
    licence, text = path.read_text().split("\n", 1)
    header = Filter(path.name, text if "SPDX-" in licence else f"{licence}\n{text}")
    text = results(header.filter())
    closing = ("/** @} */\n" if header.in_section else "") + \
        ("" if is_main_page(path.name) else "/** @} */\n")
    sys.stdout.write(text + closing)


if __name__ == "__main__":
    main()
