# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire export: what other programs read from the files is what quire map and the trace say.

usage: exports.py PATH_TO_QUIRE SOURCE_ROOT
"""

import collections
import csv
import json
import os
import pickle

from tool_run import HEADER, KIB, SMALL, TRACES, execute, here, prints, profile_with, refused, result, run_all, write

TRAINING = TRACES / "transformer-training.csv"
SETTINGS = ((), ("--fit", "first"), ("--elastic",), ("--elastic", "--page-size", "1M", "--pages-retained-empty-bytes", "1"),
            ("--page-size", "8M"))
# traces with settings and moments: all on a small one, the ends of larger ones
MOMENTS = [(SMALL, settings, at) for settings in SETTINGS for at in (("--at", "end"), (), ("--at", "100"))] + [
    (trace, settings, ("--at", "end")) for trace in (TRAINING, TRACES / "llm-serving.csv") for settings in SETTINGS[::2]]


def export(form, trace, *args, code=0, stdin=b""):
    done = execute("export", trace, "--format", form, "--output", "-", *args, stdin=stdin)
    if done.returncode != code:
        raise ValueError(f"quire export {form} {trace} {args}: exit {done.returncode}: {done.stderr[:300]}")
    return done.stdout


def live_ranges(memory):
    """(bytes, requested bytes, name, page, offset) of each allocation in the JSON of quire map."""
    return [(r["size"], r["requested"], r["name"], page["page"], r["offset"])
            for page in memory["pages"] for r in page["ranges"] if r["kind"] != "free"]


# ---- memory_viz -----------------------------------------------------------------------------------


def blocks_of(segment):
    """The blocks, whose sizes must lead from one to the next, as the viewer takes their addresses."""
    at = segment["address"]
    for block in segment["blocks"]:
        if block["address"] != at:
            raise ValueError(f"a block at {block['address']}, after bytes up to {at}")
        at += block["size"]
        yield block
    if at != segment["address"] + segment["total_size"]:
        raise ValueError(f"blocks up to {at} in {segment['address']} + {segment['total_size']}")


class Replayed:
    """The events of a snapshot from the first one on: what they leave live, and what they break."""

    def __init__(self, events):
        self.mapped, self.live, self.problems = {}, {}, []
        for i, event in enumerate(events):
            getattr(self, event["action"])(event, i)

    def has(self, begin, end):
        return any(a <= begin and end <= b for a, b in self.mapped.items())

    def alloc(self, event, i):
        if not self.has(event["addr"], event["addr"] + event["size"]) or event["addr"] in self.live:
            self.problems.append(f"event {i} allocates outside of the segments or twice: {event}")
        self.live[event["addr"]] = event["size"], [frame["name"] for frame in event["frames"]]

    def free_requested(self, event, i):
        if self.live.get(event["addr"], (0,))[0] != event["size"]:
            self.problems.append(f"event {i} frees what does not live: {event}")

    def free_completed(self, event, i):
        if self.live.pop(event["addr"], None) is None:
            self.problems.append(f"event {i} frees twice: {event}")

    def segment_alloc(self, event, _):
        self.mapped[event["addr"]] = event["addr"] + event["size"]

    def segment_free(self, event, i):
        if self.mapped.pop(event["addr"], None) != event["addr"] + event["size"]:
            self.problems.append(f"event {i} frees a segment that is not there: {event}")

    def segment_map(self, event, _):
        begin, end = event["addr"], event["addr"] + event["size"]
        before = next((a for a, b in self.mapped.items() if b == begin), begin)
        self.mapped[before] = self.mapped.pop(end, end)

    def segment_unmap(self, event, i):
        begin, end = event["addr"], event["addr"] + event["size"]
        around = next(((a, b) for a, b in self.mapped.items() if a <= begin and end <= b), None)
        if not around or any(begin < a + size and a < end for a, (size, _) in self.live.items()):
            self.problems.append(f"event {i} unmaps what is in use or not there: {event}")
            return
        del self.mapped[around[0]]
        self.mapped.update({a: b for a, b in ((around[0], begin), (end, around[1])) if a < b})

    def oom(self, event, _):
        self.refused = event


def as_memory(snapshot, memory):
    """The segments have the pages, the ranges and the names of the JSON of the memory."""
    blocks = [b for s in snapshot["segments"] for b in blocks_of(s)]
    live = [b for b in blocks if b["state"] == "active_allocated"]
    wanted = live_ranges(memory)
    found = [(b["size"], b["requested_size"], b["frames"][0]["name"] if b["frames"] else "",
              b["frames"][0]["line"] if b["frames"] else None) for b in live]
    if [f[:3] for f in found] != [w[:3] for w in wanted] or len(live) < sum(b["state"] != "inactive" for b in blocks):
        yield f"{len(found)} blocks differ from the {len(wanted)} ranges: {found[:3]}, {wanted[:3]}"
    if any(f[3] not in (None, w[3]) for f, w in zip(found, wanted)):
        yield "a frame has another page"
    begin = {}  # address of each page
    for block, (*_, page, offset) in zip(live, wanted):
        if begin.setdefault(page, block["address"] - offset) != block["address"] - offset:
            yield f"page {page}: a block at {block['address']} is not at {offset}"
    stats = memory["stats"]
    for key, total in (("reserved_bytes", "total_size"), ("requested_bytes", "requested_size")):
        if stats[key] != sum(s[total] for s in snapshot["segments"]):
            yield f"{key}: {stats[key]}, segments have {sum(s[total] for s in snapshot['segments'])}"
    ends = sorted((s["address"], s["address"] + s["total_size"]) for s in snapshot["segments"])
    if any(a[1] > b[0] for a, b in zip(ends, ends[1:])):
        yield "segments overlap"


def as_events(snapshot):
    """The events lead to the segments and to their blocks."""
    replayed = Replayed(snapshot["device_traces"][0])
    yield from replayed.problems[:3]
    segments = {s["address"]: s["address"] + s["total_size"] for s in snapshot["segments"]}
    if replayed.mapped != segments:
        yield f"the events lead to {replayed.mapped}, the segments are {segments}"
    live = {b["address"]: (b["requested_size"], [f["name"] for f in b["frames"]])
            for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
    if replayed.live != live:
        yield f"the events leave {len(replayed.live)} blocks, the segments have {len(live)}"


def as_trace(events, rows):
    """The events are the rows of the trace, with their sizes, times, streams and labels."""
    names = {"alloc": "alloc", "free": "free_completed"}
    wanted, live = [], {}
    for row in rows:
        if row["op"] == "alloc":
            live[row["id"]] = row
        if row["op"] in names:
            of = live[row["id"]]
            wanted.append((names[row["op"]], int(of["size"]), (int(row["time_ns"]) - int(rows[0]["time_ns"])) // 1000,
                           int(row["stream"] or 0), [of["label"]] if of["label"] else []))
    found = [(e["action"], e["size"], e["time_us"], e["stream"], [f["name"] for f in e["frames"]])
             for e in events if e["action"] in names.values()]
    yield from (f"row {i}: {a}, not {b}" for i, (a, b) in enumerate(zip(found, wanted)) if a != b)
    if len(found) != len(wanted):
        yield f"{len(found)} events for {len(wanted)} rows"


def viz(trace, *args, code=0):
    return pickle.loads(export("memory_viz", trace, *args, code=code))


def case_memory_viz_is_the_memory():
    """A snapshot has the pages and ranges of quire map, and events that lead to them."""
    for trace, settings, at in MOMENTS:
        snapshot = viz(trace, *at, *settings)
        for problem in (*as_memory(snapshot, result("map", trace, *at, *settings)), *as_events(snapshot)):
            yield f"{trace.name} {settings} {at}: {problem}"


def case_memory_viz_is_the_trace():
    """Each event of the trace is in the snapshot."""
    for trace in (SMALL, TRAINING, TRACES / "llm-serving.csv"):
        rows = list(csv.DictReader(trace.open()))
        events = viz(trace, "--at", "end")["device_traces"][0]
        yield from (f"{trace.name}: {p}" for p in [*as_trace(events, rows)][:3])
        counts = collections.Counter(e["action"] for e in events)
        if counts["free_requested"] != counts["free_completed"] or not counts["segment_alloc"]:
            yield f"{trace.name}: {counts}"


def case_memory_viz_elastic():
    """An elastic page gets and loses memory in stretches."""
    snapshot = viz(SMALL, "--at", "end", "--elastic", "--page-size", "1M", "--pages-retained-empty-bytes", "1")
    actions = collections.Counter(e["action"] for e in snapshot["device_traces"][0])
    if not actions["segment_map"] or not actions["segment_unmap"]:
        yield f"{actions}"
    if not all(s["is_expandable"] for s in snapshot["segments"]):
        yield "a segment is not expandable"


def case_memory_viz_refusals():
    """A refused allocation is an event, and the command fails with its reason."""
    profile = write("p.json", profile_with(heaps=[{"size": 64 * KIB, "flags": ["DEVICE_LOCAL"]}]))
    trace = write("t.csv", HEADER + "alloc,1,40000,,5000,3,one\nalloc,2,50000,,9000,3,two\nfree,1,,,9500,3,\n"
                  "free,2,,,9600,3,\n")
    args = ("--profile", profile, "--page-size", "64K", "--at", "end")
    events = viz(trace, *args, code=1)["device_traces"][0]
    found = [(e["action"], e["size"], e["time_us"]) for e in events if "segment" not in e["action"]]
    if found != [("alloc", 40000, 0), ("oom", 50000, 4), ("free_requested", 40000, 4), ("free_completed", 40000, 4)]:
        yield f"{found}"
    refusal = next(e for e in events if e["action"] == "oom")
    if refusal["frames"][0]["name"] != "two" or refusal["device_free"] > 64 * KIB or "addr" in refusal:
        yield f"{refusal}"
    done = execute("export", trace, "--format", "memory_viz", "--output", "x", *args)
    if done.returncode != 1 or b"cannot allocate 'two'" not in done.stderr or not (here() / "x").stat().st_size:
        yield f"exit {done.returncode}, {done.stderr}"


def case_names():
    """A label with any UTF-8 arrives, and one longer than a name whole in the events."""
    labels = ["\u00e9\u4e2d\U0001f600", "x" * 300, ""]
    trace = write("t.csv", HEADER + "".join(f"alloc,{i},16,,0,0,{label}\n" for i, label in enumerate(labels, 1)))
    snapshot = viz(trace, "--at", "end")
    events = [[f["name"] for f in e["frames"]] for e in snapshot["device_traces"][0] if e["action"] == "alloc"]
    if events != [[label] if label else [] for label in labels]:
        yield f"{events}"
    names = [f["name"] for b in snapshot["segments"][0]["blocks"] for f in b["frames"]]
    if names[0] != labels[0] or not 100 < len(names[1]) < 300 or len(names) != 2:
        yield f"{names}"


# ---- vma ------------------------------------------------------------------------------------------

STATS = {"BlockCount", "BlockBytes", "AllocationCount", "AllocationBytes", "UnusedRangeCount"}
EXTREMES = {"AllocationSizeMin", "AllocationSizeMax", "UnusedRangeSizeMin", "UnusedRangeSizeMax"}


def has_keys(value, what, required, more=()):
    """The published schema allows no other keys in most objects."""
    if not set(required) <= set(value) <= set(required) | set(more):
        yield f"{what} has the keys {sorted(value)}"


def sums_form(sums, what):
    yield from has_keys(sums, what, STATS, EXTREMES)
    yield from (f"{what}: {key} is {number!r}" for key, number in sums.items() if type(number) is not int)


def range_form(part, what, *required):
    yield from has_keys(part, what, {"Type", "Size", *required}, {"Usage", "CustomData", "Name"})
    if part["Type"] not in ("FREE", "UNKNOWN") or type(part["Size"]) is not int:
        yield f"{what}: {part}"


def block_form(block, what):
    """The ranges cover the block, and add up to its numbers."""
    yield from has_keys(block, what, {"TotalBytes", "UnusedBytes", "Allocations", "UnusedRanges", "Suballocations"})
    at, free = 0, []
    for part in block["Suballocations"]:
        yield from range_form(part, what, "Offset")
        if part["Offset"] != at:
            yield f"{what}: a range at {part['Offset']}, not {at}"
        at += part["Size"]
        free += [part["Size"]] if part["Type"] == "FREE" else []
    if (at, sum(free), len(free), len(block["Suballocations"]) - len(free)) != (
            block["TotalBytes"], block["UnusedBytes"], block["UnusedRanges"], block["Allocations"]):
        yield f"{what}: the numbers are not those of the ranges"


def vma_form(dump):
    yield from has_keys(dump, "the file", {"General", "Total", "MemoryInfo"}, {"DefaultPools", "CustomPools"})
    yield from sums_form(dump["Total"], "Total")
    if dump["General"]["API"] != "Vulkan" or type(dump["General"]["GPU"]) is not str:
        yield f"{dump['General']}"
    for name, heap in dump["MemoryInfo"].items():
        yield from has_keys(heap, name, {"Flags", "Size", "Budget", "Stats", "MemoryPools"})
        yield from has_keys(heap["Budget"], name, {"BudgetBytes", "UsageBytes"})
        yield from sums_form(heap["Stats"], name)
        for kind, pool in heap["MemoryPools"].items():
            yield from has_keys(pool, kind, {"Flags", "Stats"})
            yield from sums_form(pool["Stats"], kind)
    for pool in (p for pools in dump["CustomPools"].values() for p in pools):
        yield from has_keys(pool, "a pool", {"Name", "PreferredBlockSize", "Blocks", "DedicatedAllocations"})
        for number, block in pool["Blocks"].items():
            yield from block_form(block, f"block {number}")
        for part in pool["DedicatedAllocations"]:
            yield from range_form(part, "a dedicated allocation", "Usage")


def case_vma():
    """The JSON has the form of VMA's schema, and the ranges and sums of the memory."""
    for trace in (SMALL, TRAINING, TRACES / "llm-serving.csv"):
        for settings in SETTINGS:
            dump = json.loads(export("vma", trace, *settings))
            memory = result("map", trace, *settings)
            (kind, (pool,)), = dump["CustomPools"].items()
            problems = [*vma_form(dump)]
            stats, total = memory["stats"], dump["Total"]
            for key, wanted in (("BlockBytes", "reserved_bytes"), ("AllocationBytes", "live_bytes"),
                                ("AllocationCount", "allocation_count")):
                if total[key] != stats[wanted]:
                    problems.append(f"{key} is {total[key]}, {wanted} {stats[wanted]}")
            shared = [p for b in pool["Blocks"].values() for p in b["Suballocations"] if p["Type"] != "FREE"]
            names = sorted(p.get("Name", "") for p in shared + pool["DedicatedAllocations"])
            if names != sorted(r[2] for r in live_ranges(memory)) or kind != f"Type {memory['kind']}":
                problems.append(f"{kind}: {len(names)} names are not those of the ranges")
            if sum(h["Stats"]["BlockBytes"] for h in dump["MemoryInfo"].values()) != total["BlockBytes"]:
                problems.append("the heaps do not add up to the total")
            yield from (f"{trace.name} {settings}: {problem}" for problem in problems[:4])


# ---- round trips ----------------------------------------------------------------------------------


def imported(form, trace, *args):
    """The rows of what quire import reads of an exported file."""
    done = execute("import", "-", "--format", form, stdin=export(form, trace, *args))
    return list(csv.DictReader(done.stdout.decode().splitlines()))


def case_round_trips():
    """quire import reads what quire export wrote: every event from a snapshot, what is live from VMA's JSON."""
    for trace in (SMALL, TRAINING, TRACES / "dawn.csv"):
        rows = [r for r in csv.DictReader(trace.open()) if r["op"] in ("alloc", "free")]
        found = imported("memory_viz", trace, "--at", "end")
        wanted = [(r["op"], r["size"], r["label"], int(r["time_ns"]) // 1000) for r in rows]
        first = int(rows[0]["time_ns"]) // 1000
        # a frame has the name, the memory and the page; the name of a free is that of its allocation
        got = [(r["op"], r["size"], r["label"].partition(" replay:")[0], int(r["time_ns"]) // 1000 + first)
               for r in found]
        if [w[:2] for w in wanted] != [g[:2] for g in got]:
            yield f"{trace.name}: the snapshot has other events than the trace"
        if [w[2:] for w in wanted if w[0] == "alloc"] != [g[2:] for g in got if g[0] == "alloc"]:
            yield f"{trace.name}: the snapshot has other names or times than the trace"
        live = sorted((r[0], r[2]) for r in live_ranges(result("map", trace)))
        got = sorted((int(r["size"]), r["label"]) for r in imported("vma", trace) if r["op"] == "alloc")
        if [g[0] for g in got] != [w[0] for w in live]:
            yield f"{trace.name}: the JSON of VMA has other ranges than the memory: {got[:3]}, {live[:3]}"


# ---- perfetto -------------------------------------------------------------------------------------

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # TrackEvent.Type
CREATE, DESTROY, BIND, DESTROY_BOUND = 1, 2, 3, 4  # VulkanMemoryEvent.Operation
UNNAMED = "(unnamed)"


def varint(data, at):
    """The number at a position and the position after it. Its bytes must be as few as possible."""
    number = count = 0
    while count == 0 or data[at + count - 1] & 0x80:
        number |= (data[at + count] & 0x7f) << 7 * count
        count += 1
    if count > 10 or count > 1 and data[at + count - 1] == 0:
        raise ValueError(f"a varint of {count} bytes at {at}")
    return number, at + count


def message(data):
    """The fields of a message: {number: [values]}, bytes for what has a length."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 in (1, 2):
            size, at = (8, at) if key & 7 == 1 else varint(data, at)
            value, at = data[at:at + size], at + size
            value = int.from_bytes(value, "little") if key & 7 == 1 else value
        else:
            raise ValueError(f"wire type {key & 7} at {at}")
        found[key >> 3].append(value)
    if at != len(data):
        raise ValueError(f"a field of {len(data)} bytes ends at {at}")
    return found


class Timeline:
    """Reads the packets of a file in their order, as trace_processor does, and gathers what they break."""

    def __init__(self, data):
        self.problems, self.names = [], {2: {}, 3: {}, 5: {}}
        self.tracks, self.open, self.time = {}, {}, 0  # open: the slices of each track
        self.counters = collections.defaultdict(list)  # (time, value) by name
        self.slices, self.instants, self.reserved, self.bound = [], [], 0, 0
        self.path = message(data)[1]
        for i, packet in enumerate(map(message, self.path)):
            if packet[10] != [1] or (packet[13] != [1] if i == 0 else packet[13] not in ([], [2])):
                self.problems.append(f"packet {i}: sequence {packet[10]}, flags {packet[13]}")
            for kind, take in ((12, self.intern), (60, self.describe), (11, self.event), (62, self.vulkan)):
                for body in packet[kind]:
                    self.stamp(i, packet, needed=kind in (11, 62))
                    take(message(body))

    def stamp(self, i, packet, needed):
        if needed and (len(packet[8]) != 1 or packet[8][0] < self.time):
            self.problems.append(f"packet {i}: the time {packet[8]} after {self.time}")
        self.time = packet[8][0] if needed else self.time

    def intern(self, body):
        for kind, entries in body.items():
            for entry in map(message, entries):
                number, text = entry[1][0], entry[2][0].decode()
                if number in self.names[kind] or text in self.names[kind].values():
                    self.problems.append(f"{number} and {text} are interned twice")
                self.names[kind][number] = text

    def describe(self, body):
        uuid, name, parent = body[1][0], body[2][0].decode(), body[5][0] if body[5] else None
        if uuid in self.tracks or (parent is None) != (uuid == 1) or parent and parent not in self.tracks:
            self.problems.append(f"track {uuid} is described twice or has the parent {parent}")
        self.tracks[uuid] = name if parent in (None, 1) else f"{self.tracks[parent]}/{name}"
        if body[8]:
            self.counters[name] = [("unit", message(body[8][0])[3][0])]

    def event(self, body):
        track = self.tracks[body[11][0]]
        name = body[23][0].decode() if body[23] else self.names[2][body[10][0]] if body[10] else None
        arguments = {self.names[3][a[1][0]]: (a[3] + a[7])[0] for a in map(message, body[4])}
        kind, uuid = body[9][0], body[11][0]
        if (kind == COUNTER) != (track in self.counters):
            self.problems.append(f"event of type {kind} on {track}")
        elif kind == COUNTER:
            self.counters[track].append((self.time, body[30][0]))
        elif kind == INSTANT:
            self.instants.append((track, name, self.time, arguments))
        elif (uuid in self.open) != (kind == END):
            self.problems.append(f"slices on track {uuid} ({track}) do not follow each other")
        elif kind == BEGIN:
            self.open[uuid] = [track, name, self.time, None, arguments]
            self.slices.append(self.open[uuid])
        else:
            self.open.pop(uuid)[3] = self.time

    def vulkan(self, body):
        source, operation, size = body[1][0], body[2][0], body[6][0]
        sums = {(3, CREATE): (size, 0), (3, DESTROY): (-size, 0), (4, BIND): (0, size), (4, DESTROY_BOUND): (0, -size)}
        self.reserved += sums[source, operation][0]
        self.bound += sums[source, operation][1]
        if body[3] != [self.time] or body[4] != [1] or len(body[5]) + len(body[17]) + len(body[18]) + len(body[19]) != 4:
            self.problems.append(f"a VulkanMemoryEvent has {dict(body)}")
        if source == 4 and (body[7][0] not in self.names[5] or body[20] != body[5]):
            self.problems.append(f"a VulkanMemoryEvent has the function {body[7]}")


def timeline(trace, *args, code=0):
    return Timeline(export("perfetto", trace, *args, code=code))


def course(rows):
    """What the trace has after each row: (time, requested bytes), and its slices."""
    at, live, total, slices = [], {}, 0, []
    for row in rows:
        time = int(row["time_ns"]) - int(rows[0]["time_ns"])
        if row["op"] == "alloc":
            live[row["id"]] = [row["label"] or UNNAMED, time, None, int(row["size"]), int(row["stream"] or 0)]
            slices.append(live[row["id"]])
            total += int(row["size"])
        elif row["op"] == "free":
            done = live.pop(row["id"])
            done[2] = time
            total -= done[3]
        if not at or at[-1][1] != total:
            at.append((time, total))
    return at, slices


def case_perfetto_is_the_trace():
    """Slices, the counter of requested bytes and frame marks are those of the trace."""
    for trace in (SMALL, TRAINING):
        rows = list(csv.DictReader(trace.open()))
        sums, slices = course(rows)
        frames = [int(r["time_ns"]) - int(rows[0]["time_ns"]) for r in rows if r["op"] == "frame"]
        for settings in SETTINGS:
            line = timeline(trace, *settings)
            problems = line.problems[:3]
            if line.counters["requested bytes"] != [("unit", 3), *sums]:
                problems.append("the counter of requested bytes is not the course of the trace")
            found = [[name, *times, args["bytes"], args.get("stream", 0)] for _, name, *times, args in line.slices]
            if found != slices:
                problems.append(f"{len(found)} slices differ from the {len(slices)} allocations")
            if [t for track, name, t, _ in line.instants if (track, name) == ("frames", "frame")] != frames:
                problems.append(f"the frame marks are not the {len(frames)} of the trace")
            yield from (f"{trace.name} {settings}: {p}" for p in problems)


def case_perfetto_is_the_memory():
    """Counters and VulkanMemoryEvent end at the statistics of quire map, and slices are on their pages."""
    for trace, settings, at in MOMENTS:
        at = at or ("--at", "peak")  # the end unless asked
        line, memory = timeline(trace, *at, *settings), result("map", trace, *at, *settings)
        stats = memory["stats"]
        wanted = [stats[k] for k in ("live_bytes", "requested_bytes", "reserved_bytes", "page_count")]
        found = [line.counters[k][-1][1] for k in ("live bytes", "requested bytes", "reserved bytes", "pages")]
        if found != wanted or [line.reserved, line.bound] != wanted[2:0:-1]:
            yield f"{trace.name} {settings} {at}: {found} and {line.reserved}, {line.bound}, not {wanted}"
        pages = collections.Counter(f"page {r[3]}/allocations" for r in live_ranges(memory))
        if pages != collections.Counter(s[0] for s in line.open.values()):
            yield f"{trace.name} {settings} {at}: the slices without an end are not the ranges of the pages"


def case_perfetto_counters():
    """Every sum of the memory is a counter, with a packet at each event that changes it."""
    trace = write("t.csv", HEADER + "alloc,1,1000,,100,0,a\nframe,,,,150,0,\nuse,1,,,160,0,\nalloc,2,3000,,200,7,\n"
                  "free,1,,,300,0,\nfree,2,,,400,0,\n")
    line = timeline(trace, "--page-size", "64K", "--pages-retained-empty-bytes", "1")
    wanted = {"requested bytes": [("unit", 3), (0, 1000), (100, 4000), (200, 3000), (300, 0)],
              "reserved bytes": [("unit", 3), (0, 64 * KIB), (300, 0)], "pages": [("unit", 2), (0, 1), (300, 0)]}
    yield from (f"{k}: {line.counters[k]}" for k, v in wanted.items() if line.counters[k] != v)
    live = [value for _, value in line.counters["live bytes"]]
    if len(live) != 5 or any(a < b for a, b in zip(live[1:], (1000, 4000, 3000, 0))):
        yield f"live bytes: {live}"
    slices = [(s[0], s[1], s[2], s[3], s[4].get("stream")) for s in line.slices]
    if slices != [("page 0/allocations", "a", 0, 200, None), ("page 0/allocations", UNNAMED, 100, 300, 7)]:
        yield f"{slices}"
    if [i[:3] for i in line.instants] != [("page 0", "memory added", 0), ("frames", "frame", 50),
                                          ("page 0", "memory released", 300)] or line.reserved or line.bound:
        yield f"{line.instants}"


def case_perfetto_without_times():
    """Events of one time are a microsecond apart."""
    trace = write("t.csv", HEADER + "alloc,1,16,,5,0,a\nalloc,2,16,,5,0,b\nfree,1,,,5,0,\n")
    if [(s[1], *s[2:4]) for s in timeline(trace).slices] != [("a", 0, 2000), ("b", 1000, None)]:
        yield f"{timeline(trace).slices}"


def case_perfetto_refusals_and_names():
    """A refused allocation is an instant event; equal labels are interned once, also long ones."""
    profile = write("p.json", profile_with(heaps=[{"size": 64 * KIB, "flags": ["DEVICE_LOCAL"]}]))
    name = "\u00e9" * 300
    trace = write("t.csv", HEADER + f"alloc,1,16,,0,0,{name}\nalloc,2,90000,,5,3,b\nalloc,3,16,,6,0,\nalloc,4,16,,7,0,{name}\n"
                  "free,2,,,8,0,\nfree,3,,,9,0,\n")
    line = timeline(trace, "--profile", profile, "--page-size", "64K", code=1)
    refused_now = [i for i in line.instants if i[0] == "refused allocations"]
    if [i[1:3] for i in refused_now] != [("b", 5)] or refused_now[0][3]["bytes"] < 90000 or \
            refused_now[0][3]["available bytes"] > 64 * KIB:
        yield f"{refused_now}"
    if [s[1:4] for s in line.slices] != [[name, 0, None], [UNNAMED, 6, 9], [name, 7, None]]:
        yield f"{line.slices}"
    if line.problems or sorted(line.names[2].values()) != sorted([name, "b", UNNAMED]):
        yield f"{line.problems} {line.names}"


def case_perfetto_of_nothing():
    """A trace without events gives a process without events."""
    line = timeline(write("t.csv", HEADER))
    if line.problems or line.slices or line.instants or line.time or not line.tracks[1].endswith("t.csv"):
        yield f"{vars(line)}"


# ---- csv ------------------------------------------------------------------------------------------


def case_csv():
    """The text is the trace, with times since the first event, and itself again when it is read."""
    trace = write("t.csv", HEADER + "alloc,7,16,,5,3,a\nuse,7,,,6,4,b\nframe,,,,7,0,\nfree,7,,,9,0,\n")
    text = export("csv", trace)
    if text.decode() != HEADER + "alloc,7,16,1,0,3,a\nuse,7,,,1,4,b\nframe,,,,2,0,\nfree,7,,,4,0,\n":
        yield f"{text}"
    for of in (SMALL, TRAINING):
        text = export("csv", of)
        if export("csv", "-", stdin=text) != text or text.count(b"\n") != of.read_bytes().count(b"\n"):
            yield f"{of.name}: the text differs"


def case_csv_of_a_recording():
    """A recording of the library becomes the text that every reader of traces takes."""
    execute("tour", env={**os.environ, "QUIRE_TRACE": "r.quire"})
    text = export("csv", "r.quire")
    rows = [*csv.DictReader(text.decode().splitlines())]
    if (here() / "r.quire").read_bytes()[:6] != b"\x89quire" or not rows or rows[0]["op"] != "alloc" or \
            not {"image", "buffer"} <= {r["label"] for r in rows} or export("csv", "-", stdin=text) != text:
        yield f"{text}"


def case_csv_takes_no_options():
    """Options of a replay, the file of the options included, are refused before the file is written."""
    kept = write("kept", "kept")
    for option in (["--at", "5"], ["--backend", "host"], ["--profile", "x"], ["--device", "0"], ["--plugin", "x"],
                   ["--plugin-device", "1"], ["--options", "x"], ["--preset", "vma"], ["--elastic"], ["--limit", "1M"]):
        yield from refused(["export", SMALL, "--format", "csv", "--output", kept, *option], 2,
                           "--format csv takes no other option than --output")
    yield from refused(["export", "none.csv", "--format", "csv", "--output", kept], 1, "none.csv")
    yield from refused(["export", SMALL, "--format", "csv", "--output", "no/folder"], 1, "no/folder")
    if kept.read_text() != "kept":
        yield "a refusal emptied the file"


# ---- the command ----------------------------------------------------------------------------------


def case_empty_trace():
    """A trace without events gives a file without pages."""
    snapshot = viz(write("t.csv", HEADER))
    if snapshot["segments"] or snapshot["device_traces"] != [[]]:
        yield f"{snapshot}"


def case_file():
    """The file is named on standard output, which is silent if it is the output itself."""
    yield from prints(["export", SMALL, "--format", "memory_viz", "--output", "x.pickle"],
                      r"ncnn-resnet50.csv after event \d+ of 508: x\.pickle\n$")
    if pickle.loads((here() / "x.pickle").read_bytes())["segments"] == []:
        yield "the file has no segments"


def case_refusals():
    """What export does not accept, and files that it cannot write."""
    kept = write("kept", "kept")
    for args, message in (([], "--format takes memory_viz, vma, perfetto or csv"), (["--format", "dot"], "--format takes memory_viz, vma, perfetto or csv"),
                          (["--format", "memory_viz"], "--output FILE is missing")):
        yield from refused(["export", SMALL, *args], 2, message)
    every = ["--format", "memory_viz", "--output"]
    yield from refused(["export", SMALL, *every, SMALL], 2, "the trace and --output must be different files")
    for at in ("0", "509", "middle", "5x", "+5"):
        yield from refused(["export", SMALL, *every, kept, "--at", at], 2, "--at takes peak, end, or a number")
    yield from refused(["export", "none.csv", *every, kept], 1, "none.csv")
    yield from refused(["export", SMALL, *every, "no/folder"], 1, "no/folder")
    yield from refused(["export", SMALL, *every, "/dev/full"], 1, "No space left")
    if kept.read_text() != "kept":
        yield "a refusal emptied the file"


run_all(globals())
