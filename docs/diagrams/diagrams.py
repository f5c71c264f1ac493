# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the diagrams of the documents.

usage: diagrams.py [FOLDER]

FOLDER: where the files are written; by default the folder of this script.
"""

import pathlib
import sys

from drawing import WIDTH, Drawing


def memory():
    d = Drawing("memory", 392, "Memory, page and allocation",
                "A device has memories. The memory 'weights' has four pages. Pages 0 and 1 are shared "
                "and hold several allocations and free ranges, page 2 is dedicated and holds exactly "
                "one allocation, page 3 is empty and kept for reuse. A handle names an allocation; "
                "its description is a page, an offset and a size.")
    d.group(16, 16, WIDTH - 32, 360, "device: one backend on one physical device")
    d.group(32, 48, WIDTH - 64, 232, "memory 'weights': pages of one memory kind")
    left, unit = 216, 62  # a unit is 128 KiB
    pages = [
        ("page 0", "shared", [(2, "live", "layer 0"), (1, "live", "bias 0"), (2, "live", "layer 1"),
                              (3, "free", "free")]),
        ("page 1", "shared", [(3, "live", "layer 2"), (1, "free", "free"), (1, "live", "bias 2"),
                              (3, "free", "free")]),
        ("page 2", "dedicated", [(6, "other", "embedding")]),
        ("page 3", "shared, empty", [(8, "free", "kept for the next request that needs a page")]),
    ]
    for row, (name, kind, ranges) in enumerate(pages):
        y, x = 80 + 49 * row, left
        d.text(48, y + 15, name, "head")
        d.text(48, y + 31, kind, "small")
        for size, style, words in ranges:
            d.box(x, y, size * unit, 36, style, words, "small" if style == "free" else "")
            x += size * unit
    d.arrow([(202, 300), (202, 122), (left + 4 * unit, 122), (left + 4 * unit, 116)])
    d.arrow([(130, 318), (192, 318)])
    d.box(48, 300, 82, 36, "frame", "handle")
    d.box(192, 300, 300, 36, "live", "'layer 1': page 0, offset 384 KiB, 256 KiB")
    d.text(508, 314, "an allocation: a range of one page\nthat a handle names", "small")
    d.text(48, 360, "Each page is one object of the backend: a VkDeviceMemory, a CUDA handle, "
           "a mapping of the host.", "small")
    return d


def ruler(d, left, y, unit, units, every, label):
    d.line([(left, y), (left + unit * units, y)])
    for at in range(units + 1):
        long = at % every == 0
        d.line([(left + unit * at, y), (left + unit * at, y - (8 if long else 4))])
        if long:
            d.text(left + unit * at, y - 13, label(at), "small", "middle")


def region():
    """The rows are what quire_memory_walk returns for these two requests in a page of 4096 bytes."""
    d = Drawing("region", 322, "A region with alignment and left padding",
                "A region of 4096 bytes with granules of 256 bytes. Request A has 700 bytes, request B "
                "1200 bytes aligned to 1024. With the segregated fit A holds 768 bytes, a free range "
                "of 256 bytes follows, B holds 1280 bytes at offset 1024. With the fits first and "
                "linear A holds 700 bytes; the 324 bytes before offset 1024 are B's left padding. "
                "With the buddy fit A holds 1024 bytes and B 2048 bytes at offset 2048.")
    left, unit, granule = 128, 38, 256
    scale = unit / granule
    d.text(16, 26, "A: 700 bytes.  B: 1200 bytes, aligned to 1024.  The region: one page of 4096 bytes; "
           "a tick is a granule of 256.")
    ruler(d, left, 70, unit, 16, 4, lambda at: str(at * granule))
    for at in (0, 1024, 2048, 3072, 4096):
        d.line([(left + at * scale, 72), (left + at * scale, 236)], "rule")
    rows = [
        ("segregated", "(default)", [(0, 768, "live", "A: 768"), (768, 256, "free", "free"),
                            (1024, 1280, "live", "B: 1280"), (2304, 1792, "free", "free: 1792")]),
        ("first, linear", "", [(0, 700, "live", "A: 700"), (700, 324, "pad", "pad"),
                            (1024, 1200, "live", "B: 1200"), (2224, 1872, "free", "free: 1872")]),
        ("buddy", "", [(0, 1024, "live", "A: 1024"), (1024, 1024, "free", "free: 1024"),
                            (2048, 2048, "live", "B: 2048")]),
    ]
    for row, (name, note, ranges) in enumerate(rows):
        y = 84 + 56 * row
        d.text(16, y + (15 if note else 22), name, "head")
        d.text(16, y + 31, note, "small")
        for at, size, style, words in ranges:
            d.box(left + at * scale, y, size * scale, 34, style, words)
    notes = [("live", "live: the allocation, rounded up to what the fit places"),
             ("pad", "left padding: bytes that alignment costs; they belong to B"),
             ("free", "free range: any request that fits may take it")]
    for row, (style, words) in enumerate(notes):
        d.box(left, 248 + 22 * row, 24, 14, style)
        d.text(left + 34, 260 + 22 * row, words)
    return d


def streams():
    d = Drawing("streams", 330, "Streams and points in time",
                "Time goes to the right. The program allocates a, submits kernel 1, which uses a, to "
                "the stream 'compute', and frees a on that stream while kernel 1 runs. The free is "
                "after a point that passes when kernel 1 is done. A request on 'compute' can take the "
                "range of a at once. A request on another stream can take it if no other range fits; "
                "its work then waits for the point on the device. Any other request can take it after "
                "the point has passed.")
    left, right = 204, WIDTH - 24
    free, point = left + 216, left + 368
    d.text(left, 26, "time", "small")
    d.arrow([(left + 34, 22), (right, 22)])
    d.text(16, 60, "the program", "head")
    d.text(16, 112, "stream 'compute'", "head")
    d.line([(free, 70), (free, 294)], "rule")
    d.line([(point, 82), (point, 304)], "wait")
    for x, width, words in ((0, 84, "allocate a"), (92, 112, "submit kernel 1"),
                            (free - left, 136, "free a on 'compute'")):
        d.box(left + x, 40, width, 30, "frame", words)
    d.box(left + 134, 92, point - left - 134, 32, "live", "kernel 1 uses a")
    d.box(point + 8, 92, right - point - 8, 32, "frame", "later work")
    d.arrow([(left + 112, 70), (left + 112, 108), (left + 134, 108)])
    d.text(point, 320, "the point passes: kernel 1 is done", "small", "middle")
    d.text(16, 158, "Who can take the range of a?", "head")
    rows = [
        ("a request on 'compute'", "at once",
         [(free, right, "live", "its work runs after kernel 1")]),
        ("a request on another stream", "if no free range fits",
         [(free, point, "pad", "its work waits"), (point, right, "live", "and runs")]),
        ("any other request", "after the point has passed", [(point, right, "live", "a free range")]),
    ]
    for row, (who, when, spans) in enumerate(rows):
        y = 170 + 44 * row
        d.text(16, y + 14, who)
        d.text(16, y + 30, when, "small")
        for start, end, style, words in spans:
            d.box(start, y, end - start, 34, style, words)
    return d


def shard(d, x, name, inbox_words, inbox_style, ranges):
    d.group(x, 92, 340, 192, name)
    for number, words in enumerate(("lock", "space", "slots", "statistics")):
        d.box(x + 12 + 80 * number, 124, 74, 28, "frame", words)
    d.box(x + 172, 170, 154, 34, inbox_style, inbox_words)
    d.text(x + 12, 268, "page", "small")
    at = x + 48
    for width, style, words in ranges:
        d.box(at, 246, width, 32, style, words)
        at += width


def inbox():
    d = Drawing("inbox", 388, "A shard's inbox",
                "A memory with two shards. Each shard has its own lock, space, slots, statistics, pages "
                "and inbox. Thread 1 works in shard 0, thread 2 in shard 1. Thread 2 frees x, an "
                "allocation of shard 0: it adds x to the inbox of shard 0 with one "
                "compare-and-exchange. Thread 1 drains the inbox later, under the lock of shard 0: "
                "then the range of x is free.")
    shard(d, 24, "shard 0", "inbox: x, y", "pad",
          [(90, "live", "a"), (56, "pad", "x"), (50, "live", "b"), (40, "pad", "y"), (42, "free", "")])
    shard(d, 396, "shard 1", "inbox: empty", "free",
          [(70, "live", "c"), (60, "free", ""), (90, "live", "d"), (58, "free", "")])
    for x, name in ((64, "thread 1"), (620, "thread 2")):
        d.box(x, 24, 100, 32, "other", name)
        d.arrow([(x + 50, 56), (x + 50, 92)])
        d.text(x + 58, 78, "1", "head")
    d.arrow([(620, 40), (380, 40), (380, 187), (350, 187)], "wait")
    d.text(372, 32, "2", "head")
    d.text(384, 32, "free x: one compare-and-exchange", "small")
    d.arrow([(200, 204), (200, 246)], "wait")
    d.text(210, 229, "3", "head")
    d.text(222, 229, "drain, under the lock", "small")
    notes = [
        "A thread allocates and frees in its own shard, under the lock of that shard.",
        "Thread 2 frees x of shard 0: it adds x to the inbox of shard 0. The handle is stale at once.\n"
        "The bytes of x count as live until the drain.",
        "A thread of shard 0 drains the inbox during its own calls: the range of x becomes free.",
    ]
    for number, (y, words) in enumerate(zip((312, 334, 372), notes)):
        d.text(24, y, str(number + 1), "head")
        d.text(40, y, words)
    return d


def copy_path():
    d = Drawing("copy_path", 494, "The choice of a copy path",
                "quire asks in this order. The host addresses both ends and the source is cached: "
                "memcpy, DIRECT. Pages of one device: copy_pages, DIRECT. Pages of two devices of one "
                "backend: copy_peer, DIRECT. The host addresses both ends: memcpy, DIRECT. It "
                "addresses the source: copy_to_page, DIRECT or STAGED. It addresses the destination: "
                "copy_from_page, DIRECT or STAGED. Neither: copy_from_page and copy_to_page through "
                "host memory, HOST. If the backend lacks the function, the first question that offers "
                "another path decides, and without one the copy is UNSUPPORTED.")
    d.text(16, 28, "The host addresses host memory and the pages of host-visible memory kinds.")
    steps = [
        ("Does the host address both ends,\nand is the source host memory or cached?",
         "memcpy", "DIRECT"),
        ("Are both ends pages of one device?", "copy_pages", "DIRECT"),
        ("Are they pages of two devices of one backend?", "copy_peer", "DIRECT"),
        ("Does the host address both ends?", "memcpy", "DIRECT"),
        ("Does the host address the source?", "copy_to_page", "DIRECT or STAGED"),
        ("Does the host address the destination?", "copy_from_page", "DIRECT or STAGED"),
    ]
    for row, (question, call, path) in enumerate(steps):
        y = 48 + 60 * row
        d.box(16, y, 330, 42, "frame", question)
        d.arrow([(346, y + 21), (420, y + 21)])
        d.text(383, y + 15, "yes", "small", "middle")
        d.box(420, y, 150, 42, "live", call, "code")
        d.box(570, y, 174, 42, "other", path)
        d.arrow([(181, y + 42), (181, y + 60)])
        d.text(190, y + 55, "no", "small")
    d.box(16, 408, 554, 42, "live", "copy_from_page, copy_to_page through host memory", "code")
    d.box(570, 408, 174, 42, "other", "HOST")
    d.text(16, 472, "A backend without copy_pages or copy_peer: the answer is no. Without a function of "
           "the last three rows: UNSUPPORTED.", "small")
    return d


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    folder = folder if folder.is_dir() else folder.parent
    for drawing in (memory(), region(), streams(), inbox(), copy_path()):
        (folder / f"{drawing.name}.svg").write_text(drawing.svg())


if __name__ == "__main__":
    main()
