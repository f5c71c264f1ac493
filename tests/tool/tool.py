"""The command line tool as a program: its output, its errors, its exit status.

usage: tool.py PATH_TO_QUIRE SOURCE_ROOT

If the environment variable QUIRE_TEST_DATA names a folder, the traces and device profiles in it are
tested too.
"""

import html.parser
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "static"))
from tap import Skipped, Tap  # noqa: E402

QUIRE = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
DATA = os.environ.get("QUIRE_TEST_DATA")
TRACES = sorted((ROOT / "docs/traces").glob("*.csv"))
PROFILES = sorted((ROOT / "docs/profiles").glob("*.json"))
SMALL = ROOT / "docs/traces/ncnn-resnet50.csv"
HEADER = "op,id,size,alignment,time_ns,stream,label\n"
COMMANDS = ("devices", "tour", "replay", "map", "tune", "bench", "copy")
FITS = ("segregated", "first", "buddy")
MIB, GIB = 1 << 20, 1 << 30
SVG = "http://www.w3.org/2000/svg"
TMP = pathlib.Path()  # set in main

# ---- runs and their output ----------------------------------------------------------------------


class Done:
    """One finished run. Its output must be UTF-8."""

    def __init__(self, args, code, out, err):
        self.what = "quire " + " ".join(str(a) for a in args)
        self.code = code
        self.out = out.decode("utf-8")
        self.err = err.decode("utf-8", "backslashreplace")


def run(*args, stdin=b"", **more):
    command = [QUIRE, *(os.fsencode(str(a)) for a in args)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=120, cwd=TMP, **more)
    return Done(args, done.returncode, done.stdout, done.stderr)


def succeeds(done):
    """Expects success with standard output and without standard error."""
    if done.code or done.err or not done.out:
        yield f"{done.what}: exit {done.code}, {len(done.out)} bytes out, stderr: {done.err[:200]}"


def fails(done, code, pattern=r"\S"):
    """Expects the exit status, no standard output, and one matching line of standard error."""
    if done.code != code:
        yield f"{done.what}: exit {done.code}, not {code}; stderr: {done.err[:200]}"
    if done.out:
        yield f"{done.what}: standard output has {done.out[:80]!r}"
    if not re.search(pattern, done.err):
        yield f"{done.what}: stderr is {done.err[:200]!r}, without {pattern!r}"
    if code == 1 and len(done.err.splitlines()) != 1:
        yield f"{done.what}: stderr is not one line: {done.err[:300]!r}"


def usage(*args, pattern=r"\S"):
    return fails(run(*args), 2, pattern)


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
DEVICES = {"devices": [{
    "name": TEXT, "backend": TEXT, "heaps": [{"size": NUMBER, "flags": [TEXT]}],
    "types": [{"heap": NUMBER, "flags": [TEXT]}], "limits": {},
    "choices": {"device": MAYBE, "upload": MAYBE, "readback": MAYBE, "both": MAYBE,
                "shared": MAYBE}}]}
TOUR = {"memories": [{"name": TEXT, "flags": [TEXT], "mappable": BOOL, "page_count": NUMBER,
                      "page_size": NUMBER}],
        "allocations": [{"name": TEXT, "kind": TEXT, "page": NUMBER, "offset": NUMBER,
                         "left_padding": NUMBER, "size": NUMBER}]}
REPLAY = dict.fromkeys((
    "page_size", "operations", "allocations", "frees", "uses", "frames", "failures",
    "peak_live_bytes", "peak_requested_bytes", "peak_reserved_bytes", "pages_created",
    "pages_destroyed", "peak_pages", "backend_calls", "wall_ns", "left_at_end", "left_bytes",
    "metadata_bytes_peak"), NUMBER)
REPLAY.update({"trace": TEXT, "backend": TEXT, "fit": TEXT, "options": {}, "alloc_ns": LATENCY,
               "free_ns": LATENCY, "fragmentation": FRAGMENTATION})
MAP = {"schema": NUMBER, "what": TEXT, "name": TEXT, "kind": NUMBER, "flags": [TEXT], "fit": TEXT,
       "granule": NUMBER, "page_size": NUMBER,
       "stats": {"live_bytes": NUMBER, "requested_bytes": NUMBER, "reserved_bytes": NUMBER,
                 "allocation_count": NUMBER, "page_count": NUMBER, "fragmentation": FRAGMENTATION},
       "pages": [{"page": NUMBER, "size": NUMBER, "dedicated": BOOL,
                  "ranges": [{"offset": NUMBER, "size": NUMBER, "kind": TEXT}]}]}
BENCH = dict.fromkeys(("threads", "repeats", "pairs", "failures", "live_count",
                       "metadata_bytes"), NUMBER)
BENCH.update({"workload": TEXT, "fit": TEXT, "pair_ns": {"min": REAL, "median": REAL},
              "metadata_per_live": REAL})


def parsed(done, shape):
    """Returns the object, and the problems of the run and its shape."""
    value = parse(done)
    return value, [*succeeds(done), *differs(value, shape)]


# ---- help and usage -----------------------------------------------------------------------------


def case_help():
    for args in (["--help"], ["-h"], ["help"], *([c, "--help"] for c in COMMANDS)):
        done = run(*args)
        yield from succeeds(done)
        if "usage: quire" not in done.out:
            yield f"{done.what} prints no usage"
    for command in COMMANDS:
        if command not in run("--help").out:
            yield f"quire --help does not name {command}"


def case_help_names_options():
    wanted = {"devices": "backend profile json", "tour": "backend profile json",
              "replay": "backend profile options fit page-size contiguous svg html json",
              "map": "at backend profile options fit page-size svg json",
              "tune": "backend profile fit page-size all json",
              "bench": "fit threads repeats json", "copy": "backend profile size repeats json"}
    for command, options in wanted.items():
        text = run(command, "--help").out
        yield from (f"quire {command} --help does not name --{option}"
                    for option in options.split() if f"--{option} " not in text)


def case_version():
    done = run("--version")
    yield from succeeds(done)
    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    if done.out != f"quire {version}\n":
        yield f"it says {done.out!r}, meson.build {version}"


def case_usage():
    yield from usage(pattern="usage: quire COMMAND")
    yield from usage("frobnicate", pattern="frobnicate")
    yield from usage("--frobnicate")
    yield from usage("")
    for command in COMMANDS:
        target = [] if command in ("devices", "tour", "copy") else ["x"]
        yield from usage(command, *target, "--frobnicate", pattern="--frobnicate")
        yield from usage(command, *target, "-x", pattern="-x")
        yield from usage(command, *target, "surplus", pattern="surplus")
        yield from usage(command, *target, "--json=yes")
        if target:
            yield from usage(command, pattern="missing")
    for args in (["devices", "--profile"], ["tour", "--backend"], ["replay", "x", "--fit"],
                 ["replay", "x", "--page-size"], ["map", "x", "--at"], ["bench", "x", "--threads"],
                 ["tune", "x", "--profile"], ["copy", "--size"]):
        yield from usage(*args, pattern=args[-1] + " requires a value")


def case_usage_values():
    for command in (["devices"], ["tour"], ["replay", SMALL], ["map", SMALL], ["tune", SMALL],
                    ["copy"]):
        yield from usage(*command, "--backend", "abacus", pattern="'abacus'.*host")
    for command in ("replay", "map", "tune", "bench"):
        yield from usage(command, SMALL, "--fit", "tight", pattern="tight")
        yield from usage(command, SMALL, "--fit", "", pattern="segregated")
    for at in ("0", "-1", "509", "18446744073709551617", "middle", "", "5x", "1.5"):
        yield from usage("map", SMALL, "--at", at, pattern="peak, end")
    for option in ("repeats", "threads"):
        for value in ("0", "-1", "x", "", "1.5", "18446744073709551617", "1000"):
            yield from usage("bench", "a1k", f"--{option}", value, pattern=option)
    for value in ("0", "-1", "x", "", "1.5", "18446744073709551617", "100"):
        yield from usage("copy", "--repeats", value, pattern="repeats")
    for value in ("0", "x", "16777216T"):
        yield from usage("copy", "--size", value, pattern="--size")
    yield from usage("bench", "ramp-small", "--threads", "2", pattern="threads")


def case_usage_page_size():
    for size in ("0", "0K", "-1", "abc", "99999999999999999999G", "18446744073709551616",
                 "16777216T", "", "K", "1.5G", "1KK", "32MiB", "0x10", "+5", "1 K", " 5"):
        for command in ("replay", "map", "tune"):
            yield from usage(command, SMALL, "--page-size", size, pattern="--page-size.*such as")


def case_usage_page_size_blank():
    yield from usage("replay", SMALL, "--page-size", "5 ", pattern="--page-size")


def case_usage_at_blank():
    for at in (" 5", "+5"):
        yield from usage("map", SMALL, "--at", at, pattern="peak, end")


def case_usage_abbreviated():
    """getopt_long accepts --thread for --threads: both must behave alike."""
    yield from usage("bench", "a1k", "--thread", "0", "--repeats", "1", pattern="threads")
    yield from usage("bench", "ramp-small", "--thread", "2", pattern="threads")


def case_usage_short_options():
    yield from usage("devices", "-xy", pattern="-x")


# ---- devices and tour ---------------------------------------------------------------------------


def case_devices():
    done = run("devices")
    yield from succeeds(done)
    for word in ("heaps", "memory kinds", "limits", "DEVICE_LOCAL", "HOST_VISIBLE|HOST_COHERENT"):
        if word not in done.out:
            yield f"quire devices does not say {word}"
    value, problems = parsed(run("devices", "--json"), DEVICES)
    yield from problems
    if len(value["devices"]) != 1 or value["devices"][0]["backend"] != "host":
        yield f"devices: {value['devices']}"


USABLE = {"LAZILY_ALLOCATED", "PROTECTED", "DEVICE_COHERENT_AMD"}


def choice_problems(device):
    """Implausible choices."""
    types, choices = [set(t["flags"]) for t in device["types"]], device["choices"]
    usable = [i for i, flags in enumerate(types) if not flags & USABLE]

    def some(*flags, without=()):
        return [i for i in usable if types[i] >= set(flags) and not types[i] & set(without)]

    def among(work, *lists):
        """The choice is in the first list that is not empty."""
        wanted = next((found for found in lists if found), [])
        if choices[work] not in (wanted or [None]):
            yield f"{work} is {choices[work]}, not one of {wanted}"

    largest = max((device["heaps"][device["types"][i]["heap"]]["size"]
                   for i in some("DEVICE_LOCAL")), default=0)
    yield from among("device", [i for i in some("DEVICE_LOCAL")
                                if device["heaps"][device["types"][i]["heap"]]["size"] == largest])
    yield from among("upload", some("HOST_VISIBLE", "HOST_COHERENT",
                                    without=("DEVICE_LOCAL", "HOST_CACHED")),
                     some("HOST_VISIBLE", "HOST_COHERENT", without=("DEVICE_LOCAL",)),
                     some("HOST_VISIBLE", "HOST_COHERENT"), some("HOST_VISIBLE"))
    yield from among("readback", some("HOST_VISIBLE", "HOST_CACHED", without=("DEVICE_LOCAL",)),
                     some("HOST_VISIBLE", "HOST_CACHED"), some("HOST_VISIBLE"))
    yield from among("both", some("HOST_VISIBLE", "HOST_CACHED", "DEVICE_LOCAL"),
                     some("HOST_VISIBLE", "HOST_CACHED"), some("HOST_VISIBLE", "DEVICE_LOCAL"),
                     some("HOST_VISIBLE"))
    yield from among("shared", some("DEVICE_LOCAL", "HOST_VISIBLE"))


def profile_problems(path):
    profile = json.loads(path.read_text())
    value, problems = parsed(run("devices", "--json", "--profile", path), DEVICES)
    yield from problems
    device = value["devices"][0]
    heaps = [(h.get("size", 8 * GIB), sorted(h["flags"])) for h in profile["heaps"]]
    types = [(t["heap"], sorted(t["flags"])) for t in profile["types"]]
    if device["name"] != profile["name"]:
        yield f"name: {device['name']}"
    if [(h["size"], sorted(h["flags"])) for h in device["heaps"]] != heaps:
        yield f"heaps: {device['heaps']}"
    if [(t["heap"], sorted(t["flags"])) for t in device["types"]] != types:
        yield f"types: {device['types']}"
    for name in ("bufferImageGranularity", "nonCoherentAtomSize", "maxMemoryAllocationCount",
                 "maxMemoryAllocationSize"):
        limit = profile.get("limits", {}).get(name)
        if limit is not None and device["limits"][name] != int(limit):
            yield f"{name}: {device['limits'][name]}"
    yield from choice_problems(device)
    text = run("devices", "--profile", path)
    yield from succeeds(text)
    if text.out.count("\n  ") < len(heaps) + len(types):
        yield "the text lists too few heaps and kinds"


def tour_problems(*args, apart=1):
    """Checks the tour's numbers, and that text and JSON agree; `apart` is the buffer-image granularity."""
    value, problems = parsed(run("tour", "--json", *args), TOUR)
    yield from problems
    image, buffer = value["allocations"][:2]
    places = [(a["kind"], a["page"], a["offset"], a["left_padding"], a["size"])
              for a in (image, buffer)]
    size = max(2048, apart)
    if places != [("image", 0, 0, 0, size), ("buffer", 0, size, 0, 1024)]:
        yield f"places: {places}"
    text = run("tour", *args)
    yield from succeeds(text)
    found = re.findall(r"^ *(\S+) +page (\d+) offset (\d+) left padding (\d+) size (\d+)", text.out,
                       re.M)
    if found != [(a["name"], *(str(a[k]) for k in ("page", "offset", "left_padding", "size")))
                 for a in value["allocations"]]:
        yield f"text: {found}"
    found = re.findall(r"^ *(\S+) +kind.*\((\S+)\), mappable: (yes|no), page count: (\d+), "
                       r"page size: (\d+)$", text.out, re.M)
    if found != [(m["name"], "|".join(m["flags"]), "yes" if m["mappable"] else "no",
                  str(m["page_count"]), str(m["page_size"])) for m in value["memories"]]:
        yield f"text: {found}"
    for m in value["memories"]:
        if m["mappable"] != ("HOST_VISIBLE" in m["flags"]) or m["page_count"] != 1:
            yield f"memory: {m}"
    if "page 0 " not in text.out.split("\n\n")[-1]:
        yield "no page map"


def case_tour():
    yield from tour_problems()
    memories = parse(run("tour", "--json"))["memories"]
    if [(m["flags"][0], m["mappable"], m["page_size"]) for m in memories] != [
            ("DEVICE_LOCAL", False, MIB), ("HOST_VISIBLE", True, MIB)]:
        yield f"memories: {memories}"


def case_tour_profiles():
    for path in PROFILES:
        limits = json.loads(path.read_text())["limits"]
        for problem in tour_problems("--profile", path, apart=limits["bufferImageGranularity"]):
            yield f"{path.name}: {problem}"


def profile_with(**changes):
    profile = {"name": "p", "heaps": [{"size": GIB, "flags": ["DEVICE_LOCAL"]}],
               "types": [{"heap": 0, "flags": ["DEVICE_LOCAL"]}], "limits": {}}
    profile.update(changes)
    return json.dumps({k: v for k, v in profile.items() if v is not None})


def write(name, text):
    path = TMP / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused_profiles(*texts):
    for i, text in enumerate(texts):
        path = write(f"bad-{i}.json", text)
        for args in (["devices"], ["devices", "--json"], ["tour"], ["replay", SMALL]):
            done = run(*args, "--profile", path)
            yield from (f"{problem}\n{str(text)[:300]}"
                        for problem in fails(done, 1, rf"{re.escape(str(path))}[:\d]*: \S"))


def heap(**fields):
    return profile_with(heaps=[{"flags": [], **fields}])


def kind(**fields):
    return profile_with(types=[{"heap": 0, "flags": [], **fields}])


def case_bad_profiles():
    """Profiles that describe no possible device."""
    yield from refused_profiles(
        profile_with(types=None), profile_with(types=[]), profile_with(heaps=None),
        profile_with(heaps=[]), kind(heap=1), kind(heap=-1), kind(heap=2 ** 32),
        profile_with(heaps=[{"size": 1, "flags": []}] * 17),
        profile_with(types=[{"heap": 0, "flags": []}] * 33),
        profile_with(limits={"bufferImageGranularity": 3}),
        profile_with(limits={"nonCoherentAtomSize": 48}),
        profile_with(limits={"minStorageBufferOffsetAlignment": 100}),
        kind(flags=["HOST_COHERENT"]), kind(flags=["HOST_CACHED"]))


def case_bad_profiles_json():
    good = profile_with()
    yield from refused_profiles(
        "", "not JSON", good[:-1], good[:40], good + "x", good + good, "[" + good + "]", "[]", "{}",
        "5", "null", '"text"', b"\xff\xfe{}", good.replace('"p"', '"p\\u0000"'),
        good[:-1] + ', "types": []}', "[" * 100000)


def case_bad_profiles_types():
    yield from refused_profiles(
        heap(size="many"), heap(size=-1), heap(size=1.5), heap(size=True), heap(size=None),
        heap(size=[]), heap(size="18446744073709551616"), heap(size="-1"), heap(size="12 "),
        heap(flags="DEVICE_LOCAL"), heap(flags=[1]), heap(flags=["HOST_VISIBLE"]),
        heap(flags=["device_local"]), kind(heap=None), kind(heap=0.0), kind(flags="DEVICE_LOCAL"),
        kind(flags=None), kind(flags=["GOLDEN"]), kind(flags=[None]),
        profile_with(heaps={"0": {}}), profile_with(heaps=[5]), profile_with(types="none"),
        profile_with(types=[[]]), profile_with(limits={"maxMemoryAllocationCount": "a lot"}),
        profile_with(limits={"bufferImageGranularity": -1}))


def case_bad_profiles_limits():
    """Limits that are no object."""
    yield from refused_profiles(*(profile_with(limits=l) for l in ([], [1], 5, "none", True)))


def case_bad_profiles_name():
    """A name that is no text."""
    yield from refused_profiles(*(profile_with(name=n) for n in (5, [], True)))


def case_missing_profile():
    for args in (["devices"], ["tour"], ["replay", SMALL], ["map", SMALL], ["tune", SMALL]):
        yield from fails(run(*args, "--profile", "none.json"), 1, "none.json: ")
        yield from fails(run(*args, "--profile", TMP), 1, f"{TMP}: .*directory")


def case_large_profile_numbers():
    """Decimal strings, heaps without size, and limits above 2^63."""
    largest = str(2 ** 64 - 1)
    path = write("large.json", profile_with(
        heaps=[{"size": largest, "flags": []}, {"flags": ["DEVICE_LOCAL"]},
               {"size": 0, "flags": []}],
        types=[{"heap": 1, "flags": ["DEVICE_LOCAL"]}],
        limits={"maxMemoryAllocationSize": largest, "maxMemoryAllocationCount": largest}))
    value, problems = parsed(run("devices", "--json", "--profile", path), DEVICES)
    yield from problems
    device = value["devices"][0]
    if [h["size"] for h in device["heaps"]] != [2 ** 64 - 1, 8 * GIB, 8 * GIB]:
        yield f"heaps: {device['heaps']}"
    if device["limits"]["maxMemoryAllocationSize"] not in (2 ** 64 - 1, None):
        yield f"limits: {device['limits']}"
    yield from succeeds(run("replay", SMALL, "--json", "--profile", path))


# ---- traces -------------------------------------------------------------------------------------


class Figures:
    """The requests of a trace, counted from its text."""

    def __init__(self, path):
        live, now = {}, 0
        self.operations = self.allocations = self.frees = self.uses = self.frames = 0
        self.peak = self.peak_event = 0
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
            if now > self.peak:
                self.peak, self.peak_event = now, self.operations
        self.left, self.left_bytes = len(live), now


def replay(path, *args):
    return parsed(run("replay", path, "--json", *args), REPLAY)


def trace_problems(path, fit):
    figures = Figures(path)
    value, problems = replay(path, "--fit", fit)
    yield from problems
    expected = {"trace": str(path), "backend": "host", "fit": fit,
                "page_size": 32 * MIB if fit == "linear" else MIB,  # of the first page
                "failures": 0, "operations": figures.operations,
                "allocations": figures.allocations, "frees": figures.frees, "uses": figures.uses,
                "frames": figures.frames, "peak_requested_bytes": figures.peak,
                "left_at_end": figures.left, "left_bytes": figures.left_bytes}
    yield from (f"{key} is {value[key]}, not {right}" for key, right in expected.items()
                if value[key] != right)
    pages = value["pages_created"] - value["pages_destroyed"]
    v, waste = value, value["fragmentation"]
    claims = {
        "reserved >= live >= requested": v["peak_reserved_bytes"] >= v["peak_live_bytes"]
                                         >= v["peak_requested_bytes"],
        "pages": (v["left_at_end"] > 0) <= pages <= v["peak_pages"] <= v["pages_created"],
        "backend calls": v["backend_calls"] >= v["pages_created"] + v["pages_destroyed"],
        "time and records": v["wall_ns"] > 0 and v["metadata_bytes_peak"] > 0,
        "shares": 0 <= waste["reserved"] < 1 and 0 <= waste["free"] <= 1,
        "fragmentation.reserved": abs(1 - v["peak_live_bytes"] / v["peak_reserved_bytes"]
                                      - waste["reserved"]) < 1e-4,
        "latencies": all(ns["p50"] <= ns["p99"] <= ns["p999"] <= ns["max"] <= v["wall_ns"]
                         for ns in (v["alloc_ns"], v["free_ns"])),
    }
    yield from (f"not true: {claim}: {value}" for claim, holds in claims.items() if not holds)
    end = parse(run("map", path, "--json", "--at", "end", "--fit", fit))["stats"]
    if (end["page_count"], end["allocation_count"], end["requested_bytes"]) != (
            pages, figures.left, figures.left_bytes):
        yield f"the map at the end has {end['page_count']} pages, not {pages}"
    peak = parse(run("map", path, "--json", "--at", "peak", "--fit", fit))["stats"]
    if peak["requested_bytes"] != figures.peak:
        yield f"the map at the peak has {peak['requested_bytes']} bytes, not {figures.peak}"
    if {k: peak["fragmentation"][k] for k in ("free", "internal", "split")} != {
            k: value["fragmentation"][k] for k in ("free", "internal", "split")}:
        yield f"fragmentation at the peak: {peak['fragmentation']}, {value['fragmentation']}"


def case_replay_text():
    done = run("replay", SMALL)
    yield from succeeds(done)
    figures = Figures(SMALL)
    for text in (f"{figures.operations}: {figures.allocations} allocations, {figures.frees} frees",
                 "failures  ", "pages by use, from 1 MiB", "p99.9", "fit segregated"):
        if text not in done.out:
            yield f"it does not say '{text}':\n{done.out}"
    for args, text in ((("--page-size", "2M"), "pages of 2 MiB"),
                       (("--fit", "linear"), "pages of 32 MiB")):
        if text not in run("replay", SMALL, *args).out:
            yield f"{args}: it does not say '{text}'"


def case_pytorch(path):
    """The reserved bytes, which are pages, are close to the requested ones, with few calls."""
    value, problems = replay(path, "--fit", "segregated", "--page-size", "32M")
    yield from problems
    asked = -(-value["peak_requested_bytes"] // (32 * MIB)) * 32 * MIB
    if value["peak_reserved_bytes"] > 1.02 * asked:
        yield f"reserved {value['peak_reserved_bytes']} for {asked}"
    if value["backend_calls"] > 400:
        yield f"{value['backend_calls']} backend calls"


def case_page_sizes():
    for text, size in (("65536", 65536), ("64K", 65536), ("3M", 3 * MIB), ("1G", GIB)):
        for fit in FITS:
            value, problems = replay(SMALL, "--page-size", text, "--fit", fit)
            yield from problems
            if value["page_size"] != size:
                yield f"--page-size {text}: {value['page_size']}"
        mapped = parse(run("map", SMALL, "--json", "--page-size", text))
        if mapped["page_size"] != size:
            yield f"map --page-size {text}: {mapped['page_size']}"


def case_huge_page_sizes():
    """Pages above the heap's 1 TiB are reduced until they fit, for any requested size."""
    for text in ("512G", "1T", "2T", "3T", "1000T"):
        value, problems = replay(SMALL, "--page-size", text)
        yield from problems
        if value["failures"]:
            yield f"--page-size {text}: {value['failures']} failures"


def case_small_pages():
    """On a device with pages of at most 1 MiB the announced pages are no larger."""
    path = write("pages.json", profile_with(
        types=[{"heap": 0, "flags": ["DEVICE_LOCAL"]}, {"heap": 0, "flags": ["HOST_VISIBLE"]}],
        limits={"maxMemoryAllocationSize": MIB, "maxMemoryAllocationCount": 3}))
    trace = write("pages.csv", HEADER + "".join(f"alloc,{i},600000,,0,0,\n" for i in range(1, 6)))
    done = run("replay", trace, "--json", "--profile", path)
    value = parse(done)
    if (done.code, value["allocations"], value["failures"], value["peak_reserved_bytes"]) != (
            1, 3, 2, 3 * MIB):
        yield f"exit {done.code}: {value}"
    if value["page_size"] != MIB:
        yield f"replay: page_size {value['page_size']}"
    yield from (f"tour: page_size {m['page_size']}"
                for m in parse(run("tour", "--json", "--profile", path))["memories"]
                if m["page_size"] != MIB)


def case_contiguous():
    """One page that grows replaces several pages of this size, and holds as much."""
    page = ("--page-size", "1M")
    several, problems = replay(SMALL, *page)
    yield from problems
    one, problems = replay(SMALL, *page, "--contiguous")
    yield from problems
    got = [one[key] for key in ("pages_created", "peak_pages", "failures")]
    if several["peak_pages"] < 2 or got != [1, 1, 0]:
        yield f"{several['peak_pages']} pages, or one: {one}"
    if one["peak_live_bytes"] != several["peak_live_bytes"]:
        yield f"peak_live_bytes: {one['peak_live_bytes']}, not {several['peak_live_bytes']}"
    yield from succeeds(run("replay", SMALL, "--contiguous"))
    if "one page that grows in place" not in run("replay", "--help").out:
        yield "quire replay --help does not say what --contiguous does"


def case_contiguous_refused():
    for fit in ("buddy", "linear"):
        yield from fails(run("replay", SMALL, "--contiguous", "--fit", fit), 1,
                         "^quire: a contiguous memory: the fits buddy and linear")


def case_linear():
    """A ring of 3 allocations passes through one page many times; in a full page requests fail."""
    events = [f"alloc,{i + 1},300000,,{i},0,\n" + (f"free,{i - 1},,,{i},0,\n" if i > 1 else "")
              for i in range(99)]
    ring = write("ring.csv", HEADER + "".join(events))
    done = run("replay", ring, "--json", "--fit", "linear", "--page-size", "1200000")
    value = parse(done)
    got = [value[k] for k in ("fit", "failures", "allocations", "pages_created", "peak_pages")]
    if done.code or got != ["linear", 0, 99, 1, 1]:
        yield f"exit {done.code}: {value}"
    done = run("replay", ring, "--json", "--fit", "linear", "--page-size", "800000")
    value = parse(done)
    if done.code != 1 or not value["failures"] or value["peak_pages"] != 1:
        yield f"exit {done.code}: {value}"
    yield from succeeds(run("map", ring, "--fit", "linear"))
    value, problems = parsed(run("bench", "a1k", "--repeats", "1", "--json", "--fit", "linear"),
                             {**BENCH, "alloc_ns": LATENCY, "free_ns": LATENCY})
    yield from problems
    if value["fit"] != "linear" or not value["failures"]:  # random frees leave gaps in a ring
        yield f"{value}"


def case_determinism():
    def numbers(fit):
        value = parse(run("replay", SMALL.parent / "llm-serving.csv", "--json", "--fit", fit))
        for key in ("wall_ns", "alloc_ns", "free_ns"):
            del value[key]
        return value

    def pages(fit):
        value = parse(run("map", SMALL.parent / "recorded-imagemagick.csv", "--json", "--fit", fit))
        del value["stats"]["backend_nanoseconds"]
        return value

    for look in (numbers, pages):
        for fit in FITS:
            first, second = look(fit), look(fit)
            if first != second:
                yield f"{look.__name__}, fit {fit}: {first} {second}"


def case_standard_input():
    text = SMALL.read_bytes()
    value = parse(run("replay", "-", "--json", stdin=text))
    if value["trace"] != "-" or value["operations"] != Figures(SMALL).operations:
        yield f"{value}"
    yield from fails(run("replay", "-", stdin=b""), 1, r"^-: ")
    yield from fails(run("map", "-", stdin=b"x"), 1, r"^-:1:1: ")
    large = HEADER + "".join(f"alloc,{i},256,,0,0,\n" for i in range(1, 30001))
    value = parse(run("replay", "-", "--json", stdin=large.encode()))
    if value["left_at_end"] != 30000:
        yield f"{value}"


def refused_traces(*rows):
    for i, (text, place) in enumerate(rows):
        path = write(f"bad-{i}.csv", text)
        for args in (["replay", path], ["replay", path, "--json"], ["map", path], ["tune", path]):
            yield from fails(run(*args), 1, rf"^{re.escape(str(path))}{place}: \w")


def case_malformed_traces():
    line = "alloc,1,4096,256,0,0,weights\n"
    yield from refused_traces(
        (HEADER + line + "alloc,2,40", ":3:11"), (HEADER + line + "malloc,2,4096,,0,0,\n", ":3:1"),
        (HEADER + "alloc,1,-4096,,0,0,\n", ":2:9"), (HEADER + "alloc,1,0,,0,0,\n", ":2:9"),
        (HEADER + f"alloc,1,{2 ** 64},,0,0,\n", ":2:9"), (HEADER + line + line, ":3:7"),
        (HEADER + "free,1,,,0,0,\n", ":2:6"), (HEADER + line + "free,1,,,0,0,\n" * 2, ":4:6"),
        (HEADER + "use,9,,,0,0,\n", ":2:5"), (HEADER + "alloc,1,4096,3,0,0,\n", ":2:14"),
        (HEADER + line.replace("weights", "we\"ghts"), ":2:24"),
        (HEADER.replace("size", "bytes") + line, ":1:7"), (line, ":1:1"), ("\n", ":1:1"),
        (bytes(range(256)), ":1:1"), (b"\x7fELF\x02\x01\x01\0\0\0", r":1:\d"),
        (b"\0" * 4096, ":1:1"),
        (HEADER.encode() + b"alloc,1,4096,256,0,0,w\xe9\n", ":2:23"),
        (HEADER.replace("\n", "\r\n") + "alloc,1,x,,0,0,\r\n", ":2:9"), ("", ""))


def case_directory_as_trace():
    """FILE: message, as for every trace that cannot be read."""
    yield from fails(run("replay", TMP), 1, f"^{re.escape(str(TMP))}: ")
    yield from fails(run("map", TMP), 1, f"^{re.escape(str(TMP))}: ")
    yield from fails(run("tune", TMP), 1, f"^{re.escape(str(TMP))}: ")


def case_missing_trace():
    yield from fails(run("replay", "none.csv"), 1, r"^(quire: )?none\.csv: No such file")
    yield from fails(run("map", "none.csv", "--json"), 1, r"^(quire: )?none\.csv: No such file")
    yield from fails(run("tune", "none.csv", "--json"), 1, r"^(quire: )?none\.csv: No such file")
    yield from fails(run("replay", ""), 1, "No such file")


def case_no_events():
    path = write("none.csv", HEADER)
    value, problems = replay(path)
    yield from problems
    if any(value[k] for k in ("operations", "failures", "pages_created", "peak_reserved_bytes")):
        yield f"{value}"
    for args in (["replay", path], ["map", path], ["map", path, "--json"],
                 ["replay", path, "--json", "--svg", "none.svg", "--html", "none.html"]):
        yield from succeeds(run(*args))
    yield from svg_problems("none.svg")
    yield from html_problems("none.html")


def case_refused_allocations():
    """A small heap: failures are counted and reported, exit status 1, and the report is printed."""
    path = write("small.json", heap(size=256 * MIB, flags=["DEVICE_LOCAL"]))
    trace = SMALL.parent / "transformer-training.csv"
    done = run("replay", trace, "--json", "--profile", path)
    value, figures = parse(done), Figures(trace)
    yield from differs(value, REPLAY)
    if done.code != 1 or len(done.err.splitlines()) != 1 or "cannot allocate" not in done.err:
        yield f"exit {done.code}, stderr: {done.err}"
    if not value["failures"] or value["failures"] + value["allocations"] != figures.allocations:
        yield f"{value['failures']} failures, {value['allocations']} allocations"
    if value["peak_reserved_bytes"] > 256 * MIB or value["operations"] != figures.operations:
        yield f"{value}"
    if value["page_size"] != MIB:
        yield f"page size {value['page_size']}"
    done = run("replay", trace, "--profile", path)
    if done.code != 1 or f"failures               {value['failures']}\n" not in done.out:
        yield f"the text: exit {done.code}\n{done.out}"
    done = run("map", trace, "--json", "--profile", path)
    if done.code != 1 or not done.err or list(differs(parse(done), MAP)):
        yield f"the map: exit {done.code}, {done.err}"


# ---- pictures and pages -------------------------------------------------------------------------


def svg_problems(path):
    text = (TMP / path).read_bytes()
    root = xml.etree.ElementTree.fromstring(text)
    if root.tag != f"{{{SVG}}}svg":
        yield f"{path}: the root is {root.tag}"
    if set(re.findall(rb"https?://[^\"'<> ]*", text)) - {SVG.encode()}:
        yield f"{path} refers to another place"


class Page(html.parser.HTMLParser):
    """Tags are closed in order, and nothing is loaded from outside."""

    VOID = {"meta", "br", "hr", "link", "img", "input"}

    def __init__(self):
        super().__init__()
        self.open, self.problems, self.seen, self.text = [], [], {}, []
        self.lines = {}

    def handle_startendtag(self, tag, attrs):
        self.look(tag, dict(attrs))

    def handle_starttag(self, tag, attrs):
        self.look(tag, dict(attrs))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.text.append(data)

    def look(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag in ("script", "link", "iframe", "object"):
            self.problems.append(f"there is a <{tag}>")
        self.problems += [f"<{tag} {k}={v!r}>" for k, v in attrs.items()
                          if k in ("src", "href", "xlink:href") or k.startswith("on")]
        if tag == "polyline":
            points = [p.split(",") for p in attrs["points"].split()]
            self.lines[attrs["class"]] = [(float(x), float(y)) for x, y in points]


def read_page(path):
    page = Page()
    text = (TMP / path).read_text(encoding="utf-8")
    page.feed(text)
    page.close()
    if page.open:
        page.problems.append(f"left open: {page.open}")
    if set(re.findall(r"https?://[^\"'<> ]*", text)) - {SVG}:
        page.problems.append("it refers to another place")
    if not text.lower().startswith("<!doctype html>"):
        page.problems.append("no doctype")
    return page


def html_problems(path):
    page = read_page(path)
    yield from (f"{path}: {p}" for p in page.problems)
    yield from (f"{path} has no <{tag}>" for tag in ("title", "svg", "table")
                if tag not in page.seen)


def case_svg_and_html():
    for trace in TRACES:
        yield from succeeds(run("replay", trace, "--json", "--svg", "r.svg", "--html", "r.html"))
        yield from svg_problems("r.svg")
        yield from html_problems("r.html")
        done = run("map", trace, "--svg", "m.svg")
        yield from succeeds(done)
        yield from svg_problems("m.svg")
        pages = len(re.findall(r"^page \d", done.out, re.M))
        if (TMP / "m.svg").read_text().count(">page ") < pages:
            yield f"{trace.name}: {pages} pages in the text, fewer in the picture"


def case_html_course():
    """The line over time has enough points: hundreds of events are not three points."""
    yield from succeeds(run("replay", SMALL, "--html", "course.html"))
    page = read_page("course.html")
    yield from page.problems
    for name, points in page.lines.items():
        if len(points) < 100:
            yield f"line {name} has {len(points)} points for {Figures(SMALL).operations} events"
    if len(page.lines) != 3:
        yield f"lines: {list(page.lines)}"


def case_odd_names():
    """Names of files and labels with a meaning in HTML, JSON, or printf."""
    label = "<b>&'\u00e9%s"
    for name in ("a&b<c>'d\"%s%n.csv", "\u00e4 \U0001f34e.csv", "line\nend\ttab.csv",
                 b"\xff\xfe.csv"):
        path = os.path.join(os.fsencode(TMP), os.fsencode(name))
        with open(path, "wb") as file:
            file.write((HEADER + f"alloc,1,300,,0,0,{label}\n").encode())
        done = run("replay", os.fsdecode(path), "--json", "--svg", "odd.svg", "--html", "odd.html")
        yield from succeeds(done)
        if isinstance(name, str) and parse(done)["trace"] != os.fsdecode(path):
            yield f"{parse(done)['trace']!r}"
        yield from svg_problems("odd.svg")
        yield from html_problems("odd.html")
        picture = xml.etree.ElementTree.parse(TMP / "odd.svg")
        titles = [title.text for title in picture.iter(f"{{{SVG}}}title")]
        if not any(t.startswith(f"{label}: page 0 offset 0 size 512") for t in titles):
            yield f"titles: {titles}"
        ranges = parse(run("map", os.fsdecode(path), "--json"))["pages"][0]["ranges"]
        if ranges[0].get("name") != label:
            yield f"{ranges}"


def case_long_label():
    """A label longer than a name is truncated to whole characters."""
    label = "l" * 254 + "\u00e9" + "x" * 300
    path = TMP / "long.csv"
    path.write_text(HEADER + f"alloc,1,300,,0,0,{label}\n", encoding="utf-8")
    figures = parse(run("replay", path, "--json"))
    if figures["failures"] or figures["allocations"] != 1:
        yield f"{figures}"
    ranges = parse(run("map", path, "--json"))["pages"][0]["ranges"]
    if ranges[0].get("name") != "l" * 254:
        yield f"{ranges}"


def case_unwritable():
    for option in ("--svg", "--html"):
        for target in ("/nonexistent/file", TMP, "/dev/full"):
            done = run("replay", SMALL, "--json", option, target)
            if done.code != 1 or f"{target}: " not in done.err:
                yield f"{done.what}: exit {done.code}, {done.err!r}"
    done = run("map", SMALL, "--json", "--svg", "/nonexistent/file")
    if done.code != 1 or "/nonexistent/file: " not in done.err:
        yield f"{done.what}: exit {done.code}, {done.err!r}"


def case_unwritable_message():
    """All messages about files that cannot be written begin alike."""
    for option in ("--svg", "--html"):
        done = run("replay", SMALL, "--json", option, "/nonexistent/file")
        if done.err != "quire: /nonexistent/file: No such file or directory\n":
            yield f"{option}: {done.err!r}"
        done = run("replay", SMALL, "--json", option, "/dev/full")
        if done.err != "quire: /dev/full: No space left on device\n":
            yield f"{option}: {done.err!r}"


def case_overwriting():
    """An output file must not be the input, nor be written twice."""
    trace = TMP / "kept.csv"
    trace.write_bytes(SMALL.read_bytes())
    for options in (["--svg", trace], ["--html", trace], ["--svg", TMP / "x", "--html", TMP / "x"],
                    ["--html", TMP / "." / "kept.csv"]):
        yield from usage("replay", trace, *options, pattern="different files")
    yield from usage("map", trace, "--svg", trace, pattern="different files")
    if trace.read_bytes() != SMALL.read_bytes():
        yield "the trace was changed"


# ---- map ----------------------------------------------------------------------------------------


def range_problems(value):
    """The ranges of each page are adjacent from its start to its end."""
    live = count = 0
    for page in value["pages"]:
        at = 0
        for r in page["ranges"]:
            begin = r["offset"] - r.get("left_padding", 0)
            if begin != at:
                yield f"page {page['page']}: a range begins at {begin}, not {at}"
            at = r["offset"] + r["size"]
            if r["kind"] != "free":
                count += 1
                live += at - begin
                if r["requested"] > r["size"]:
                    yield f"{r}"
        if at != page["size"]:
            yield f"page {page['page']} of {page['size']} ends at {at}"
    stats = value["stats"]
    if (live, count, len(value["pages"]), sum(p["size"] for p in value["pages"])) != (
            stats["live_bytes"], stats["allocation_count"], stats["page_count"],
            stats["reserved_bytes"]):
        yield f"{live} bytes in {count}: {stats}"


def case_map():
    trace = SMALL.parent / "recorded-imagemagick.csv"
    figures = Figures(trace)
    moments = {None: figures.peak_event, "peak": figures.peak_event, "end": figures.operations,
               "1": 1, "1234": 1234, str(figures.operations): figures.operations}
    for at, events in moments.items():
        for fit in FITS:
            args = ["map", trace, "--fit", fit, "--page-size", "1M", *(["--at", at] if at else [])]
            done = run(*args)
            yield from succeeds(done)
            if f"after event {events} of {figures.operations}\n" not in done.out:
                yield f"--at {at}: {done.out.splitlines()[0]}"
            value, problems = parsed(run(*args, "--json"), MAP)
            yield from problems
            yield from range_problems(value)
            rows = re.findall(r"^page (\d+) .* (\d+) allocations?$", done.out, re.M)
            if [(str(p["page"]), sum(r["kind"] != "free" for r in p["ranges"]))
                    for p in value["pages"]] != [(page, int(n)) for page, n in rows]:
                yield f"--at {at}: the text's rows are {rows}"


# ---- tune ---------------------------------------------------------------------------------------

OF_REPLAY = {key: REPLAY[key] for key in REPLAY
             if key not in ("trace", "backend", "fit", "page_size", "options")}
TUNE = {"trace": TEXT, "backend": TEXT, "peak_bytes": NUMBER,
        "candidates": [{**OF_REPLAY, "options": {}, "options_set": NUMBER, "pareto": BOOL,
                        "same_as": MAYBE, "mean_reserved_bytes": NUMBER}],
        "left_out": [{"candidates": NUMBER, "reason": TEXT}]}
CHOICE = {"recommendation": {"candidate": NUMBER, "reason": TEXT, "options": {}, "c": TEXT}}


def tune(path, *args):
    """The JSON of tune. Each candidate gets its fit and its page size as keys of their own."""
    value, problems = parsed(run("tune", path, "--json", *args), {**TUNE, **CHOICE})
    for candidate in value["candidates"]:
        candidate["fit"] = candidate["options"].get("fit.algorithm", "segregated")
        candidate["page_size"] = candidate["options"].get("pages.page_size", 0)
    return value, problems


def figures_of(candidate):
    return [candidate[k] for k in ("peak_reserved_bytes", "backend_calls")]


def ranking_problems(value):
    """Scores, order, marks and recommendation follow from the results as docs/formats.md states."""
    served = [c for c in value["candidates"] if not c["failures"]]
    if value["candidates"][:len(served)] != served:
        yield "a candidate that refuses something stands before one that does not"
    for c in served:
        score = (c["peak_reserved_bytes"] / c["peak_requested_bytes"]
                 + c["backend_calls"] / (c["allocations"] + c["frees"]))
        if abs(score - c["score"]) > 1e-5 * score:
            yield f"the score is {c['score']}, not {score}"
        mine = figures_of(c)
        beaten = any(figures_of(o) != mine and all(a <= b for a, b in zip(figures_of(o), mine))
                     for o in served)
        if c["pareto"] != (not beaten and c["same_as"] is None):
            yield f"Pareto-optimal: {c}"
        if c["same_as"] is not None and figures_of(served[c["same_as"]]) != mine:
            yield f"not the same as {c['same_as']}: {c}"
    if [c["score"] for c in served] != sorted(c["score"] for c in served):
        yield "not sorted by score"
    near = [c for c in served if c["score"] < served[0]["score"] + 0.01 - 1e-5]
    chosen = value["candidates"][value["recommendation"]["candidate"]]
    if chosen["options_set"] > min(c["options_set"] for c in near):
        yield f"{chosen['options_set']} options: {value['recommendation']}"


def case_tune():
    for name in ("ncnn-resnet50.csv", "recorded-imagemagick.csv"):
        path = SMALL.parent / name
        value, problems = tune(path)
        yield from problems
        yield from ranking_problems(value)
        plain = [c for c in value["candidates"] if not c["options_set"]]
        if len(plain) != 1 or plain[0]["options"]:
            yield f"{name}: the defaults: {plain}"
        if value["peak_bytes"] != Figures(path).peak:
            yield f"{name}: {value['peak_bytes']}"


def case_tune_retention():
    """Each retention is tried: all empty pages, none, and some."""
    value, _ = tune(SMALL.parent / "recorded-imagemagick.csv")
    tried = {c["options"].get("pages.retained_empty_bytes", 0) for c in value["candidates"]}
    if not {0, 1} < tried:
        yield f"tried: {tried}, left out: {value['left_out']}"


def case_tune_text():
    done = run("tune", SMALL)
    yield from succeeds(done)
    rows = re.findall(r"^(>| )(\*| )(=| ) +[\d.]+  (?:segregated|first|buddy|linear) ", done.out,
                      re.M)
    if not 3 <= len(rows) <= 22:
        yield f"{len(rows)} rows:\n{done.out}"
    if [sum(row[0] == ">" for row in rows), sum(row[2] == "=" for row in rows)] != [1, 1]:
        yield f"the marks: {rows}"
    for text in ("Recommended: fit ", "quire_memory_options options = {", "--all", "Pareto",
                 "score"):
        if text not in done.out:
            yield f"it does not say '{text}':\n{done.out}"
    value, _ = tune(SMALL)
    everything = run("tune", SMALL, "--all")
    yield from succeeds(everything)
    rows = re.findall(r"^[> ][* ][= ] +[\d.]+  \w+ ", everything.out, re.M)
    if len(rows) != len(value["candidates"]):
        yield f"--all shows {len(rows)} of {len(value['candidates'])}"
    if value["recommendation"]["c"] not in done.out:
        yield f"text and JSON recommend different things: {value['recommendation']}"


def recommends(path, options, *args, **wanted):
    """Returns the recommendation for a trace whose best answer is known."""
    value, problems = tune(path, *args)
    yield from problems
    yield from ranking_problems(value)
    recommendation = value["recommendation"]
    candidate = value["candidates"][recommendation["candidate"]]
    yield from (f"{path.name}: {key} is {candidate[key]}, not {right}: {recommendation}"
                for key, right in wanted.items() if candidate[key] != right)
    if options not in recommendation["c"]:
        yield f"{path.name}: {recommendation['c']}"


def case_tune_known():
    """The best candidate follows from the construction of these traces."""
    # 64 blocks of 2 MiB, all live: a page of all of them is one call, and every size wastes nothing
    blocks = write("blocks.csv", HEADER + "".join(
        f"alloc,{i},{2 * MIB},,0,0,\n" for i in range(1, 65)) + "".join(
        f"free,{i},,,0,0,\n" for i in range(1, 65)))
    yield from recommends(blocks, "page_size = UINT64_C(128) << 20", fit="segregated",
                          page_size=128 * MIB, options_set=1, peak_reserved_bytes=128 * MIB,
                          pages_created=1)
    # 16,384 ranges of 128 bytes fit 2 MiB only if a range takes no more than its requested size
    small = write("small.csv", HEADER + "".join(
        f"alloc,{i},128,,0,0,\n" for i in range(1, 16385)))
    yield from recommends(small, ".fit.algorithm = QUIRE_FIT_FIRST", fit="first", page_size=0,
                          peak_reserved_bytes=2 * MIB)
    # 128 blocks of 4 MiB, one of which is freed and allocated 2,000 times: nothing beats 1.00 by 0.01
    rows = [f"alloc,{i},{4 * MIB},,0,0,\n" for i in range(1, 129)]
    rows += ["free,128,,,0,0,\n", f"alloc,128,{4 * MIB},,0,0,\n"] * 2000
    churn = write("churn.csv", HEADER + "".join(rows))
    yield from recommends(churn, "options = {0};", fit="segregated", page_size=0,
                          options_set=0, peak_reserved_bytes=512 * MIB)


def case_tune_restricted():
    for fit in FITS:
        value, problems = tune(SMALL, "--fit", fit, "--page-size", "4M")
        yield from problems
        if {(c["fit"], c["page_size"]) for c in value["candidates"]} != {(fit, 4 * MIB)}:
            yield f"--fit {fit} --page-size 4M: {value['recommendation']}"
    events = [f"alloc,{i + 1},300000,,{i},0,\n" + (f"free,{i - 1},,,{i},0,\n" if i > 1 else "")
              for i in range(99)]
    ring = write("tuned-ring.csv", HEADER + "".join(events))
    yield from recommends(ring, ".fit.algorithm = QUIRE_FIT_LINEAR", "--fit", "linear", fit="linear",
                          peak_pages=1, failures=0)


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
        value, problems = tune(layers(count))
        yield from problems
        if any(c["fit"] == "linear" for c in value["candidates"]):
            yield f"{count} layers: the linear fit is a candidate"
        chosen = value["candidates"][value["recommendation"]["candidate"]]
        options = write("chosen.json", json.dumps(chosen["options"]))
        yield from succeeds(run("replay", layers(more), "--options", options))
    value, problems = tune(layers(12), "--fit", "linear")
    yield from problems
    if "one page and refuses a run with a higher peak" not in value["recommendation"]["reason"]:
        yield f"{value['recommendation']}"


def case_tune_linear():
    """The linear fit is tried on request only. Frees out of order leave gaps that it does not use."""
    rows = [f"alloc,{i},{MIB},,0,0,\n" for i in range(1, 9)]
    for i in range(9, 40):  # the oldest stays, so that the bytes after it stay in use
        rows += [f"free,{i - 7},,,0,0,\n", f"alloc,{i},{MIB},,0,0,\n"]
    path = write("gaps.csv", HEADER + "".join(rows))
    value, problems = tune(path)
    yield from problems
    if any(c["fit"] == "linear" for c in value["candidates"]) or value["left_out"]:
        yield f"{value['left_out']}"
    done = run("tune", path, "--fit", "linear", "--page-size", "8M")
    if done.code != 1 or "no candidate serves" not in done.err or " -  linear " not in done.out:
        yield f"exit {done.code}: {done.out} {done.err}"


def case_tune_determinism():
    def numbers():
        value = parse(run("tune", SMALL, "--json"))
        for candidate in value["candidates"]:
            for key in ("wall_ns", "alloc_ns", "free_ns"):
                del candidate[key]
        return value
    if numbers() != numbers():
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


def case_tune_nothing():
    path = write("nothing.csv", HEADER + "frame,,,,0,,\n")
    yield from fails(run("tune", path), 1, f"^{re.escape(str(path))}: .*no allocations")
    text = SMALL.read_bytes()
    if parse(run("tune", "-", "--json", stdin=text))["trace"] != "-":
        yield "standard input"


# ---- copy ---------------------------------------------------------------------------------------


COPY = {"device": TEXT, "backend": TEXT, "size": NUMBER, "repeats": NUMBER,
        "copies": [{"from": {"kind": MAYBE}, "to": {"kind": MAYBE}, "path": TEXT,
                    "bytes_per_second": REAL, "of_memcpy": REAL}]}


def case_copy():
    """Every pair is copied; through the host at most a few times slower than memcpy."""
    done = run("copy", "--size", "2M", "--repeats", "20", "--json")
    value, problems = parsed(done, COPY)
    yield from problems
    kinds = {str(c["to"]["kind"]) for c in value["copies"]}
    if value["size"] != 2 * MIB or value["backend"] != "host" or len(kinds) < 4:
        yield f"{value}"
    if len(value["copies"]) != len(kinds) ** 2 - 1:
        yield f"{len(value['copies'])} pairs of {len(kinds)} places"
    for copy in value["copies"]:
        if copy["path"] != "direct" or copy["bytes_per_second"] <= 0 or copy["of_memcpy"] < 0.25:
            yield f"{copy}"


def case_copy_text():
    done = run("copy", "--size", "100000", "--repeats", "1")
    yield from succeeds(done)
    if "of memcpy" not in done.out or "host memory -> 0 DEVICE_LOCAL" not in done.out:
        yield done.out


def case_copy_without_room():
    if "QUIRE_SANITIZED" not in os.environ:  # a sanitizer adds a warning of its own
        yield from fails(run("copy", "--size", "16T"), 1)


# ---- bench --------------------------------------------------------------------------------------


def case_bench():
    for fit in FITS:  # the arena of a1k does not hold all blocks of the buddy fit
        workload, live = ("a10k", 10000) if fit == "buddy" else ("a1k", 1000)
        value, problems = parsed(run("bench", workload, "--repeats", "1", "--json", "--fit", fit),
                                 {**BENCH, "alloc_ns": LATENCY, "free_ns": LATENCY})
        yield from problems
        if [value[k] for k in ("workload", "fit", "threads", "repeats", "pairs", "failures",
                               "live_count")] != [workload, fit, 0, 1, 500000, 0, live]:
            yield f"{value}"
        if not 1 < value["pair_ns"]["min"] <= value["pair_ns"]["median"]:
            yield f"{value['pair_ns']}"
    done = run("bench", "c1k", "--repeats", "2")
    yield from succeeds(done)
    if "ns per pair (median of 2)" not in done.out or "failures              0\n" not in done.out:
        yield done.out


def case_bench_threads():
    done = run("bench", "a1k", "--repeats", "1", "--threads", "2", "--json")
    value, problems = parsed(done, BENCH)
    yield from problems
    if (value["threads"], value["pairs"], value["failures"], value["live_count"]) != (
            2, 1000000, 0, 2000):
        yield f"{value}"
    done = run("bench", "c1k", "--repeats", "1", "--threads", "2")
    yield from succeeds(done)
    if "2 threads on one memory" not in done.out:
        yield done.out


def case_bench_churn():
    for fit in FITS:
        value, problems = parsed(run("bench", "fill-tex", "--json", "--fit", fit),
                                 {"failures_per_1000_at_90": REAL, "failures_per_1000_at_95": REAL})
        yield from problems
        if fit == "first" and "QUIRE_SANITIZED" in os.environ:
            continue  # the next one takes seconds under sanitizers
        value, problems = parsed(run("bench", "ramp-pow2", "--json", "--fit", fit),
                                 {"workload": TEXT, "fit": TEXT, "utilisation": REAL})
        yield from problems
        if not 0.5 < value["utilisation"] <= 1 or value["fit"] != fit:
            yield f"{value}"
    yield from succeeds(run("bench", "fill-tex"))


def case_bench_names():
    done = run("bench", "frobnicate")
    yield from fails(done, 2, "frobnicate")
    names = re.findall(r"\b(?:[abcd]\d+[km](?:_raw)?|e_\w+|(?:ramp|fill)-\w+)\b", done.err)
    if len(set(names)) != 25:
        yield f"{len(set(names))} names: {done.err}"
    yield from usage("bench", "ramp-frobnicate", pattern="ramp-logu")
    yield from usage("bench", "ramp-pow2", "--repeats", "5", pattern="no --repeats")
    yield from usage("bench", "fill-tex", "--threads", "1", pattern="no --threads")
    yield from usage("bench", "", pattern="a1k")


# ---- terminals and full disks -------------------------------------------------------------------


def case_progress():
    """The progress bar on a terminal is erased at the end and does not disturb the JSON."""
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        raise Skipped(f"no pseudo-terminal: {error}") from None
    trace = SMALL.parent / "llm-serving.csv"
    for command, args in (("replay", [trace]), ("map", [trace, "--at", "end"]),
                          ("tune", [trace, "--fit", "first", "--page-size", "64M"]),
                          ("copy", ["--size", "48M", "--repeats", "1"])):
        ours, theirs = pty.openpty()
        done = subprocess.Popen([QUIRE, command, *map(str, args), "--json"], stderr=theirs,
                                stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(theirs)
        seen = b""
        out = done.stdout.read()  # the bar is far smaller than the terminal's buffer
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # how Linux reports the end
            pass
        os.close(ours)
        if done.wait() or not isinstance(json.loads(out), dict):
            yield f"{command}: exit {done.returncode}"
        if not re.search(rb"\r%s \[[#.]+\] +\d+%%" % command.encode(), seen):
            yield f"{command}: no bar in {seen[:200]!r}"
        if b"100%" not in seen or not seen.endswith(b"\r\x1b[K"):
            yield f"{command}: the end is {seen[-80:]!r}"


def full_disk(*args):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([QUIRE, *map(str, args)], stdout=full, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode != 1 or not done.stderr.startswith(b"quire: "):
        yield f"quire {' '.join(map(str, args))}: exit {done.returncode}, {done.stderr!r}"


def case_full_disk():
    for args in (["devices"], ["devices", "--json"], ["tour"], ["tour", "--json"],
                 ["replay", SMALL], ["replay", SMALL, "--json"], ["map", SMALL],
                 ["map", SMALL.parent / "llm-serving.csv", "--json"],
                 ["tune", SMALL], ["tune", SMALL, "--json"],
                 ["bench", "c1k", "--repeats", "1"], ["replay", "--help"]):
        yield from full_disk(*args)


def case_closed_output():
    """Runs with standard output closed, as by >&-, or standard input, as by <&-."""
    for args in (["devices"], ["tour", "--json"], ["replay", SMALL, "--json"]):
        done = subprocess.run(["/bin/sh", "-c", 'exec "$0" "$@" >&-', QUIRE, *map(str, args)],
                              stderr=subprocess.PIPE, timeout=120)
        if done.returncode != 1 or b"standard output" not in done.stderr:
            yield f"{args}: exit {done.returncode}, {done.stderr!r}"
    done = subprocess.run(["/bin/sh", "-c", 'exec "$0" "$@" <&-', QUIRE, "replay", "-"],
                          stderr=subprocess.PIPE, timeout=120)
    if done.returncode != 1 or b"-: " not in done.stderr:
        yield f"closed input: exit {done.returncode}, {done.stderr!r}"


def case_full_disk_help():
    yield from full_disk("--help")
    yield from full_disk("--version")


# ---- all of them --------------------------------------------------------------------------------

CASES = (
    ("help, everywhere", case_help), ("help names every option", case_help_names_options),
    ("the version", case_version), ("bad usage", case_usage),
    ("values that options refuse", case_usage_values),
    ("page sizes that are none", case_usage_page_size),
    ("a page size with a trailing blank", case_usage_page_size_blank),
    ("a moment with a blank or a sign before it", case_usage_at_blank),
    ("options cut short are checked too", case_usage_abbreviated),
    ("an unknown short option is named", case_usage_short_options),
    ("devices", case_devices), ("the tour's numbers", case_tour),
    ("a tour of every profile", case_tour_profiles),
    ("profiles of no possible device", case_bad_profiles),
    ("profiles that are not JSON", case_bad_profiles_json),
    ("profiles with values of the wrong type", case_bad_profiles_types),
    ("profiles whose limits are no object", case_bad_profiles_limits),
    ("profiles whose name is no text", case_bad_profiles_name),
    ("profiles that cannot be read", case_missing_profile),
    ("numbers above 2^63 and missing sizes", case_large_profile_numbers),
    ("the replay as text", case_replay_text), ("sizes in K, M and G", case_page_sizes),
    ("pages larger than the heap", case_huge_page_sizes),
    ("a device with small pages", case_small_pages),
    ("one page that grows", case_contiguous),
    ("fits without pages that grow", case_contiguous_refused), ("the linear fit", case_linear),
    ("replay is deterministic", case_determinism), ("standard input", case_standard_input),
    ("malformed traces", case_malformed_traces),
    ("a directory as a trace", case_directory_as_trace),
    ("a trace that is missing", case_missing_trace), ("a trace without events", case_no_events),
    ("failed allocations", case_refused_allocations), ("SVG and HTML", case_svg_and_html),
    ("the line over time in the HTML", case_html_course), ("odd names", case_odd_names),
    ("a long label", case_long_label), ("files that cannot be written", case_unwritable),
    ("the message about them", case_unwritable_message),
    ("traces are not overwritten", case_overwriting), ("the map", case_map),
    ("tune", case_tune),
    ("tune tries every retention", case_tune_retention), ("tune as text", case_tune_text),
    ("tune with a known answer", case_tune_known),
    ("tune with a fit and a page size", case_tune_restricted),
    ("tune recommends what serves a larger run", case_tune_larger_run),
    ("tune with and without the linear fit", case_tune_linear),
    ("tune is deterministic", case_tune_determinism),
    ("tune if every candidate has failures", case_tune_refused),
    ("tune without allocations", case_tune_nothing),
    ("copies", case_copy), ("copies, in words", case_copy_text),
    ("copies without space", case_copy_without_room),
    ("bench", case_bench), ("bench with threads", case_bench_threads),
    ("bench of the maximum occupancy", case_bench_churn),
    ("bench names its workloads", case_bench_names), ("progress on a terminal", case_progress),
    ("a full disk", case_full_disk), ("closed streams", case_closed_output),
    ("a full disk for the help", case_full_disk_help),
)


def more_data(tap):
    """Profiles and traces of the project and of QUIRE_TEST_DATA."""
    for path in PROFILES:
        tap.attempt(f"devices --profile {path.name}", profile_problems, path)
    for path in TRACES:
        for fit in FITS:
            tap.attempt(f"replay {path.name}, fit {fit}", trace_problems, path, fit)
    if not DATA:
        tap.skip("profiles and traces of QUIRE_TEST_DATA", "QUIRE_TEST_DATA is not set")
        return
    for path in sorted(pathlib.Path(DATA).glob("devices/*.json")):
        tap.attempt(f"devices --profile $QUIRE_TEST_DATA: {path.name}", profile_problems, path)
    for path in sorted(pathlib.Path(DATA).glob("traces/*.csv")):
        for fit in FITS:
            tap.attempt(f"replay $QUIRE_TEST_DATA: {path.name}, fit {fit}", trace_problems, path,
                        fit)
        if path.name.startswith("pytorch"):
            tap.attempt(f"what {path.name} reserves", case_pytorch, path)


def main():
    global TMP
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="quire-tool-") as folder:
        TMP = pathlib.Path(folder)
        for name, case in CASES:
            tap.attempt(name, case)
        more_data(tap)
    tap.end()


main()
