"""Prints the tables of docs/benchmarks.md as this machine measures them.

usage: figures.py QUIRE [TRACE...]
QUIRE is the tool, built with -Dbuildtype=release; the traces are replayed in pages of 32 MiB.
"""

import json
import pathlib
import subprocess
import sys

SPEED = ("a1k", "a10k", "a100k", "a1m", "a100k_raw", "b1k", "b100k", "c1k", "c100k", "d1k", "d100k",
         "e_dnn", "e_dyn")
SLOW_FIRST = ("a100k", "a1m", "a100k_raw", "b100k", "c100k", "d100k")
RAMPS = ("logu", "bimod", "small", "mid", "pow2", "tex")
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


def pair_ns(name, *options):
    found = ask("bench", name, *options)
    return f"{found['pair_ns']['min']:.0f}" if found else "failed"


def speed_row(name):
    first = pair_ns(name, "--fit", "first", *(["--repeats", "2"] if name in SLOW_FIRST else []))
    shared = [pair_ns(name, "--threads", str(count)) if name[0] in "ab" and name != "a1m" else "-"
              for count in (1, 2)]
    return (f"`{name}`", pair_ns(name), first, *shared)


def ramp_row(name):
    found = [ask("bench", f"ramp-{name}", "--fit", fit) for fit in FITS]
    return (f"`{name}`", *(f"{one['utilisation']:.3f}" if one else "failed" for one in found))


def replay_row(trace):
    row = [f"`{pathlib.Path(trace).name}`"]
    for fit in FITS:
        found = ask("replay", trace, "--fit", fit, "--page-size", "32M")
        if not found:
            row += ["failed"] * 3
            continue
        row += [f"{found['peak_reserved_bytes'] / found['peak_requested_bytes']:.4f}",
                found["backend_calls"], found["failures"]]
    return row


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    table(("workload", "segregated", "first", "memory, 1 thread", "memory, 2 threads"),
          [speed_row(name) for name in SPEED])
    table(("sizes", "segregated", "first"), [ramp_row(name) for name in RAMPS])
    if sys.argv[2:]:
        table(("trace", "segregated: reserved / requested", "backend calls", "refused",
               "first: reserved / requested", "backend calls", "refused"),
              [replay_row(trace) for trace in sys.argv[2:]])


main()
