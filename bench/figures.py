"""Measures the replays of docs/benchmarks.md on this machine, in pages and in one page that grows,
and prints their tables.

usage: figures.py QUIRE TRACE...
QUIRE is the tool, built with -Dbuildtype=release. The traces are replayed in pages of 32 MiB.
"""

import json
import pathlib
import subprocess
import sys

FITS = ("segregated", "first")


def ask(*words):
    done = subprocess.run([sys.argv[1], *words, "--json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def replay_row(trace, *options):
    row = [f"`{pathlib.Path(trace).name}`"]
    for fit in FITS:
        found = ask("replay", trace, "--fit", fit, "--page-size", "32M", *options)
        if not found:
            row += ["failed"] * 3
            continue
        row += [f"{found['peak_reserved_bytes'] / found['peak_requested_bytes']:.4f}",
                found["backend_calls"], found["failures"]]
    return row


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    head = ("trace", "segregated: reserved / requested", "backend calls", "failures",
            "first: reserved / requested", "backend calls", "failures")
    table(head, [replay_row(trace) for trace in sys.argv[2:]])
    table(head, [replay_row(trace, "--contiguous") for trace in sys.argv[2:]])


main()
