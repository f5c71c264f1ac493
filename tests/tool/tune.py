# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command tune: its candidates, their order, its recommendation, its errors.

usage: tune.py PATH_TO_QUIRE SOURCE_ROOT
"""

import re

from tool_run import (
    BOOL, FITS, HEADER, MAYBE, MIB, NUMBER, REPLAY, ROOT, SMALL, TEXT, TRACES, Figures, differs, fails,
    heap, parse, result, ring, run, run_all, succeeds, without_times, write,
)

OF_REPLAY = {key: REPLAY[key] for key in REPLAY if key not in ("trace", "backend", "fit", "page_size", "options")}
TUNE = {"trace": TEXT, "backend": TEXT, "peak_bytes": NUMBER,
        "traces": [{"trace": TEXT, "peak_bytes": NUMBER}], "wall_ns": NUMBER,
        "candidates": [{**OF_REPLAY, "options": {}, "options_set": NUMBER, "pareto": BOOL, "safe": BOOL,
                        "replays": [{"trace": TEXT, "size_percent": NUMBER, "counts": BOOL, "failures": NUMBER,
                                     "peak_requested_bytes": NUMBER, "peak_reserved_bytes": NUMBER,
                                     "backend_calls": NUMBER, "operations": NUMBER}],
                        "same_as": MAYBE, "mean_reserved_bytes": NUMBER}],
        "left_out": [{"candidates": NUMBER, "reason": TEXT}]}
CHOICE = {"recommendation": {"candidate": NUMBER, "reason": TEXT, "options": {}, "c": TEXT}}


def tune(path, *args):
    """The JSON of tune. Each candidate gets its fit and its page size as keys of their own."""
    value = result("tune", path, *args, shape={**TUNE, **CHOICE})
    for candidate in value["candidates"]:
        candidate["fit"] = candidate["options"].get("fit.algorithm", "segregated")
        candidate["page_size"] = candidate["options"].get("pages.page_size", 0)
    return value


SCALES = [100, 80, 90, 110, 125, 200]
WORTH_AN_OPTION, WORTH_A_CHANGE = 0.01, 0.08


def judged(candidate):
    return [r for r in candidate["replays"] if r["counts"]]


def ratio_of(replay):
    return replay["peak_reserved_bytes"] / replay["peak_requested_bytes"]


def score_of(replay):
    return ratio_of(replay) + replay["backend_calls"] / replay["operations"]


def own_score(candidate):
    """The mean over the traces with their own sizes."""
    own = [score_of(r) for r in candidate["replays"] if r["size_percent"] == 100]
    return sum(own) / len(own)


def figures_of(candidate):
    """The mean ratio, rounded because sums of reals are, and the calls."""
    replays = judged(candidate)
    return [round(sum(map(ratio_of, replays)) / len(replays), 9), sum(r["backend_calls"] for r in replays)]


def refusals(candidate):
    return sum(r["failures"] for r in judged(candidate))


def is_safe(candidate, defaults):
    return all(mine["peak_reserved_bytes"] <= usual["peak_reserved_bytes"]
               and score_of(mine) <= score_of(usual) + 1e-9
               for mine, usual in zip(judged(candidate), judged(defaults)))


def choice_problems(value, served):
    """The recommendation is safe, worth it, and the one with the fewest options of those near the best."""
    chosen = value["candidates"][value["recommendation"]["candidate"]]
    defaults = next((c for c in served if not c["options_set"]), None)
    eligible = served
    if defaults:
        eligible = [c for c in served if is_safe(c, defaults) and c["score"] <= defaults["score"] - WORTH_A_CHANGE
                    and own_score(c) <= own_score(defaults) - WORTH_A_CHANGE / 2]
        yield from (f"safe: {c}" for c in served if c["safe"] != is_safe(c, defaults))
    if not eligible:
        if chosen is not defaults:
            yield f"not the defaults: {value['recommendation']}"
        return
    near = [c for c in eligible if c["score"] < eligible[0]["score"] + WORTH_AN_OPTION - 1e-5]
    if chosen not in eligible or chosen["options_set"] > min(c["options_set"] for c in near):
        yield f"{chosen['options_set']} options: {value['recommendation']}"


def ranking_problems(value):
    """Scores, order, marks and recommendation follow from the results as docs/formats.md states."""
    served = [c for c in value["candidates"] if not refusals(c)]
    if value["candidates"][:len(served)] != served:
        yield "a candidate that refuses something stands before one that does not"
    for c in served:
        score = sum(map(score_of, judged(c))) / len(judged(c))
        if [r["size_percent"] for r in c["replays"]] != SCALES * len(value["traces"]):
            yield f"the replays: {c['replays']}"
        if abs(score - c["score"]) > 1e-5 * score:
            yield f"the score is {c['score']}, not {score}"
        mine = figures_of(c)
        beaten = any(figures_of(o) != mine and all(a <= b for a, b in zip(figures_of(o), mine)) for o in served)
        if c["pareto"] != (not beaten and c["same_as"] is None):
            yield f"Pareto-optimal: {c}"
        if c["same_as"] is not None and figures_of(served[c["same_as"]]) != mine:
            yield f"not the same as {c['same_as']}: {c}"
    if [c["score"] for c in served] != sorted(c["score"] for c in served):
        yield "not sorted by score"
    yield from choice_problems(value, served)


def case_tune():
    """Of recorded traces: the ranking, the defaults, the peak. Each retention is tried: all empty pages, none, some."""
    for name in ("ncnn-resnet50.csv", "recorded-imagemagick.csv"):
        path = TRACES / name
        value = tune(path)
        yield from ranking_problems(value)
        tried = {c["options"].get("pages.retained_empty_bytes", 0) for c in value["candidates"]}
        if not {0, 1} < tried:
            yield f"{name}: retentions tried: {tried}, left out: {value['left_out']}"
        plain = [c for c in value["candidates"] if not c["options_set"]]
        if len(plain) != 1 or plain[0]["options"]:
            yield f"{name}: the defaults: {plain}"
        if value["peak_bytes"] != Figures(path).peak:
            yield f"{name}: {value['peak_bytes']}"


def case_tune_text():
    done = run("tune", SMALL)
    yield from succeeds(done)
    rows = re.findall(r"^(>| )(\*| )(=| ) +[\d.]+  (?:segregated|first|buddy|linear) ", done.out, re.M)
    if len(re.findall(r"^1 +\d+% +[\d.]+ \w+ ", done.out, re.M)) != len(SCALES):
        yield f"a row for each replay:\n{done.out}"
    if not 3 <= len(rows) <= 22:
        yield f"{len(rows)} rows:\n{done.out}"
    if [sum(row[0] == ">" for row in rows), sum(row[2] == "=" for row in rows)] != [1, 1]:
        yield f"the marks: {rows}"
    for text in ("Recommended: fit ", "quire_memory_options options = {", "--all", "Pareto", "score"):
        if text not in done.out:
            yield f"it does not say '{text}':\n{done.out}"
    value = tune(SMALL)
    everything = run("tune", SMALL, "--all")
    yield from succeeds(everything)
    rows = re.findall(r"^[> ][* ][= ] +[\d.]+  \w+ ", everything.out, re.M)
    if len(rows) != len(value["candidates"]):
        yield f"--all shows {len(rows)} of {len(value['candidates'])}"
    if value["recommendation"]["c"] not in done.out:
        yield f"text and JSON recommend different things: {value['recommendation']}"


def recommends(path, options, *args, **wanted):
    """Returns the recommendation for a trace whose best answer is known."""
    value = tune(path, *args)
    yield from ranking_problems(value)
    recommendation = value["recommendation"]
    candidate = value["candidates"][recommendation["candidate"]]
    yield from (f"{path.name}: {key} is {candidate[key]}, not {right}: {recommendation}"
                for key, right in wanted.items() if candidate[key] != right)
    if options not in recommendation["c"]:
        yield f"{path.name}: {recommendation['c']}"


def case_tune_known():
    """The best candidate follows from the construction of these traces."""
    # 64 blocks of 2 MiB, all live: one page of 128 MiB serves exactly this run, and smaller runs waste much of it
    blocks = write("blocks.csv", HEADER + "".join(
        f"alloc,{i},{2 * MIB},,0,0,\n" for i in range(1, 65)) + "".join(
        f"free,{i},,,0,0,\n" for i in range(1, 65)))
    yield from recommends(blocks, "page_size = UINT64_C(16) << 20", page_size=16 * MIB, failures=0,
                          peak_reserved_bytes=128 * MIB, pages_created=8)
    # 8,192 ranges of 128 bytes fit 1 MiB only if a range takes no more than its requested size
    small = write("small.csv", HEADER + "".join(f"alloc,{i},128,,0,0,\n" for i in range(1, 8193)))
    yield from recommends(small, ".fit.algorithm = QUIRE_FIT_FIRST", fit="first", page_size=0,
                          peak_reserved_bytes=MIB)
    # 16 blocks of 32 MiB, one of which is freed and allocated 300 times: nothing beats 1.00 by 0.01
    rows = [f"alloc,{i},{32 * MIB},,0,0,\n" for i in range(1, 17)]
    rows += ["free,16,,,0,0,\n", f"alloc,16,{32 * MIB},,0,0,\n"] * 300
    churn = write("churn.csv", HEADER + "".join(rows))
    yield from recommends(churn, "options = {0};", fit="segregated", page_size=0,
                          options_set=0, peak_reserved_bytes=512 * MIB)


def case_tune_restricted():
    for fit in FITS:
        value = tune(SMALL, "--fit", fit, "--page-size", "4M")
        if {(c["fit"], c["page_size"]) for c in value["candidates"]} != {(fit, 4 * MIB)}:
            yield f"--fit {fit} --page-size 4M: {value['recommendation']}"
    yield from recommends(ring(), ".fit.algorithm = QUIRE_FIT_LINEAR", "--fit", "linear", fit="linear",
                          peak_pages=1, failures=0)


def case_tune_elastic():
    value = tune(SMALL, "--elastic", "--fit", "segregated")
    chunks = {c["page_size"] for c in value["candidates"] if c["options"].get("elastic")}
    if chunks != {0, 2 * MIB, 8 * MIB, 32 * MIB}:
        yield f"chunks of {chunks}"
    if any(c["options"].get("elastic") for c in tune(SMALL)["candidates"]):
        yield "elastic memories without --elastic"
    served = tune(TRACES / "llm-serving.csv", "--elastic", "--fit", "segregated", "--page-size", "8M")["candidates"]
    for c in served:
        if c["options"].get("elastic") and c["peak_reserved_bytes"] > 1.01 * c["peak_requested_bytes"] and \
           "pages.retained_empty_bytes" not in c["options"]:
            yield f"an elastic memory reserves {c['peak_reserved_bytes']}: {c}"


def layers(count):
    """The trace of the program in docs/tutorial.md with `count` layers."""
    rows, sizes = [], [200000 + 50000 * i for i in range(count)]
    rows += [f"alloc,{i + 1},600000,1,0,0,\n" for i in range(count)]
    for _ in range(3):
        rows += [f"alloc,{count + i + 1},{size},1,0,0,\n" for i, size in enumerate(sizes)]
        rows += [f"free,{count + i + 1},,,0,0,\n" for i in range(count)]
    return write(f"layers-{count}.csv", HEADER + "".join(rows))


def case_tune_larger_run():
    """The recommendation serves the program with more layers too; the linear fit would refuse it."""
    for count, more in ((12, 14), (12, 24), (3, 4), (40, 41)):
        value = tune(layers(count))
        if any(c["fit"] == "linear" for c in value["candidates"]):
            yield f"{count} layers: the linear fit is a candidate"
        chosen = value["candidates"][value["recommendation"]["candidate"]]
        options = write("chosen.json", chosen["options"])
        yield from succeeds(run("replay", layers(more), "--options", options))
    value = tune(layers(12), "--fit", "linear")
    if "one page and refuses a run with a higher peak" not in value["recommendation"]["reason"]:
        yield f"{value['recommendation']}"


def case_tune_pairs():
    """The advice for the smaller of two recorded runs is not worse than the defaults on the larger."""
    for pair, helps in (("python-json", True), ("python-buffers", False)):
        small, large = (ROOT / f"tests/tool/runs/{pair}-{run_number}.csv" for run_number in (1, 2))
        options = write("advice.json", tune(small)["recommendation"]["options"])
        usual, advised = result("replay", large), result("replay", large, "--options", options)
        costs = [(ratio_of(r), ratio_of(r) + r["backend_calls"] / (r["allocations"] + r["frees"]), r["failures"])
                 for r in (usual, advised)]
        if any(mine > other for mine, other in zip(costs[1], costs[0])) or (helps and costs[1][1] > costs[0][1] - 0.1):
            yield f"{pair}: {costs[1]}, with the defaults {costs[0]}"


def case_tune_linear():
    """The linear fit is tried on request only. Frees out of order leave gaps that it does not use."""
    rows = [f"alloc,{i},{MIB},,0,0,\n" for i in range(1, 9)]
    for i in range(9, 40):  # the oldest stays, so that the bytes after it stay in use
        rows += [f"free,{i - 7},,,0,0,\n", f"alloc,{i},{MIB},,0,0,\n"]
    path = write("gaps.csv", HEADER + "".join(rows))
    value = tune(path)
    if any(c["fit"] == "linear" for c in value["candidates"]) or value["left_out"]:
        yield f"{value['left_out']}"
    done = run("tune", path, "--fit", "linear", "--page-size", "8M")
    if done.code != 1 or "no candidate serves" not in done.err or " -  linear " not in done.out:
        yield f"exit {done.code}: {done.out} {done.err}"


def case_tune_determinism():
    first, second = (without_times(result("tune", SMALL)) for _ in range(2))
    if first != second:
        yield "two runs differ"


def case_tune_refused():
    """If every candidate has failures, the output is a table without a recommendation."""
    path = write("tuned-small.json", heap(size=256 * MIB, flags=["DEVICE_LOCAL"]))
    trace = write("tuned-large.csv", HEADER + "".join(f"alloc,{i},{100 * MIB},,0,0,\n" for i in range(1, 4)))
    args = ["tune", trace, "--profile", path, "--fit", "segregated"]
    done = run(*args, "--json")
    value = parse(done)
    yield from differs(value, TUNE)
    if done.code != 1 or len(done.err.splitlines()) != 1 or "no candidate serves" not in done.err:
        yield f"exit {done.code}, stderr: {done.err}"
    if value["recommendation"] is not None or not value["candidates"] or any(
            c["score"] is not None or c["pareto"] or not c["failures"]
            for c in value["candidates"]):
        yield f"{value['recommendation']}"
    done = run(*args)
    if done.code != 1 or "Recommended" in done.out or " - " not in done.out:
        yield f"exit {done.code}:\n{done.out}"


def case_tune_several():
    """A candidate is judged over all traces: what suits one trace only is not recommended for both."""
    other = TRACES / "ncnn-yolov4-tiny.csv"
    value = tune(SMALL, other, "--fit", "segregated")
    yield from ranking_problems(value)
    if [t["trace"] for t in value["traces"]] != [str(SMALL), str(other)] or value["trace"] != str(SMALL):
        yield f"the traces: {value['traces']}"
    for c in value["candidates"]:
        if [r["trace"] for r in c["replays"]] != [str(SMALL)] * len(SCALES) + [str(other)] * len(SCALES):
            yield f"the replays: {c['replays']}"
        if c["peak_reserved_bytes"] != c["replays"][0]["peak_reserved_bytes"]:
            yield f"not the first trace with its own sizes: {c}"
    for trace, at in ((SMALL, 0), (other, len(SCALES))):
        for percent in (80, 200):
            replay = value["candidates"][0]["replays"][at + SCALES.index(percent)]
            whole = value["candidates"][0]["replays"][at]["peak_requested_bytes"] * percent / 100
            if not whole <= replay["peak_requested_bytes"] <= 1.02 * whole:
                yield f"{trace.name} at {percent} %: {replay}"


def case_tune_too_small_a_device():
    """A larger run that the device cannot hold does not count, and says nothing about the candidates."""
    path = write("heap.json", heap(size=256 * MIB, flags=["DEVICE_LOCAL"]))
    trace = write("most.csv", HEADER + "".join(f"alloc,{i},{2 * MIB},,0,0,\n" for i in range(1, 101)))
    value = tune(trace, "--profile", path, "--fit", "segregated")
    yield from ranking_problems(value)
    counts = {r["size_percent"]: r["counts"] for r in value["candidates"][0]["replays"]}
    if counts != {100: True, 80: True, 90: True, 110: True, 125: True, 200: False}:
        yield f"{counts}"
    done = run("tune", trace, "--profile", path, "--fit", "segregated")
    if done.code or not re.search(r"^1 +200% +\S+ \w+  does not count", done.out, re.M):
        yield f"exit {done.code}: {done.out}"


def case_tune_refused_lists():
    yield from fails(run("tune"), 2, "^quire tune: missing argument: quire tune TRACE")
    yield from fails(run("tune", "-", "-", stdin=b""), 2, "standard input is one trace, not 2")
    yield from fails(run("tune", *[SMALL] * 17), 2, "takes at most 16 traces, not 17")
    yield from fails(run("tune", SMALL, "none.csv"), 1, "none.csv")
    empty = write("empty.csv", HEADER)
    yield from fails(run("tune", SMALL, empty), 1, f"^{re.escape(str(empty))}: .*no allocations")


def case_tune_nothing():
    path = write("nothing.csv", HEADER + "frame,,,,0,,\n")
    yield from fails(run("tune", path), 1, f"^{re.escape(str(path))}: .*no allocations")
    text = SMALL.read_bytes()
    if parse(run("tune", "-", "--json", stdin=text))["trace"] != "-":
        yield "standard input"


run_all(globals())
