# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Readable output of the tool: no text of a file, an argument or a driver controls the terminal,
numbers of one are not plural, and a command without its argument lists the possible values.

usage: terminal.py PATH_TO_QUIRE SOURCE_ROOT
"""

import os
import re

from tool_run import COMMANDS, HEADER, WITHOUT_DEVICE, execute, here, run, run_all, write

MARK = "owned"
# a title of the window, a colour, DEL, a colour in C1 (U+009B), the byte 0x9b, a line end
EVIL = b"\x1b]0;" + MARK.encode() + b"\x07\x1b[31m\x7f\xc2\x9b31m\xc2\x85\x9b31m\r\x08"
TEXT = EVIL.replace(b"\x9b31m\r", b"\r").decode("utf-8", "replace")  # what JSON and CSV can hold
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def look(*args, code=None, mark=MARK, lines=None, stdin=b""):
    """Runs the tool and checks that its output has the mark and no control character."""
    done = execute(*args, stdin=stdin)
    for name, out in (("output", done.stdout), ("error", done.stderr)):
        try:
            text = out.decode("utf-8")
        except UnicodeDecodeError as error:
            yield f"{args}: standard {name} is not UTF-8: {error}: {out[:200]!r}"
            continue
        found = CONTROL.search(text)
        if found:
            yield f"{args}: standard {name} has {found[0]!r}: {text[:300]!r}"
    if mark.encode() not in done.stdout + done.stderr:
        yield f"{args}: '{mark}' is missing: {done.stdout[:200]!r} {done.stderr[:200]!r}"
    if code is not None and done.returncode != code:
        yield f"{args}: exit {done.returncode}, not {code}: {done.stderr[:200]!r}"
    if lines is not None and len(done.stderr.splitlines()) != lines:
        yield f"{args}: {len(done.stderr.splitlines())} lines: {done.stderr[:300]!r}"


def quoted(text):
    """Returns JSON with control characters and everything outside ASCII escaped."""
    return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'


def profile(name='"p"', heap_flags="[]", heap_size="1048576", flags='["DEVICE_LOCAL"]', more=""):
    return (f'{{"name": {name}, "heaps": [{{"size": {heap_size}, "flags": {heap_flags}}}], '
            f'"types": [{{"heap": 0, "flags": {flags}}}]{more}}}')


def case_arguments():
    trace = write("t.csv", HEADER + "alloc,1,16,,0,0,\n")
    yield from look(EVIL, code=2, lines=1)
    yield from look(b"--" + EVIL, code=2, lines=1)
    for command in COMMANDS:
        target = {"bench": ["a1k"], "completion": ["bash"], "compare": [trace, trace], "record": [],
                  "export": [trace, "--format", "memory_viz", "--output", "x"]}.get(command)
        if target is None:
            target = [] if command in ("devices", "tour", "copy") else [trace]
        yield from look(command, *target, b"--" + EVIL, code=2, lines=1)
        # another trace of tune, and the program of record, do not exist
        surplus = {"tune": 1, "record": 127}.get(command, 2)
        yield from look(command, *target, EVIL, code=surplus, lines=1)
        if command not in WITHOUT_DEVICE:
            yield from look(command, *target, "--backend", EVIL, code=2, lines=1)
            yield from look(command, *target, "--profile", EVIL, code=1, lines=1)
    for option in ("--fit", "--page-size", "--plugin-device"):
        yield from look("replay", trace, option, EVIL, code=2, lines=1)
    yield from look("devices", "--json=" + TEXT, code=2, lines=1, mark="--json takes no value")
    yield from look("bench", EVIL, code=2)
    for option in ("--repeats", "--threads"):
        yield from look("bench", "a1k", option, EVIL, code=2, lines=1)
    for name in (b"ramp-", b"fill-"):
        yield from look("bench", name + EVIL, "--threads", "2", code=2)
    for option in ("--limit", "--capacity", "--steps"):
        yield from look("plan", trace, option, EVIL, code=2, lines=1)
    for option in ("--size", "--repeats"):
        yield from look("copy", option, EVIL, code=2, lines=1)
    yield from look("devices", "--backend", "plugin", "--plugin", EVIL, code=1, lines=1, mark="")


def case_file_names():
    name = b"n" + EVIL
    text = HEADER + "alloc,1,300,,0,0,\nfree,1,,,0,0,\n"
    bad = write(b"bad" + EVIL, "x")
    for command in ("replay", "map", "tune"):
        yield from look(command, name, code=1, lines=1)  # the file does not exist yet
        yield from look(command, bad, code=1, lines=1)
    path = write(name, text)
    for command in ("replay", "map", "tune"):
        yield from look(command, path, code=0)
        yield from look(command, path, "--json", code=0, mark="replay" if command == "map" else MARK)
    empty = write(b"empty" + EVIL, "")
    no_allocations = write(b"none" + EVIL, HEADER)
    yield from look("replay", empty, code=1, lines=1)
    yield from look("tune", no_allocations, code=1, lines=1)
    folder = os.path.join(os.fsencode(here()), b"folder" + EVIL)
    os.mkdir(folder)
    yield from look("replay", folder, code=1, lines=1)
    yield from look("devices", "--profile", folder, code=1, lines=1)
    yield from look("replay", path, "--json", "--svg", b"/nonexistent/" + EVIL, code=1, lines=1)
    yield from look("replay", path, "--json", "--html", folder, code=1, lines=1)


def case_long_names():
    """A message longer than any buffer is printed completely."""
    long = b"x" * 3000 + EVIL + b"/end"
    yield from look("replay", long, code=1, lines=1, mark="/end: ")
    yield from look("devices", "--backend", long, code=2, lines=1, mark="/end'; the backends")


def case_traces():
    rows = ("alloc,{},16,,0,0,", "alloc,1,{},,0,0,", "alloc,1,16,{},0,0,", "alloc,1,16,,{},0,",
            "alloc,1,16,,0,{},", "{},1,16,,0,0,", 'alloc,1,16,,0,0,{}"', "frame,{},,,0,,")
    for i, row in enumerate(rows):
        path = write(f"bad-{i}.csv", HEADER + row.format(TEXT.replace("\r", "")) + "\n")
        yield from look("replay", path, code=1, lines=1)
    # labels: the map and tune name no allocation, the JSON does
    path = write("labels.csv", HEADER + f"alloc,1,300,,0,0,{TEXT}\n".replace("\r", ""))
    yield from look("map", path, code=0, mark="1 allocation")
    yield from look("map", path, "--json", code=0)


def case_profiles():
    evil = quoted(TEXT)
    good = write("good.json", profile(name=evil))
    for args in (["devices"], ["devices", "--json"], ["copy", "--size", "4K", "--repeats", "1"],
                 ["copy", "--size", "4K", "--repeats", "1", "--json"]):
        yield from look(*args, "--profile", good, code=0)
    unnamed = write(b"unnamed" + EVIL, profile().replace('"name": "p", ', ""))
    yield from look("devices", "--profile", unnamed, code=0)
    yield from look("devices", "--profile", unnamed, "--json", code=0)
    texts = (profile(heap_flags=f"[{evil}]"), profile(flags=f"[{evil}]"),
             profile(heap_flags=f"[{evil}]").replace("\\u001b", "\\u009b"),
             profile(more=f", {evil}: 1, {evil}: 2"),
             profile(more=f", {TEXT}"), profile(name=f'"{TEXT}"'), profile(name=f'"x" {TEXT}'))
    for i, text in enumerate(texts):
        path = write(f"bad-{i}.json", text)
        yield from look("devices", "--profile", path, code=1, lines=1, mark=MARK if i < 3 else f"bad-{i}.json:")
    # the library rejects such a profile; it provides the message
    path = write("refused.json", profile(name=evil, flags='["HOST_COHERENT"]'))
    yield from look("devices", "--profile", path, code=1, lines=1, mark="refused.json")
    small = write("small.json", profile(name=evil, heap_size="4096"))
    trace = write("large.csv", HEADER + f"alloc,1,100000,,0,0,{TEXT}\n".replace("\r", ""))
    # the refused allocation; only `map` gives the memory the names of the trace
    for command, mark in (("replay", "can never fit"), ("map", MARK), ("tune", "can never fit")):
        yield from look(command, trace, "--profile", small, code=1, mark=mark)


def case_plurals():
    """No output contains '1 allocations' for a trace with one of each."""
    trace = write("one.csv", HEADER + "alloc,1,16,,0,0,\nuse,1,,,0,0,\nframe,,,,0,,\n"
                                      "free,1,,,0,0,\nalloc,2,16,,0,0,\n")
    one = write("single.csv", HEADER + "alloc,1,16,,0,0,\nuse,1,,,0,0,\nframe,,,,0,,\n" "free,1,,,0,0,\n")
    for args in (["replay", trace], ["replay", one], ["map", trace], ["map", one, "--at", "1"],
                 ["tune", trace], ["tune", one, "--fit", "first", "--page-size", "2M"], ["tour"],
                 ["bench", "c1k", "--repeats", "1", "--threads", "1"],
                 ["copy", "--size", "4K", "--repeats", "1"]):
        done = run(*args)
        if done.code:
            yield f"{args}: exit {done.code}: {done.err}"
        yield from (f"{args}: {found!r}" for found in
                    re.findall(r"(?<![\d.,])1 (?!ns\b|is\b|reserves\b)[a-z]+s\b.{,20}", done.out))
    out = run("replay", one).out
    if "4: 1 allocation, 1 free, 1 use, 1 frame\n" not in out:
        yield out
    out = run("replay", trace).out
    if ": 2 allocations, 1 free, 1 use, 1 frame\n" not in out or "  1 allocation, 16 B\n" not in out:
        yield out


def case_workloads():
    """bench lists its workloads without a name, after a wrong one, and in its help."""
    done = {"none": run("bench"), "wrong": run("bench", "frobnicate"),
            "options only": run("bench", "--repeats", "1"), "help": run("bench", "--help")}
    for name, one in done.items():
        text = one.out if name == "help" else one.err
        if one.code != (0 if name == "help" else 2):
            yield f"{name}: exit {one.code}"
        found = set(re.findall(r"\b(?:[abcd]\d+[km](?:_raw)?|[em]_\w+|(?:ramp|fill)-\w+)\b", text))
        if len(found) != 29 or not {"a1k", "e_dnn", "m_dyn", "ramp-tex", "fill-logu"} <= found:
            yield f"{name}: {len(found)} workloads: {text}"


run_all(globals())
