# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of generated networks keep their goals, in bytes and in host memory.

usage: bench_plan.py BENCH_PLAN QUIRE SOURCE_ROOT
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from tap import Tap

KINDS = {"inference": 1.01, "training": 1.01, "resident": 1.01, "random": 1.05}  # of the bound, at most
BYTES = 400  # of host memory an item


def run(*args):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, check=False)


def main():
    program, quire = sys.argv[1:3]
    tap = Tap()
    for kind, goal in KINDS.items():
        done = run(program, "--kind", kind, "--limit", "0.5", "--goal", goal)
        row = re.match(kind + r" +10000 items +(\d\.\d+) of the bound.* (\d+) bytes an item", done.stdout)
        problems = [done.stdout + done.stderr] if done.returncode or not row or int(row[2]) > BYTES else []
        tap.case(f"10,000 items, {kind}: at most {goal} of the bound and {BYTES} bytes an item", problems)
    done = run(program, "--kind", "random", "--goal", "0.5", "--limit", "0.01")
    tap.case("a goal that is missed fails", [] if done.returncode == 1 and "above the goal" in done.stderr else [done])
    for args in (["--kind", "x"], ["--items", "0"], ["--limit", "0"], ["--csv"], ["more"], ["--x"]):
        done = run(program, *args)
        tap.case(f"usage: {' '.join(args)}", [] if done.returncode == 2 and "usage:" in done.stderr else [done])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "network.csv"
        path.write_text(run(program, "--kind", "training", "--items", "500", "--csv").stdout)
        done = run(quire, "plan", path)
        tap.case("quire plan reads what --csv prints", [] if "500 ranges" in done.stdout else [done])
    tap.end()


main()
