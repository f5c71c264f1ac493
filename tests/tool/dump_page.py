# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire page: its sums and its page have what the JSON of a memory or a device has; what a file lacks is refused.

usage: dump_page.py PATH_TO_QUIRE SOURCE_ROOT
"""

import html
import json
import re

from html_tables import Tables
from tool_run import QUIRE, ROOT, TRACES, here, prints, refused, result, run, run_all, succeeds, usage, write

DEVICE = ROOT / "docs/examples/device_dump.json"


def page_of(path):
    """The tables of the page of a dump."""
    for problem in succeeds(run("page", path, "--html", "page.html")):
        raise ValueError(problem)
    return Tables(here() / "page.html")


def memories_of(dump):
    return dump["memories"] if dump["what"] == "device" else [dump]


def names_of(memories):
    return [f"{i}: {memory['name']}" for i, memory in enumerate(memories)] if len(memories) > 1 else []


def expected(dump):
    """The pages and the ranges of a dump as the page has them."""
    pages, ranges = [], []
    for index, memory in enumerate(memories_of(dump)):
        for page in memory["pages"]:
            ranges += [(0, None, len(pages), one["offset"], one["size"], one["requested"], one["name"] or "")
                       for one in page["ranges"] if one["kind"] != "free"]
            pages.append((page["page"], int(page["dedicated"]), int(page["bytes"] < page["size"]), index))
    return pages, ranges


def backed(page):
    """The parts of an elastic page that have memory: its ranges, without the borders between them."""
    parts = []
    for one in page["ranges"]:
        begin, end = one["offset"] - one.get("left_padding", 0), one["offset"] + one["size"]
        if parts and parts[-1][1] == begin:
            parts[-1] = (parts[-1][0], end)
        else:
            parts.append((begin, end))
    return parts


def differences(path):
    dump, page = json.loads(path.read_text()), page_of(path)
    memories = memories_of(dump)
    pages, ranges = expected(dump)
    if page.pages != pages or page.ranges != ranges:
        yield f"{path.name}: the pages are {page.pages}, {len(page.ranges)} ranges"
    sizes = [one["bytes"] for memory in memories for one in memory["pages"]]
    if page.changes != [(0, i, size) for i, size in enumerate(sizes)]:
        yield f"{path.name}: the bytes of pages are {page.changes}"
    stretches = [(0, i, *part, 1) for i, one in enumerate(one for memory in memories for one in memory["pages"])
                 if one["bytes"] < one["size"] for part in backed(one)]
    if page.stretches != stretches:
        yield f"{path.name}: the stretches are {page.stretches}, not {stretches}"
    if page.table("memories").splitlines() != names_of(memories) or len(set(page.names)) != len(page.names):
        yield f"{path.name}: memories {page.table('memories')!r}, names {page.names}"
    if page.data != {"events": "0", "peak": "0", "omitted": "0", "column": "0"} or page.times or page.frames:
        yield f"{path.name}: {page.data}"


def map_of(name, trace, *args):
    return write(name, result("map", TRACES / trace, *args))


def case_memories():
    """The page of a memory has its pages and its ranges, with memory where an elastic page has some"""
    for name, trace, *args in (("a.json", "dawn.csv"), ("b.json", "llm-serving.csv", "--elastic"),
                               ("c.json", "llama.csv", "--preset", "vma"), ("d.json", "dawn.csv", "--fit", "buddy"),
                               ("e.json", "ncnn-resnet50.csv", "--pages-dedicated", "always")):
        yield from differences(map_of(name, trace, *args))
    if not page_of("b.json").stretches or not any(one[1] for one in page_of("e.json").pages):
        yield "no elastic and no dedicated page"


def case_device():
    """The page of a device has the pages of all its memories, which the sums name"""
    yield from differences(DEVICE)
    yield from prints(["page", DEVICE], "device host, 3 memories", "0: weights: 4.23 MiB held in 8 allocations, "
                      "5 MiB reserved in 3 pages", "1: cache: 600 KiB held in 3 allocations, .* in 1 page",
                      "2: upload: 0 B held in 0 allocations, 0 B reserved in 0 pages")
    dump = json.loads(DEVICE.read_text())
    yield from differences(write("one.json", {**dump, "memories": dump["memories"][:1]}))
    yield from differences(write("none.json", {**dump, "memories": []}))
    yield from differences(write("sorted.json", json.dumps(dump, sort_keys=True)))


def rows_of(text, table):
    inside = re.search(rf'<table id="{table}">(.*?)</table>', text, re.S)[1]
    return [[html.unescape(cell) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", inside, re.S)]


def bytes_text(count):
    """A number of bytes below 1 TiB as the tool writes it."""
    unit = max((i for i in range(5) if count >= 1024 ** i), default=0)
    return f"{count / 1024 ** unit:.2f}".rstrip("0").rstrip(".") + " " + ("B", "KiB", "MiB", "GiB", "TiB")[unit]


def share_text(share):
    return f"{100 * share:.2f} %"


def case_statistics():
    """Every number of the statistics and of the heaps is in a table, in the columns of its memory"""
    dump, text = json.loads(DEVICE.read_text()), page_of(DEVICE).text
    rows = rows_of(text, "stats")
    columns = [dump["stats"], *({**memory["stats"], **{f".{key}": value for key, value
                                                       in memory["stats"]["fragmentation"].items()}}
                                for memory in dump["memories"])]
    if rows[0] != ["", "device", *names_of(dump["memories"])]:
        yield f"the columns are {rows[0]}"
    if len(rows) - 1 != len({key for column in columns for key in column} - {"fragmentation"}):
        yield f"{len(rows)} rows"
    found = {row[0]: row[1:] for row in rows}
    for what, key, show in (("held", "live_bytes", bytes_text), ("metadata, peak", "metadata_peak", bytes_text),
                            ("live allocations", "allocation_count", str), ("memories", "memory_count", str),
                            ("refused requests", "failures", str), ("largest free range", "largest_free", bytes_text),
                            ("free in pages in use", ".split", bytes_text),
                            ("free and not in the largest free range", ".free", share_text)):
        values = [show(column[key]) if key in column else "" for column in columns]
        if found[what] != values:
            yield f"{what}: {found[what]}, not {values}"
    keys = ("size", "limit", "reserved", "budget", "usage", "available")
    for limit in (0, 3 << 20):  # 0: none
        dump["heaps"][1]["limit"] = limit
        heaps = [[str(i), *(bytes_text(one[key]) if key != "limit" or one[key] else "none" for key in keys)]
                 for i, one in enumerate(dump["heaps"])]
        found = rows_of(page_of(write("limit.json", dump)).text, "heaps")[1:]
        if found != heaps:
            yield f"the heaps are {found}, not {heaps}"


def case_setup():
    """The page names backend and device, and the kind, the fit and the sizes of each memory"""
    text = re.sub(r"<[^>]*>", " ", page_of(DEVICE).text)
    yield from (f"no {words!r}" for words in ("Backend host, device host", "cache, memory kind 0 (DEVICE_LOCAL), fit "
                "segregated, granule 256 B, page size 64 KiB", "HOST_VISIBLE|HOST_COHERENT") if words not in text)
    if "Memory replay, memory kind 0" not in re.sub(r"<[^>]*>", " ", page_of(map_of("a.json", "dawn.csv")).text):
        yield "a memory has no setup"


def one_range(**changes):
    """The dump of a memory with one page and one range."""
    page = {"page": 0, "size": 100, "bytes": 100, "dedicated": False, "ranges": [
        {"offset": 0, "size": 50, "kind": "range", "left_padding": 0, "requested": 50, "allocation": 1,
         "user_data": 0, "name": "one", **changes}]}
    return {"schema": 1, "what": "memory", "name": "m", "kind": 0, "flags": [], "fit": "first", "granule": 1,
            "page_size": 100, "stats": {}, "pages": [page]}


def case_lazy():
    """A lazy allocation holds the bytes that have memory; more than its own bytes are refused"""
    lazy = one_range(size=60, requested=55, backed=40)
    lazy["pages"][0]["bytes"] = 40
    page = page_of(write("lazy.json", lazy))
    if page.ranges != [(0, None, 0, 0, 60, 40, "one")] or page.backed != [(0, 40)] or page.stretches:
        yield f"{page.ranges}, {page.backed}, {page.stretches}"
    if ": 40 B held in 1 allocation, 40 B reserved in 1 page" not in run("page", "lazy.json").out:
        yield run("page", "lazy.json").out
    if page_of(write("whole.json", one_range(backed=50))).backed:
        yield "a range with memory for all bytes has a row"
    if page_of(write("none.json", one_range(backed=0))).backed != [(0, 0)]:
        yield "a range without memory has no row"
    write("bad.json", one_range(backed=51))
    yield from refused(["page", "bad.json"], 1, "the range has 51 bytes with memory, of 50")


def case_names():
    """Any name is text of one line: it ends no element, and adds no row"""
    odd = "</pre><script>alert(1)</script>&amp;\n\u001b[31m"
    page = page_of(write("odd.json", {**one_range(name=odd), "name": odd}))
    shown = odd.replace("\n", "?").replace("\u001b", "?")
    if page.names != [shown] or page.text.count("<script>") != 1:
        yield f"the names are {page.names}"
    if "\x1b" in run("page", "odd.json").out:
        yield "a name reaches the terminal as a control sequence"
    if page_of(write("none.json", one_range(name=None))).names != [""]:
        yield "a range without a name has one"


def case_large():
    """Sizes near 2^64 stay exact"""
    most = 2 ** 64 - 1
    dump = one_range(offset=most - 7, size=7, requested=most)
    dump["pages"][0].update(size=most, bytes=most)
    page = page_of(write("large.json", dump))
    if page.ranges != [(0, None, 0, most - 7, 7, most, "one")] or page.changes != [(0, 0, most)]:
        yield f"{page.ranges}, {page.changes}"


def case_refusals():
    """A file that is no dump, and a dump that no memory can have, are refused with the place; no page is written"""
    for content, message in (
            ("", "quire: bad.json: the file is empty"),
            ("op,id", "bad.json:1:1: there must be an object"),
            ("{\"schema\": 1,\n \"what\" 3}", "bad.json:2:9: "),
            ({"heaps": []}, 'bad.json:1:1: a dump of a memory or a device needs "schema"'),
            ({"schema": 9}, "bad.json:1:12: the dump has schema 9; this version reads 1"),
            ({"schema": 1, "what": "space"}, "this is the JSON of a space, not of a memory or a device"),
            (one_range(size=101), "bad.json:1:228: a range ends at 101, outside its page of 100 bytes"),
            (one_range(left_padding=1), "the left padding begins before the page"),
            (one_range(size=2 ** 64), "the number must be an integer from 0 to 2^64 - 1"),
            (one_range(kind="thing"), "a range is free, range, buffer or image, not 'thing'")):
        path = write("bad.json", content)
        text = path.read_text()
        if "1:228" in message:
            message = message.replace("228", str(text.index('{"offset"') + 1))
        yield from refused(["page", "bad.json", "--html", "none.html"], 1, message)
        if (here() / "none.html").exists():
            yield f"{message}: there is a page"
    for key in ("name", "kind", "flags", "fit", "granule", "page_size", "stats", "pages"):
        write("bad.json", {name: value for name, value in one_range().items() if name != key})
        yield from refused(["page", "bad.json"], 1, f'bad.json:1:1: a memory needs "{key}"')
    device = json.loads(DEVICE.read_text())
    for key in ("name", "backend", "stats", "heaps", "memories"):
        write("bad.json", {name: value for name, value in device.items() if name != key})
        yield from refused(["page", "bad.json"], 1, f'bad.json:1:1: a device needs "{key}"')


def case_usage():
    """Other files and options are refused"""
    yield from refused(["page", "none.json"], 1, "none.json: No such file")
    yield from usage("page", pattern="FILE")
    yield from usage("page", DEVICE, "--at", "3", pattern="--at")
    path = write("a.json", one_range())
    yield from usage("page", path, "--html", path, pattern="different files")
    yield from refused(["page", path, "--html", "none/a.html"], 1, "none/a.html: No such file")


def case_standard():
    """Standard input is a dump, and standard output has the page and nothing else"""
    done = run("page", "-", "--html", "-", stdin=DEVICE.read_bytes())
    if done.code or not done.out.startswith("<!doctype html>") or not done.out.endswith("</html>\n"):
        yield f"{QUIRE}: exit {done.code}, {done.out[-80:]!r}, {done.err}"


run_all(globals())
