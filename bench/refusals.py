# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the instructions of a refused allocation with valgrind's callgrind.

usage: refusals.py build/bench/bench_refusals
"""

import re
import subprocess
import sys

FEW, MANY = 100, 1100


def collected(program, case, count):
    """Instructions of a run with so many refusals."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, case, str(count)],
                          capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def main():
    program = sys.argv[1]
    usage = subprocess.run([program], capture_output=True, text=True, check=False).stderr
    for case in usage.splitlines()[1:]:
        case = case.strip()
        each = (collected(program, case, MANY) - collected(program, case, FEW)) / (MANY - FEW)
        print(f"{case:16} {each:6.0f} instructions")


main()
