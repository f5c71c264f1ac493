# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the replays of docs/benchmarks.md on this machine and prints their tables: page sizes of quire and of
other allocators, and elastic memories.

usage: figures.py QUIRE TRACE...
QUIRE is the tool, built with -Dbuildtype=release.
"""

import json
import pathlib
import statistics
import subprocess
import sys

COLUMNS = {"default": (), "`--fit first`": ("--fit", "first"), "`--preset vma`": ("--preset", "vma"),
           "`--preset pytorch`": ("--preset", "pytorch"), "`--page-size 2M`": ("--page-size", "2M"),
           "`--page-size 32M`": ("--page-size", "32M")}
ELASTIC = {"`--elastic`": ("--elastic",), "and `--page-size 2M`": ("--elastic", "--page-size", "2M"),
           "and `--page-size 8M`": ("--elastic", "--page-size", "8M")}
SMALL = 256 << 20  # bytes at the peak


def replay(trace, options):
    """Peak requested bytes, peak reserved over peak requested bytes, and backend calls"""
    done = subprocess.run([sys.argv[1], "replay", trace, "--shards", "1", "--json", *options], stdout=subprocess.PIPE,
                          check=True)
    found = json.loads(done.stdout)
    return (found["peak_requested_bytes"], found["peak_reserved_bytes"] / found["peak_requested_bytes"],
            found["backend_calls"])


def table(columns, traces):
    print("| trace | peak, MiB | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * (1 + len(columns)))
    rows = sorted([[replay(trace, options) for options in columns.values()] + [trace] for trace in traces])
    for *row, trace in rows:
        cells = [f"`{pathlib.Path(trace).name}`", f"{row[0][0] / 2**20:.1f}"]
        print("| " + " | ".join(cells + [f"{ratio:.3f}, {calls}" for _, ratio, calls in row]) + " |")
    small = [row[:-1] for row in rows if row[0][0] < SMALL]
    for name, choose in (("median", statistics.median), ("worst", max)):
        cells = [f"{choose(row[i][1] for row in small):.3f}, {choose(row[i][2] for row in small):g}"
                 for i in range(len(columns))]
        print(f"| {name} of the {len(small)} below 256 MiB | | " + " | ".join(cells) + " |")
    print()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    table(COLUMNS, sys.argv[2:])
    table(ELASTIC, sys.argv[2:])


main()
