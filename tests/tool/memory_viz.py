# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Snapshots of PyTorch as Python pickles them at each protocol: quire import writes the rows that
this file computes from the same snapshot.

usage: memory_viz.py PATH_TO_QUIRE SOURCE_ROOT
"""

import os
import pickle
import random

from tool_run import HEADER, run, run_all, write

PROTOCOLS = (2, 3, 4, 5)
ADDRESS = 0x7F0000000000


def frames(chance):
    """Lists of frames, which share their frames and texts, as those of PyTorch do."""
    known = [{"name": f"function_{i % 90}", "filename": f"/opt/torch/nn/module_{i % 40}.py", "line": i * 7}
             for i in range(300)]
    unknown = [{"name": "PyObject_Call", "filename": name, "line": 0} for name in ("??", "")]
    return [chance.sample(unknown, chance.randrange(3)) + chance.sample(known, chance.randrange(12))
            for _ in range(200)]


def history(chance, count):
    """The entries of one device: allocations, frees in two steps, and other actions between."""
    stacks, time, live, entries = frames(chance), 1_700_000_000_000_000, [], []
    free = [ADDRESS + 512 * i for i in range(500)]

    def add(action, addr, size, stream, key="addr"):
        nonlocal time
        time += chance.randrange(-1, 20)
        entries.append({"action": action, key: addr, "size": size, "stream": stream, "time_us": time,
                        "frames": chance.choice(stacks)})

    add("free_completed", ADDRESS - 512, 512, 0)  # of an allocation before the history
    while len(entries) < count:
        step = chance.random()
        if step < 0.5 and free:
            live.append((free.pop(chance.randrange(len(free))), chance.randrange(1, 1 << 33),
                         chance.choice((0, 0x55AA00001230, 0x55AA00004560))))
            add("alloc", *live[-1])
        elif step < 0.95 and live:
            addr, size, stream = live.pop(chance.randrange(len(live)))
            add("free_requested", addr, size, stream)
            add("free_completed", addr, size, stream)
            free.append(addr)
        else:
            add(chance.choice(("segment_alloc", "segment_free", "segment_map", "segment_unmap")), ADDRESS, 2 << 20, 0)
    add("oom", 12345, 1 << 40, 0, "device_free")
    return entries


def segments(chance):
    stacks = frames(chance)
    return [{"device": i % 2, "address": ADDRESS + (i << 21), "total_size": 2 << 20, "stream": (i % 3) << 40,
             "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": stacks[i],
             "blocks": [{"address": ADDRESS + (i << 21) + j * 512, "size": 512, "requested_size": 300 + j,
                         "state": chance.choice(("active_allocated", "active_pending_free", "inactive")),
                         "frames": chance.choice(stacks)} for j in range(chance.randrange(5))]}
            for i in range(50)]


def snapshot(traces, chance):
    return {"segments": segments(chance), "device_traces": traces,
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0, "expandable_segments": False,
                                   "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}},
            "external_annotations": [{"device": 0, "stage": "START", "name": "step", "time_us": 1}]}


def label(stack):
    for frame in stack:
        if frame["filename"] not in ("", "??"):
            return f"{frame['name']} {os.path.basename(frame['filename'])}:{frame['line']}"
    return ""


def rows_of_history(entries):
    rows, live, streams, last, count = [], {}, {}, 0, 0
    for entry in entries:
        if entry["action"] not in ("alloc", "free_completed"):
            continue
        last = max(last, entry["time_us"] * 1000)
        if entry["action"] == "alloc":
            count += 1
            live[entry["addr"]] = count
        elif entry["addr"] not in live:
            continue
        stream = streams.setdefault(entry["stream"], len(streams))
        if entry["action"] == "alloc":
            rows.append(f"alloc,{live[entry['addr']]},{entry['size']},512,{last},{stream},{label(entry['frames'])}\n")
        else:
            rows.append(f"free,{live.pop(entry['addr'])},,,{last},{stream},\n")
    return HEADER + "".join(rows)


def rows_of_segments(found, device):
    rows, streams = [], {}
    for segment in found:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and segment["device"] == device:
                stream = streams.setdefault(segment["stream"], len(streams))
                name = label(block["frames"])
                rows.append(f"alloc,{len(rows) + 1},{block['requested_size']},512,0,{stream},{name}\n")
    return HEADER + "".join(rows)


def check(value, wanted):
    """The rows are the same from each protocol, on standard output and in a file."""
    for protocol in PROTOCOLS:
        path = write(f"{protocol}.pickle", pickle.dumps(value, protocol))
        done = run("import", path, "--format", "memory_viz")
        if done.code or done.out != wanted:
            yield f"protocol {protocol}: exit {done.code}, {done.err[:200]}, {done.out[:300]!r}, not {wanted[:300]!r}"
        trace = path.with_suffix(".csv")
        done = run("import", path, "--format", "memory_viz", "--output", trace)
        if done.code or trace.read_text() != wanted:
            yield f"protocol {protocol}: --output: exit {done.code}, {done.err[:200]}"


def case_history():
    """A history of more than one batch of entries, on the second of three devices."""
    chance = random.Random(1)
    entries = history(chance, 3500)
    yield from check(snapshot([[], entries, []], chance), rows_of_history(entries))


def case_one_entry():
    """A history of one entry on the only device, and one whose device has another entry alone before it."""
    chance = random.Random(2)
    entries = [entry for entry in history(chance, 50) if entry["action"] == "alloc"][:1]
    yield from check(snapshot([entries], chance), rows_of_history(entries))
    state = {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 1, "frames": []}
    yield from check(snapshot([[state], entries], chance), rows_of_history(entries))


def case_no_history():
    """Without history, the live blocks of the first device that has any."""
    chance = random.Random(3)
    value = snapshot([[], []], chance)
    yield from check(value, rows_of_segments(value["segments"], next(
        segment["device"] for segment in value["segments"]
        if any(block["state"] == "active_allocated" for block in segment["blocks"]))))


def case_objects():
    """A pickle that would call a function is refused, and calls nothing."""

    class Calls:
        def __reduce__(self):
            return os.mkdir, ("made",)

    for protocol in PROTOCOLS:
        path = write("calls.pickle", pickle.dumps({"segments": [], "x": Calls()}, protocol))
        done = run("import", path, "--format", "memory_viz")
        if done.code != 1 or done.out or "GLOBAL" not in done.err or (path.parent / "made").exists():
            yield f"protocol {protocol}: exit {done.code}, {done.err[:200]!r}"


run_all(globals())
