"""Holds every #include line to the table of allowed includes in docs/design.md.

usage: includes.py SOURCE_ROOT
"""

import pathlib
import re
import sys

from tap import Tap

# made at build time
GENERATED = {"volk_names.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


def read_table(design):
    """Rows `| folder | own headers | system headers |` between the two marks."""
    text = design.read_text()
    text = text[text.index("<!-- allowed includes -->"):text.index("<!-- end of allowed includes -->")]
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            folder = cells[0].strip("`")
            rows[folder] = ([c.strip(" `") for c in cells[1].split(",")],
                            [c.strip(" `<>") for c in cells[2].split(",")])
    return rows


def problems_of(path, root, own, system):
    for match in INCLUDE.finditer(path.read_text()):
        local, angled = match.groups()
        line = path.read_text()[:match.start()].count("\n") + 1
        where = f"{path.relative_to(root)}:{line}"
        if local and not any(local == o or (o.endswith("/") and local.startswith(o)) for o in own):
            yield f"{where} includes {local}; allowed: {', '.join(own)}"
        if local and local not in GENERATED and not ((root / local).exists() or (root / "include" / local).exists()):
            yield f"{where} includes {local}, which is not there"
        if angled and "any" not in system and angled not in system:
            yield f"{where} includes <{angled}>; allowed: {', '.join(system)}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    table = read_table(root / "docs/design.md")
    seen = set()
    for folder, (own, system) in table.items():
        files = sorted(p for p in (root / folder).rglob("*.[ch]") if p not in seen)
        seen.update(files)
        problems = [p for f in files for p in problems_of(f, root, own, system)]
        if not files:
            problems.append(f"there are no sources in {folder}")
        tap.case(f"{folder} includes only what it may", problems)
    every = {p for part in ("include", "src", "backends", "bench") for p in (root / part).rglob("*.[ch]")}
    tap.case("every source is in a folder of the table", sorted(every - seen))
    tap.end()


main()
