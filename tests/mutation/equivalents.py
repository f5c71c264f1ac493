"""Reads equivalent.txt: mutants that change nothing that any program could see."""

import re


def read(path):
    """{(file, operator, line before, line after): reason}; lines without indentation."""
    listed = {}
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#"))
    for block in filter(None, re.split(r"\n\s*\n", text.strip())):
        lines = block.splitlines()
        if len(lines) < 4 or not lines[1].startswith("- ") or not lines[2].startswith("+ "):
            raise ValueError(f"equivalent.txt: a block is file: operator, - line, + line, reason:\n{block}")
        file, operator = lines[0].split(": ", 1)
        listed[file, operator, lines[1][2:].strip(), lines[2][2:].strip()] = " ".join(lines[3:])
    return listed
