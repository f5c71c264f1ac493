# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of a benchmark, and the checks that the tests of all benchmarks make.

The first argument of each test is the path of its program.
"""

import json
import os
import pathlib
import subprocess
import sys

PROGRAM = sys.argv[1]


def run(*words, **env):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, env={**os.environ, **env})


def script(*words):
    """Runs a Python program."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def usage_problems(*rows, chooses="--family"):
    """Each row of words is bad usage. A document in a folder that does not exist is refused, also if the option
    that chooses measurements, if there is one, leaves none."""
    for words in rows:
        done = run(*words)
        if done.returncode != 2 or not done.stderr:
            yield f"{words}: {done.returncode} {done.stderr[:80]}"
    if chooses and run(chooses, "none", "--json", "/no/such/folder/file").returncode != 1:
        yield "a file that cannot be made is taken"


def list_problems(*names):
    """Each subject is listed, as available or with the reason why not."""
    done = run("--list")
    if done.returncode:
        yield done.stderr
    yield from (f"{name} is not listed" for name in names if f"  {name} " not in done.stdout)


def short_run(tap, path, *words):
    """A case: the run succeeds without a message. Returns its document, or None."""
    done = run(*words, "--json", path)
    tap.case("a short run succeeds", [done.stderr] if done.returncode or done.stderr else [])
    return None if done.returncode else json.loads(pathlib.Path(path).read_text())


def spread_problems(row, *keys):
    """The figures of these keys are positive, and the minimum is at most the median."""
    for key in keys:
        if key not in row or not 0 < row[key]["min"] <= row[key]["median"]:
            yield f"{key} of {row}"


def row_problems(part, rows, keys, wanted, *spread):
    """The values of these keys in the rows are the wanted ones, and the figures of the others have a spread."""
    found = {tuple(row[key] for key in keys) for row in rows}
    if found != set(wanted):
        yield f"{part}: {sorted(found)}, not {sorted(wanted)}"
    for row in rows:
        yield from spread_problems(row, *spread)


def page_problems(folder, program, mark, *documents, wanted=(), more=()):
    """The program replaces the tables between the marks of a page, and nothing else. `more` words follow the page."""
    page = folder / "page.md"
    page.write_text(f"before\n<!-- {mark} -->\nprevious run\n<!-- end of {mark} -->\nafter\n")
    done = script(program, *documents, page, *more)
    text = page.read_text()
    if done.returncode:
        yield done.stderr
    if "previous run" in text or not text.startswith("before\n") or not text.endswith("\nafter\n"):
        yield "the rest of the page is not kept"
    yield from (f"{words} is not on the page" for words in wanted if words not in text)
