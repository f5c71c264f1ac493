# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TAP lines for the Python tests: one per case, the plan at the end, exit status 1 when any failed."""

import os
import pathlib
import sys
import tempfile


class Skipped(Exception):
    """A requirement of a case that the machine lacks."""


def under_valgrind():
    """As tests/support/valgrind.h."""
    return "vgpreload" in os.environ.get("LD_PRELOAD", "")


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, problems=()):
        """A case that holds when there are no problems; they are printed as diagnostics."""
        self.count += 1
        problems = list(problems)
        self.failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}")
        for problem in problems:
            for line in str(problem).splitlines() or [""]:
                print(f"# {line}")
        sys.stdout.flush()

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}")
        sys.stdout.flush()

    def attempt(self, name, function, *args):
        """A case whose problems a function returns; it may raise Skipped."""
        try:
            problems = list(function(*args))
        except Skipped as reason:
            self.skip(name, reason)
            return
        except Exception as error:  # a case with an exception has failed; the others continue
            problems = [f"{type(error).__name__}: {error}"]
        self.case(name, problems[:20])

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def run_cases(cases, prefix, enter):
    """Runs (name, function) pairs, each in a temporary folder that `enter` gets. A function returns its problems."""
    tap = Tap()
    for name, case in cases:
        with tempfile.TemporaryDirectory(prefix=prefix) as folder:
            enter(pathlib.Path(folder))
            tap.attempt(name, case)
    tap.end()
