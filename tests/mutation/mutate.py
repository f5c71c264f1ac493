# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes one small change to the library at a time, and reports the changes that no test detects.

usage: mutate.py [--count N] [--seed S] [--under PATH...] [--least PERCENT] [--jobs N] [--work FOLDER]

A mutant changes one point of a source: it changes a comparison, && or ||, + or -, or a constant,
negates a condition, deletes a statement, swaps a result, or drops an early return. The points are drawn
at random from the sources under the paths (default: src/space and src/core). The default seed comes
from the last commit, so that a commit always gets the same mutants. A mutant does not count if it does
not compile, compiles to the same code, or is in equivalent.txt; another one is drawn instead. A mutant
is killed if a test fails, crashes or times out. Prints TAP; report.txt in the work folder has the same
lines.
"""

import argparse
import collections
import hashlib
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

import points  # noqa: E402
from build import Build, Failed  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "static"))
from tap import Tap  # noqa: E402

# The timeout of a test is its usual time times the factor, plus the seconds.
TIMEOUT_FACTOR, TIMEOUT_SECONDS = 10, 10
GROUP_SIZE = 4  # tests that are linked and run before the next group
# A fault that every test of spaces with regions must detect.
PLANTED = ("src/space/region.c", "space->region_count++;")


def seed_of(root):
    """A number from the commit id, or from the sources if git is unavailable."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    if head.returncode == 0:
        return int(head.stdout.strip()[:12], 16)
    digest = hashlib.sha256()
    for path in sorted((root / "src").rglob("*.[ch]")):
        digest.update(path.read_bytes())
    return int(digest.hexdigest()[:12], 16)


class Order:
    """Orders the tests for a file: tests with its name, tests that killed mutants, and fast tests come first."""

    def __init__(self, tests):
        self._tests = tests
        self._of_file = collections.Counter()
        self._of_folder = collections.Counter()

    def killed(self, file, test):
        self._of_file[file, test.name] += 1
        self._of_folder[os.path.dirname(file), test.name] += 1

    def tests_for(self, file):
        path = pathlib.PurePath(file)
        names = path.stem, f"{path.parent.name}_{path.stem}"

        def priority(test):
            is_related = any(f"{name}_".startswith(f"{test.name}_") or f"{test.name}_".startswith(f"{name}_")
                             for name in names)
            is_similar = any(test.name.split("_")[0] == name.split("_")[0] for name in names)
            kills = 4 * self._of_file[file, test.name] + self._of_folder[os.path.dirname(file), test.name]
            return (0.1 + 4 * is_related + 2 * is_similar + kills) / (0.1 + test.seconds)

        return sorted(self._tests, key=priority, reverse=True)


def run_parallel(tests, jobs):
    """Runs tests in parallel until one fails. Returns (test, failure) or None."""
    waiting, failures = collections.deque(tests), []

    def work():
        while waiting and not failures:
            try:
                test = waiting.popleft()
            except IndexError:
                return
            failure = test.run(TIMEOUT_FACTOR * test.seconds + TIMEOUT_SECONDS)
            if failure:
                failures.append((test, failure))

    workers = [threading.Thread(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return failures[0] if failures else None


class Tester:
    def __init__(self, build, out):
        self._build, self._out = build, out
        self._order = Order(build.tests)
        self._code = build.object_code()
        self.tried = collections.Counter()

    def measure(self):
        """Runs every test on the unchanged sources. Returns the failures."""
        problems = []
        for test in self._build.tests:
            failure = self._time(test)
            if failure:  # the test may reserve more than the limit
                test.is_limited = False
                failure = self._time(test)
            if failure:
                problems.append(f"{test.name}: {failure}")
        return problems

    @staticmethod
    def _time(test):
        begin = time.monotonic()
        failure = test.run(900)
        test.seconds = time.monotonic() - begin
        return failure

    def _first_failure(self, file, changed):
        """(test, failure), None, or "" if the tests do not build."""
        tests = [test for test in self._order.tests_for(file) if test.has_any(changed)]
        for i in range(0, len(tests), GROUP_SIZE):
            if self._build.make_tests(tests[i:i + GROUP_SIZE]):
                return ""
            failed = run_parallel(tests[i:i + GROUP_SIZE], self._build.jobs)
            if failed:
                self._order.killed(file, failed[0])
                return failed
        return None

    def try_mutant(self, point):
        """Returns "killed", "survived", or the reason why the mutant does not count."""
        path = self._build.tree / point.file
        text = path.read_text()
        path.write_text(points.apply(text, point))
        try:
            if self._build.make_libraries():
                return "does not compile"
            code = self._build.object_code()
            changed = [name for name in code if code[name] != self._code.get(name)]
            if not changed:
                return "same code"
            failed = self._first_failure(point.file, changed)
        finally:
            path.write_text(text)
        if failed == "":
            return "does not compile"
        self._report(text, point, failed)
        return "killed" if failed else "survived"

    def _report(self, text, point, failed):
        where = f"{point.file}:{points.line_of(text, point)}: {point.operator}"
        before, after = points.changed_lines(text, point)
        how = f"killed by {failed[0].name}: {failed[1]}" if failed else "SURVIVED"
        self._out(f"{where}: {how}")
        self._out(f"    - {before}")
        self._out(f"    + {after}")


def read_points(root, under):
    found, texts = [], {}
    for name in under:
        path = root / name
        for source in sorted(path.rglob("*.[ch]")) if path.is_dir() else [path]:
            file = str(source.relative_to(root))
            texts[file] = source.read_text()
            found += points.points_of(file, texts[file])
    return found, texts


def planted_in(texts):
    file, line = PLANTED
    if file not in texts:
        texts[file] = (HERE.parent.parent / file).read_text()
    begin = texts[file].index(line)
    return points.Point(file, "planted", begin, begin + len(line), ";")


def sample(tester, chosen, texts, listed, count):
    """Tries mutants until `count` have counted."""
    for point in chosen:
        if tester.tried["killed"] + tester.tried["survived"] == count:
            break
        key = (point.file, point.operator, *points.changed_lines(texts[point.file], point))
        tester.tried["listed" if key in listed else tester.try_mutant(point)] += 1


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=lambda text: int(text, 0))
    parser.add_argument("--under", nargs="+", default=["src/space", "src/core"])
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--work", type=pathlib.Path)
    given = parser.parse_args()
    given.root = given.root.resolve()
    given.work = (given.work or given.root / "build-test" / "mutation").resolve()
    return given


def main():
    given = arguments()
    seed = seed_of(given.root) if given.seed is None else given.seed
    given.work.mkdir(parents=True, exist_ok=True)
    report = open(given.work / "report.txt", "w", encoding="utf-8")

    def out(line):
        print(f"# {line}", flush=True)
        print(line, file=report, flush=True)

    tap = Tap()
    found, texts = read_points(given.root, given.under)
    chosen = random.Random(seed).sample(found, len(found))
    out(f"seed {seed}, {len(found)} points under {' '.join(given.under)}")
    try:
        tester = Tester(Build(given.root, given.work, given.jobs), out)
    except Failed as failed:
        tap.case("mutation: the unchanged sources build", [failed])
        tap.end()
    problems = tester.measure()
    tap.case("mutation: the unchanged sources survive every test", problems)
    if problems:
        tap.end()
    verdict = tester.try_mutant(planted_in(texts))
    tap.case("mutation: a planted fault is killed", [] if verdict == "killed" else [verdict])
    sample(tester, chosen, texts, points.read_equivalents(HERE / "equivalent.txt"), given.count)
    killed, counted = tester.tried["killed"], tester.tried["killed"] + tester.tried["survived"]
    share = 100 * killed / counted if counted else 0
    out("not counted: " + ", ".join(f"{tester.tried[why]} {why}"
                                    for why in ("does not compile", "same code", "listed")))
    out(f"{killed} of {counted} mutants killed, {share:.1f} %")
    tap.case(f"mutation: at least {given.least} % of {given.count} mutants are killed",
             [] if counted and share >= given.least else [f"{share:.1f} % of {counted}"])
    tap.end()


main()
