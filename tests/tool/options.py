"""Options of the tool that exclude or need each other, devices that cannot serve, and every workload
of bench that runs for less than a second.

usage: options.py QUIRE
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from tap import run_cases

HEADER = "op,id,size,alignment,time_ns,stream,label\n"
QUIRE = os.path.abspath(sys.argv[1])
TMP = pathlib.Path()  # set in main
MIB = 1 << 20
NO_DRIVERS = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent",
              "CUDA_VISIBLE_DEVICES": ""}


def run(*args, **more):
    return subprocess.run([QUIRE, *map(str, args)], capture_output=True, timeout=60, cwd=TMP,
                          text=True, **more)


def write(name, text):
    (TMP / name).write_text(text)
    return TMP / name


def fails(args, code, message, **more):
    """Expects the exit status, no standard output, and one line of standard error with the message."""
    done = run(*args, **more)
    if (done.returncode, done.stdout, len(done.stderr.splitlines())) != (code, "", 1):
        yield f"{args}: exit {done.returncode}, {done.stdout[:80]!r}, {done.stderr[:300]!r}"
    if not re.search(message, done.stderr):
        yield f"{args}: {done.stderr[:300]!r} does not contain {message!r}"


def succeeds(args, *texts):
    done = run(*args)
    if done.returncode or done.stderr:
        yield f"{args}: exit {done.returncode}, {done.stderr[:300]!r}"
    words = " ".join(done.stdout.split())  # without the line breaks of sentences
    yield from (f"{args}: no {text!r} in {done.stdout[:600]!r}" for text in texts
                if not re.search(text, done.stdout) and not re.search(text, words))


def profile(**fields):
    return json.dumps({"name": "p", "heaps": [{"size": 2 * MIB, "flags": ["DEVICE_LOCAL"]}],
                       "types": [{"heap": 0, "flags": ["DEVICE_LOCAL"]}], **fields})


def case_backends():
    """A profile needs the host backend, and a plugin the plugin backend."""
    trace, path = write("t.csv", HEADER + "alloc,1,16,,0,0,\n"), write("p.json", profile())
    for command in (["devices"], ["tour"], ["replay", trace], ["map", trace], ["tune", trace]):
        for backend in ("vulkan", "cuda", "plugin"):
            yield from fails([*command, "--backend", backend, "--profile", path], 2,
                             "--profile requires the host backend")
        for option, value in (("--plugin", "libx.so"), ("--plugin-device", "1")):
            for backend in ([], ["--backend", "host"], ["--backend", "cuda"]):
                yield from fails([*command, *backend, option, value], 2,
                                 "--plugin and --plugin-device require --backend plugin")
        yield from fails([*command, "--backend", "plugin"], 2, "requires --plugin FILE")
        yield from fails([*command, "--backend", "plugin", "--plugin", "x", "--plugin-device",
                          2 ** 32], 2, "no plugin has a device 4294967296")
    for backend in ("vulkan", "cuda"):
        yield from fails(["copy", "--backend", backend, "--profile", path], 2, "--profile requires")
    for value in ("-1", "x", "", str(2 ** 64)):
        yield from fails(["devices", "--plugin-device", value], 2, "--plugin-device takes a number")


def case_no_driver():
    """A backend without a driver or a device reports that in one line."""
    environment = {**os.environ, **NO_DRIVERS}
    for command in ("devices", "tour", "copy"):
        for backend in ("vulkan", "cuda"):
            yield from fails([command, "--backend", backend], 1, r"^quire: \S", env=environment)
    yield from fails(["devices", "--backend", "plugin", "--plugin", "/nonexistent.so"], 1,
                     r"^quire: \S")


def case_ambiguous():
    """An abbreviated option that matches several options."""
    for command in ("devices", "tour"):
        yield from fails([command, "--p", "x"], 2,
                         "--p is ambiguous: --profile, --plugin, --plugin-device; see")
        yield from fails([command, "--p=x"], 2, "--p is ambiguous: --profile")
        yield from fails([command, "--json=no"], 2, "--json takes no value")
        yield from fails([command, "--help=no"], 2, "--help takes no value")
        yield from fails([command, "--frob=no"], 2, "unknown option --frob;")
        yield from fails([command, "--profile"], 2, "--profile requires a value")
        yield from fails([command, "-x"], 2, "unknown option -x;")
        yield from fails([command, "--pro"], 2, "--pro requires a value")
    for option in ("--contiguous=yes", "--fit-slabs=1", "--json=x", "--help=1"):
        yield from fails(["replay", "x", option], 2, f"{option.split('=')[0]} takes no value")
    yield from fails(["devices", "--", "--json"], 2, "unexpected argument '--json'")


def case_devices():
    """Flags of heaps are listed; the tour fails on a device without host-visible memory."""
    several = write("m.json", profile(heaps=[{"size": 2 * MIB,
                                              "flags": ["DEVICE_LOCAL", "MULTI_INSTANCE"]}]))
    yield from succeeds(["devices", "--profile", several], r"DEVICE_LOCAL\|MULTI_INSTANCE",
                        "host reads +none")
    found = json.loads(run("devices", "--profile", several, "--json").stdout)["devices"][0]
    if found["heaps"][0]["flags"] != ["DEVICE_LOCAL", "MULTI_INSTANCE"]:
        yield f"{found}"
    yield from fails(["tour", "--profile", several], 1, r"^quire: \S")
    tiny = write("tiny.json", profile(heaps=[{"size": 1024, "flags": ["DEVICE_LOCAL"]}],
                                      types=[{"heap": 0, "flags": ["DEVICE_LOCAL"]},
                                             {"heap": 0, "flags": ["HOST_VISIBLE"]}]))
    yield from fails(["tour", "--profile", tiny], 1, r"^quire: \S")
    yield from fails(["copy", "--profile", tiny, "--size", "64K"], 1, r"^quire: \S")


def case_defaults_refuse():
    """If the defaults fail and another candidate works, the recommendation states it."""
    rows = [f"alloc,{i},256,,0,0,\n" for i in range(1, 8192)]  # with the two: 2 MiB to the byte
    rows += [f"alloc,{i},128,,0,0,\n" for i in (9001, 9002)]
    path, trace = write("p.json", profile()), write("full.csv", HEADER + "".join(rows))
    yield from succeeds(["tune", trace, "--profile", path], "Recommended: fit first",
                        "; with the defaults 1 allocation fails")
    more = write("fuller.csv", HEADER + "".join(rows[:-2] + [
        f"alloc,{i},64,,0,0,\n" for i in range(9001, 9005)]))
    yield from succeeds(["tune", more, "--profile", path], "with the defaults 3 allocations fail")


def case_workloads():
    for name in ("m_a4k", "m_b4k", "m_dnn", "m_dyn", "e_dnn", "b1k", "d1k"):
        done = run("bench", name, "--repeats", "1", "--json")
        value = json.loads(done.stdout)
        if (done.returncode, value["workload"], value["failures"]) != (0, name, 0) or not (
                value["pairs"] and value["live_count"]):
            yield f"{name}: {value}"
    yield from succeeds(["bench", "m_dnn", "--repeats", "1"], r"m_dnn, fit segregated, a bare space",
                        r"metadata +\S+ KiB for 336 allocations, [\d.]+ bytes each",
                        r"allocate +\d+")
    yield from succeeds(["bench", "ramp-pow2"], r"^ramp-pow2, fit segregated: 0\.\d{4} of the arena")
    yield from succeeds(["bench", "fill-tex"], r"^fill-tex, .* in 1000 requests at 90 %, .* at 95 %")
    value = json.loads(run("bench", "fill-mid", "--json").stdout)
    if not 0 <= value["failures_per_1000_at_90"] < value["failures_per_1000_at_95"] < 1000:
        yield f"{value}"


CASES = (("profiles and plugins with the wrong backend", case_backends),
         ("backends without a driver", case_no_driver), ("ambiguous abbreviations", case_ambiguous),
         ("devices with missing features", case_devices),
         ("the defaults fail and another candidate works", case_defaults_refuse),
         ("workloads", case_workloads))


def enter(folder):
    global TMP
    TMP = folder


run_cases(CASES, "quire-options-", enter)
