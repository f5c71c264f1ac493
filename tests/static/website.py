# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site: every document is a page of it with its code unchanged, the search finds pages and functions, every
link leads somewhere, and a link that does not is found out.

usage: website.py SOURCE_ROOT DOXYGEN-or-none
"""

import ast
import html
import pathlib
import re
import subprocess
import sys
import tempfile

from tap import Tap

CODE_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FENCED = re.compile(r"^( *)```\w*\n(.*?)^ *```$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->")


def check_broken_links(tap, links, place):
    """The check of links on a site of two pages."""
    (place / "a.html").write_text('<a id="top" href="b.html#here">b</a><img src="none.svg"><a href="#top">top</a>'
                                  '<a href="b.html#gone">b</a><a href="https://example.com/x#y">x</a>'
                                  '<a href="http:/one-slash">y</a><a href="../outside.html">z</a>')
    (place / "b.html").write_text('<h1 id="here">b</h1><a href="a.html">a</a>')
    (place / "tree.js").write_text('var tree = [["a", "a.html#top"], ["c", "c.html"]];')
    pages, count, problems = links.check(place)
    expected = ["a.html: ../outside.html: leads out of the folder", "a.html: b.html#gone: has no such anchor",
                "a.html: http:/one-slash: not a URL", "a.html: none.svg: does not exist",
                "tree.js: c.html: does not exist"]
    tap.case("a broken link is found out, and no other",
             [] if (pages, count, sorted(problems)) == (2, 10, expected) else [pages, count, *problems])


def check_unplaced(tap, make, root):
    """A document to which no page of a topic links."""
    pages = make.read_pages(root)
    pages["docs/lost.md"] = pages["docs/faq.md"]
    try:
        make.topics(pages)
        problems = ["it has a topic"]
    except SystemExit as error:
        problems = [] if "docs/lost.md" in str(error) else [error]
    tap.case("a document without a topic is found out", problems)


def text_of(path):
    """The text of a page without tags and blanks; Doxygen makes blanks of some newlines."""
    text = re.sub(r'<div class="ttc".*?</div></div>|<[^>]*>', "", path.read_text(), flags=re.S)
    return re.sub(r"\s", "", html.unescape(text))


def check_code(tap, make, root, site):
    """Doxygen has commands of its own in Markdown, so that it can change the text of code."""
    problems, count = [], 0
    for path, page in make.read_pages(root).items():
        source, shown = COMMENT.sub("", (root / path).read_text()), text_of(site / f"{page.name}.html")
        codes = [code for _, code in FENCED.findall(source)]
        codes += [code.replace("\\|", "|") for code in CODE_SPAN.findall(FENCED.sub("", source))]
        count += len(codes)
        problems += [f"{path}: {code}" for code in codes if re.sub(r"\s", "", code) not in shown]
    tap.case("the code of every document is in its page as it is", problems or ([] if count > 1000 else [count]))


def check_front_page(tap, root, site):
    """Each link of the table of documents, by its text."""
    table = (root / "README.md").read_text().partition("\n## Documents\n")[2]
    shown = dict((html.unescape(text), url) for url, text in
                 re.findall(r'<a href="([^"]*)">([^<]*)</a>', (site / "index.html").read_text()))
    named = re.findall(r"\[([^\]]+)\]\(", table)
    tree = "".join(path.read_text() for path in site.glob("*.js"))
    problems = [f"{text}: {shown.get(text)}" for text in named if shown.get(text) not in tree]
    topics = re.findall(r"^\| ([a-z][^|]*) \|", table, re.M)[1:]
    problems += [f"no topic {topic}" for topic in topics if f'"{topic[0].upper()}{topic[1:]}"' not in tree]
    tap.case("the front page and the navigation lead to each topic",
             problems or ([] if len(named) > 30 and len(topics) > 8 else [named, topics]))


def find(site, text):
    """The places that the search finds, as search.js looks for them."""
    search = site / "search"
    letters = re.search(r'  0: "(.*)"', (search / "searchdata.js").read_text())[1]
    number = f"{letters.index(text[0].lower()):x}"
    entries = ast.literal_eval((search / f"all_{number}.js").read_text().partition("=")[2].strip().rstrip(";"))
    wanted = re.sub(r"\W|_", lambda m: f"_{ord(m[0]):02x}", text.lower())
    return [place[0] for name, found in entries if name.lower().startswith(wanted) for place in found[1:]]


def check_search(tap, site):
    for text, place in (("quire_memory_create", "group__memory.html#"), ("memory_create", "group__memory.html#"),
                        ("Threads and shards", "guide.html#guide_threads-and-shards"),
                        ("shards", "guide.html#guide_threads-and-shards"), ("Cookbook", "cookbook.html")):
        found = find(site, text)
        tap.case(f"the search finds {text}", [] if any(place in f for f in found) else [found])
    tap.case("the search finds nothing of a name that does not exist", find(site, "quire_no_such_function"))


def main():
    root, doxygen = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / "docs/site"))
    import links
    import make
    tap = Tap()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place).resolve()
        check_broken_links(tap, links, place)
        check_unplaced(tap, make, root)
        if doxygen == "none":
            tap.skip("the site", "there is no doxygen")
            tap.end()
        site = place / "site"
        done = subprocess.run([sys.executable, "-B", root / "docs/site/make.py", doxygen, root, "0", site], text=True,
                              capture_output=True)
        tap.case("the site is written without a warning or a broken link",
                 [done.stderr, done.stdout] if done.returncode else [])
        if not done.returncode:
            check_front_page(tap, root, site)
            check_code(tap, make, root, site)
            check_search(tap, site)
    tap.end()


main()
