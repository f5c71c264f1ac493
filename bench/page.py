"""Tables in Markdown, and a page of which a part between two marks is written anew."""


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join("-" if cell is None else str(cell) for cell in row) + " |"
              for row in rows]
    return lines + [""]


def formed(form, value):
    return form.format(value) if value is not None else None


def filled(rows):
    """Rows with something in them."""
    return [row for row in rows if any(cell is not None for cell in row[1:])]


def replace(page, begin, end, lines):
    """Puts lines between the marks, which stay."""
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    page.write_text(before + begin + "\n\n" + "\n".join(lines) + "\n" + end + after)
