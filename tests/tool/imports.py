# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire import: traces from the files of other programs, which quire replay accepts, and refusals that
leave no output.

usage: imports.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import os
import pickle
import re
import subprocess

from tool_run import HEADER, QUIRE, execute, fails, here, refused, result, run, run_all, usage, write

RMM = """Thread,Time,Action,Pointer,Size,Stream
7,23:59:59.999999,allocate,0x7f00,1000,0x0
7,00:00:00.000001,allocate,0x8f00,24,0x2
7,00:00:00.000002,free,0x7f00,1000,0x0
7,00:00:00.000003,free,0x9f00,1000,0x0
"""
RMM_ROWS = """alloc,1,1000,256,86399999999000,0,
alloc,2,24,256,86400000001000,2,
free,1,,,86400000002000,0,
"""
RMM_COUNTS = (2, 1, 1)

MINIMALLOC = """upper,lower,size,id,alignment
9,3,16,b,
3,0,8,a,64
"""
MINIMALLOC_ROWS = """alloc,2,8,64,0,0,a
free,2,,,3000,0,
alloc,1,16,1,3000,0,b
free,1,,,9000,0,
"""



def memory_event(ts, addr, size, device=0, kind=1):
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": ts,
            "args": {"Total Reserved": 0, "Total Allocated": 0, "Bytes": size, "Addr": addr, "Device Id": device,
                     "Device Type": kind}}


KINETO = json.dumps({"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms", "traceEvents": [
    memory_event(12.25, 139637976727552, 1024), memory_event(13.5, 139637976727552, -1024),
    {"ph": "X", "name": "aten::empty", "ts": 11.5, "dur": 1.0, "args": {"Input Dims": [[2, 3], []]}},
    memory_event(11.125, 139637976728576, 512), memory_event(10, 94000000000000, 64, -1, 0)]})
KINETO_ROWS = """alloc,1,512,512,11125,0,
alloc,2,1024,512,12250,0,
free,2,,,13500,0,
"""
KINETO_NOTE = "; Device Id 0 of Device Type 1, one of 2 devices"
VMA = json.dumps({"General": {"API": "Vulkan"}, "DefaultPools": {"Type 0": {"Blocks": {"0": {"Suballocations": [
    {"Offset": 0, "Type": "BUFFER", "Size": 256, "Usage": 2}, {"Offset": 256, "Type": "FREE", "Size": 256},
    {"Offset": 512, "Type": "IMAGE_OPTIMAL", "Size": 512, "Usage": 4, "Name": "sky"}]}},
    "DedicatedAllocations": [{"Type": "BUFFER", "Size": 4096, "Usage": 2}]}}, "CustomPools": {}}, indent=2)
VMA_ROWS = """alloc,1,256,1,0,0,BUFFER
alloc,2,512,1,0,0,sky
alloc,3,4096,1,0,0,BUFFER
"""

# format: file, its rows, (allocations, frees, left out), and more in the summary
SNAPSHOT = pickle.dumps({"device_traces": [[
    {"action": "alloc", "addr": 512, "size": 100, "stream": 0, "time_us": 3, "frames": []},
    {"action": "free_completed", "addr": 512, "size": 100, "stream": 0, "time_us": 4, "frames": []}]]}, 4)
SNAPSHOT_ROWS = "alloc,1,100,512,3000,0,\nfree,1,,,4000,0,\n"

FORMATS = {
    "memory_viz": (SNAPSHOT, SNAPSHOT_ROWS, (1, 1, 0), ""),
    "rmm": (RMM, RMM_ROWS, RMM_COUNTS, ""),
    "kineto": (KINETO, KINETO_ROWS, (2, 1, 0), KINETO_NOTE),
    "minimalloc": (MINIMALLOC, MINIMALLOC_ROWS, (2, 2, 0), ""),
    "vma": (VMA, VMA_ROWS, (3, 0, 0), ""),
}


def summary(name, counts, more=""):
    words = ["allocation", "free", "free"]
    texts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in zip(counts, words)]
    return f"{name}: {', '.join(texts)} of unknown addresses left out{more}\n"


def imports(args, name, rows, counts, more="", **options):
    """Expects the rows on standard output, and the summary on standard error."""
    done = run("import", *args, **options)
    if (done.code, done.out, done.err) != (0, HEADER + rows, summary(name, counts, more)):
        yield f"{done.what}: exit {done.code}, {done.out[:500]!r}, {done.err[:300]!r}"


def fails_on(full):
    """Expects the failure with a standard output that execute() would capture."""
    done = subprocess.run([QUIRE, "import", "good"], stdout=full, stderr=subprocess.PIPE, cwd=here(),
                          check=False, timeout=120)
    if done.returncode != 1 or not re.search(rb"standard output cannot be written", done.stderr):
        yield f"/dev/full: exit {done.returncode}, {done.stderr[:200]!r}"


def case_formats():
    """Each format gives its rows, with --format and without it, from a file and from standard input."""
    for word, (text, rows, counts, more) in FORMATS.items():
        write("f", text)
        for args in (["f"], ["f", "--format", word], ["--format", word, "f", "--output", "-"]):
            yield from imports(args, "f", rows, counts, more)
        yield from imports(["-", "--format", word], "-", rows, counts, more, stdin=text if isinstance(text, bytes) else text.encode())


def case_replay():
    """quire replay accepts what each format gives, and counts the same rows."""
    for word, (text, _, counts, more) in FORMATS.items():
        write("f", text)
        done = run("import", "f", "--output", f"{word}.csv")
        if done.code or done.out or done.err != summary("f", counts, more):
            yield f"{done.what}: exit {done.code}, {done.out[:100]!r}, {done.err[:300]!r}"
        report = result("replay", f"{word}.csv")
        if (report["allocations"], report["frees"]) != counts[:2]:
            yield f"{word}: the replay has {report['allocations']} allocations, {report['frees']} frees"


def case_plan():
    """A plan of the ranges and one of their trace have the same peak, for ranges of quire plan itself too."""
    write("f", MINIMALLOC)
    run("import", "f", "--output", "t.csv")
    run("plan", "t.csv", "--csv", "again")
    run("import", "again", "--output", "again.csv")
    peaks = [result("plan", name)["peak_bytes"] for name in ("f", "t.csv", "again.csv")]
    if peaks != [16, 16, 16]:
        yield f"the peaks are {peaks}"


def case_device():
    """--device selects a device of a profile, and nothing in other formats."""
    write("f", KINETO)
    write("log", RMM)
    yield from imports(["f", "--device", "cpu"], "f", "alloc,1,64,64,10000,0,\n", (1, 0, 0),
                       "; Device Id -1 of Device Type 0, one of 2 devices")
    yield from imports(["f", "--device", "0"], "f", KINETO_ROWS, (2, 1, 0), KINETO_NOTE)
    yield from refused(["import", "f", "--device", "7"], 1, "no [memory] event is of the device '7'")
    for wrong in ("gpu", "", "-1", "0x", "1234567890"):
        yield from refused(["import", "f", f"--device={wrong}"], 2, f"cpu or a number, not '{wrong}'")
    yield from refused(["import", "log", "--device", "0"], 2, "log: the format has no such devices")


def case_output():
    """The trace replaces a file only if it is whole, and leaves no other file beside it."""
    write("good", RMM)
    write("bad", RMM + "8,x")
    kept = write("kept", "kept")
    yield from refused(["import", "bad", "--output", "kept"], 1, "bad:6:4: the line ends before")
    yield from refused(["import", "bad", "--output", "new"], 1, "bad:6:4: the line ends before")
    yield from refused(["import", "bad"], 1, "quire: bad:6:4: the line ends before")
    if kept.read_text() != "kept":
        yield "a refused file emptied the output"
    os.symlink("kept", here() / "link")
    for name in ("kept", "link"):
        kept.write_text("kept")
        run("import", "good", "--output", name)
        if kept.read_text() != HEADER + RMM_ROWS:
            yield f"{name}: {kept.read_text()[:100]!r}"
    if not (here() / "link").is_symlink():
        yield "the output replaced a link"
    found = sorted(p.name for p in here().iterdir())
    if found != ["bad", "good", "kept", "link"]:
        yield f"there are the files {found}"
    yield from refused(["import", "good", "--output", "none/new"], 1, "none/new: No such file")
    yield from refused(["import", "good", "--output", "."], 1, ".: Is a directory")


def case_devices():
    """An output that is no regular file is written, not replaced."""
    write("good", RMM)
    os.mkfifo(here() / "pipe")
    reader = os.open(here() / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    done = run("import", "good", "--output", "pipe")
    if done.code or os.read(reader, 10000).decode() != HEADER + RMM_ROWS:
        yield f"pipe: exit {done.code}, {done.err}"
    os.close(reader)
    if os.path.exists("/dev/full"):
        yield from refused(["import", "good", "--output", "/dev/full"], 1, "/dev/full: cannot be written")
        with open("/dev/full", "wb") as full:
            yield from fails_on(full)


def case_refusals():
    write("good", RMM)
    write("other", "hello")
    write("gzip", b"\x1f\x8b\x08")
    yield from refused(["import", "none"], 1, "none: No such file")
    yield from refused(["import", "."], 1, ".: is a directory")
    yield from refused(["import", "other"], 1, "other: the first bytes are of no known format; name it with "
                       "--format: " + ", ".join(FORMATS))
    yield from refused(["import", "gzip"], 1, "gzip: is compressed; decompress it first")
    yield from refused(["import", "gzip", "--format", "rmm"], 1, "gzip: is compressed; decompress it first")
    yield from refused(["import", "other", "--format", "rmm"], 1, "other:1:1: the file must begin with Thread")
    yield from refused(["import", "good", "--format", "csv"], 2, "--format takes one of " + ", ".join(FORMATS))
    yield from refused(["import", "good", "--output", "good"], 2, "must be different files")
    yield from usage("import", "good", "--format", pattern="--format requires a value")
    yield from fails(run("import", "-", stdin=b""), 1, "of no known format", lines=1)


def case_bytes():
    """Nothing of a file reaches the terminal as a control sequence."""
    done = execute("import", "-", stdin=(RMM + "\x1b[1m,").encode())
    if done.returncode != 1 or b"\x1b" in done.stderr or b"-:6:1: the thread must" not in done.stderr:
        yield f"exit {done.returncode}, {done.stderr!r}"


run_all(globals())
