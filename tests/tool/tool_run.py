# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of the command line tool, checks of their output, and inputs, for the tests beside this file.

usage of each test: PROGRAM.py PATH_TO_QUIRE SOURCE_ROOT
"""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "static"))
from tap import Skipped, run_cases  # noqa: E402, F401

QUIRE = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
DATA = os.environ.get("QUIRE_TEST_DATA")
TRACES = ROOT / "docs/traces"
SMALL = TRACES / "ncnn-resnet50.csv"
HEADER = "op,id,size,alignment,time_ns,stream,label\n"
COMMANDS = ("devices", "tour", "record", "top", "replay", "compare", "map", "page", "export", "plan", "import", "tune",
            "bench", "copy", "completion")
WITHOUT_DEVICE = ("record", "top", "page", "plan", "import", "bench", "completion")
FITS = ("segregated", "first", "buddy")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# ---- runs ---------------------------------------------------------------------------------------

_folder = None


def here():
    """The folder of the case, which is empty when the case begins. The tool runs in it."""
    return _folder


def execute(*args, stdin=b"", **more):
    """Runs the tool. Arguments can be bytes. Returns the exit status and the output as bytes."""
    command = [QUIRE, *(a if isinstance(a, bytes) else os.fsencode(str(a)) for a in args)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, cwd=here(), **more)


class Done:
    """One finished run. Its output must be UTF-8."""

    def __init__(self, args, code, out, err):
        self.what = "quire " + " ".join(str(a) for a in args)
        self.code = code
        self.out = out.decode("utf-8")
        self.err = err.decode("utf-8", "backslashreplace")


def run(*args, **more):
    done = execute(*args, **more)
    return Done(args, done.returncode, done.stdout, done.stderr)


def open_terminal():
    """The two ends of a pseudo-terminal. A machine without one skips the case."""
    try:
        return pty.openpty()
    except OSError as error:
        raise Skipped(f"no pseudo-terminal: {error}") from None


def read_terminal(leader):
    """What was written to a terminal whose other end is closed. Closes this one."""
    seen = b""
    try:
        while piece := os.read(leader, 65536):
            seen += piece
    except OSError:  # how Linux reports the end
        pass
    os.close(leader)
    return seen


def skip_without_data():
    raise Skipped("QUIRE_TEST_DATA is not set")


def run_all(names, more=()):
    """Runs the functions case_* of a file, then more (name, function) pairs, each in a folder of its own. Ends the
    program. The name of a function's case is the first line of its text, or else the function's name in words."""
    def enter(folder):
        global _folder
        _folder = folder

    cases = [((case.__doc__ or name.removeprefix("case_").replace("_", " ")).split("\n")[0].rstrip("."), case)
             for name, case in names.items() if name.startswith("case_")]
    run_cases([*cases, *more], f"quire-{pathlib.Path(sys.argv[0]).stem}-", enter)


# ---- exit status and messages -------------------------------------------------------------------


def succeeds(done):
    """Expects success with standard output and without standard error."""
    if done.code or done.err or not done.out:
        yield f"{done.what}: exit {done.code}, {len(done.out)} bytes out, stderr: {done.err[:200]}"


def prints(args, *patterns):
    """Expects success, and the patterns in standard output, with its line breaks or without."""
    done = run(*args)
    yield from succeeds(done)
    words = " ".join(done.out.split())
    yield from (f"{done.what}: no {pattern!r} in {done.out[:600]!r}" for pattern in patterns
                if not re.search(pattern, done.out) and not re.search(pattern, words))


def fails(done, code, pattern=r"\S", lines=None):
    """Expects the exit status, no standard output, and a match in standard error.

    `lines` is the number of lines there. Without it, exit status 1 has one line, others any number.
    """
    if done.code != code:
        yield f"{done.what}: exit {done.code}, not {code}; stderr: {done.err[:200]}"
    if done.out:
        yield f"{done.what}: standard output has {done.out[:80]!r}"
    if not re.search(pattern, done.err):
        yield f"{done.what}: stderr is {done.err[:200]!r}, without {pattern!r}"
    if code == 1 and lines is None:
        lines = 1
    if lines is not None and len(done.err.splitlines()) != lines:
        yield f"{done.what}: stderr is not {lines} lines: {done.err[:300]!r}"


def usage(*args, pattern=r"\S"):
    return fails(run(*args), 2, pattern)


def refused(args, code, message, **more):
    """Expects the exit status, no standard output, and one line of standard error with the message."""
    return fails(run(*args, **more), code, re.escape(message), lines=1)


# ---- JSON ---------------------------------------------------------------------------------------


def no_duplicates(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key twice: {keys}")
    return dict(pairs)


def no_constant(text):
    raise ValueError(f"{text} is not JSON")


def parse(done):
    """Returns the JSON object on standard output."""
    value = json.loads(done.out, object_pairs_hook=no_duplicates, parse_constant=no_constant)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def result(*args, shape=None):
    """Returns the JSON object of a run that must succeed. Other shapes are an error."""
    done = run(*args, "--json")
    for problem in succeeds(done):
        raise ValueError(problem)
    value = parse(done)
    problems = list(differs(value, shape or {}))
    if problems:
        raise ValueError("\n".join(problems[:20]))
    return value


def without_times(value, *keys):
    """The value of a JSON text without times, and without further keys, at any depth."""
    if isinstance(value, list):
        return [without_times(v, *keys) for v in value]
    if not isinstance(value, dict):
        return value
    return {k: without_times(v, *keys) for k, v in value.items()
            if not k.endswith("_ns") and k not in ("backend_nanoseconds", *keys)}


NUMBER, REAL, TEXT, BOOL, MAYBE = "number", "real", "text", "bool", "number or null"
TYPES = {NUMBER: int, REAL: (int, float), TEXT: str, BOOL: bool, MAYBE: (int, type(None))}


def differs(value, shape, path="$"):
    """Lists where a value differs from the shape: every key, with its type. More keys are allowed."""
    if isinstance(shape, dict):
        for key, inner in shape.items():
            if not isinstance(value, dict) or key not in value:
                yield f"{path} has no {key}"
            else:
                yield from differs(value[key], inner, f"{path}.{key}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{path} is not a list"
        else:
            for i, inner in enumerate(value):
                yield from differs(inner, shape[0], f"{path}[{i}]")
    elif not isinstance(value, TYPES[shape]) or (shape != BOOL and isinstance(value, bool)):
        yield f"{path} is {value!r}, not a {shape}"
    elif shape in (NUMBER, REAL) and value < 0:
        yield f"{path} is {value}"


LATENCY = {"p50": NUMBER, "p99": NUMBER, "p999": NUMBER, "max": NUMBER}
FRAGMENTATION = {"reserved": REAL, "free": REAL, "internal": NUMBER, "split": NUMBER}
REPLAY = dict.fromkeys((
    "page_size", "operations", "allocations", "frees", "uses", "frames", "failures",
    "peak_live_bytes", "peak_requested_bytes", "peak_reserved_bytes", "pages_created",
    "pages_destroyed", "peak_pages", "backend_calls", "wall_ns", "left_at_end", "left_bytes",
    "metadata_bytes_peak"), NUMBER)
REPLAY.update({"trace": TEXT, "backend": TEXT, "fit": TEXT, "options": {}, "alloc_ns": LATENCY,
               "free_ns": LATENCY, "fragmentation": FRAGMENTATION})
BENCH = dict.fromkeys(("threads", "repeats", "pairs", "failures", "live_count", "metadata_bytes"), NUMBER)
BENCH.update({"workload": TEXT, "fit": TEXT, "pair_ns": {"min": REAL, "median": REAL}, "metadata_per_live": REAL})
ONE_THREAD = {**BENCH, "alloc_ns": LATENCY, "free_ns": LATENCY}

# ---- inputs -------------------------------------------------------------------------------------


def write(name, content):
    """Writes text, bytes, or a value as JSON into the folder of the case. Returns the path."""
    path = here() / os.fsdecode(name)
    if not isinstance(content, (str, bytes)):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def profile_with(**changes):
    profile = {"name": "p", "heaps": [{"size": GIB, "flags": ["DEVICE_LOCAL"]}],
               "types": [{"heap": 0, "flags": ["DEVICE_LOCAL"]}], "limits": {}}
    profile.update(changes)
    return json.dumps({k: v for k, v in profile.items() if v is not None})


def heap(**fields):
    return profile_with(heaps=[{"flags": [], **fields}])


def ring():
    """A trace with two or three live allocations, of which the oldest is always freed first."""
    return write("ring.csv", HEADER + "".join(
        f"alloc,{i + 1},300000,,{i},0,\n" + (f"free,{i - 1},,,{i},0,\n" if i > 1 else "") for i in range(99)))


class Figures:
    """The requests of a trace, counted from its text."""

    def __init__(self, path):
        live, now = {}, 0
        self.operations = self.allocations = self.frees = self.uses = self.frames = 0
        self.peak = self.peak_event = 0
        self.course = [0]  # the live bytes after each event
        self.frame_events = []
        for line in path.read_text().splitlines()[1:]:
            op, number, size = line.split(",")[:3]
            self.operations += 1
            if op == "alloc":
                self.allocations += 1
                live[number] = int(size)
                now += int(size)
            elif op == "free":
                self.frees += 1
                now -= live.pop(number)
            elif op == "use":
                self.uses += 1
            else:
                self.frames += 1
                self.frame_events.append(self.operations)
            self.course.append(now)
            if now > self.peak:
                self.peak, self.peak_event = now, self.operations
        self.left, self.left_bytes = len(live), now
