# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of a memory as replay and map take them: by flags, by a file, and as tune prints them.

usage: memory_options.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import random
import re
import time

from tool_run import KIB, MIB, SMALL, TRACES, fails, here, parse, refused, result, run, run_all, without_times, write

# key: (flag, value of the flag, the same value in JSON, members that it needs)
MEMBERS = {
    "fit.algorithm": ("fit", "first", "first", {}),
    "fit.least_fragmentation": ("fit-least-fragmentation", None, True, {}),
    "fit.slabs": ("fit-slabs", None, True, {}),
    "fit.granule": ("fit-granule", "1K", KIB, {}),
    "fit.max_alignment": ("fit-max-alignment", "4M", 4 * MIB, {}),
    "elastic": ("elastic", None, True, {}),
    "shards": ("shards", "2", 2, {}),
    "limit": ("limit", "1G", 1 << 30, {}),
    "within_budget": ("within-budget", None, True, {}),
    "map_on_demand": ("map-on-demand", None, True, {}),
    "address_space": ("address-space", "1G", 1 << 30, {"elastic": True}),
    "pages.page_size": ("page-size", "3M", 3 * MIB, {}),
    "pages.first_page_size": ("pages-first-page-size", "512K", 512 * KIB, {}),
    "pages.growth_percent": ("pages-growth-percent", "50", 50, {"pages.first_page_size": MIB}),
    "pages.growth": ("pages-growth", "reserved", "reserved",
                     {"pages.growth_percent": 12, "pages.first_page_size": MIB}),
    "pages.max_page": ("pages-max-page", "64M", 64 * MIB,
                       {"pages.growth_percent": 100, "pages.first_page_size": MIB}),
    "pages.max_pages": ("pages-max-pages", "1000", 1000, {}),
    "pages.request_factor": ("pages-request-factor", "2", 2,
                             {"pages.growth_percent": 100, "pages.first_page_size": MIB}),
    "pages.page_granularity": ("pages-page-granularity", "2M", 2 * MIB, {}),
    "pages.dedicated": ("pages-dedicated", "never", "never", {}),
    "pages.dedicated_threshold": ("pages-dedicated-threshold", "2M", 2 * MIB, {}),
    "pages.size_granularity": ("pages-size-granularity", "513", 513, {}),
    "pages.extra_padding": ("pages-extra-padding", "100", 100, {}),
    "pages.retained_empty_bytes": ("pages-retained-empty-bytes", "1", 1, {}),
    "pages.retention_nanoseconds": ("pages-retention-nanoseconds", "1000", 1000, {}),
}


def replay(trace, *args):
    """The JSON of a replay that succeeds, without its times."""
    return without_times(result("replay", trace, *args))


def page_map(*args):
    """The JSON of a map that succeeds, without handles and times."""
    return without_times(result("map", SMALL, *args), "allocation")


def flags_of(options):
    for key, value in options.items():
        yield f"--{MEMBERS[key][0]}"
        if value is not True:
            yield str(value)


def case_round_trip():
    """Each member by its flag, by a file, and by a string in a file has the same effect."""
    without = replay(SMALL)
    if without["options"]:
        yield f"without options: {without['options']}"
    share = ("limit", ("limit", "50%", "50%", {}))  # a limit is a number, or a share of the heap
    for key, (flag, text, value, needed) in [*MEMBERS.items(), share]:
        expected = {**needed, key: value}
        word = [f"--{flag}"] + ([text] if text else [])
        by_flag = replay(SMALL, *flags_of(needed), *word)
        by_file = replay(SMALL, "--options", write("f.json", expected))
        if by_flag["options"] != expected or by_file != by_flag:
            yield f"{key}: by flag {by_flag['options']}, by file {by_file['options']}"
        again = replay(SMALL, "--options", write("again.json", by_file["options"]))
        if again != by_file:
            yield f"{key}: written and read again: {again['options']}"
        if text and replay(SMALL, "--options", write("f.json", {**needed, key: text})) != by_flag:
            yield f"{key}: {text!r} in a file differs from --{flag} {text}"
        if page_map("--options", here() / "again.json") != page_map(*flags_of(needed), *word):
            yield f"{key}: map with the file differs from map with the flags"


def case_effects():
    """Options change the replay, also those that no text of the output names."""
    without = replay(SMALL)
    for args in (["--pages-retained-empty-bytes", "1"], ["--pages-dedicated-threshold", "256K"],
                 ["--pages-size-granularity", "3M"], ["--pages-first-page-size", "3M"]):
        value = replay(SMALL, *args)
        if [value[k] for k in ("peak_reserved_bytes", "backend_calls")] == [
                without[k] for k in ("peak_reserved_bytes", "backend_calls")]:
            yield f"{args} has no effect"


def case_flags_override():
    path = write("f.json", {"pages.page_size": "4M", "fit.algorithm": "first"})
    for args in (["--options", path, "--page-size", "8M"], ["--page-size", "8M", "--options", path]):
        options = replay(SMALL, *args)["options"]
        if options != {"pages.page_size": 8 * MIB, "fit.algorithm": "first"}:
            yield f"{args}: {options}"


def case_help():
    """The help of replay and map lists every member, within 80 columns."""
    for command in ("replay", "map"):
        text = run(command, "--help").out
        listed = re.findall(r"^  --([\w-]+)", text[text.index("Options of the memory"):], re.M)
        if listed != [flag for flag, *_ in MEMBERS.values()]:
            yield f"{command}: {listed}"
        if "--options FILE" not in text:
            yield f"{command} --help without --options"
        yield from (f"{command} --help: {line!r}" for line in text.splitlines() if len(line) > 80)


def case_errors():
    for value, message in (
            ({"pages.pagesize": 1}, 'unknown key "pages.pagesize"'),
            ({"page_size": 1}, 'unknown key "page_size"'), ({"": 1}, 'unknown key ""'),
            ({"pages": {"page_size": 1}}, 'unknown key "pages"'),
            ({"pages.page_size": -1}, '"pages.page_size" takes a size such as 65536, 64K or 32M, not -1'),
            ({"pages.page_size": "x"}, 'not "x"'), ({"pages.page_size": 1.5}, "not 1.5"),
            ({"pages.page_size": True}, "not true"), ({"pages.page_size": None}, "not null"),
            ({"pages.page_size": [1]}, "not [1]"),
            ({"pages.growth_percent": 1001},
             '"pages.growth_percent" takes a percentage from 0 to 1000, not 1001'),
            ({"limit": "101%"}, "a percentage of the heap from 1% to 100%"),
            ({"limit": "0%"}, "a percentage of the heap from 1% to 100%"),
            ({"shards": 65}, "a number from 0 to 64"),
            ({"pages.max_pages": 1 << 32}, "a number from 0 to 4294967295"),
            ({"fit.algorithm": "best"}, "takes segregated, first, buddy or linear, not"),
            ({"fit.algorithm": 1}, "takes segregated, first, buddy or linear, not 1"),
            ({"pages.dedicated": "By_size"}, "by_size, always or never"),
            ({"elastic": 1}, '"elastic" takes true or false, not 1'),
            ({"elastic": "true"}, "true or false"), ([], "not a JSON object"),
            ({"recommendation": None}, "recommends no options"),
            ({"recommendation": {"options": "text"}}, "not a JSON object"),
            ({"recommendation": 1}, "not a JSON object"),
            ('{"limit": 1, "limit": 2}', "duplicate"), ("{", "f.json:1:"), ("", "empty"),
            ('{"limit": 99999999999999999999}', "f.json:1:")):
        path = write("f.json", value)
        both = f"(?=.*{re.escape(message)})quire: {re.escape(str(path))}:"
        for command in ("replay", "map"):
            yield from fails(run(command, SMALL, "--options", path), 1, both, lines=1)
    yield from refused(["replay", SMALL, "--options", "none.json"], 1, "none.json: No such file")
    for command in ("replay", "map"):
        yield from refused([command, SMALL, "--pages-growth-percent", "1001"], 2,
                           "--pages-growth-percent takes a percentage from 0 to 1000, not '1001'")
        yield from refused([command, SMALL, "--pages-growth", "most"], 2,
                           "--pages-growth takes last, largest or reserved, not 'most'")
        yield from refused([command, SMALL, "--limit", "0"], 2, "--limit takes a size such as")
    yield from refused(["replay", SMALL, "--pages-growth", "reserved"], 1, "growth")  # of the library
    large = {"pages.dedicated_threshold": str(2 ** 64 - 1)}  # beyond the integers of JSON parsers
    if replay(SMALL, "--options", write("f.json", large))["options"] != large:
        yield "2^64 - 1 does not survive"


COST = ("peak_reserved_bytes", "backend_calls", "pages_created", "pages_destroyed", "peak_pages",
        "metadata_bytes_peak", "fragmentation", "failures")


def case_reproduced():
    """What tune claims, replay does: for the recommendation, and for every twelfth candidate."""
    for name in ("ncnn-resnet50.csv", "recorded-imagemagick.csv"):
        done = run("tune", TRACES / name, "--json")
        path, value = write("f.json", done.out), parse(done)
        claimed = value["candidates"][value["recommendation"]["candidate"]]
        if claimed["options"] != value["recommendation"]["options"]:
            yield f"{name}: {claimed['options']}, {value['recommendation']}"
        chosen = {json.dumps(c["options"]): c for c in value["candidates"]}
        if len(chosen) != len(value["candidates"]):
            yield f"{name}: {len(value['candidates'])} candidates, {len(chosen)} options"
        cases = [(path, claimed)] + [(write(f"{i}.json", options), c)
                                     for i, (options, c) in list(enumerate(chosen.items()))[::12]]
        for file, candidate in cases:
            done = replay(TRACES / name, "--options", file)
            yield from (f"{name} with {candidate['options']}: {key} is {done[key]}, tune says "
                        f"{candidate[key]}" for key in COST if done[key] != candidate[key])


def case_flags_of_tune():
    """The flags that tune prints below the C options give the same replay as its JSON."""
    trace = TRACES / "recorded-imagemagick.csv"
    text = run("tune", trace, "--page-size", "4M", "--fit", "first").out
    path = write("f.json", run("tune", trace, "--page-size", "4M", "--fit", "first", "--json").out)
    flags = text.split("As flags of quire replay and quire map:")[1].split()
    if flags[:4] != ["--fit", "first", "--page-size", "4M"]:
        yield f"{flags}"
    if replay(trace, *flags) != replay(trace, "--options", path):
        yield f"{flags} differs from {path.read_text()}"


def churn(events):
    """A trace that frees at random and has its peak near the end."""
    draw, live, rows = random.Random(7), [], ["op,id,size,alignment,time_ns,stream,label"]
    for i in range(events):
        if draw.random() < (0.52 if len(live) > 100 else 1):
            live.append(i + 1)
            rows.append(f"alloc,{i + 1},{int(2 ** draw.uniform(8, 20))},256,{i},0,")
        else:
            at = draw.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            rows.append(f"free,{live.pop()},,,{i},0,")
    return write(f"churn-{events}.csv", "\n".join(rows) + "\n")


LONG = 14000  # events


def tuned(trace, *args):
    return without_times(result("tune", trace, *args))


def case_long_trace():
    """A long trace is replayed with the best candidates only. Two runs give the same result."""
    trace = churn(LONG)
    value = tuned(trace, "--time-limit", "0")
    if value != tuned(trace, "--time-limit", "0"):
        yield "two runs differ"
    out = {r["reason"]: r["candidates"] for r in value["left_out"]}
    if not 2 <= len(value["candidates"]) <= 60 or sum(out.values()) < 60:
        yield f"{len(value['candidates'])} candidates, left out: {out}"
    if not all(re.match("more costly than others on the first \\d+ events$", text) for text in out):
        yield f"{out}"
    if not any(c["options"] == {} for c in value["candidates"]):
        yield "the defaults are missing"
    if any(c["operations"] != LONG for c in value["candidates"]):
        yield "a candidate was tried on a part of the trace only"


def case_time_limit():
    """After the time limit tune prints the best candidate so far."""
    trace, start = churn(400000), time.monotonic()
    value = tuned(trace, "--time-limit", "1")
    took = time.monotonic() - start
    if not any("not tried within --time-limit" == r["reason"] for r in value["left_out"]):
        yield f"after {took:.1f} s: {value['left_out']}"
    chosen = value["candidates"][value["recommendation"]["candidate"]]
    if took > 30 or chosen["operations"] != 400000 or chosen["failures"]:
        yield f"after {took:.1f} s: {chosen}"
    for text in ("-1", "x", "", "1000001"):
        yield from refused(["tune", SMALL, "--time-limit", text], 2, "--time-limit takes")


run_all(globals())
