# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire compare: its figures are those that this test counts in the two traces, and those of quire replay.

usage: compare.py PATH_TO_QUIRE SOURCE_ROOT
"""

import collections
import html
import re

from tool_run import (
    HEADER, NUMBER, REPLAY, SMALL, TEXT, TRACES, here, profile_with, refused, result, run, run_all, succeeds, usage,
    without_times, write,
)

LIFETIME = dict.fromkeys(("p50", "p90", "p99", "max"), NUMBER)
TOTALS = ("allocations", "frees", "uses", "frames", "bytes", "largest", "peak_bytes", "ranges_at_peak", "peak_ranges",
          "left_count", "left_bytes", "end_ns")
SIDE = {"trace": TEXT, **dict.fromkeys(TOTALS, NUMBER), "lifetime_events": LIFETIME, "lifetime_ns": LIFETIME}
SHARE = dict.fromkeys(("allocations", "peak_ranges", "peak_bytes"), NUMBER)
REPORT = {k: v for k, v in REPLAY.items() if k not in ("trace", "backend", "fit", "page_size", "options")}
SHAPE = {"a": SIDE, "b": SIDE, "names": [{"name": TEXT, "a": SHARE, "b": SHARE}],
         "sizes": [{"up_to": NUMBER, "a": NUMBER, "b": NUMBER}],
         "replay": {"backend": TEXT, "fit": TEXT, "page_size": NUMBER, "options": {}, "a": REPORT, "b": REPORT}}
PAIRS = (("ncnn-resnet50.csv", "ncnn-mobilenet_v2.csv"), ("transformer-training.csv", "dawn.csv"),
         ("recorded-imagemagick.csv", "torch-cpu-gpt.csv"))
# A has a name that B has not, two names of one first part, and a range that is never freed.
BEFORE = HEADER + ("alloc,1,1000,,0,0,net/weights\nalloc,2,200,,10,0,net/bias\nalloc,3,50,,20,0,old\n"
                                "free,3,,,30,0,\nuse,1,,,35,0,\nfree,2,,,50,0,\n")
AFTER = HEADER + ("alloc,1,1000,,0,0,net/weights\nalloc,2,700,,10,0,net/bias\nalloc,4,4097,,20,0,\n"
                  "frame,,,,25,0,\nfree,1,,,30,0,\nfree,4,,,1020,0,\n")


def first_part(name):
    end = next((i for i, c in enumerate(name) if i and c in "/.:"), len(name))
    return name[:end]


class Census:
    """What the text of a trace says."""

    def __init__(self, path, part=lambda name: name):
        live, now, rows = {}, 0, path.read_text().splitlines()[1:]
        begin = int(rows[0].split(",")[4] or 0)
        peak, self.at_peak = 0, []
        self.figures = collections.Counter(dict.fromkeys(TOTALS, 0))
        self.names, self.sizes = collections.Counter(), collections.Counter()
        self.events, self.times, time = [], [], 0
        for i, row in enumerate(rows):
            op, number, size, _, stamp, _, label = row.split(",", 6)
            time = int(stamp or 0) - begin
            self.figures[{"alloc": "allocations", "free": "frees", "use": "uses", "frame": "frames"}[op]] += 1
            if op == "alloc":
                size = int(size)
                live[number] = size, part(label), i, time
                now += size
                self.figures["bytes"] += size
                self.figures["largest"] = max(self.figures["largest"], size)
                self.figures["peak_ranges"] = max(self.figures["peak_ranges"], len(live))
                self.names[part(label)] += 1
                self.sizes[1 << (size - 1).bit_length()] += 1
            elif op == "free":
                size, _, event, allocated = live.pop(number)
                now -= size
                self.events.append(i - event)
                self.times.append(time - allocated)
            if now > peak:
                peak, self.at_peak = now, list(live.values())
        self.figures.update({"peak_bytes": peak, "ranges_at_peak": len(self.at_peak), "left_count": len(live),
                             "left_bytes": now, "end_ns": time})

    def share(self, name):
        sizes = [size for size, label, *_ in self.at_peak if label == name]
        return {"allocations": self.names[name], "peak_ranges": len(sizes), "peak_bytes": sum(sizes)}


def differ(census, side, what):
    """Where the JSON of one side differs from the census."""
    found = {key: side[key] for key in TOTALS}
    if found != dict(census.figures):
        yield f"{what}: {found}, not {dict(census.figures)}"
    for found, shown in ((census.events, side["lifetime_events"]), (census.times, side["lifetime_ns"])):
        values = sorted(found)
        if shown["max"] != max(values, default=0):
            yield f"{what}: longest {shown['max']}"
        for key, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
            exact = values[max(0, -(-int(share * 100) * len(values) // 100) - 1)] if values else 0
            if not exact <= shown[key] <= exact * 1.02 + 1:
                yield f"{what}: {key} is {shown[key]}, not {exact}"


def check(a, b, *more, part=lambda name: name):
    value = result("compare", a, b, *more, shape=SHAPE)
    sides = {"a": Census(a, part), "b": Census(b, part)}
    for key, census in sides.items():
        yield from differ(census, value[key], f"{key} of {a.name} {b.name}")
        sizes = {row["up_to"]: row[key] for row in value["sizes"] if row[key]}
        if sizes != dict(census.sizes):
            yield f"{key}: sizes {sizes}, not {dict(census.sizes)}"
    names = {name: {key: census.share(name) for key, census in sides.items()}
             for name in {*sides["a"].names, *sides["b"].names}}
    order = sorted(names, key=lambda n: (-abs(names[n]["a"]["peak_bytes"] - names[n]["b"]["peak_bytes"]), n.encode()))
    if [row["name"] for row in value["names"]] != order:
        yield f"{a.name} {b.name}: the names are {[row['name'] for row in value['names']][:9]}, not {order[:9]}"
    yield from (f"{row}, not {names[row['name']]}" for row in value["names"]
                if {"a": row["a"], "b": row["b"]} != names.get(row["name"]))


def case_shipped():
    """Totals, sizes, lifetimes and names of shipped traces are those that their text has."""
    for a, b in PAIRS:
        yield from check(TRACES / a, TRACES / b)
    yield from check(TRACES / PAIRS[1][0], TRACES / PAIRS[0][0], "--first-part", part=first_part)


def case_small():
    """Ranges that are never freed, names of one side, first parts, and a trace without events."""
    a, b, none = write("a.csv", BEFORE), write("b.csv", AFTER), write("none.csv", HEADER)
    yield from check(a, b)
    yield from check(a, b, "--first-part", part=first_part)
    value = result("compare", none, a, shape=SHAPE)
    if any(value["a"][key] for key in TOTALS) or value["b"]["peak_bytes"] != 1250:
        yield f"{value['a']} {value['b']}"


def case_text():
    """The text has the differences, the largest first, and the names of one side."""
    a, b = write("a.csv", BEFORE), write("b.csv", AFTER)
    done = run("compare", a, b)
    yield from succeeds(done)
    for row in (r"^A  .*a\.csv\nB  .*b\.csv$", r"allocations +3 +3 +same$", r"frames +0 +1 +from 0$",
                r"peak +1\.22 KiB +5\.66 KiB +\+363\.76 %$", r"bytes left at the end +1000 B +700 B +-30\.00 %$",
                r"^ +0 B +0 +4\.00 KiB +1 +\+4\.00 KiB  \(unnamed\)\n +200 B +1 +700 B +1 +\+500 B  net/bias\n"
                r" +50 B +1 +0 B +0 +-50 B  old$",
                r"^names that only A has\n +1 allocation   old$",
                r"^names that only B has\n +1 allocation   \(unnamed\)$",
                r"up to 8 KiB +0 +1 +from 0$", r"longest +40 ns +1000 ns +\+2400\.00 %$",
                r"peak reserved +1 MiB +1 MiB +same$",
                r"on backend host with fit segregated"):
        if not re.search(row, done.out, re.M):
            yield f"no {row!r} in {done.out}"
    if "weights" in done.out:
        yield "a name without a difference is listed"
    yield from (f"{line!r} is wide" for line in done.out.splitlines()[2:] if len(line) > 80)
    short = run("compare", a, b, "--top", "1").out
    if "net/bias" in short or "  and 2 more names (--top 0 prints all)\n" not in short:
        yield f"--top 1: {short}"
    if run("compare", a, b, "--top", "0").out.count("more name"):
        yield "--top 0 leaves out names"
    same = run("compare", a, a).out
    totals = same.split("lifetimes")[0]
    if "every name has the same bytes at both peaks\n" not in same or "only" in same or "%" in totals:
        yield f"the same trace twice: {same}"


def case_replay():
    """The replays are those of quire replay with the same options, also by a file and a preset."""
    a, b = SMALL, TRACES / "dawn.csv"
    options = write("o.json", {"fit.algorithm": "first", "pages.page_size": "8M"})
    for more in ([], ["--preset", "vma"], ["--options", options], ["--elastic", "--page-size", "1M"],
                 ["--profile", write("p.json", profile_with())]):
        value = result("compare", a, b, *more, shape=SHAPE)["replay"]
        for key, trace in (("a", a), ("b", b)):
            single = result("replay", trace, *more)
            expected = {name: single.pop(name) for name in ("fit", "options", "page_size", "backend", "trace")}
            shared = {name: value[name] for name in ("fit", "options", "page_size", "backend")}
            if more[:1] != ["--preset"] and {**shared, "trace": str(trace)} != expected:
                yield f"{more}: {shared}, not {expected}"
            single.pop("preset", None)
            if without_times(value[key]) != without_times(single):
                yield f"{more} {key}: {value[key]}, not {single}"
    piped = run("compare", a, b, "--json", "--options", "-", stdin=options.read_bytes())
    if piped.code or '"fit":"first"' not in piped.out or '"pages.page_size":8388608' not in piped.out:
        yield f"--options -: {piped.code} {piped.err}"
    piped = run("compare", "-", b, stdin=a.read_bytes())
    if piped.code or not piped.out.startswith("A  -\n"):
        yield f"A as standard input: {piped.code}, {piped.out[:80]!r}, {piped.err}"


def case_limit():
    """--fail-above fails only above the limit, after the whole report."""
    a, b = (write(f"{size}.csv", HEADER + f"alloc,1,{size},,0,0,\n") for size in (1000, 1025))
    none = write("none.csv", HEADER)
    for first, second, limit, fails in ((a, b, "2.4", True), (a, b, "2.5", False), (a, b, "3", False),
                                        (b, a, "0", False), (a, a, "0", False), (a, b, "0", True), (none, a, "1000", True),
                                        (none, none, "0", False)):
        for form in ([], ["--json"]):
            plain = run("compare", first, second, *form)
            done = run("compare", first, second, "--fail-above", limit, *form)
            said = re.search(r"^quire: the peak of B \(.+B\) is more than \S+ % above that of A \(.+B\)$", done.err)
            if done.code != fails or bool(said) != fails or (done.err and not fails):
                yield f"{first} {second} {limit}: {done.code}, {done.err}"
            if re.sub(r"\d+", "", done.out) != re.sub(r"\d+", "", plain.out):
                yield f"{first} {second} {limit}: {done.out}"
    for limit in ("", "x", "-1", "5%", "1.2.3", "inf", "1" + "0" * 400):
        yield from refused(["compare", a, b, "--fail-above", limit], 2, "--fail-above takes a percentage")


def case_refusals():
    """Bad usage, traces that cannot be read, and allocations that do not fit."""
    a, b = write("a.csv", BEFORE), write("b.csv", AFTER)
    bad = write("bad.csv", HEADER + "alloc,1,x,,0,0,\n")
    yield from usage("compare", pattern="missing argument: quire compare A B")
    yield from usage("compare", a, pattern="missing argument: quire compare A B")
    yield from refused(["compare", a, b, a], 2, f"unexpected argument '{a}'")
    for args in (["-", "-"], ["-", b, "--options", "-"], [a, "-", "--options", "-"]):
        yield from refused(["compare", *args], 2, "standard input is one of the traces, or --options")
    for args in ([bad, b], [a, bad]):
        yield from refused(["compare", *args], 1, "bad.csv:2:")
    yield from refused(["compare", a, "none.csv"], 1, "none.csv")
    yield from refused(["compare", a, b, "--top", "x"], 2, "--top takes a number")
    for args, side in (([a, b], "b"), ([b, a], "a")):
        done = run("compare", *args, "--json", "--limit", "4K", "--page-size", "4K")
        if done.code != 1 or len(done.err.splitlines()) != 1 or f'"{side}":{{"operations"' not in done.out:
            yield f"a refused allocation of {side}: {done.code}, {done.err}, {done.out[:80]}"
        if not re.search(r"[1-9]\d*,", done.out.split('"failures":')[1 if side == "a" else 2][:3]):
            yield f"no failure of {side}: {done.out}"
    yield from refused(["compare", a, b, "--preset", "jemalloc"], 2, "--preset takes vma, rmm or pytorch")


def case_html():
    """The page has the pages of both replays in frames, and the names that differ; it loads nothing."""
    before, after = write("before.csv", BEFORE), write("<after>.csv", AFTER)
    yield from succeeds(run("compare", before, after, "--html", "pair.html"))
    text = (here() / "pair.html").read_text(encoding="utf-8")
    pages = [html.unescape(page) for page in re.findall(r'<iframe title="[AB]" srcdoc="([^"]*)"></iframe>', text)]
    for page, trace in zip(pages, (before, after)):
        alone = run("replay", trace, "--html", "alone.html")
        yield from succeeds(alone)
        wanted = (here() / "alone.html").read_text(encoding="utf-8")
        times = r"<td>(allocate|free), ns[^\n]*"
        if re.sub(times, "", page) != re.sub(times, "", wanted):
            yield f"the frame of {trace.name} differs from its page"
    if len(pages) != 2:
        yield f"{len(pages)} frames"
    rows = re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td></tr>",
                      re.sub(r'srcdoc="[^"]*"', "", text))
    if ("(unnamed)", "0 B", "4.00 KiB", "+4.00 KiB") not in rows:
        yield f"names: {rows}"
    if "\u2212" not in "".join(row[3] for row in rows):
        yield f"no name has less in B: {rows}"
    if any(word in text for word in ("http:", "https:", "src=", "<after>")):
        yield "the page refers to another place, or has an unescaped name"
    yield from refused(["compare", before, after, "--json", "--html", "-"], 2,
                       "standard output takes one of --json and --html")
    yield from refused(["compare", before, after, "--html", before], 2, "the traces and --html must be different files")
    done = run("compare", before, after, "--html", "-")
    if done.code or not done.out.startswith("<!doctype html>"):
        yield f"--html -: {done.code}, {done.out[:60]}"


run_all(globals())
