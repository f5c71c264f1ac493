"""Reads equivalent.txt, the list of mutants whose change no program can observe."""

import re

from points import without_comments


def read(path):
    """{(file, operator, line before, line after): reason}; lines in the form of points.changed_lines()."""
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
