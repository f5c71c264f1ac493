# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Formats Markdown tables and replaces the part of a page between two marks."""


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join("-" if cell is None else str(cell) for cell in row) + " |"
              for row in rows]
    return lines + [""]


def formed(form, value):
    return form.format(value) if value is not None else None


def filled(rows):
    """The rows that have a value."""
    return [row for row in rows if any(cell is not None for cell in row[1:])]


def replace(page, begin, end, lines):
    """Replaces the lines between the marks and keeps the marks."""
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    page.write_text(before + begin + "\n\n" + "\n".join(lines) + "\n" + end + after)
