# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire top: what it shows of recordings that grow, begin again, end or are no recordings.

usage: top.py PATH_TO_QUIRE SOURCE_ROOT
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import time

from tool_run import (
    HEADER, KIB, MIB, QUIRE, SMALL, here, open_terminal, parse, prints, read_terminal, refused, result, run,
    run_all, usage, write)

ALLOC, FREE, FRAME, NAME = 1, 2, 3, 4
FAST = ("--interval", "0.05")
LONG_AGO = 1_000_000_000


# ---- recordings ---------------------------------------------------------------------------------


def record(number, ticks, kind, alignment=0):
    return struct.pack("<QIHBB", number, ticks, 0, alignment, kind)


class Block:
    """One block of a recording, from `begin` to `begin` + 1000 ns, with 100 ticks."""

    def __init__(self, begin=1000):
        self.begin, self.content, self.ticks = begin, b"", 0

    def name(self, text):
        self.content += record(len(text), self.ticks, NAME) + text + b"\0" * (-len(text) % 16)
        return self

    def alloc(self, number, size, name=b""):
        place = 0
        if name:
            place = 64 + len(self.content)
            self.name(name)
        self.content += record(number, self.ticks, ALLOC, alignment=4) + struct.pack("<QII", size, place, 0)
        return self

    def free(self, number):
        self.content += record(number, self.ticks, FREE)
        return self

    def frame(self):
        self.content += record(0, self.ticks, FRAME)
        return self

    def bytes(self):
        return struct.pack("<8sIIQQQ24x", b"\x89quire1\n", 0x01020304, 64 + len(self.content), self.begin,
                           self.begin + 1000, 100) + self.content


FIRST = Block().alloc(1, MIB, b"weights/a").alloc(2, MIB, b"weights/b").alloc(3, KIB, b"act").free(3).frame().bytes()
SECOND = Block(5000).free(2).alloc(4, 3 * MIB, b"cache.k").alloc(5, 10).bytes()
AFTER_FIRST = {"live_bytes": 2 * MIB, "live_ranges": 2, "peak_bytes": 2 * MIB + KIB, "peak_ranges": 3,
               "allocations": 3, "frees": 1, "frames": 1, "pending_bytes": 0, "restarts": 0, "other_names": 0,
               "names": [{"name": "weights", "bytes": 2 * MIB, "ranges": 2}]}
AFTER_SECOND = {"live_bytes": 4 * MIB + 10, "live_ranges": 3, "peak_bytes": 4 * MIB + 10, "peak_ranges": 3,
                "allocations": 5, "frees": 2, "frames": 1, "pending_bytes": 0, "restarts": 0, "other_names": 0,
                "names": [{"name": "cache", "bytes": 3 * MIB, "ranges": 1},
                          {"name": "weights", "bytes": MIB, "ranges": 1}, {"name": "", "bytes": 10, "ranges": 1}]}
EMPTY = {key: [] if key == "names" else 0 for key in AFTER_FIRST}


def append(path, content):
    with open(path, "ab") as file:
        file.write(content)


def unlike(found, wanted, what):
    different = {key: found.get(key) for key in wanted if found.get(key) != wanted[key]}
    if different:
        yield f"{what}: {different}"


@contextlib.contextmanager
def follow(*args, **more):
    """A running command, which is killed at the end unless it has ended."""
    child = subprocess.Popen([QUIRE, "top", *map(str, args)], cwd=here(), stdout=more.pop("stdout", subprocess.PIPE),
                             stderr=subprocess.PIPE, **more)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def lines_until(child, condition):
    """Reads JSON lines up to the first one that meets the condition."""
    lines = []
    while line := child.stdout.readline():
        lines.append(json.loads(line))
        if condition(lines[-1]):
            return lines
    raise ValueError(f"the output ends: {lines[-2:]}, {child.stderr.read()}")


# ---- one look -----------------------------------------------------------------------------------


def case_once():
    """--once shows the state at the end of the file, as text and as JSON."""
    path = write("f", FIRST)
    yield from unlike(result("top", path, "--once"), {**AFTER_FIRST, "state": "unknown", "recording": str(path)}, "one")
    append(path, SECOND)
    yield from unlike(result("top", path, "--once"), AFTER_SECOND, "two")
    append(path, Block(9000).frame().bytes()[:-1])
    found = result("top", path, "--once", "--top", "2")
    yield from unlike(found, {**AFTER_SECOND, "pending_bytes": 79, "names": AFTER_SECOND["names"][:2],
                              "other_names": 1}, "an incomplete block")
    os.utime(path, (LONG_AGO, LONG_AGO))
    least = (time.time() - LONG_AGO) * 1e9 - 1e6
    age = result("top", path, "--once")["last_event_age_ns"]
    if not least <= age < least + 60e9:
        yield f"the age is {age}"
    yield from prints(["top", path, "--once", "--top", "1"], re.escape(f"{path}\n  no process has locked it; last"),
                      r"live +4.00 MiB in 3 ranges", r"peak +4.00 MiB; at most 3 ranges",
                      r"allocs +1250000.0 per second, 5 in all", r"frees +500000.0 per second, 2 in all",
                      r"\n  cache +3 MiB +1 +75.0 %\n  and 2 more\n$")
    yield from prints(["top", path, "--once", "--top", "0"], r"\n  weights +1 MiB +1 +25.0 %\n  \(unnamed\) +10 B")
    done = run("top", path, "--once", "--json")
    if done.out.count("\n") != 1 or not done.out.endswith("}\n"):
        yield f"--json: {done.out!r}"


def case_empty():
    """A recording without a block yet has no events, no rates and no age."""
    path = write("f", b"")
    nothing = {**EMPTY, "allocations_per_second": None, "frees_per_second": None, "last_event_age_ns": None}
    yield from unlike(result("top", path, "--once"), nothing, "an empty file")
    append(path, FIRST[:60])
    yield from unlike(result("top", path, "--once"), {**nothing, "pending_bytes": 60}, "a part of a header")
    yield from prints(["top", path, "--once"], "; no event\n", r"allocs +- per second, 0 in all", "0 B in 0 ranges")
    write("f", Block().alloc(1, 5).bytes())
    yield from prints(["top", path, "--once"], "5 B in 1 range\n", "at most 1 range\n", r"allocs +- per")


def case_names():
    """Names from the file do not control the terminal."""
    path = write("f", Block().alloc(1, MIB, b"\x1b[31m\r\n\xff").alloc(2, 1, b"x" * 255).bytes())
    done = run("top", path, "--once")
    if not re.search("\n  \\?\\[31m__\ufffd +1 MiB", done.out) or re.search(r"[\x00-\x09\x0b-\x1f]", done.out):
        yield repr(done.out)
    yield from (f"{line!r}" for line in done.out.splitlines()[1:] if len(line) > 80)
    if parse(run("top", path, "--once", "--json"))["names"][1]["name"] != "x" * 255:
        yield "JSON has another name"


# ---- looks --------------------------------------------------------------------------------------


def case_growth():
    """What is appended, in pieces of any size, is in the next lines; rates are those of the interval."""
    path = write("f", b"")
    with follow(path, "--json", *FAST) as child:
        yield from unlike(lines_until(child, bool)[0], EMPTY, "at first")
        for at in range(0, len(FIRST), 50):
            append(path, FIRST[at:at + 50])
            size = min(at + 50, len(FIRST))
            lines = lines_until(child, lambda line, size=size: line["pending_bytes"] == size or line["live_bytes"])
        yield from unlike(lines[-1], AFTER_FIRST, "the first block")
        # after a late look the next interval is shorter; the blocks' own times would make it 1,250,000
        if not 0 < lines[-1]["allocations_per_second"] <= 3 / 0.001:
            yield f"{lines[-1]}"
        lines = lines_until(child, lambda line: not line["allocations_per_second"])
        append(path, SECOND)
        lines = lines_until(child, lambda line: line["allocations"] == 5)
        yield from unlike(lines[-1], AFTER_SECOND, "the second block")
        if child.poll() is not None:
            yield "the command has ended"


def case_lines():
    """Without a terminal and --json there is a line per interval below the names of the columns."""
    path = write("f", FIRST + SECOND)
    os.utime(path, (LONG_AGO, LONG_AGO))
    started = time.monotonic()
    done = run("top", path, "--interval", "0.3")
    lines = done.out.splitlines()
    if done.code or done.err or len(lines) != 3 or not 0.3 <= time.monotonic() - started < 30:
        yield f"{done.code}, {done.err}, {done.out}"
    if lines[0].split() != "live ranges peak allocs/s frees/s allocs frees age state largest names".split():
        yield lines[0]
    for line, rates in zip(lines[1:], ("1250000.0 500000.0", "0.0 0.0")):
        if not re.fullmatch(rf"4.00 MiB 3 4.00 MiB {rates} 5 2 \d+\.\d s unknown cache 3 MiB, weights 1 MiB, "
                            r"\(unnamed\) 10 B", " ".join(line.split())):
            yield line


def case_terminal():
    """On a terminal the view is redrawn from its home, and has as many names and columns as fit."""
    block = Block()
    for i in range(50):
        block.alloc(i + 1, 100 - i, b"n%d" % i + b"-" * 100)
    path = write("f", block.bytes())
    os.utime(path, (LONG_AGO, LONG_AGO))
    leader, other = open_terminal()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    with follow(path, "--top", "0", *FAST, stdout=other) as child:
        os.close(other)
        code = child.wait(60)
    seen = read_terminal(leader).decode()
    views = seen.split("\x1b[H\x1b[J")
    if code or len(views) != 3 or views[0] or "\x1b" in "".join(views):
        yield f"exit {code}, {seen!r}"
    for view in views[1:]:
        lines = view.split("\r\n")
        if len(lines) > 20 or "  and 41 more" not in lines or max(map(len, lines[1:])) > 60:
            yield f"{lines}"


# ---- the end ------------------------------------------------------------------------------------


def case_lock():
    """A file that a process has locked is recorded until the lock is free; then the command ends."""
    path = write("f", FIRST)
    os.utime(path, (LONG_AGO, LONG_AGO))
    with open(path, "ab") as recorder:
        fcntl.flock(recorder, fcntl.LOCK_EX)
        yield from prints(["top", path, "--once"], "\n  a process records; last")
        with follow(path, "--json", *FAST) as child:
            for _ in range(4):
                yield from unlike(lines_until(child, bool)[0], {"state": "recording"}, "locked")
            recorder.write(SECOND)
            recorder.close()
            rest = [json.loads(line) for line in child.stdout]
            if child.wait(60):
                yield f"exit {child.returncode}"
            yield from unlike(rest[-1], {**AFTER_SECOND, "state": "ended"}, "at the end")


def case_silence():
    """A file without a lock that is written now and then has not ended; an interrupt ends the command."""
    path = write("f", FIRST)
    with follow(path, "--json", *FAST) as child:
        for _ in range(8):
            yield from unlike(lines_until(child, bool)[0], {"state": "unknown"}, "no lock")
        child.send_signal(signal.SIGINT)
        if child.wait(60) != -signal.SIGINT:
            yield f"SIGINT: {child.returncode}"
    with follow(path, "--json", *FAST) as child:
        lines_until(child, bool)
        os.utime(path, (LONG_AGO, LONG_AGO))
        if child.wait(60):
            yield f"exit {child.returncode}"


def case_free_file():
    """A look takes no lock away from a recorder that begins."""
    path = write("f", FIRST)
    with follow(path, "--json", "--interval", "0.001") as child:
        lines_until(child, bool)
        with open(path, "ab") as recorder:
            fcntl.flock(recorder, fcntl.LOCK_EX)
            yield from unlike(lines_until(child, lambda line: line["state"] != "unknown")[-1],
                              {"state": "recording"}, "locked")
    with follow(path, "--json", "--interval", "60") as child:
        lines_until(child, bool)
        with open(path, "ab") as recorder:
            try:
                fcntl.flock(recorder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield "the lock is held between two looks"


# ---- a recording that begins again --------------------------------------------------------------


def case_again():
    """A file that is cut, written anew or replaced is read from its begin."""
    other = Block(100).alloc(9, 7, b"new").bytes()
    new = {"live_bytes": 7, "live_ranges": 1, "peak_bytes": 7, "allocations": 1, "frees": 0,
           "names": [{"name": "new", "bytes": 7, "ranges": 1}]}
    path = write("f", FIRST + SECOND)
    with follow(path, "--json", *FAST) as child:
        yield from unlike(lines_until(child, bool)[0], AFTER_SECOND, "at first")
        os.truncate(path, 0)
        yield from unlike(lines_until(child, lambda line: line["restarts"])[-1], {
            **EMPTY, "restarts": 1, "allocations_per_second": 0, "frees_per_second": 0}, "cut")
        append(path, other)
        yield from unlike(lines_until(child, lambda line: line["live_bytes"])[-1], {**new, "restarts": 1}, "cut")
        write("g", FIRST + SECOND)
        os.replace(here() / "g", path)
        found = lines_until(child, lambda line: line["restarts"] > 1)[-1]
        yield from unlike(found, {**AFTER_SECOND, "restarts": 2}, "replaced")
        longer = b"".join(Block(10000 * (i + 1)).alloc(i + 1, 1).bytes() for i in range(50))
        with open(path, "r+b") as file:  # in one write, and longer than before
            os.pwrite(file.fileno(), longer, 0)
        found = lines_until(child, lambda line: line["restarts"] > 2)[-1]
        yield from unlike(found, {"restarts": 3, "live_bytes": 50, "allocations": 50}, "overwritten")
        os.unlink(path)
        yield from unlike(lines_until(child, bool)[-1], {"restarts": 3, "live_bytes": 50}, "removed")
        write("f", FIRST)
        found = lines_until(child, lambda line: line["restarts"] > 3)[-1]
        yield from unlike(found, {**AFTER_FIRST, "restarts": 4}, "made again")


# ---- refusals -----------------------------------------------------------------------------------


def case_malformed():
    """The first mistake ends the command with the sentence of the reader, at once or after growth."""
    path = write("f", FIRST + FIRST)
    sentence = "the time of the block is before that of the last one"
    for more in ([], ["--once"], ["--json"]):
        yield from refused(["top", path, *more], 1, f"{path}: byte {len(FIRST)}: {sentence}")
    write("f", FIRST)
    with follow(path, "--json", *FAST) as child:
        lines_until(child, bool)
        append(path, FIRST)
        code, err = child.wait(60), child.stderr.read().decode()
        if code != 1 or err != f"quire: {path}: byte {len(FIRST)}: {sentence}\n":
            yield f"exit {code}, {err}"
    write("f", FIRST)
    with follow(path, "--json", *FAST) as child:
        lines_until(child, bool)
        write("g", HEADER)
        os.replace(here() / "g", path)
        if child.wait(60) != 1 or b"a trace of text" not in child.stderr.read():
            yield f"replaced by text: exit {child.returncode}"
    with follow(write("f", FIRST), "--json", *FAST) as child:
        lines_until(child, bool)
        os.unlink(path)
        os.mkdir(path)
        if child.wait(60) != 1 or b"is not a regular file" not in child.stderr.read():
            yield f"replaced by a folder: exit {child.returncode}"


def case_refused():
    """What is no recording is refused with a sentence."""
    yield from refused(["top", SMALL], 1, f"{SMALL}: a trace of text; only a recording can be followed, which "
                                          "QUIRE_TRACE or quire_record_start writes")
    other = write("other", b"\x89PNG\r\n\x1a\n")
    yield from refused(["top", other], 1, f"{other}: byte 0: no block of a recording begins here")
    yield from refused(["top", "none"], 1, "none: No such file or directory")
    yield from refused(["top", "/"], 1, "/: is not a regular file")
    os.mkfifo(here() / "pipe")
    yield from refused(["top", "pipe"], 1, "pipe: is not a regular file")
    yield from usage("top", pattern="missing argument")
    yield from refused(["top", "-"], 2, "standard input cannot be followed")
    for interval in ("", "0", "-1", "x", "1x", "1.2.3", "0.0009", "86401", "1e3", "inf"):
        yield from refused(["top", other, "--interval", interval], 2, "--interval takes seconds from 0.001 to 86400")
    path = write("f", FIRST)
    for more in ([], ["--once"], ["--json"]):
        with open("/dev/full", "wb") as full, follow(path, *FAST, *more, stdout=full) as child:
            code, err = child.wait(60), child.stderr.read()
            if code != 1 or not err.startswith(b"quire: standard output"):
                yield f"/dev/full {more}: exit {code}, {err}"


# ---- a recorder ---------------------------------------------------------------------------------


def case_recorder():
    """The recording of a replay is followed while it runs, and ends with the totals of the trace."""
    rows = 50_000
    text = write("big.csv", HEADER + "".join(
        f"alloc,{i + 1},{(i % 97 + 1) * 256},,{i},0,n{i % 7}/x\n" + (f"free,{i - 99},,,{i},0,\n" if i > 99 else "")
        for i in range(rows)))
    expected = result("replay", text)
    path = here() / "f"
    path.touch()
    with follow(path, "--json", *FAST) as child:
        # The replay has its device until its page, which is larger than a pipe, is written.
        recorder = subprocess.Popen([QUIRE, "replay", text, "--html", "-"], cwd=here(), stdout=subprocess.PIPE,
                                    env={**os.environ, "QUIRE_TRACE": str(path)})
        running = lines_until(child, lambda line: line["state"] == "recording" and line["peak_ranges"] > 100)[-1]
        held = [result("top", path, "--once") for _ in range(2)]
        page = recorder.communicate()[0]
        last = [json.loads(line) for line in child.stdout][-1]
        if child.wait(60) or recorder.returncode or len(page) <= 1 << 16:
            yield f"exit {child.returncode}, of the recorder {recorder.returncode}, {len(page)} bytes"
    again = result("replay", path)
    yield from unlike(last, {"state": "ended", "allocations": rows, "frees": again["frees"], "restarts": 0,
                             "live_bytes": again["left_bytes"], "live_ranges": again["left_at_end"],
                             "peak_bytes": expected["peak_requested_bytes"]}, "at the end")
    yield from (problem for one in (running, *held) for problem in unlike(one, {"state": "recording",
                                                                                "peak_ranges": 101}, "while it runs"))
    if sum(name["bytes"] for name in held[0]["names"]) != held[0]["live_bytes"] or not held[0]["live_bytes"]:
        yield f"{held}"


run_all(globals())
