# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proves every harness beside this file with CBMC; TAP, one line per harness.

usage: run.py SOURCE_ROOT WORK_FOLDER
The script looks for CBMC in the PATH. A harness is proved if every assertion holds within the
unwinding bound and its end is reached.
"""

import concurrent.futures
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "static"))
from tap import Tap  # noqa: E402

END = "the end is reached"
MAX_MEMORY = 10 << 30

SPACE = ["tests/cbmc/stubs.c"] + [f"src/space/{name}.c" for name in (
    "segregated/segregated", "segregated/fast", "segregated/tables", "segregated/region",
    "segregated/search", "segregated/backing", "segregated/deferred_coalescing", "segregated/view", "segregated/check",
    "segregated/slabs", "segregated/slabs_check", "line", "pool")]

# Options for proofs of whole operations: the smallest possible symbolic tables, and no checks of
# CBMC itself (pointers, bounds), because the sanitizers run the same harnesses.
WHOLE = ["--no-standard-checks", "--no-malloc-may-fail", "--slice-formula",
         "--max-field-sensitivity-array-size", "2",
         "--unwindset", "set_first_generations.0:70", "--unwindset", "bucket_shift_for.0:16"]

# Proofs of plans: the tree of the check is as deep as three items need.
PLAN = ["--no-standard-checks", "--no-malloc-may-fail", "--slice-formula",
        "--unwindset", "largest_arena.0:3", "--unwindset", "gcd.0:5", "--unwindset", "index_of.0:4",
        "--unwindset", "reach_of:4", "--unwindset", "extend:4"]

# file: further sources, unwinding bound, seconds, options
FILES = {
    "bits": ([], 66, 60, []),
    "buckets": ([], 18, 60, []),
    "classes": ([], 2, 60, []),
    "handle": ([], 2, 60, []),
    "plan_check": (["tests/cbmc/plan_stubs.c", "src/plan/check.c", "src/plan/units.c"], 60, 900, PLAN),
    "search": (SPACE, 16, 300, WHOLE),
    "split_merge": (SPACE, 5, 900, WHOLE),
}

# Proofs of whole operations run on the same algorithm with smaller constants; tables and 32 records
# would take most of a proof's time. With few mantissa bits the sizes of a tiny space share classes,
# as large ones do.
SMALLER = {
    "src/space/segregated/classes.h": {"QI_MANTISSA_BITS": 1},
    "src/space/segregated/buckets.h": {"QI_MAX_BUCKETS": 2},
    "src/space/pool.c": {"FIRST_CAPACITY": 8},
}


def make_smaller(root, work):
    """Copies the sources with those constants; returns the names that were not found."""
    missing = []
    for folder in ("include", "src", "tests/cbmc"):
        shutil.copytree(root / folder, work / folder, dirs_exist_ok=True)
    for name, constants in SMALLER.items():
        text = (work / name).read_text()
        for constant, value in constants.items():
            text, count = re.subn(rf"\b{constant} = \d+", f"{constant} = {value}", text)
            missing += [] if count == 1 else [f"{constant} is not in {name} once"]
        (work / name).write_text(text)
    return missing


def harnesses(root):
    for name in FILES:
        text = (root / f"tests/cbmc/{name}.c").read_text()
        text = re.sub(r"#ifndef __CPROVER__\n.*?#endif\n", "", text, flags=re.S)
        for proof in re.findall(r"^PROOF\((\w+)\)", text, re.M):
            yield name, proof


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def prove(cbmc, folder, name, proof):
    """Returns the problems and the duration."""
    sources, unwind, seconds, options = FILES[name]
    command = [cbmc, "-I.", "-Iinclude", "-DQUIRE_PORTABLE", f"tests/cbmc/{name}.c", *sources,
               "--function", f"prove_{proof}", "--unwind", str(unwind), "--unwinding-assertions",
               "--drop-unused-functions", "--verbosity", "4", *options]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=seconds,
                              preexec_fn=limit_memory)
    except subprocess.TimeoutExpired:
        return [f"not decided within {seconds} s"], seconds
    results = re.findall(r"^\[.*?\] (.*): (SUCCESS|FAILURE|UNKNOWN|ERROR)$", done.stdout, re.M)
    problems = [f"{what}: {how}" for what, how in results if how != "SUCCESS" and END not in what]
    ends = [how for what, how in results if END in what]
    if ends != ["FAILURE"]:
        problems.append("the end is never reached, or CBMC gave up: " + (done.stderr or done.stdout)[-500:])
    return problems, time.monotonic() - begin


def main():
    root, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    cbmc = shutil.which("cbmc")
    tap = Tap()
    todo = list(harnesses(root))
    if not cbmc:
        for name, proof in todo:
            tap.skip(f"{name}: {proof}", "cbmc is not installed")
        tap.end()
    shutil.rmtree(work, ignore_errors=True)
    tap.case("the constants to prove with are found", make_smaller(root, work))
    # two at once: the long ones need several GiB each
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(prove, cbmc, work if WHOLE is FILES[name][3] else root, name, proof)
                for name, proof in reversed(todo)]
        for (name, proof), run in zip(reversed(todo), runs):
            problems, seconds = run.result()
            bound = FILES[name][1]
            tap.case(f"{name}: {proof} (unwound {bound} times, {seconds:.0f} s)", problems)
    tap.end()


main()
