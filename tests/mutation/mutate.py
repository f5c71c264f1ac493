"""Changes the library in one small way at a time, and reports which changes no test notices.

usage: mutate.py [--count N] [--seed S] [--under PATH...] [--least PERCENT] [--jobs N] [--work FOLDER]

A mutant is one place of a source changed: a comparison, && or ||, + or -, a constant, a condition
negated, a statement deleted, a result swapped, an early return dropped. The places are drawn at random
from the sources under the paths (src/space and src/core), the seed is that of the last commit, so
that a commit always gets the same ones. Mutants that do not compile, that compile to the same code, or
that equivalent.txt lists are not counted: others are drawn for them. A mutant is killed when a test
fails, crashes or does not end. Prints TAP; report.txt in the work folder has the same lines.
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

import equivalents  # noqa: E402
import points  # noqa: E402
from build import Build, Failed  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "static"))
from tap import Tap  # noqa: E402

# A test that takes longer than this many times its usual time, and some seconds, does not end.
TIMES_LONGER, SECONDS_MORE = 10, 10
TOGETHER = 4  # tests that are linked and run before the next are
# One that every test of spaces with regions must notice.
PLANTED = ("src/space/region.c", "space->region_count++;")


def seed_of(root):
    """A number from the commit; without git from the sources."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    if head.returncode == 0:
        return int(head.stdout.strip()[:12], 16)
    digest = hashlib.sha256()
    for path in sorted((root / "src").rglob("*.[ch]")):
        digest.update(path.read_bytes())
    return int(digest.hexdigest()[:12], 16)


class Order:
    """Which tests come first for a file: those of its name, those that killed before, quick ones."""

    def __init__(self, tests):
        self._tests = tests
        self._of_file = collections.Counter()
        self._of_folder = collections.Counter()

    def killed(self, file, test):
        self._of_file[file, test.name] += 1
        self._of_folder[os.path.dirname(file), test.name] += 1

    def tests_for(self, file):
        stem = pathlib.Path(file).stem

        def worth(test):
            related = test.name == stem or f"{stem}_".startswith(f"{test.name}_") or \
                f"{test.name}_".startswith(f"{stem}_")
            alike = test.name.split("_")[0] == stem.split("_")[0]
            kills = 4 * self._of_file[file, test.name] + self._of_folder[os.path.dirname(file), test.name]
            return (0.1 + 4 * related + 2 * alike + kills) / (0.1 + test.seconds)

        return sorted(self._tests, key=worth, reverse=True)


def run_together(tests, jobs):
    """Runs tests side by side until one fails; that one and what failed, or None."""
    waiting, failures = collections.deque(tests), []

    def work():
        while waiting and not failures:
            try:
                test = waiting.popleft()
            except IndexError:
                return
            failure = test.run(TIMES_LONGER * test.seconds + SECONDS_MORE)
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
        """Every test on the unchanged sources; what failed."""
        problems = []
        for test in self._build.tests:
            failure = self._time(test)
            if failure:  # it may reserve more than the limit
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
        """The test that fails and how, None, or "" where the tests cannot be built."""
        tests = [test for test in self._order.tests_for(file) if test.has_any(changed)]
        for i in range(0, len(tests), TOGETHER):
            if self._build.make_tests(tests[i:i + TOGETHER]):
                return ""
            failed = run_together(tests[i:i + TOGETHER], self._build.jobs)
            if failed:
                self._order.killed(file, failed[0])
                return failed
        return None

    def try_mutant(self, point):
        """"killed", "survived", or why it does not count."""
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
        self._tell(text, point, failed)
        return "killed" if failed else "survived"

    def _tell(self, text, point, failed):
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
    """Tries mutants until `count` counted; how many were killed."""
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
    out(f"seed {seed}, {len(found)} places under {' '.join(given.under)}")
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
    sample(tester, chosen, texts, equivalents.read(HERE / "equivalent.txt"), given.count)
    killed, counted = tester.tried["killed"], tester.tried["killed"] + tester.tried["survived"]
    share = 100 * killed / counted if counted else 0
    out("not counted: " + ", ".join(f"{tester.tried[why]} {why}"
                                    for why in ("does not compile", "same code", "listed")))
    out(f"{killed} of {counted} mutants killed, {share:.1f} %")
    tap.case(f"mutation: at least {given.least} % of {given.count} mutants are killed",
             [] if counted and share >= given.least else [f"{share:.1f} % of {counted}"])
    tap.end()


main()
