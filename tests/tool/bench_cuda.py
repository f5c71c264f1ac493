# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench_cuda on the fake CUDA driver: a very short run. Checks the content of its document; the times
are meaningless.

usage: bench_cuda.py BENCH_CUDA DRIVER_FOLDER

DRIVER_FOLDER has the libcuda.so.1 of the tests.
"""

import json
import os
import pathlib
import sys
import tempfile

import ptx
from bench_run import run, spread_problems, usage_problems
from tap import Tap

os.environ["LD_LIBRARY_PATH"] = sys.argv[2]
MIB = 1 << 20
SHORT = ("--reps", "2", "--pairs", "100", "--page", "8")
CHUNK_STEPS = {"reserve", "create", "map", "access", "unmap", "release", "return"}
PLAIN_STEPS = {"alloc", "free"}
BLOCK_STEPS = PLAIN_STEPS | {"async", "freeasync", "kept", "freekept"}
STAGES = ("enter", "info", "reserve", "create", "map", "access", "sync", "unmap", "release", "return",
          "quire", "total")
HOST_FIGURES = ("make_ns", "release_ns", "to_device", "from_device", "processor_write", "processor_read")
TRACE = """op,id,size,alignment,time_ns,stream,label
alloc,1,5000000,512,0,0,a
alloc,2,9000000,512,1,0,b
free,1,,,2,0,
alloc,3,1000000,512,3,0,c
"""
FIGURES = {"pair_ns", *(f"{call}{figure}_ns" for call in ("allocate", "free")
                        for figure in ("", "_p50", "_p99", "_p999"))}


def figures_of(folder, *words, **env):
    path = folder / "cuda.json"
    done = run(*words, "--json", path, **env)
    if done.returncode or done.stderr:
        raise RuntimeError(f"{done.returncode}: {done.stderr}")
    return json.loads(path.read_text())


def device_problems(figures):
    if figures["device"] != "fake h200" or figures["emulated"] is not True:
        yield f"{figures['device']}, emulated {figures['emulated']}"
    if "emulated" not in run("--list").stdout.splitlines()[0]:
        yield "the text does not say that the driver is emulated"
    if figures["driver_version"] < 11020 or len(figures["date"]) != 10 or figures["page_size"] != 8 * MIB:
        yield str({key: figures[key] for key in ("driver_version", "date", "page_size")})


def cost_problems(figures):
    for table, steps in (("chunks", CHUNK_STEPS), ("blocks", BLOCK_STEPS)):
        found = [(row["size"], row["count"]) for row in figures[table]]
        wanted = [(n * MIB, 8 // n if table == "chunks" else 1) for n in (2, 4, 8)]
        if found != wanted:
            yield f"{table}: {found}"
        for row in figures[table]:
            if row["refused"] is not None:
                yield str(row)
            yield from spread_problems(row, *steps)


def stage_problems(figures):
    """A stage that no call belongs to is 0; the total and quire's own part are not."""
    rows = [(row["what"], row["size"], row["state"]) for row in figures["pages"] + figures["growth"]]
    wanted = [(what, 2 * MIB, state) for state in ("idle", "busy", "chunks", "chunks, busy")
              for what in ("make", "release")]
    wanted += [("grow", 2 * MIB, "cold"), ("shrink", 2 * MIB, "handles kept"), ("grow", 2 * MIB, "kept")]
    if rows != wanted or figures["pages_busy_skipped"] is not None:
        yield f"{rows} {figures['pages_busy_skipped']}"
    for row in figures["pages"] + figures["growth"]:
        medians = {stage: row[stage]["median"] for stage in STAGES if stage in row}
        if row["refused"] is not None or set(medians) != set(STAGES):
            yield str(row)
            continue
        new = row["what"] == "make" or (row["what"], row["state"]) == ("grow", "cold")
        if (medians["create"] > 0) != new or (medians["unmap"] > 0) != (row["what"] in ("release", "shrink")):
            yield str(row)
        if not 0 < medians["quire"] < medians["total"]:
            yield str(row)


def host_problems(figures):
    if [row["kind"] for row in figures["host"]] != ["pinned", "write-combined", "host NUMA", "host"]:
        yield str(figures["host"])
    for row in figures["host"]:
        yield from spread_problems(row, *HOST_FIGURES)


def call_problems(figures):
    rows = figures["calls"]
    if len(rows) != 18 or sum("Reserve of" in row["call"] for row in rows) != 3:
        yield str([row["call"] for row in rows])
    for row in rows:
        yield from spread_problems(row, "ns")


def peak_problems(folder):
    """All allocations fit, and no subject reserves much more than it needs."""
    (folder / "trace.csv").write_text(TRACE)
    rows = figures_of(folder, *SHORT, "--family", "peaks", "--trace", folder / "trace.csv")["peaks"]
    if [row["subject"] for row in rows] != ["quire, pages", "quire, elastic", "cuMemPool"]:
        yield str(rows)
    for row in rows:
        if row["refused"] or row["refused_allocations"] or row["live"] != 14000000:
            yield str(row)
        elif not row["live"] <= row["reserved"] <= row["live"] + 64 * MIB:
            yield str(row)
    done = run(*SHORT, "--family", "peaks", "--trace", "/no/such/file")
    if "cannot be read" not in done.stderr:
        yield f"a missing trace is not reported: {done.stderr}"


def pair_problems(figures):
    wanted = [(family, subject) for family in ("alone", "mixed", "large")
              for subject in ("quire", "quire, on stream", "cuMemAllocAsync", "cuMemAlloc")]
    found = [(row["family"], row["subject"]) for row in figures["pairs"]]
    if found != wanted:
        yield str(found)
    for row in figures["pairs"]:
        yield from spread_problems(row, *FIGURES)
        if row["reps"] != 2 or row["pairs"] < 100 or not row["pair_to_quire"] > 0:
            yield str(row)
        if row["subject"] == "quire" and (row["pair_to_quire"] != 1 or
                                          (row["page_calls"] and row["family"] == "alone")):
            yield str(row)


def refusal_problems(folder):
    """The row contains the driver's name of the error, and the run continues."""
    figures = figures_of(folder, *SHORT, "--family", "costs", QUIRE_FAKE_CUDA_FAIL="cuMemMap 1+ 2",
                         QUIRE_FAKE_CUDA_FLAGS="quiet")
    if {row["refused"] for row in figures["chunks"]} != {"CUDA_ERROR_OUT_OF_MEMORY"}:
        yield str(figures["chunks"])
    if any(row["refused"] for row in figures["blocks"]) or len(figures["blocks"]) != 3:
        yield str(figures["blocks"])


def poor_problems(folder):
    """A device without virtual memory management and without pools."""
    figures = figures_of(folder, *SHORT, QUIRE_FAKE_CUDA_MODELS="vgpu")
    if figures["chunks"] or any(set(row) & (BLOCK_STEPS - PLAIN_STEPS) for row in figures["blocks"]):
        yield f"{figures['chunks']} {figures['blocks']}"
    absent = {s["name"] for s in figures["subjects"] if s["absent"]}
    if absent != {"cuMemAllocAsync", "cudaMallocAsync"} or any(row["subject"] in absent for row in figures["pairs"]):
        yield str(absent)


def kernel_problems(folder):
    """Without kernels the rows of a busy device are missing, and the reason is there."""
    figures = figures_of(folder, *SHORT, "--family", "pages", QUIRE_FAKE_CUDA_HIDE="cuLaunchKernel")
    if figures["pages_busy_skipped"] != "the driver runs no kernels" or len(figures["pages"]) != 4:
        yield f"{figures['pages_busy_skipped']} {len(figures['pages'])}"


def leak_problems(folder):
    """The program releases every object that it creates."""
    report = folder / "report"
    done = run(*SHORT, QUIRE_FAKE_CUDA_REPORT=str(report))
    text = report.read_text()
    if done.returncode or "calls cuMemFreeAsync" not in text or "\nlive " in text or "\nmessage " in text:
        yield text + done.stderr


def absence_problems(folder):
    (folder / "libcuda.so.1").write_text("no driver\n")
    done = run("--list", LD_LIBRARY_PATH=str(folder))
    if done.returncode or "device: none" not in done.stdout or "CUDA driver not found" not in done.stdout:
        yield f"{done.returncode}: {done.stdout}"
    if run(*SHORT, LD_LIBRARY_PATH=str(folder)).returncode != 1:
        yield "a run without a driver succeeds"


def main():
    tap = Tap()
    tap.case("bad usage is rejected", usage_problems(
        ("--reps", "0"), ("--pairs", "x"), ("--page", "-1"), ("--nothing",), ("stray",)))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        figures = figures_of(folder, *SHORT)
        tap.case("device and driver are named", device_problems(figures))
        tap.case("costs by size", cost_problems(figures))
        tap.case("pages and growth by stage", stage_problems(figures))
        tap.case("host memory", host_problems(figures))
        tap.case("single calls", call_problems(figures))
        tap.case("peaks of a trace", peak_problems(folder))
        tap.case("pairs", pair_problems(figures))
        tap.case("errors of the driver are reported", refusal_problems(folder))
        tap.case("a device without virtual memory management", poor_problems(folder))
        tap.case("a driver without kernels", kernel_problems(folder))
        ptx.check(tap, "the kernels can be assembled", "bench/cuda_kernel.c", "-arch", "sm_90")
        tap.case("no object is leaked", leak_problems(folder))
        tap.case("no driver", absence_problems(folder))
    tap.end()


main()
