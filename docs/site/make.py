# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the site into OUTPUT: the documents, the reference of the headers and the examples, with a navigation by
topic and a search, for a browser without a server. Warnings of Doxygen and broken links are failures.

usage: make.py DOXYGEN SOURCE_ROOT VERSION OUTPUT
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from xml.sax.saxutils import quoteattr

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "reference")]

import links  # noqa: E402
import markdown  # noqa: E402
import reference  # noqa: E402
import search  # noqa: E402

SETTINGS = """
INPUT = "{pages}" {headers}
USE_MDFILE_AS_MAINPAGE = "{pages}/index.md"
EXAMPLE_PATH = "{sources}"
EXTENSION_MAPPING = comp=C++ cu=C++
LAYOUT_FILE = "{layout}"
HTML_EXTRA_STYLESHEET = "{style}"
GENERATE_TAGFILE = "{tags}"
STRIP_CODE_COMMENTS = NO
DISABLE_INDEX = YES
SERVER_BASED_SEARCH = NO
TOC_INCLUDE_HEADINGS = 2
TREEVIEW_WIDTH = 300
"""
LIGHT = "HTML_COLORSTYLE = LIGHT\n"  # site.css makes the dark style; releases before 1.9.5 have no such setting
# a row of the table "Documents" of README.md
TOPIC = re.compile(r"^\| ([^|]+) \| (.*\]\(.*) \|$", re.M)


def read_pages(root):
    """{path: page} of every document: those of docs, and what they link to."""
    found = {}
    paths = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
    paths += sorted(str(path.relative_to(root)) for path in (root / "docs").rglob("*.md"))
    for path in paths:  # it grows
        if path not in found:
            found[path] = markdown.Page(root, path)
            paths += [other for other in found[path].links if other.endswith(".md")]
    return found


def topics(pages):
    """[(topic, [path])]: the rows of the table of README.md. A page that no row has is where a page links to it."""
    text = pages["README.md"].lines
    rows = TOPIC.findall("\n".join(text[text.index("## Documents"):]))
    result = [(name[0].upper() + name[1:], re.findall(r"\]\(([^)#]+)\)", row)) for name, row in rows]
    placed = {path for _, paths in result for path in paths}
    for path in sorted(set(pages) - placed - {"README.md"}):
        for _, paths in result:
            if any(path in pages[other].links for other in paths if other in pages):
                paths.append(path)
                break
        else:
            raise SystemExit(f"site: no page of a topic links to {path}")
    return result


def navigation(pages):
    """The tabs of Doxygen's layout, which are the tree beside the pages."""
    front = pages["README.md"]
    out = ['<tab type="mainpage" visible="yes" title="quire"/>']
    for topic, paths in topics(pages):
        out.append(f'<tab type="usergroup" visible="yes" title={quoteattr(topic)} url="[none]">')
        for path in paths:
            if path == markdown.EXAMPLES:
                out.append('<tab type="examples" visible="yes" title="Examples and sources" intro=""/>')
                continue
            title = pages[path].title.replace("`", "") if path in pages else path.removeprefix("include/")
            out.append(f'<tab type="user" visible="yes" url={quoteattr(front.url(path))} title={quoteattr(title)}/>')
        out.append("</tab>")
    out += ['<tab type="pages" visible="no"/>',
            '<tab type="modules" visible="yes" title="Reference by header" intro=""/>',
            '<tab type="classlist" visible="yes" title="Structs" intro=""/>',
            '<tab type="globals" visible="yes" title="Functions, types and macros" intro=""/>']
    return "\n".join(out)


def write_layout(doxygen, place, pages):
    path = place / "layout.xml"
    subprocess.run([doxygen, "-l", path], check=True, capture_output=True)
    text = path.read_text()
    tree = navigation(pages)
    if 'type="topics"' in text:  # the later name of what was modules
        tree = tree.replace('type="modules"', 'type="topics"')
    path.write_text(re.sub(r"(<navindex>).*?(</navindex>)", lambda m: f"{m[1]}\n{tree}\n{m[2]}", text, flags=re.S))
    return path


def write_sources(root, place):
    """The files whose text is a page, below the names that Doxygen gives these pages."""
    names = []
    for folder in ("docs/examples", "include"):
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.is_file() and markdown.is_source(name):
                names.append(markdown.source_name(name))
                copy = place / "sources" / names[-1]
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    # no page of Markdown: it holds commands alone
    (place / "pages/sources.dox").write_text("".join(f"/** @example {name} */\n" for name in names))


def run_doxygen(doxygen, root, version, place, pages):
    (place / "pages").mkdir()
    for page in pages.values():
        (place / f"pages/{page.name}.md").write_text(page.text)
    write_sources(root, place)
    text = reference.settings(root, version, place, options="--site")
    text += SETTINGS.format(
        pages=place / "pages", sources=place / "sources", layout=write_layout(doxygen, place, pages),
        headers=" ".join(f'"{path}"' for path in reference.headers(root / "include/quire")),
        style=HERE / "site.css", tags=place / "tags.xml")
    release = subprocess.run([doxygen, "--version"], text=True, capture_output=True).stdout
    if [int(number) for number in re.findall(r"\d+", release)[:3]] >= [1, 9, 5]:
        text += LIGHT
    return reference.run(doxygen, text)


def names_of(tags):
    """{name of the interface: its place in the reference}"""
    found = {}
    for compound in xml.etree.ElementTree.parse(tags).iter("compound"):
        if compound.get("kind") in ("struct", "union"):
            found[compound.findtext("name")] = compound.findtext("filename")
        if compound.get("kind") == "group":
            for member in compound.iter("member"):
                found.setdefault(member.findtext("name"),
                                 f"{member.findtext('anchorfile')}#{member.findtext('anchor')}")
    return found


def link_names(folder, pages, names):
    """Names of the interface in the code of a sentence become links."""
    def link(match):
        url = names.get(match[2])
        return f'<a href="{url}">{match[0]}</a>' if url else match[0]

    for page in pages.values():
        path = folder / f"{page.name}.html"
        parts = re.split(r"(<a .*?</a>)", path.read_text(), flags=re.S)
        parts[::2] = [re.sub(r"<(code|tt)>(\w+)(?:\(\))?</\1>", link, part) for part in parts[::2]]
        path.write_text("".join(parts))


def link_front_page(folder):
    """The name of the project leads to the front page: narrow windows do not show the navigation."""
    name = '<div id="projectname">{}'
    for path in folder.glob("*.html"):
        text = path.read_text()
        path.write_text(text.replace(name.format("quire"), name.format('<a href="index.html">quire</a>')))


def copy_files(root, pages, folder):
    """Pictures and what else the pages link to, below their paths in the sources."""
    for name in {name for page in pages.values() for name in page.files}:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target)


def main():
    doxygen, version, output = sys.argv[1], sys.argv[3], pathlib.Path(sys.argv[4]).resolve()
    root = pathlib.Path(sys.argv[2]).resolve()
    pages = read_pages(root)
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place).resolve()
        if not run_doxygen(doxygen, root, version, place, pages):
            sys.exit(1)
        names = names_of(place / "tags.xml")
        link_names(place / "html", pages, names)
        search.extend(place / "html/search", pages.values(), names)
        link_front_page(place / "html")
        copy_files(root, pages, place / "html")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(place / "html", output)
    count, found, problems = links.check(output)
    for problem in problems:
        print(f"site: {problem}", file=sys.stderr)
    print(f"{output}/index.html: {count} pages, {found} links, {len(problems)} broken")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
