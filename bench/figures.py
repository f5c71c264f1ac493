"""Measures the replays of docs/benchmarks.md on this machine and prints their tables: in pages that
follow use, in pages of 32 MiB, and each of them as one page that grows.

usage: figures.py QUIRE TRACE...
QUIRE is the tool, built with -Dbuildtype=release.
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
        found = ask("replay", trace, "--fit", fit, *options)
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
    for pages in ((), ("--contiguous",)):
        for size in ((), ("--page-size", "32M")):
            print(" ".join(("quire replay TRACE", *pages, *size)) + "\n")
            table(head, [replay_row(trace, *pages, *size) for trace in sys.argv[2:]])


main()
