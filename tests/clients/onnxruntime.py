# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime of Debian and of npm with the adapter: the same results to the bit, no more memory than
with the runtime's own arena, statistics of each session, and traces that replay.

usage: onnxruntime.py CLIENT|none QUIRE_TOOL|none

QUIRE_NPM names the folder in which npm has installed onnxruntime-node.
"""

import json
import os
import subprocess
import sys
import tempfile

import onnx_runs
from tap import Tap

MEASUREMENTS = 3
# what the process may have more than with the arena: 1 MiB, half of which is the code of libquire, and
# what the kernel leaves out of VmHWM, up to 64 pages of each thread (proc(5))
MORE_KIB = 1024 + 256 * (os.cpu_count() or 1)


def check_peak(tap, what, client, model):
    peaks, problems, hashes = {}, [], set()
    for allocator in ("arena", "quire"):
        for answer, error in (client.run(model, allocator, runs=2) for _ in range(MEASUREMENTS)):
            if answer:
                peaks[allocator] = min(peaks.get(allocator, answer["peak_rss_kib"]), answer["peak_rss_kib"])
                hashes.add(answer["hash"])
            else:
                problems.append(f"{allocator}: {error}")
    if not problems and peaks["quire"] > peaks["arena"] + MORE_KIB:
        problems.append("more than with the arena")
    if len(hashes) > 1:
        problems.append("different results")
    own, quire = (peaks.get(name, 0) / 1024 for name in ("arena", "quire"))
    tap.case(f"{what}: peak memory {quire:.1f} MiB, with the arena {own:.1f} MiB", problems)


def check_results(tap, what, client, model):
    """Returns whether the runtime gives the same result twice."""
    answers = {name: client.run(model, name) for name in ("arena", "malloc", "quire", "threads", "sessions")}
    problems = [f"{name}: {error}" for name, (answer, error) in answers.items() if not answer]
    hashes = {answer["hash"] for answer, _ in answers.values() if answer}
    if len(hashes) > 1:
        problems.append(f"{len(hashes)} different results")
    tap.case(f"{what}: the same result with the arena, malloc and quire, also in threads", problems)
    return {name: answer for name, (answer, _) in answers.items()}


def check_counts(tap, what, answers):
    problems = []
    one, two = answers["quire"]["allocators"][0], answers["sessions"]["allocators"]
    for stats in (one, *answers["threads"]["allocators"], *two):
        if stats["bad_frees"] or stats["failures"] or not stats["reserves"] or \
                stats["allocations"] <= stats["reserves"] or \
                not 0 < stats["requested_bytes"] < stats["peak_requested_bytes"] <= stats["peak_reserved_bytes"]:
            problems.append(json.dumps(stats))
        seen = stats.get("runtime")
        if seen and (seen["NumAllocs"], seen["NumReserves"], seen["InUse"], seen["MaxAllocSize"], seen["Limit"]) != (
                stats["allocations"], stats["reserves"], stats["requested_bytes"], stats["max_allocation"], -1):
            problems.append(f"the runtime reports {seen}")
    if int(answers["quire"]["version"].split(".")[1]) >= 23 and "runtime" not in one:
        problems.append("the runtime reports no statistics")
    counted = ("allocations", "reserves", "requested_bytes", "max_allocation")
    if len({tuple(stats[key] for key in counted) for stats in (one, *two)}) > 1:
        problems.append(f"the sessions count {[[stats[key] for key in counted] for stats in (one, *two)]}")
    tap.case(f"{what}: {one['allocations']} allocations, the same for each of two sessions", problems)


def check_trace(tap, what, client, model, tool):
    if tool == "none":
        tap.skip(f"{what}: trace", "there is no program quire")
        return
    trace = client.folder / "trace.csv"
    answer, error = client.run(model, "quire", runs=1, ONNX_CLIENT_TRACE=str(trace))
    problems = [] if answer else [error]
    if answer:
        done = subprocess.run([tool, "replay", str(trace), "--json"], capture_output=True, text=True)
        rows = [line.split(",")[0] for line in trace.read_text().splitlines()[1:]]
        allocations = answer["allocators"][0]["allocations"]
        if done.returncode:
            problems.append(done.stderr)
        if rows.count("alloc") != allocations or rows.count("free") != allocations:
            problems.append(f"{allocations} allocations, {rows.count('alloc')} and {rows.count('free')} rows")
    tap.case(f"{what}: the trace has every allocation and replays", problems)


def check_runtime(tap, name, client, models, tool):
    for model in models:
        what = f"{name}, {model.name}"
        answers = check_results(tap, what, client, model)
        if all(answers.values()):
            check_counts(tap, what, answers)
            check_peak(tap, what, client, model)
            check_trace(tap, what, client, model, tool)
    known = onnx_runs.known_models()
    for model in known:
        check_peak(tap, f"{name}, {model.name}", client, model)
    if not known:
        tap.skip(f"{name}: known networks", "libonnx-testdata is not installed")
    answer, error = client.run(models[0], "limit=4000000")
    tap.case(f"{name}: a limit below the weights fails the session",
             [str(answer)] if answer else [] if error.startswith("exit status 1:") else [error])


def main():
    program, tool = sys.argv[1:3]
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        models = onnx_runs.write_models(folder) if program != "none" else []
        for name, (library, reason) in onnx_runs.runtimes().items():
            if program == "none":
                tap.skip(f"{name}: ONNX Runtime", "the header of ONNX Runtime was missing when quire was built")
            elif not library:
                tap.skip(f"{name}: ONNX Runtime", reason)
            else:
                check_runtime(tap, name, onnx_runs.Client(program, library, folder), models, tool)
    tap.end()


main()
