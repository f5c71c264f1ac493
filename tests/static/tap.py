"""TAP lines for the Python tests: one per case, the plan at the end, exit status 1 when any failed."""

import sys


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

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
