# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the tool that exclude or need each other, devices that cannot serve, and every workload
of bench that runs for less than a second.

usage: options.py PATH_TO_QUIRE SOURCE_ROOT
"""

import os

from tool_run import HEADER, MIB, fails, prints, profile_with, refused, result, run, run_all, write

NO_DRIVERS = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""}


def profile(**fields):
    return profile_with(**{"heaps": [{"size": 2 * MIB, "flags": ["DEVICE_LOCAL"]}], **fields})


def case_backends():
    """A profile needs the host backend, and a plugin the plugin backend."""
    trace, path = write("t.csv", HEADER + "alloc,1,16,,0,0,\n"), write("p.json", profile())
    for command in (["devices"], ["tour"], ["replay", trace], ["map", trace], ["tune", trace]):
        for backend in ("vulkan", "cuda", "plugin"):
            yield from refused([*command, "--backend", backend, "--profile", path], 2,
                               "--profile requires the host backend")
        for option, value in (("--plugin", "libx.so"), ("--plugin-device", "1")):
            for backend in ([], ["--backend", "host"], ["--backend", "cuda"]):
                yield from refused([*command, *backend, option, value], 2,
                                   "--plugin and --plugin-device require --backend plugin")
        yield from refused([*command, "--backend", "plugin"], 2, "requires --plugin FILE")
        yield from refused([*command, "--backend", "plugin", "--plugin", "x", "--plugin-device",
                            2 ** 32], 2, "no plugin has a device 4294967296")
    for backend in ("vulkan", "cuda"):
        yield from refused(["copy", "--backend", backend, "--profile", path], 2, "--profile requires")
    for value in ("-1", "x", "", str(2 ** 64)):
        yield from refused(["devices", "--plugin-device", value], 2, "--plugin-device takes a number")


def case_no_driver():
    """A backend without a driver or a device reports that in one line."""
    environment = {**os.environ, **NO_DRIVERS}
    for command in ("devices", "tour", "copy"):
        for backend in ("vulkan", "cuda"):
            yield from fails(run(command, "--backend", backend, env=environment), 1, r"^quire: \S")
    yield from fails(run("devices", "--backend", "plugin", "--plugin", "/nonexistent.so"), 1, r"^quire: \S")


def case_ambiguous():
    """An abbreviated option that matches several options."""
    for command in ("devices", "tour"):
        yield from refused([command, "--p", "x"], 2, "--p is ambiguous: --profile, --plugin, --plugin-device; see")
        yield from refused([command, "--p=x"], 2, "--p is ambiguous: --profile")
        yield from refused([command, "--json=no"], 2, "--json takes no value")
        yield from refused([command, "--help=no"], 2, "--help takes no value")
        yield from refused([command, "--frob=no"], 2, "unknown option --frob;")
        yield from refused([command, "--profile"], 2, "--profile requires a value")
        yield from refused([command, "-x"], 2, "unknown option -x;")
        yield from refused([command, "--pro"], 2, "--pro requires a value")
    for option in ("--elastic=yes", "--fit-slabs=1", "--json=x", "--help=1"):
        yield from refused(["replay", "x", option], 2, f"{option.split('=')[0]} takes no value")
    yield from refused(["devices", "--", "--json"], 2, "unexpected argument '--json'")


def case_devices():
    """Flags of heaps are listed; the tour fails on a device without host-visible memory."""
    several = write("m.json", profile(heaps=[{"size": 2 * MIB, "flags": ["DEVICE_LOCAL", "MULTI_INSTANCE"]}]))
    yield from prints(["devices", "--profile", several], r"DEVICE_LOCAL\|MULTI_INSTANCE", "host reads +none")
    found = result("devices", "--profile", several)["devices"][0]
    if found["heaps"][0]["flags"] != ["DEVICE_LOCAL", "MULTI_INSTANCE"]:
        yield f"{found}"
    yield from fails(run("tour", "--profile", several), 1, r"^quire: \S")
    tiny = write("tiny.json", profile(heaps=[{"size": 1024, "flags": ["DEVICE_LOCAL"]}],
                                      types=[{"heap": 0, "flags": ["DEVICE_LOCAL"]},
                                             {"heap": 0, "flags": ["HOST_VISIBLE"]}]))
    yield from fails(run("tour", "--profile", tiny), 1, r"^quire: \S")
    yield from fails(run("copy", "--profile", tiny, "--size", "64K"), 1, r"^quire: \S")


def case_defaults_refuse():
    """If the defaults fail and another candidate works, the recommendation states it."""
    rows = [f"alloc,{i},256,,0,0,\n" for i in range(1, 8192)]  # with the two: 2 MiB to the byte
    rows += [f"alloc,{i},128,,0,0,\n" for i in (9001, 9002)]
    path, trace = write("p.json", profile()), write("full.csv", HEADER + "".join(rows))
    yield from prints(["tune", trace, "--profile", path], "Recommended: fit first",
                      "; with the defaults 3 allocations fail in the replays")  # 100, 80 and 90 %
    more = write("fuller.csv", HEADER + "".join(rows[:-2] + [f"alloc,{i},64,,0,0,\n" for i in range(9001, 9005)]))
    yield from prints(["tune", more, "--profile", path], "with the defaults 9 allocations fail in the replays")


def case_workloads():
    for name in ("m_a4k", "m_b4k", "m_dnn", "m_dyn", "e_dnn", "b1k", "d1k"):
        value = result("bench", name, "--repeats", "1")
        if (value["workload"], value["failures"]) != (name, 0) or not (value["pairs"] and value["live_count"]):
            yield f"{name}: {value}"
    yield from prints(["bench", "m_dnn", "--repeats", "1"], r"m_dnn, fit segregated, a bare space",
                      r"metadata +\S+ KiB for 336 allocations, [\d.]+ bytes each",
                      r"allocate +\d+")
    yield from prints(["bench", "ramp-pow2"], r"^ramp-pow2, fit segregated: 0\.\d{4} of the arena")
    yield from prints(["bench", "fill-tex"], r"^fill-tex, .* in 1000 requests at 90 %, .* at 95 %")
    value = result("bench", "fill-mid")
    if not 0 <= value["failures_per_1000_at_90"] < value["failures_per_1000_at_95"] < 1000:
        yield f"{value}"


run_all(globals())
