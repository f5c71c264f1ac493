# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the instructions of an allocation and of a free with valgrind's callgrind.

usage: instructions.py PROGRAM [--workload a10k] [--subject NAME]... [--peer FILE]...
                       [--json FILE]
PROGRAM is bench_space or bench_memory. Without --subject it counts all spaces or memories, and peers.
It subtracts the instructions of the harness. All calls count, including those that warm up.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

FLOOR = "harness alone"
COUNTERS = {"allocate": "counted_allocate*", "free": "counted_free*"}


def count(program, workload, subject, function, peers):
    """Returns (instructions below `function`, allocations, frees), or None if the run fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={function}",
                   f"--callgrind-out-file={os.path.join(folder, 'out')}",
                   program, "--count", workload, "--subject", subject]
        for peer in peers:
            command += ["--peer", peer]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    calls = re.fullmatch(r"(\d+) (\d+)\n", done.stdout)
    if done.returncode or not collected or not calls:
        print(f"{subject}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return int(collected.group(1)), int(calls.group(1)), int(calls.group(2))


def per_call(options, subject):
    out = {}
    for index, (kind, function) in enumerate(COUNTERS.items()):
        found = count(options.program, options.workload, subject, function, options.peer)
        if not found:
            return None
        out[kind] = found[0] / found[1 + index]
    return out


def subjects_of(program):
    """The available spaces and peers."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^  (\S.*?) +(?:space|memory|peer) *$", listed, re.M)
    return [name for name in found if "batch" not in name]  # it makes the same calls here


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--workload", default="a10k")
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    floor = per_call(options, FLOOR)
    if not floor:
        sys.exit("the harness cannot be counted")
    rows = []
    print(f"instructions per call, {options.workload}\n{'':28} allocate     free")
    for subject in options.subject or subjects_of(options.program):
        found = per_call(options, subject)
        if not found:
            continue
        row = {kind: round(found[kind] - floor[kind], 1) for kind in COUNTERS}
        print(f"  {subject:26} {row['allocate']:8.1f} {row['free']:8.1f}")
        rows.append({"workload": options.workload, "subject": subject, **row})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"instructions": rows}, file, indent=1)
            file.write("\n")


main()
