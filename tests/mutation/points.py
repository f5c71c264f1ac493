# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the points of a C source that a mutation can change, and the new text of each.

Reads function bodies only: clang-format puts their braces at the start of a line. Skips comments,
strings, preprocessor lines, assertions and the texts of errors and log lines.
"""

import re
from typing import NamedTuple


class Point(NamedTuple):
    """One mutant: text[begin:end] becomes `new`, which has the same number of newlines."""

    file: str
    operator: str
    begin: int
    end: int
    new: str


COMMENT = r"//[^\n]*|/\*.*?\*/"
STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
COMMENT_OR_STRING = re.compile(f"{COMMENT}|{STRING}", re.S)
HIDDEN = re.compile(rf"{COMMENT}|{STRING}|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
FUNCTION = re.compile(r"^\{$.*?^\}$", re.S | re.M)
# Functions whose arguments are messages.
TEXT_CALL = re.compile(r"\b(?:qi_fail\w*|qi_log\w*|qi_text_\w+|qi_space_damaged|snprintf)\s*\(")
ASSERTION = re.compile(r"\b(?:assert|static_assert|_Static_assert)\s*\(")
COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
               "==": ("!=",), "!=": ("==",)}
SWAPPED = {"&&": "||", "||": "&&", "+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
TOKEN = re.compile(r"->|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|[<>+-]|"
                   r"\b(\d+)(?:[uU]?[lL]{0,2})\b(?![.\w])")
NO_OPERAND_BEFORE = re.compile(r"(?:^|[^\w)\]]|\breturn|\bcase)$")
CONDITION = re.compile(r"\b(?:if|while)\s*\(")
KEYWORD = re.compile(r"(?:return|if|for|while|do|switch|case|break|continue|goto|else|default|struct|enum|"
                     r"const|static|unsigned|char|int|bool|void|double)\b")
DECLARATION = re.compile(r"\w+(?:\s+\w+)*[\s*]+\w+\s*(?:=|;|,|\[)")
RETURN = re.compile(r"\breturn\b[^;]*;")
RETURN_BOOL = re.compile(r"\breturn (true|false);")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_comments(text):
    """The text with blanks instead of comments, of the same length."""
    return COMMENT_OR_STRING.sub(lambda match: blank(match) if match.group()[0] == "/" else match.group(), text)


def blank_between(text, begin, end):
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def closing(text, begin):
    """The index after the bracket that closes the one at `begin`."""
    depth = 0
    for i in range(begin, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i + 1
    return len(text)


def hide(text):
    """The text with blanks instead of everything that is not mutated, of the same length."""
    text = HIDDEN.sub(blank, text)
    for match in list(ASSERTION.finditer(text)):
        text = blank_between(text, match.start(), closing(text, match.end() - 1))
    for match in list(TEXT_CALL.finditer(text)):
        text = blank_between(text, match.end(), closing(text, match.end() - 1) - 1)
    return text


def tokens(code, begin, end):
    """Mutates comparisons, && and ||, + and -, and constants."""
    for match in TOKEN.finditer(code, begin, end):
        token, number = match.group(), match.group(1)
        for new in COMPARISONS.get(token, ()):
            yield "comparison", match.start(), match.end(), new
        if token in ("&&", "||"):
            yield "and or", match.start(), match.end(), SWAPPED[token]
        elif token in ("+", "-"):
            if not NO_OPERAND_BEFORE.search(code[begin:match.start()].rstrip()):
                yield "plus minus", match.start(), match.end(), SWAPPED[token]
        elif token in SWAPPED:
            yield "plus minus", match.start(), match.end(), SWAPPED[token]
        elif number and not (code[match.start() - 1] == "{" and code[match.end()] == "}"):
            for new in {int(number) + 1, abs(int(number) - 1)}:
                yield "constant", match.start(1), match.end(1), str(new)


def conditions(code, begin, end):
    for match in CONDITION.finditer(code, begin, end):
        after = closing(code, match.end() - 1)
        yield "negated condition", match.end(), after - 1, None


def statements(code, begin, end):
    """Deletes calls and assignments that are whole statements; keeps the heads of loops."""
    at = begin + 1
    while at < end:
        while at < end and code[at] in " \n;{}":
            at += 1
        word = KEYWORD.match(code, at)
        if word and word.group() in ("if", "for", "while", "switch"):
            at = closing(code, code.index("(", at))
        elif word and word.group() in ("else", "do"):
            at = word.end()
        elif word and word.group() in ("case", "default"):
            at = code.index(":", at) + 1
        elif at < end:
            stop = at
            while stop < end and code[stop] != ";":
                stop = closing(code, stop) if code[stop] in "([{" else stop + 1
            if not word and not DECLARATION.match(code, at):
                yield "deleted statement", at, stop, ""
            at = stop + 1


def returns(code, begin, end):
    for match in RETURN_BOOL.finditer(code, begin, end):
        yield "swapped result", match.start(1), match.end(1), "false" if match.group(1) == "true" else "true"
    for match in RETURN.finditer(code, begin, end):
        rest = code[match.end():end]
        if rest.strip() != "}":
            yield "dropped return", match.start(), match.end() - 1, ""


def points_of(file, text):
    """All points of a source, in the order of their offsets."""
    code = hide(text)
    found = []
    for body in FUNCTION.finditer(code):
        begin, end = body.span()
        for kind in (tokens, conditions, statements, returns):
            for operator, first, last, new in kind(code, begin, end):
                if new is None:
                    new = f"!({text[first:last]})"
                elif "\n" in text[first:last]:
                    new += "\n" * text.count("\n", first, last)
                found.append(Point(file, operator, first, last, new))
    return sorted(set(found), key=lambda p: (p.begin, p.end, p.new))


def apply(text, point):
    return text[:point.begin] + point.new + text[point.end:]


def line_of(text, point):
    return text.count("\n", 0, point.begin) + 1


def changed_lines(text, point):
    """The lines before and after, as two strings without comments; each run of whitespace is one space."""
    text = without_comments(text)
    new = without_comments(point.new)
    first = text.rfind("\n", 0, point.begin) + 1
    last = text.find("\n", point.end)
    before = text[first:last]
    after = text[first:point.begin] + new + text[point.end:last]
    return " ".join(before.split()), " ".join(after.split())


def read_equivalents(path):
    """The mutants of equivalent.txt, whose change no program can observe:
    {(file, operator, line before, line after): reason}; lines in the form of changed_lines()."""
    listed = {}
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#"))
    for block in filter(None, re.split(r"\n\s*\n", text.strip())):
        lines = block.splitlines()
        if len(lines) < 4 or not lines[1].startswith("- ") or not lines[2].startswith("+ "):
            raise ValueError(f"equivalent.txt: a block has the lines FILE: OPERATOR, - LINE, + LINE, REASON:\n{block}")
        file, operator = lines[0].split(": ", 1)
        before, after = (" ".join(without_comments(line[2:]).split()) for line in lines[1:3])
        listed[file, operator, before, after] = " ".join(lines[3:])
    return listed
