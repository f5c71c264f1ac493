"""Sums up what meson's test runs did: one line per failure and per skip, then the totals.

usage: summary.py BUILD_FOLDER...
Exit status 1 when anything failed or nothing ran.
"""

import json
import pathlib
import re
import sys

LINE = re.compile(r"^(not ok|ok)\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*(SKIP|TODO)\b\s*(.*))?$", re.I)


def tap_results(text):
    for line in text.splitlines():
        match = LINE.match(line.strip())
        if match:
            word, name, directive, reason = match.groups()
            if directive and directive.upper() == "SKIP":
                yield "skipped", name, reason
            else:
                yield ("passed" if word == "ok" else "failed"), name, ""


def results_of(test):
    """One test program: its cases if it speaks TAP, else itself."""
    cases = list(tap_results(test.get("stdout") or ""))
    outcome = test["result"]
    if outcome in ("OK", "EXPECTEDFAIL", "FAIL") and cases and outcome != "EXPECTEDFAIL":
        yield from cases
        if outcome == "FAIL" and not any(kind == "failed" for kind, _, _ in cases):
            yield "failed", "(the program itself)", ""
        return
    if outcome in ("OK", "EXPECTEDFAIL"):
        yield "passed", "", ""
    elif outcome == "SKIP":
        yield "skipped", "", (test.get("stdout") or "").strip() or "the program says so"
    else:
        yield "failed", outcome, ""


def main():
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for folder in sys.argv[1:]:
        # one log; with a wrapper it bears the wrapper's name
        logs = sorted((pathlib.Path(folder) / "meson-logs").glob("testlog*.json"))
        if not logs:
            print(f"FAILED  {folder}: no tests ran")
            totals["failed"] += 1
        for line in (line for log in logs for line in log.read_text().splitlines()):
            test = json.loads(line)
            for kind, name, reason in results_of(test):
                totals[kind] += 1
                where = f"{pathlib.Path(folder).name}: {test['name']}: {name}".rstrip(": ")
                if kind == "failed":
                    print(f"FAILED  {where}")
                elif kind == "skipped":
                    print(f"SKIPPED {where}: {reason}")
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
    sys.exit(1 if totals["failed"] or not totals["passed"] else 0)


main()
