# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of MiniMalloc's instances: a row for each file, over the seeds 1 to 5.

usage: plan_figures.py PATH_TO_QUIRE FILE.csv...

Columns: the seconds to a plan of 1,048,576 bytes if the capacity is given, the slowest seed; the peak after 20 ms and
after 1 s, in times 1,048,576, the worst seed; whether the plan after 1 s is proven, for how many seeds.
"""

import json
import pathlib
import subprocess
import sys

CAPACITY = 1 << 20
SEEDS = range(1, 6)


def plan(quire, path, seed, *options):
    done = subprocess.run([quire, "plan", path, "--json", "--seed", str(seed), *options], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


def worst_ratio(values):
    return max(value["peak_bytes"] for value in values) / CAPACITY


def main():
    quire, paths = sys.argv[1], sys.argv[2:]
    print("| | told, s | 20 ms | 1 s | proven |\n|---|---:|---:|---:|---:|")
    total = 0
    for path in paths:
        told = max(plan(quire, path, seed, "--capacity", "1M", "--limit", "60")["wall_ns"] for seed in SEEDS) / 1e9
        short = [plan(quire, path, seed, "--limit", "0.02") for seed in SEEDS]
        long = [plan(quire, path, seed, "--limit", "1") for seed in SEEDS]
        proven = sum(value["proven_optimal"] for value in long)
        print(f"| {pathlib.Path(path).name.split('.')[0]} | {told:.3f} | {worst_ratio(short):.3f} | "
              f"{worst_ratio(long):.3f} | {proven} of 5 |", flush=True)
        total += told
    print(f"\nsum of the first column: {total:.2f} s")


if __name__ == "__main__":
    main()
