"""Readable output of the tool: no text of a file, an argument or a driver controls the terminal,
numbers of one are not plural, and a command without its argument lists the possible values.

usage: terminal.py QUIRE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tap import Tap

HEADER = "op,id,size,alignment,time_ns,stream,label\n"
MARK = "owned"
# a title of the window, a colour, DEL, a colour in C1 (U+009B), the byte 0x9b, a line end
EVIL = b"\x1b]0;" + MARK.encode() + b"\x07\x1b[31m\x7f\xc2\x9b31m\xc2\x85\x9b31m\r\x08"
TEXT = EVIL.replace(b"\x9b31m\r", b"\r").decode("utf-8", "replace")  # what JSON and CSV can hold
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
COMMANDS = ("devices", "tour", "replay", "map", "tune", "bench", "copy")


class Place:
    """A folder in which the tool runs."""

    def __init__(self, quire, folder):
        self.quire, self.folder = os.path.abspath(quire), pathlib.Path(folder)

    def run(self, *args, stdin=b""):
        command = [self.quire, *(a if isinstance(a, bytes) else str(a).encode() for a in args)]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60,
                              cwd=self.folder)
        return done

    def write(self, name, text):
        name = name if isinstance(name, bytes) else name.encode()
        path = os.path.join(os.fsencode(self.folder), name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def look(self, *args, code=None, mark=MARK, lines=None, stdin=b""):
        """Runs the tool and checks that its output has the mark and no control character."""
        done = self.run(*args, stdin=stdin)
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


def case_arguments(p):
    trace = p.write("t.csv", HEADER + "alloc,1,16,,0,0,\n")
    yield from p.look(EVIL, code=2, lines=1)
    yield from p.look(b"--" + EVIL, code=2, lines=1)
    for command in COMMANDS:
        target = [trace] if command in ("replay", "map", "tune") else []
        target = ["a1k"] if command == "bench" else target
        yield from p.look(command, *target, b"--" + EVIL, code=2, lines=1)
        yield from p.look(command, *target, EVIL, code=2, lines=1)
        if command != "bench":
            yield from p.look(command, *target, "--backend", EVIL, code=2, lines=1)
            yield from p.look(command, *target, "--profile", EVIL, code=1, lines=1)
    for option in ("--fit", "--page-size", "--plugin-device"):
        yield from p.look("replay", trace, option, EVIL, code=2, lines=1)
    yield from p.look("devices", "--json=" + TEXT, code=2, lines=1, mark="--json takes no value")
    yield from p.look("bench", EVIL, code=2)
    for option in ("--repeats", "--threads"):
        yield from p.look("bench", "a1k", option, EVIL, code=2, lines=1)
    for name in (b"ramp-", b"fill-"):
        yield from p.look("bench", name + EVIL, "--threads", "2", code=2)
    for option in ("--size", "--repeats"):
        yield from p.look("copy", option, EVIL, code=2, lines=1)
    yield from p.look("devices", "--backend", "plugin", "--plugin", EVIL, code=1, lines=1, mark="")


def case_file_names(p):
    name = b"n" + EVIL
    text = HEADER + "alloc,1,300,,0,0,\nfree,1,,,0,0,\n"
    bad = p.write(b"bad" + EVIL, "x")
    for command in ("replay", "map", "tune"):
        yield from p.look(command, name, code=1, lines=1)  # the file does not exist yet
        yield from p.look(command, bad, code=1, lines=1)
    path = p.write(name, text)
    for command in ("replay", "map", "tune"):
        yield from p.look(command, path, code=0)
        yield from p.look(command, path, "--json", code=0, mark="replay" if command == "map" else MARK)
    empty = p.write(b"empty" + EVIL, "")
    no_allocations = p.write(b"none" + EVIL, HEADER)
    yield from p.look("replay", empty, code=1, lines=1)
    yield from p.look("tune", no_allocations, code=1, lines=1)
    folder = os.path.join(os.fsencode(p.folder), b"folder" + EVIL)
    os.mkdir(folder)
    yield from p.look("replay", folder, code=1, lines=1)
    yield from p.look("devices", "--profile", folder, code=1, lines=1)
    yield from p.look("replay", path, "--json", "--svg", b"/nonexistent/" + EVIL, code=1, lines=1)
    yield from p.look("replay", path, "--json", "--html", folder, code=1, lines=1)


def case_long_names(p):
    """A message longer than any buffer is printed completely."""
    long = b"x" * 3000 + EVIL + b"/end"
    yield from p.look("replay", long, code=1, lines=1, mark="/end: ")
    yield from p.look("devices", "--backend", long, code=2, lines=1, mark="/end'; the backends")


def case_traces(p):
    rows = ("alloc,{},16,,0,0,", "alloc,1,{},,0,0,", "alloc,1,16,{},0,0,", "alloc,1,16,,{},0,",
            "alloc,1,16,,0,{},", "{},1,16,,0,0,", 'alloc,1,16,,0,0,{}"', "frame,{},,,0,,")
    for i, row in enumerate(rows):
        path = p.write(f"bad-{i}.csv", HEADER + row.format(TEXT.replace("\r", "")) + "\n")
        yield from p.look("replay", path, code=1, lines=1)
    # labels: the map and tune name no allocation, the JSON does
    path = p.write("labels.csv", HEADER + f"alloc,1,300,,0,0,{TEXT}\n".replace("\r", ""))
    yield from p.look("map", path, code=0, mark="1 allocation")
    yield from p.look("map", path, "--json", code=0)


def case_profiles(p):
    evil = quoted(TEXT)
    good = p.write("good.json", profile(name=evil))
    for args in (["devices"], ["devices", "--json"], ["copy", "--size", "4K", "--repeats", "1"],
                 ["copy", "--size", "4K", "--repeats", "1", "--json"]):
        yield from p.look(*args, "--profile", good, code=0)
    unnamed = p.write(b"unnamed" + EVIL, profile().replace('"name": "p", ', ""))
    yield from p.look("devices", "--profile", unnamed, code=0)
    yield from p.look("devices", "--profile", unnamed, "--json", code=0)
    texts = (profile(heap_flags=f"[{evil}]"), profile(flags=f"[{evil}]"),
             profile(heap_flags=f"[{evil}]").replace("\\u001b", "\\u009b"),
             profile(more=f", {evil}: 1, {evil}: 2"),
             profile(more=f", {TEXT}"), profile(name=f'"{TEXT}"'), profile(name=f'"x" {TEXT}'))
    for i, text in enumerate(texts):
        path = p.write(f"bad-{i}.json", text)
        yield from p.look("devices", "--profile", path, code=1, lines=1,
                          mark=MARK if i < 3 else f"bad-{i}.json:")
    # the library rejects such a profile; it provides the message
    path = p.write("refused.json", profile(name=evil, flags='["HOST_COHERENT"]'))
    yield from p.look("devices", "--profile", path, code=1, lines=1, mark="refused.json")
    small = p.write("small.json", profile(name=evil, heap_size="4096"))
    trace = p.write("large.csv", HEADER + f"alloc,1,100000,,0,0,{TEXT}\n".replace("\r", ""))
    # the refused allocation; only `map` gives the memory the names of the trace
    for command, mark in (("replay", "can never fit"), ("map", MARK), ("tune", "can never fit")):
        yield from p.look(command, trace, "--profile", small, code=1, mark=mark)


def case_plurals(p):
    """No output contains '1 allocations' for a trace with one of each."""
    trace = p.write("one.csv", HEADER + "alloc,1,16,,0,0,\nuse,1,,,0,0,\nframe,,,,0,,\n"
                                        "free,1,,,0,0,\nalloc,2,16,,0,0,\n")
    one = p.write("single.csv", HEADER + "alloc,1,16,,0,0,\nuse,1,,,0,0,\nframe,,,,0,,\n"
                                         "free,1,,,0,0,\n")
    for args in (["replay", trace], ["replay", one], ["map", trace], ["map", one, "--at", "1"],
                 ["tune", trace], ["tune", one, "--fit", "first", "--page-size", "2M"], ["tour"],
                 ["bench", "c1k", "--repeats", "1", "--threads", "1"],
                 ["copy", "--size", "4K", "--repeats", "1"]):
        done = p.run(*args)
        out = done.stdout.decode()
        if done.returncode:
            yield f"{args}: exit {done.returncode}: {done.stderr}"
        yield from (f"{args}: {found!r}" for found in
                    re.findall(r"(?<![\d.,])1 (?!ns\b|is\b|reserves\b)[a-z]+s\b.{,20}", out))
    out = p.run("replay", one).stdout.decode()
    if "4: 1 allocation, 1 free, 1 use, 1 frame\n" not in out:
        yield out
    out = p.run("replay", trace).stdout.decode()
    if ": 2 allocations, 1 free, 1 use, 1 frame\n" not in out or "  1 allocation, 16 B\n" not in out:
        yield out


def case_workloads(p):
    """bench lists its workloads without a name, after a wrong one, and in its help."""
    done = {"none": p.run("bench"), "wrong": p.run("bench", "frobnicate"),
            "options only": p.run("bench", "--repeats", "1"), "help": p.run("bench", "--help")}
    for name, one in done.items():
        text = (one.stdout if name == "help" else one.stderr).decode()
        if one.returncode != (0 if name == "help" else 2):
            yield f"{name}: exit {one.returncode}"
        found = set(re.findall(r"\b(?:[abcd]\d+[km](?:_raw)?|[em]_\w+|(?:ramp|fill)-\w+)\b", text))
        if len(found) != 29 or not {"a1k", "e_dnn", "m_dyn", "ramp-tex", "fill-logu"} <= found:
            yield f"{name}: {len(found)} workloads: {text}"


CASES = (("arguments", case_arguments), ("names of files", case_file_names),
         ("messages longer than a buffer", case_long_names), ("texts of traces", case_traces),
         ("texts of profiles", case_profiles), ("one is not plural", case_plurals),
         ("bench lists its workloads", case_workloads))


def main():
    tap = Tap()
    for name, case in CASES:
        with tempfile.TemporaryDirectory(prefix="quire-terminal-") as folder:
            place = Place(sys.argv[1], folder)
            try:
                problems = list(case(place))
            except Exception as error:  # a case with an exception has failed; the others continue
                problems = [f"{type(error).__name__}: {error}"]
            tap.case(name, problems[:20])
    tap.end()


main()
