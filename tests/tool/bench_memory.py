# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench_memory and the tables of its results: a very short run.

usage: bench_memory.py BENCH_MEMORY SOURCE_ROOT
"""

import pathlib
import sys
import tempfile

from bench_run import list_problems, page_problems, row_problems, short_run, usage_problems
from tap import Tap

ROOT = pathlib.Path(sys.argv[2])
SHORT = ("--reps", "1", "--pairs", "500", "--latency", "300", "--without", "VMA, min time",
         "--family", "full-pages", "--family", "threads-mixed*", "--family", "lock*",
         "--family", "transient-*", "--family", "slow-driver", "--family", "find", "--family", "free-at",
         "--family", "record", "--family", "chunks", "--family", "compaction",
         "--family", "fill")
# subjects, by how threads share them
ONE = ("quire", "VMA")
STREAM = ("quire, on a stream",)
LOCKS = ("quire's", "quire's of version 0.1.0", "three states, spins", "three states", "pthread_mutex")
MEMORY_WORDS = ("reached", "16384 in pages of 1 MiB", "quire, mixed, handed", "pthread_mutex",
                "`transient-frames`, quire", "| quire |")
LOCK_WORDS = ("| held for |", "8 threads", "2 µs, busy", "quire's, after a wait", "pthread_rwlock")
EACH = ("quire, one shard", "quire, a shard each", "quire, a shard each, slabs",
        "quire, a memory each", "VMA, an allocator each")


def present(figures, names):
    absent = {s["name"] for s in figures["subjects"] if s["absent"]}
    return {name for name in names if name not in absent}


def page_row_problems(figures):
    wanted = {(name, n) for name in present(figures, ONE + STREAM) for n in (1, 16, 64, 256, 1024)}
    return row_problems("pages", figures["pages"], ("subject", "pages"), wanted, "pair_ns")


def thread_row_problems(figures):
    names = present(figures, ONE + EACH)
    wanted = {(name, threads, handed) for name in names for threads in (1, 2)
              for handed in (False, True) if not (handed and name == "VMA, an allocator each")}
    yield from row_problems("threads", figures["threads"], ("subject", "threads", "handed"), wanted, "pair_ns")
    yield from (str(row) for row in figures["threads"] if row["pairs"] < 500)


def other_row_problems(figures):
    names = present(figures, ONE)
    if len(figures["locks"]) != 14:
        yield f"{len(figures['locks'])} rows on locks"
    if len(figures["transient"]) != 3 * len(names):
        yield f"{len(figures['transient'])} rows on transients"
    for row in figures["transient"]:
        if not row["made"] >= 1 or row["peak_reserved"] < 200 << 20:
            yield str(row)
    chunks = [row["chunk"] >> 10 for row in figures["chunks"] if row["reps"] and row["move_ns"]["min"] > 0]
    if chunks != [64, 256, 2048, 8192, 32768]:
        yield f"rows on chunks: {figures['chunks']}"
    if len(figures["fill"]) != 54 or any("failures_per_1000" not in row for row in figures["fill"]):
        yield f"{len(figures['fill'])} rows on refusals"
    waits = {(row["subject"], row["call"]): row["waited_ms"]["min"] for row in figures["slow_driver"]}
    if {name for name, _ in waits} != names or len(waits) != 2 * len(names):
        yield f"slow driver: {waits}"
    for call in ("free", "allocate"):
        if not 0 < waits[("quire", call)] < 200:
            yield f"{call} waits {waits[('quire', call)]} ms for a page of another thread"


def find_problems(figures):
    ways = [row["way"] for row in figures["find"]]
    if ways != ["hash table", "first byte", "byte inside"]:
        yield f"find: {ways}"
    for row in figures["find"]:
        if row["reps"] != 1 or not 0 < row["median_ns"]["min"] <= row["p99_ns"]["min"]:
            yield str(row)
    wanted = {(way, threads) for way in ("free by handle", "own table and mutex", "quire_free_at_address")
              for threads in (1, 2)}
    rows = figures["free_at"]
    yield from row_problems("free_at", rows, ("way", "threads"), wanted, "pair_ns")
    if [row["reps"] for row in rows] != [1] * len(wanted):
        yield str(rows)
    wanted = {(way,) for way in ("not recorded", "not recorded, named", "recorded into a ring", "into a ring, named",
                                 "into a file")}
    yield from row_problems("record", figures["record"], ("way",), wanted, "pair_ns")


def wait_problems(figures):
    """Waits for contended locks: every lock in every scene, percentiles in rising order."""
    wanted = {(name, threads, hold_ns, busy) for name in LOCKS for threads in (2, 4, 8)
              for hold_ns in (40, 2000) for busy in (False, True)}
    yield from row_problems("waits", figures["lock_latency"], ("lock", "threads", "hold_ns", "busy"), wanted)
    for row in figures["lock_latency"]:
        waits = [row[key]["median"] for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")]
        if waits != sorted(waits) or waits[-1] <= 0 or row["reps"] != 1 \
                or row["is_valid"] == bool(row["disturbed"]):
            yield str(row)


def compaction_problems(figures):
    """Holes become fewer, and what is left of a memory needs few pages."""
    rows = {row["part"]: row for row in figures["compaction"]}
    if set(rows) != {"changes", "alone", "half", "range"}:
        yield f"parts: {sorted(rows)}"
        return
    for part in ("changes", "alone"):
        row = rows[part]
        times = [row[key] for key in ("p50_us", "p99_us", "p999_us", "max_us")]
        if times != sorted(times) or times[0] <= 0 or not row["moves"] or row["end_mb"] >= row["begin_mb"]:
            yield str(row)
    for row in figures["compaction"]:
        if row["part"] == "range" and not row["begin_bytes"] < row["wanted_bytes"] <= row["end_bytes"]:
            yield str(row)
    row = rows["half"]
    if row["end_bytes"] >= row["begin_bytes"] or row["end_bytes"] > row["live_bytes"] / 0.97 + 2 * (8 << 20):
        yield str(row)


def steady_problems(figures):
    """The documents state that no page is created in a steady state."""
    row = next(row for row in figures["transient"]
               if row["subject"] == "quire" and row["pattern"] == "transient-frames")
    if row["steady_calls"]:
        yield str(row)


def main():
    tap = Tap()
    tap.case("bad usage is rejected", usage_problems(
        ("--reps", "0"), ("--threads", "65"), ("--latency", "x"), ("--nothing",), ("stray",)))
    tap.case("subjects are listed", list_problems(*ONE, *STREAM, *EACH))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "memory.json"
        figures = short_run(tap, path, *SHORT)
        if figures:
            tap.case("pages are measured", page_row_problems(figures))
            tap.case("threads are measured", thread_row_problems(figures))
            tap.case("locks, transients and a slow driver are measured", other_row_problems(figures))
            tap.case("look-ups and frees by address are measured", find_problems(figures))
            tap.case("compaction is measured", compaction_problems(figures))
            tap.case("repeated frames make no driver calls", steady_problems(figures))
            tap.case("waits for contended locks are measured", wait_problems(figures))
            for part, wanted in (("memory", MEMORY_WORDS), ("lock", LOCK_WORDS)):
                tap.case(f"its tables are written into a page: {part}",
                         page_problems(folder, ROOT / f"bench/{part}_tables.py", f"{part} figures", path,
                                       wanted=wanted))
    tap.end()


main()
