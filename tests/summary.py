# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds up the results of meson's test runs, for scripts/test.

usage: summary.py --part FILE COMMIT SECONDS BUILD_FOLDER...
           the results of one part of scripts/test: a line per failure and per skip, a line per Vulkan
           driver, then the totals; FILE gets the totals and the failures. FILE is named after the part.
       summary.py --table FILE...    a line per part: when and at which commit it last ran, and its totals
       summary.py --add FILE...      the failures, then the sum of the totals; exit status 1 if a test failed or
           none ran
"""

import json
import pathlib
import re
import sys
import time

KINDS = ("passed", "failed", "skipped")
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
    """One test program: its cases if it prints TAP, otherwise itself."""
    cases = list(tap_results(test.get("stdout") or ""))
    outcome = test["result"]
    if outcome in ("OK", "FAIL", "SKIP") and cases:
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


def driver_of(test):
    """The driver of a test that runs once on each driver: the end of the test's name."""
    words = test["name"].rsplit("_", 1)
    return words[1] if "driver" in test["name"].split(" / ")[0] and len(words) == 2 else None


def counts(totals):
    return f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped"


def why(test):
    """What a program of failed tests wrote last to the standard error."""
    return ["        " + line for line in (test.get("stderr") or "").splitlines()[-5:]]


def read_folder(folder, totals, drivers, failures):
    """Adds the results of a build folder, prints those that did not pass, and lists the failures."""
    # one log; with a wrapper it has the wrapper's name
    logs = sorted((pathlib.Path(folder) / "meson-logs").glob("testlog*.json"))
    if not logs:
        failures.append(f"FAILED  {folder}: no tests ran")
        totals["failed"] += 1
    for line in (line for log in logs for line in log.read_text().splitlines()):
        test = json.loads(line)
        on_driver = drivers.setdefault(driver_of(test), dict.fromkeys(totals, 0))
        before = len(failures)
        for kind, name, reason in results_of(test):
            totals[kind] += 1
            on_driver[kind] += 1
            where = f"{pathlib.Path(folder).name}: {test['name']}: {name}".rstrip(": ")
            if kind == "failed":
                failures.append(f"FAILED  {where}")
            elif kind == "skipped":
                print(f"SKIPPED {where}: {reason}")
        if len(failures) > before:
            failures += why(test)


def duration(seconds):
    return f"{seconds // 60} min {seconds % 60} s"


def part(file, commit, seconds, folders):
    totals, drivers, failures = dict.fromkeys(KINDS, 0), {}, []
    for folder in folders:
        read_folder(folder, totals, drivers, failures)
    for line in failures:
        print(line)
    for driver, of_driver in drivers.items():
        if driver:
            print(f"on Vulkan driver {driver}: {counts(of_driver)}")
    print(f"== {file.stem}: {counts(totals)} in {duration(seconds)}")
    ended = time.strftime("%Y-%m-%d %H:%M")
    result = {**totals, "seconds": seconds, "commit": commit, "ended": ended, "failures": failures}
    file.write_text(json.dumps(result) + "\n")


def table(files):
    for file in files:
        what = "has no result"
        if file.exists():
            result = json.loads(file.read_text())
            commit = re.sub(r"^([0-9a-f]{12})[0-9a-f]*", r"\1", result["commit"])
            what = f"{result['ended']}  {commit:18}  {counts(result)} in {duration(result['seconds'])}"
        print(f"{file.stem:10}{what}")


def add(files):
    """A missing file is a part that did not end. The failures of all parts come last, where they are seen."""
    totals = dict.fromkeys(KINDS, 0)
    for file in files:
        if file.exists():
            result = json.loads(file.read_text())
            for kind in KINDS:
                totals[kind] += result[kind]
            for line in result.get("failures", []) if len(files) > 1 else []:
                print(line)
        else:
            print(f"FAILED  {file} is missing")
            totals["failed"] += 1
    print(counts(totals))
    sys.exit(1 if totals["failed"] or not totals["passed"] else 0)


def main():
    action, files = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    if action == "--part":
        part(files[0], sys.argv[3], int(sys.argv[4]), files[3:])
    elif action == "--table":
        table(files)
    else:
        add(files)


main()
