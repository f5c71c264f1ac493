# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of scripts/test: their names, their results and the report of all, in a copy of the script.

usage: test_parts.py SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tap import Tap

LOOP = "for part in $parts; do\n    begin="
# Parts that take no time: one passes, one fails, one ends before it has a result.
SHORT = """build_packages() { :; }
part_fuzz() { folders=logs/good; }
part_proofs() { folders="logs/good logs/bad"; }
part_mutants() { exit 1; }
"""
GOOD = [{"name": "plain / a", "result": "OK", "stdout": "ok 1 - x\nok 2 - y # SKIP no device\n1..2"},
        {"name": "vulkan+driver / b_lavapipe", "result": "OK", "stdout": "ok 1 - z\n"}]
BAD = [{"name": "plain / c", "result": "TIMEOUT", "stdout": "ok 1 - x\n", "stderr": "# c.c:7: not true: y\n"}]


def make_copy(root, copy):
    shutil.copytree(root / "scripts", copy / "scripts")
    (copy / "tests").mkdir()
    shutil.copy(root / "tests/summary.py", copy / "tests")
    for name, tests in {"good": GOOD, "bad": BAD}.items():
        logs = copy / "logs" / name / "meson-logs"
        logs.mkdir(parents=True)
        (logs / "testlog.json").write_text("".join(json.dumps(test) + "\n" for test in tests))
    script = copy / "scripts/test"
    script.write_text(script.read_text().replace(LOOP, SHORT + LOOP))


def run(copy, *words):
    environment = {**os.environ, "GIT_DIR": str(copy / "none")}  # so that the commit is unknown
    return subprocess.run(["bash", copy / "scripts/test", *words], text=True, capture_output=True, env=environment)


def differences(done, status, last, *patterns):
    """What differs in a run: its exit status, its last line, or lines that must match."""
    lines = done.stdout.splitlines()
    problems = [] if done.returncode == status else [f"exit status {done.returncode}"]
    problems += [] if lines[-1:] == [last] else [f"the last line is {lines[-1:]}"]
    for pattern in patterns:
        if not any(re.fullmatch(pattern, line) for line in lines):
            problems.append(f"no line matches {pattern}")
    return problems + ([done.stdout, done.stderr] if problems else [])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        names = re.findall(r"^part_(\w+)\(\)", (root / "scripts/test").read_text(), re.M)
        make_copy(root, copy)
        listed = [line.split()[0] for line in run(copy, "--full=help").stdout.splitlines()]
        tap.case("help lists every part, in the order of the functions", [] if listed == names else [listed, names])
        for word in ("--full=fuzz,fuz", "--full=fu.z", "--bogus --full=report"):
            done = run(copy, *word.split())
            right = done.returncode == 2 and not done.stdout and "valgrind" in done.stderr
            tap.case(f"{word} is refused with the list", [] if right else [done])
        tap.case("without results the report fails",
                 differences(run(copy, "--full=report"), 1, "0 passed, 1 failed, 0 skipped",
                             "fuzz +has no result"))
        counts = "2 passed, 0 failed, 1 skipped"
        ended = r"\d{4}-\d\d-\d\d \d\d:\d\d +unknown +"
        tap.case("a part that passes", differences(
            run(copy, "--full=fuzz"), 0, counts, f"== fuzz: {counts} in \\d+ min \\d+ s",
            "SKIPPED good: plain / a: y: no device",
            "on Vulkan driver lavapipe: 1 passed, 0 failed, 0 skipped",
            f"fuzz +{ended}{counts} in \\d+ min \\d+ s", "valgrind +has no result"))
        result = json.loads((copy / "build-test/full/fuzz.result").read_text())
        tap.case("its result", [] if result["passed"] == 2 and result["commit"] == "unknown" else [result])
        tap.case("two parts are added up, and one of them fails", differences(
            run(copy, "--full=proofs,fuzz"), 1, "4 passed, 1 failed, 2 skipped",
            "== proofs: 2 passed, 1 failed, 1 skipped in \\d+ min \\d+ s", "FAILED  bad: plain / c: TIMEOUT"))
        report = run(copy, "--full=report")
        tap.case("the report adds up the parts that have a result",
                 differences(report, 1, "4 passed, 1 failed, 2 skipped"))
        last = ["FAILED  bad: plain / c: TIMEOUT", "        # c.c:7: not true: y"]
        tap.case("and repeats the failures last", [] if report.stdout.splitlines()[-3:-1] == last else [report])
        old = copy / "build-test/full/mutants.result"
        old.write_text((copy / "build-test/full/fuzz.result").read_text())
        tap.case("a part that ends before its result has none", differences(
            run(copy, "--full=mutants,fuzz"), 1, "2 passed, 1 failed, 1 skipped",
            "FAILED  build-test/full/mutants.result is missing", "mutants +has no result"))
    tap.end()


main()
