# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line tool as a program: help, errors, devices, copies, benchmarks, full disks.

usage: tool.py PATH_TO_QUIRE SOURCE_ROOT

If the environment variable QUIRE_TEST_DATA names a folder, the device profiles in it are tested too.
"""

import functools
import json
import os
import pathlib
import re
import subprocess

from tool_run import (
    BENCH, BOOL, COMMANDS, DATA, FITS, GIB, MAYBE, MIB, NUMBER, ONE_THREAD, QUIRE, REAL, ROOT, SMALL,
    TEXT, TRACES, fails, heap, here, open_terminal, prints, profile_with, read_terminal, result, run,
    run_all, skip_without_data, succeeds, usage, write,
)

PROFILES = sorted((ROOT / "docs/profiles").glob("*.json"))
DEVICES = {"devices": [{
    "name": TEXT, "backend": TEXT, "heaps": [{"size": NUMBER, "flags": [TEXT]}],
    "types": [{"heap": NUMBER, "flags": [TEXT]}], "limits": {},
    "choices": {"device": MAYBE, "upload": MAYBE, "readback": MAYBE, "both": MAYBE,
                "shared": MAYBE}}]}
TOUR = {"memories": [{"name": TEXT, "flags": [TEXT], "mappable": BOOL, "page_count": NUMBER,
                      "page_size": NUMBER}],
        "allocations": [{"name": TEXT, "kind": TEXT, "page": NUMBER, "offset": NUMBER,
                         "left_padding": NUMBER, "size": NUMBER}]}

# ---- help and usage -----------------------------------------------------------------------------


def case_help():
    for args in (["--help"], ["-h"], ["help"]):
        done = run(*args)
        yield from succeeds(done)
        if "usage: quire" not in done.out:
            yield f"{done.what} prints no usage"
    for command in COMMANDS:
        if command not in run("--help").out:
            yield f"quire --help does not name {command}"


def case_help_names_options():
    wanted = {"devices": "backend profile json", "tour": "backend profile json",
              "replay": "backend profile options fit page-size elastic svg html json",
              "map": "at backend profile options fit page-size svg json",
              "export": "format output at backend profile options fit page-size",
              "plan": "capacity limit steps seed check csv svg html json",
              "import": "format output",
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
    yield from usage("devices", "-xy", pattern="-x")
    yield from usage("")
    for command in COMMANDS:
        target = {"devices": [], "tour": [], "copy": [], "compare": ["x", "y"], "record": []}.get(command, ["x"])
        yield from usage(command, *target, "--frobnicate", pattern="--frobnicate")
        yield from usage(command, *target, "-x", pattern="-x")
        if command not in ("tune", "record"):  # which take further words
            yield from usage(command, *target, "surplus", pattern="surplus")
        yield from usage(command, *target, "--json=yes")
        if target or command == "record":
            yield from usage(command, pattern="missing")
    for args in (["devices", "--profile"], ["tour", "--backend"], ["replay", "x", "--fit"],
                 ["replay", "x", "--page-size"], ["map", "x", "--at"], ["bench", "x", "--threads"],
                 ["tune", "x", "--profile"], ["copy", "--size"]):
        yield from usage(*args, pattern=args[-1] + " requires a value")


def case_usage_values():
    for command in (["devices"], ["tour"], ["replay", SMALL], ["map", SMALL], ["tune", SMALL], ["copy"]):
        yield from usage(*command, "--backend", "abacus", pattern="'abacus'.*host")
    for command in ("replay", "map", "tune", "bench"):
        yield from usage(command, SMALL, "--fit", "tight", pattern="tight")
        yield from usage(command, SMALL, "--fit", "", pattern="segregated")
    for at in ("0", "-1", "509", "18446744073709551617", "middle", "", "5x", "1.5", " 5", "+5"):
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
                 "16777216T", "", "K", "1.5G", "1KK", "32MiB", "0x10", "+5", "1 K", " 5", "5 "):
        for command in ("replay", "map", "tune"):
            yield from usage(command, SMALL, "--page-size", size, pattern="--page-size.*such as")


def case_usage_abbreviated():
    """getopt_long accepts --thread for --threads: both must behave alike."""
    yield from usage("bench", "a1k", "--thread", "0", "--repeats", "1", pattern="threads")
    yield from usage("bench", "ramp-small", "--thread", "2", pattern="threads")


# ---- devices and tour ---------------------------------------------------------------------------


def case_devices():
    yield from prints(["devices"], "heaps", "memory kinds", "limits", "DEVICE_LOCAL", r"HOST_VISIBLE\|HOST_COHERENT")
    value = result("devices", shape=DEVICES)
    if len(value["devices"]) != 1 or value["devices"][0]["backend"] != "host":
        yield f"devices: {value['devices']}"


def profile_problems(path):
    profile = json.loads(path.read_text())
    device = result("devices", "--profile", path, shape=DEVICES)["devices"][0]
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
    text = run("devices", "--profile", path)
    yield from succeeds(text)
    if text.out.count("\n  ") < len(heaps) + len(types):
        yield "the text lists too few heaps and kinds"


def tour_problems(*args, apart=1):
    """Checks the tour's numbers, and that text and JSON agree; `apart` is the buffer-image granularity. Above 1 KiB
    the image has a page of its own."""
    value = result("tour", *args, shape=TOUR)
    image, buffer = value["allocations"][:2]
    places = [(a["kind"], a["page"], a["offset"], a["left_padding"], a["size"]) for a in (image, buffer)]
    has_own_page = apart > 1024
    of_buffer = ("buffer", 1, 0, 0, 1024) if has_own_page else ("buffer", 0, 2048, 0, 1024)
    if places != [("image", 0, 0, 0, 2048), of_buffer]:
        yield f"places: {places}"
    text = run("tour", *args)
    yield from succeeds(text)
    found = re.findall(r"^ *(\S+) +page (\d+) offset (\d+) left padding (\d+) size (\d+)", text.out, re.M)
    if found != [(a["name"], *(str(a[k]) for k in ("page", "offset", "left_padding", "size")))
                 for a in value["allocations"]]:
        yield f"text: {found}"
    found = re.findall(r"^ *(\S+) +kind.*\((\S+)\), mappable: (yes|no), page count: (\d+), "
                       r"page size: (\d+)$", text.out, re.M)
    if found != [(m["name"], "|".join(m["flags"]), "yes" if m["mappable"] else "no",
                  str(m["page_count"]), str(m["page_size"])) for m in value["memories"]]:
        yield f"text: {found}"
    for m in value["memories"]:
        pages = 2 if has_own_page and m["name"] == "device-local" else 1
        if m["mappable"] != ("HOST_VISIBLE" in m["flags"]) or m["page_count"] != pages:
            yield f"memory: {m}"
    if "page 0 " not in text.out.split("\n\n")[-1]:
        yield "no page map"


def case_tour():
    yield from tour_problems()
    memories = result("tour")["memories"]
    if [(m["flags"][0], m["mappable"], m["page_size"]) for m in memories] != [
            ("DEVICE_LOCAL", False, MIB), ("HOST_VISIBLE", True, MIB)]:
        yield f"memories: {memories}"


def case_tour_profiles():
    for path in PROFILES:
        limits = json.loads(path.read_text())["limits"]
        for problem in tour_problems("--profile", path, apart=limits["bufferImageGranularity"]):
            yield f"{path.name}: {problem}"


def refused_profiles(*texts):
    for i, text in enumerate(texts):
        path = write(f"bad-{i}.json", text)
        for args in (["devices"], ["devices", "--json"], ["tour"], ["replay", SMALL]):
            done = run(*args, "--profile", path)
            yield from (f"{problem}\n{str(text)[:300]}"
                        for problem in fails(done, 1, rf"{re.escape(str(path))}[:\d]*: \S"))


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
        profile_with(limits={"bufferImageGranularity": -1}),
        *(profile_with(limits=l) for l in ([], [1], 5, "none", True)),
        *(profile_with(name=n) for n in (5, [], True)))


def case_missing_profile():
    for args in (["devices"], ["tour"], ["replay", SMALL], ["map", SMALL], ["tune", SMALL]):
        yield from fails(run(*args, "--profile", "none.json"), 1, "none.json: ")
        yield from fails(run(*args, "--profile", here()), 1, f"{here()}: .*directory")


def case_large_profile_numbers():
    """Decimal strings, heaps without size, and limits above 2^63."""
    largest = str(2 ** 64 - 1)
    path = write("large.json", profile_with(
        heaps=[{"size": largest, "flags": []}, {"flags": ["DEVICE_LOCAL"]},
               {"size": 0, "flags": []}],
        types=[{"heap": 1, "flags": ["DEVICE_LOCAL"]}],
        limits={"maxMemoryAllocationSize": largest, "maxMemoryAllocationCount": largest}))
    device = result("devices", "--profile", path, shape=DEVICES)["devices"][0]
    if [h["size"] for h in device["heaps"]] != [2 ** 64 - 1, 8 * GIB, 8 * GIB]:
        yield f"heaps: {device['heaps']}"
    if device["limits"]["maxMemoryAllocationSize"] not in (2 ** 64 - 1, None):
        yield f"limits: {device['limits']}"
    yield from succeeds(run("replay", SMALL, "--json", "--profile", path))


# ---- copy ---------------------------------------------------------------------------------------


COPY = {"device": TEXT, "backend": TEXT, "size": NUMBER, "repeats": NUMBER,
        "copies": [{"from": {"kind": MAYBE}, "to": {"kind": MAYBE}, "path": TEXT,
                    "bytes_per_second": REAL, "of_memcpy": REAL}]}


def case_copy():
    """Every pair is copied; through the host at most a few times slower than memcpy."""
    value = result("copy", "--size", "2M", "--repeats", "20", shape=COPY)
    kinds = {str(c["to"]["kind"]) for c in value["copies"]}
    if value["size"] != 2 * MIB or value["backend"] != "host" or len(kinds) < 4:
        yield f"{value}"
    if len(value["copies"]) != len(kinds) ** 2 - 1:
        yield f"{len(value['copies'])} pairs of {len(kinds)} places"
    for copy in value["copies"]:
        if copy["path"] != "direct" or copy["bytes_per_second"] <= 0 or copy["of_memcpy"] < 0.25:
            yield f"{copy}"


def case_copy_text():
    yield from prints(["copy", "--size", "100000", "--repeats", "1"], "of memcpy", "host memory -> 0 DEVICE_LOCAL")


def case_copy_without_room():
    if "QUIRE_SANITIZED" not in os.environ:  # a sanitizer adds a warning of its own
        yield from fails(run("copy", "--size", "16T"), 1)


# ---- bench --------------------------------------------------------------------------------------


def case_bench():
    for fit in FITS:  # the arena of a1k does not hold all blocks of the buddy fit
        workload, live = ("a10k", 10000) if fit == "buddy" else ("a1k", 1000)
        value = result("bench", workload, "--repeats", "1", "--fit", fit, shape=ONE_THREAD)
        if [value[k] for k in ("workload", "fit", "threads", "repeats", "pairs", "failures",
                               "live_count")] != [workload, fit, 0, 1, 500000, 0, live]:
            yield f"{value}"
        if not 1 < value["pair_ns"]["min"] <= value["pair_ns"]["median"]:
            yield f"{value['pair_ns']}"
    yield from prints(["bench", "c1k", "--repeats", "2"], r"ns per pair \(median of 2\)", r"failures {14}0\n")


def case_bench_threads():
    value = result("bench", "a1k", "--repeats", "1", "--threads", "2", shape=BENCH)
    if (value["threads"], value["pairs"], value["failures"], value["live_count"]) != (2, 1000000, 0, 2000):
        yield f"{value}"
    yield from prints(["bench", "c1k", "--repeats", "1", "--threads", "2"], "2 threads on one memory")


def case_bench_churn():
    for fit in FITS:
        result("bench", "fill-tex", "--fit", fit,
               shape={"failures_per_1000_at_90": REAL, "failures_per_1000_at_95": REAL})
        if fit == "first" and "QUIRE_SANITIZED" in os.environ:
            continue  # the next one takes seconds under sanitizers
        value = result("bench", "ramp-pow2", "--fit", fit, shape={"workload": TEXT, "fit": TEXT, "utilisation": REAL})
        if not 0.5 < value["utilisation"] <= 1 or value["fit"] != fit:
            yield f"{value}"
    yield from succeeds(run("bench", "fill-tex"))


def case_bench_names():
    yield from usage("bench", "frobnicate", pattern="frobnicate")
    yield from usage("bench", "ramp-frobnicate", pattern="ramp-logu")
    yield from usage("bench", "ramp-pow2", "--repeats", "5", pattern="no --repeats")
    yield from usage("bench", "fill-tex", "--threads", "1", pattern="no --threads")
    yield from usage("bench", "", pattern="a1k")


# ---- terminals and full disks -------------------------------------------------------------------


def case_progress():
    """The progress bar on a terminal is erased at the end and does not disturb the JSON."""
    trace = TRACES / "llm-serving.csv"
    for command, args in (("replay", [trace]), ("map", [trace, "--at", "end"]),
                          ("tune", [trace, "--fit", "first", "--page-size", "64M"]),
                          ("copy", ["--size", "48M", "--repeats", "1"])):
        ours, theirs = open_terminal()
        done = subprocess.Popen([QUIRE, command, *map(str, args), "--json"], stderr=theirs,
                                stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(theirs)
        out = done.stdout.read()  # the bar is far smaller than the terminal's buffer
        seen = read_terminal(ours)
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
                 ["map", TRACES / "llm-serving.csv", "--json"],
                 ["tune", SMALL], ["tune", SMALL, "--json"],
                 ["bench", "c1k", "--repeats", "1"], ["replay", "--help"], ["--help"], ["--version"]):
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


def more_cases():
    """Every profile of the project and of QUIRE_TEST_DATA."""
    for path in PROFILES:
        yield f"devices --profile {path.name}", functools.partial(profile_problems, path)
    if not DATA:
        yield "profiles of QUIRE_TEST_DATA", skip_without_data
        return
    for path in sorted(pathlib.Path(DATA).glob("devices/*.json")):
        yield (f"devices --profile $QUIRE_TEST_DATA: {path.name}", functools.partial(profile_problems, path))


run_all(globals(), more_cases())
