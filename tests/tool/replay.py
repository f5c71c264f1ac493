# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays and maps of traces: their numbers, their errors, their pictures and pages.

usage: replay.py PATH_TO_QUIRE SOURCE_ROOT

If the environment variable QUIRE_TEST_DATA names a folder, the traces in it are tested too.
"""

import functools
import html.parser
import pathlib
import re
import xml.etree.ElementTree

from tool_run import (
    BOOL, DATA, FITS, FRAGMENTATION, GIB, HEADER, MIB, NUMBER, ONE_THREAD, REPLAY, SMALL, TEXT, TRACES,
    Figures, differs, fails, heap, here, parse, prints, profile_with, result, ring, run, run_all,
    skip_without_data, succeeds, usage, without_times, write,
)

COMPACTION = dict.fromkeys(("moves", "bytes_moved", "pages_freed", "bytes_freed", "steps", "step_ns"), NUMBER)
SVG = "http://www.w3.org/2000/svg"
MAP = {"schema": NUMBER, "what": TEXT, "name": TEXT, "kind": NUMBER, "flags": [TEXT], "fit": TEXT,
       "granule": NUMBER, "page_size": NUMBER,
       "stats": {"live_bytes": NUMBER, "requested_bytes": NUMBER, "reserved_bytes": NUMBER,
                 "allocation_count": NUMBER, "page_count": NUMBER, "fragmentation": FRAGMENTATION},
       "pages": [{"page": NUMBER, "size": NUMBER, "dedicated": BOOL,
                  "ranges": [{"offset": NUMBER, "size": NUMBER, "kind": TEXT}]}]}

# ---- traces -------------------------------------------------------------------------------------


def replay(path, *args):
    return result("replay", path, *args, shape=REPLAY)


def trace_problems(path, fit):
    figures = Figures(path)
    value = replay(path, "--fit", fit)
    expected = {"trace": str(path), "backend": "host", "fit": fit,
                "page_size": 32 * MIB if fit == "linear" else MIB,  # of the first page
                "failures": 0, "operations": figures.operations,
                "allocations": figures.allocations, "frees": figures.frees, "uses": figures.uses,
                "frames": figures.frames, "peak_requested_bytes": figures.peak,
                "left_at_end": figures.left, "left_bytes": figures.left_bytes}
    yield from (f"{key} is {value[key]}, not {right}" for key, right in expected.items() if value[key] != right)
    pages = value["pages_created"] - value["pages_destroyed"]
    v, waste = value, value["fragmentation"]
    claims = {
        "reserved >= live >= requested": v["peak_reserved_bytes"] >= v["peak_live_bytes"]
                                         >= v["peak_requested_bytes"],
        "pages": (v["left_at_end"] > 0) <= pages <= v["peak_pages"] <= v["pages_created"],
        "backend calls": v["backend_calls"] >= v["pages_created"] + v["pages_destroyed"],
        "time and records": v["wall_ns"] > 0 and v["metadata_bytes_peak"] > 0,
        "shares": 0 <= waste["reserved"] < 1 and 0 <= waste["free"] <= 1,
        "fragmentation.reserved": abs(1 - v["peak_live_bytes"] / v["peak_reserved_bytes"]
                                      - waste["reserved"]) < 1e-4,
        "latencies": all(ns["p50"] <= ns["p99"] <= ns["p999"] <= ns["max"] <= v["wall_ns"]
                         for ns in (v["alloc_ns"], v["free_ns"])),
    }
    yield from (f"not true: {claim}: {value}" for claim, holds in claims.items() if not holds)
    end = result("map", path, "--at", "end", "--fit", fit)["stats"]
    if (end["page_count"], end["allocation_count"], end["requested_bytes"]) != (
            pages, figures.left, figures.left_bytes):
        yield f"the map at the end has {end['page_count']} pages, not {pages}"
    peak = result("map", path, "--at", "peak", "--fit", fit)["stats"]
    if peak["requested_bytes"] != figures.peak:
        yield f"the map at the peak has {peak['requested_bytes']} bytes, not {figures.peak}"
    if {k: peak["fragmentation"][k] for k in ("free", "internal", "split")} != {
            k: value["fragmentation"][k] for k in ("free", "internal", "split")}:
        yield f"fragmentation at the peak: {peak['fragmentation']}, {value['fragmentation']}"


def case_replay_text():
    figures = Figures(SMALL)
    for args, *texts in (((), f"{figures.operations}: {figures.allocations} allocations, {figures.frees} frees",
                          "failures  ", "pages by use, from 1 MiB", r"p99\.9", "fit segregated"),
                         (("--page-size", "2M"), "pages of 2 MiB"),
                         (("--preset", "vma"), "pages vma's, from 32 MiB"),
                         (("--fit", "linear"), "pages of 32 MiB")):
        yield from prints(["replay", SMALL, *args], *texts)


def case_presets():
    """A preset changes the page sizes, and refuses other sizes beside it."""
    for word, first in (("vma", 32 * MIB), ("pytorch", 2 * MIB)):
        value = replay(SMALL, "--preset", word)
        if (value["preset"], value["page_size"]) != (word, first):
            yield f"--preset {word}: {value}"
    for args, text in ((("--preset", "jemalloc"), "--preset takes vma, rmm or pytorch, not 'jemalloc'"),
                       (("--preset", "vma", "--page-size", "2M"), "leave out --page-size")):
        done = run("replay", SMALL, *args)
        if done.code != 2 or text not in done.err:
            yield f"{args}: {done.code} {done.err}"


def pytorch_problems(path):
    """The reserved bytes, which are pages, are close to the requested ones, with few calls."""
    value = replay(path, "--fit", "segregated", "--page-size", "32M")
    asked = -(-value["peak_requested_bytes"] // (32 * MIB)) * 32 * MIB
    if value["peak_reserved_bytes"] > 1.02 * asked:
        yield f"reserved {value['peak_reserved_bytes']} for {asked}"
    if value["backend_calls"] > 400:
        yield f"{value['backend_calls']} backend calls"


def case_page_sizes():
    for text, size in (("65536", 65536), ("64K", 65536), ("3M", 3 * MIB), ("1G", GIB)):
        for fit in FITS:
            value = replay(SMALL, "--page-size", text, "--fit", fit)
            if value["page_size"] != size:
                yield f"--page-size {text}: {value['page_size']}"
        mapped = result("map", SMALL, "--page-size", text)
        if mapped["page_size"] != size:
            yield f"map --page-size {text}: {mapped['page_size']}"


def case_huge_page_sizes():
    """Pages above the heap's 1 TiB are reduced until they fit, for any requested size."""
    for text in ("512G", "1T", "2T", "3T", "1000T"):
        value = replay(SMALL, "--page-size", text)
        if value["failures"]:
            yield f"--page-size {text}: {value['failures']} failures"


def case_small_pages():
    """On a device with pages of at most 1 MiB the announced pages are no larger."""
    path = write("pages.json", profile_with(
        types=[{"heap": 0, "flags": ["DEVICE_LOCAL"]}, {"heap": 0, "flags": ["HOST_VISIBLE"]}],
        limits={"maxMemoryAllocationSize": MIB, "maxMemoryAllocationCount": 3}))
    trace = write("pages.csv", HEADER + "".join(f"alloc,{i},600000,,0,0,\n" for i in range(1, 6)))
    done = run("replay", trace, "--json", "--profile", path)
    value = parse(done)
    if (done.code, value["allocations"], value["failures"], value["peak_reserved_bytes"]) != (1, 3, 2, 3 * MIB):
        yield f"exit {done.code}: {value}"
    if value["page_size"] != MIB:
        yield f"replay: page_size {value['page_size']}"
    yield from (f"tour: page_size {m['page_size']}"
                for m in result("tour", "--profile", path)["memories"]
                if m["page_size"] != MIB)


def case_elastic():
    """One page of chunks replaces several pages of this size, and holds as much."""
    page = ("--page-size", "1M")
    several = replay(SMALL, *page)
    one = replay(SMALL, *page, "--elastic")
    got = [one[key] for key in ("pages_created", "peak_pages", "failures")]
    if several["peak_pages"] < 2 or got != [1, 1, 0]:
        yield f"{several['peak_pages']} pages, or one: {one}"
    if one["peak_live_bytes"] != several["peak_live_bytes"]:
        yield f"peak_live_bytes: {one['peak_live_bytes']}, not {several['peak_live_bytes']}"
    yield from prints(["replay", SMALL, "--elastic", "--page-size", "1M"], "fit segregated, elastic, chunks of 1 MiB")
    yield from prints(["replay", "--help"], "one page with memory in the chunks in use")


def case_elastic_refused():
    for fit in ("buddy", "linear"):
        yield from fails(run("replay", SMALL, "--elastic", "--fit", fit), 1,
                         "^quire: an elastic memory: ")


def case_compact():
    """Moves during a replay free pages, and fail where the memory cannot be compacted."""
    trace = TRACES / "llm-serving.csv"
    plain, compacted = replay(trace), result("replay", trace, "--compact", "10", shape={**REPLAY, "compaction": COMPACTION})
    moved = compacted["compaction"]
    if not (0 < moved["moves"] <= 10 * moved["steps"] and moved["bytes_moved"] and moved["bytes_freed"] >= moved["pages_freed"] > 0):
        yield f"{moved}"
    if moved["steps"] != -(-compacted["operations"] // 100):
        yield f"{moved['steps']} steps in {compacted['operations']} operations"
    for key in ("operations", "allocations", "failures", "left_at_end", "left_bytes", "peak_requested_bytes"):
        if plain[key] != compacted[key]:
            yield f"{key}: {plain[key]}, compacted {compacted[key]}"
    if compacted["peak_reserved_bytes"] >= plain["peak_reserved_bytes"]:
        yield f"peaks: {plain['peak_reserved_bytes']}, compacted {compacted['peak_reserved_bytes']}"
    yield from prints(["replay", trace, "--compact", "10"], r"compaction  .* moves of .* in .* steps; .* freed", "without copies")
    yield from usage(run("replay", SMALL, "--compact", "1", "--html", "-"), "leave out --compact")
    yield from fails(run("replay", SMALL, "--compact", "1", "--elastic"), 1, "^quire: .*elastic")


def case_linear():
    """A ring of 3 allocations passes through one page many times; in a full page requests fail."""
    trace = ring()
    done = run("replay", trace, "--json", "--fit", "linear", "--page-size", "1200000")
    value = parse(done)
    got = [value[k] for k in ("fit", "failures", "allocations", "pages_created", "peak_pages")]
    if done.code or got != ["linear", 0, 99, 1, 1]:
        yield f"exit {done.code}: {value}"
    done = run("replay", trace, "--json", "--fit", "linear", "--page-size", "800000")
    value = parse(done)
    if done.code != 1 or not value["failures"] or value["peak_pages"] != 1:
        yield f"exit {done.code}: {value}"
    yield from succeeds(run("map", trace, "--fit", "linear"))
    value = result("bench", "a1k", "--repeats", "1", "--fit", "linear", shape=ONE_THREAD)
    if value["fit"] != "linear" or not value["failures"]:  # random frees leave gaps in a ring
        yield f"{value}"


def case_determinism():
    for command, name in (("replay", "llm-serving.csv"), ("map", "recorded-imagemagick.csv")):
        for fit in FITS:
            first, second = (without_times(result(command, TRACES / name, "--fit", fit)) for _ in range(2))
            if first != second:
                yield f"{command}, fit {fit}: {first} {second}"


def case_standard_input():
    text = SMALL.read_bytes()
    value = parse(run("replay", "-", "--json", stdin=text))
    if value["trace"] != "-" or value["operations"] != Figures(SMALL).operations:
        yield f"{value}"
    yield from fails(run("replay", "-", stdin=b""), 1, r"^-: ")
    yield from fails(run("map", "-", stdin=b"x"), 1, r"^-:1:1: ")
    large = HEADER + "".join(f"alloc,{i},256,,0,0,\n" for i in range(1, 30001))
    value = parse(run("replay", "-", "--json", stdin=large.encode()))
    if value["left_at_end"] != 30000:
        yield f"{value}"


def refused_traces(*rows):
    for i, (text, place) in enumerate(rows):
        path = write(f"bad-{i}.csv", text)
        for args in (["replay", path], ["replay", path, "--json"], ["map", path], ["tune", path]):
            yield from fails(run(*args), 1, rf"^{re.escape(str(path))}{place}: \w")


def case_malformed_traces():
    line = "alloc,1,4096,256,0,0,weights\n"
    yield from refused_traces(
        (HEADER + line + "alloc,2,40", ":3:11"), (HEADER + line + "malloc,2,4096,,0,0,\n", ":3:1"),
        (HEADER + "alloc,1,-4096,,0,0,\n", ":2:9"), (HEADER + "alloc,1,0,,0,0,\n", ":2:9"),
        (HEADER + f"alloc,1,{2 ** 64},,0,0,\n", ":2:9"), (HEADER + line + line, ":3:7"),
        (HEADER + "free,1,,,0,0,\n", ":2:6"), (HEADER + line + "free,1,,,0,0,\n" * 2, ":4:6"),
        (HEADER + "use,9,,,0,0,\n", ":2:5"), (HEADER + "alloc,1,4096,3,0,0,\n", ":2:14"),
        (HEADER + line.replace("weights", "we\"ghts"), ":2:24"),
        (HEADER.replace("size", "bytes") + line, ":1:7"), (line, ":1:1"), ("\n", ":1:1"),
        (bytes(range(256)), ":1:1"), (b"\x7fELF\x02\x01\x01\0\0\0", r":1:\d"),
        (b"\0" * 4096, ":1:1"),
        (HEADER.encode() + b"alloc,1,4096,256,0,0,w\xe9\n", ":2:23"),
        (HEADER.replace("\n", "\r\n") + "alloc,1,x,,0,0,\r\n", ":2:9"), ("", ""))


def case_directory_as_trace():
    """FILE: message, as for every trace that cannot be read."""
    for command in ("replay", "map", "tune"):
        yield from fails(run(command, here()), 1, f"^{re.escape(str(here()))}: ")


def case_missing_trace():
    for args in (["replay", "none.csv"], ["map", "none.csv", "--json"], ["tune", "none.csv", "--json"]):
        yield from fails(run(*args), 1, r"^(quire: )?none\.csv: No such file")
    yield from fails(run("replay", ""), 1, "No such file")


def case_no_events():
    path = write("none.csv", HEADER)
    value = replay(path)
    if any(value[k] for k in ("operations", "failures", "pages_created", "peak_reserved_bytes")):
        yield f"{value}"
    for args in (["replay", path], ["map", path], ["map", path, "--json"],
                 ["replay", path, "--json", "--svg", "none.svg", "--html", "none.html"]):
        yield from succeeds(run(*args))
    yield from svg_problems("none.svg")
    yield from html_problems("none.html")


def case_refused_allocations():
    """A small heap: failures are counted and reported, exit status 1, and the report is printed."""
    path = write("small.json", heap(size=256 * MIB, flags=["DEVICE_LOCAL"]))
    trace = TRACES / "transformer-training.csv"
    done = run("replay", trace, "--json", "--profile", path)
    value, figures = parse(done), Figures(trace)
    yield from differs(value, REPLAY)
    if done.code != 1 or len(done.err.splitlines()) != 1 or "cannot allocate" not in done.err:
        yield f"exit {done.code}, stderr: {done.err}"
    if not value["failures"] or value["failures"] + value["allocations"] != figures.allocations:
        yield f"{value['failures']} failures, {value['allocations']} allocations"
    if value["peak_reserved_bytes"] > 256 * MIB or value["operations"] != figures.operations:
        yield f"{value}"
    if value["page_size"] != MIB:
        yield f"page size {value['page_size']}"
    done = run("replay", trace, "--profile", path)
    if done.code != 1 or f"failures               {value['failures']}\n" not in done.out:
        yield f"the text: exit {done.code}\n{done.out}"
    done = run("map", trace, "--json", "--profile", path)
    if done.code != 1 or not done.err or list(differs(parse(done), MAP)):
        yield f"the map: exit {done.code}, {done.err}"


# ---- pictures and pages -------------------------------------------------------------------------


def svg_problems(path):
    text = (here() / path).read_bytes()
    root = xml.etree.ElementTree.fromstring(text)
    if root.tag != f"{{{SVG}}}svg":
        yield f"{path}: the root is {root.tag}"
    if set(re.findall(rb"https?://[^\"'<> ]*", text)) - {SVG.encode()}:
        yield f"{path} refers to another place"


class Page(html.parser.HTMLParser):
    """Tags are closed in order, and nothing is loaded from outside. A name makes no second script."""

    VOID = {"meta", "br", "hr", "link", "img", "input"}

    def __init__(self):
        super().__init__()
        self.open, self.problems, self.seen, self.scripts = [], [], set(), 0

    def handle_startendtag(self, tag, attrs):
        self.look(tag, dict(attrs))

    def handle_starttag(self, tag, attrs):
        self.look(tag, dict(attrs))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def look(self, tag, attrs):
        self.seen.add(tag)
        self.scripts += tag == "script"
        if tag in ("link", "iframe", "object"):
            self.problems.append(f"there is a <{tag}>")
        self.problems += [f"<{tag} {k}={v!r}>" for k, v in attrs.items()
                          if k in ("src", "href", "xlink:href") or k.startswith("on")]


def html_problems(path):
    page = Page()
    text = (here() / path).read_text(encoding="utf-8")
    page.feed(text)
    page.close()
    if page.open:
        page.problems.append(f"left open: {page.open}")
    if page.scripts != 1:
        page.problems.append(f"{page.scripts} scripts")
    if set(re.findall(r"https?://[^\"'<> ]*", text)) - {SVG}:
        page.problems.append("it refers to another place")
    if not text.lower().startswith("<!doctype html>"):
        page.problems.append("no doctype")
    yield from (f"{path}: {p}" for p in page.problems)
    yield from (f"{path} has no <{tag}>" for tag in ("title", "canvas", "table") if tag not in page.seen)


def case_svg_and_html():
    for trace in sorted(TRACES.glob("*.csv")):
        yield from succeeds(run("replay", trace, "--json", "--svg", "r.svg", "--html", "r.html"))
        yield from svg_problems("r.svg")
        yield from html_problems("r.html")
        done = run("map", trace, "--svg", "m.svg")
        yield from succeeds(done)
        yield from svg_problems("m.svg")
        pages = len(re.findall(r"^page \d", done.out, re.M))
        if (here() / "m.svg").read_text().count(">page ") < pages:
            yield f"{trace.name}: {pages} pages in the text, fewer in the picture"


def case_odd_names():
    """Names of files and labels with a meaning in HTML, JSON, or printf."""
    label = "<b>&'\u00e9%s"
    for name in ("a&b<c>'d\"%s%n.csv", "\u00e4 \U0001f34e.csv", "line\nend\ttab.csv", b"\xff\xfe.csv"):
        path = write(name, HEADER + f"alloc,1,300,,0,0,{label}\n")
        done = run("replay", path, "--json", "--svg", "odd.svg", "--html", "odd.html")
        yield from succeeds(done)
        if isinstance(name, str) and parse(done)["trace"] != str(path):
            yield f"{parse(done)['trace']!r}"
        yield from svg_problems("odd.svg")
        yield from html_problems("odd.html")
        picture = xml.etree.ElementTree.parse(here() / "odd.svg")
        titles = [title.text for title in picture.iter(f"{{{SVG}}}title")]
        if not any(t.startswith(f"{label}: page 0 offset 0 size 512") for t in titles):
            yield f"titles: {titles}"
        ranges = result("map", path)["pages"][0]["ranges"]
        if ranges[0].get("name") != label:
            yield f"{ranges}"


def case_long_label():
    """A label longer than a name is truncated to whole characters."""
    label = "l" * 254 + "\u00e9" + "x" * 300
    path = write("long.csv", HEADER + f"alloc,1,300,,0,0,{label}\n")
    figures = result("replay", path)
    if figures["failures"] or figures["allocations"] != 1:
        yield f"{figures}"
    ranges = result("map", path)["pages"][0]["ranges"]
    if ranges[0].get("name") != "l" * 254:
        yield f"{ranges}"


def case_unwritable():
    """All messages about files that cannot be written begin alike. One that cannot be opened ends the command before
    the replay, without a report."""
    for command, options in (("replay", ("--svg", "--html")), ("map", ("--svg",))):
        for option in options:
            for target, reason in (("/nonexistent/file", "No such file or directory"),
                                   (here(), "Is a directory"), ("/dev/full", "No space left on device")):
                done = run(command, SMALL, "--json", option, target)
                has_report = bool(done.out) and target != "/dev/full"
                if done.code != 1 or done.err != f"quire: {target}: {reason}\n" or has_report:
                    yield f"{done.what}: exit {done.code}, {done.err!r}, {done.out[:80]!r}"


def case_overwriting():
    """An output file must not be the input, nor be written twice."""
    trace = write("kept.csv", SMALL.read_bytes())
    for options in (["--svg", trace], ["--html", trace], ["--svg", here() / "x", "--html", here() / "x"],
                    ["--html", here() / "." / "kept.csv"]):
        yield from usage("replay", trace, *options, pattern="different files")
    yield from usage("map", trace, "--svg", trace, pattern="different files")
    if trace.read_bytes() != SMALL.read_bytes():
        yield "the trace was changed"


# ---- map ----------------------------------------------------------------------------------------


def range_problems(value):
    """The ranges of each page are adjacent from its start to its end."""
    live = count = 0
    for page in value["pages"]:
        at = 0
        for r in page["ranges"]:
            begin = r["offset"] - r.get("left_padding", 0)
            if begin != at:
                yield f"page {page['page']}: a range begins at {begin}, not {at}"
            at = r["offset"] + r["size"]
            if r["kind"] != "free":
                count += 1
                live += at - begin
                if r["requested"] > r["size"]:
                    yield f"{r}"
        if at != page["size"]:
            yield f"page {page['page']} of {page['size']} ends at {at}"
    stats = value["stats"]
    if (live, count, len(value["pages"]), sum(p["size"] for p in value["pages"])) != (
            stats["live_bytes"], stats["allocation_count"], stats["page_count"],
            stats["reserved_bytes"]):
        yield f"{live} bytes in {count}: {stats}"


def case_map():
    trace = TRACES / "recorded-imagemagick.csv"
    figures = Figures(trace)
    moments = {None: figures.peak_event, "peak": figures.peak_event, "end": figures.operations,
               "1": 1, "1234": 1234, str(figures.operations): figures.operations}
    for at, events in moments.items():
        for fit in FITS:
            args = ["map", trace, "--fit", fit, "--page-size", "1M", *(["--at", at] if at else [])]
            done = run(*args)
            yield from succeeds(done)
            if f"after event {events} of {figures.operations}\n" not in done.out:
                yield f"--at {at}: {done.out.splitlines()[0]}"
            value = result(*args, shape=MAP)
            yield from range_problems(value)
            rows = re.findall(r"^page (\d+) .* (\d+) allocations?$", done.out, re.M)
            if [(str(p["page"]), sum(r["kind"] != "free" for r in p["ranges"]))
                    for p in value["pages"]] != [(page, int(n)) for page, n in rows]:
                yield f"--at {at}: the text's rows are {rows}"


def more_cases():
    """Every trace of the project and of QUIRE_TEST_DATA."""
    for path in sorted(TRACES.glob("*.csv")):
        for fit in FITS:
            yield f"replay {path.name}, fit {fit}", functools.partial(trace_problems, path, fit)
    if not DATA:
        yield "traces of QUIRE_TEST_DATA", skip_without_data
        return
    for path in sorted(pathlib.Path(DATA).glob("traces/*.csv")):
        for fit in FITS:
            yield (f"replay $QUIRE_TEST_DATA: {path.name}, fit {fit}", functools.partial(trace_problems, path, fit))
        if path.name.startswith("pytorch"):
            yield f"what {path.name} reserves", functools.partial(pytorch_problems, path)


run_all(globals(), more_cases())
