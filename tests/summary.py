"""Adds up the results of meson's test runs: a line per failure and per skip, a line per Vulkan driver,
then the totals.

usage: summary.py [--save FILE] BUILD_FOLDER...
       summary.py --add FILE...      adds up totals that were saved
Exit status 1 if a test failed or none ran.
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


def read_folder(folder, totals, drivers):
    """Adds the results of a build folder and prints those that did not pass."""
    # one log; with a wrapper it has the wrapper's name
    logs = sorted((pathlib.Path(folder) / "meson-logs").glob("testlog*.json"))
    if not logs:
        print(f"FAILED  {folder}: no tests ran")
        totals["failed"] += 1
    for line in (line for log in logs for line in log.read_text().splitlines()):
        test = json.loads(line)
        on_driver = drivers.setdefault(driver_of(test), dict.fromkeys(totals, 0))
        for kind, name, reason in results_of(test):
            totals[kind] += 1
            on_driver[kind] += 1
            where = f"{pathlib.Path(folder).name}: {test['name']}: {name}".rstrip(": ")
            if kind == "failed":
                print(f"FAILED  {where}")
            elif kind == "skipped":
                print(f"SKIPPED {where}: {reason}")


def add(files, totals):
    """Adds totals that --save wrote; a missing file is a part that did not run."""
    for file in map(pathlib.Path, files):
        if file.exists():
            for kind, count in json.loads(file.read_text()).items():
                totals[kind] += count
        else:
            print(f"FAILED  {file} is missing")
            totals["failed"] += 1


def main():
    arguments, save = sys.argv[1:], None
    totals, drivers = {"passed": 0, "failed": 0, "skipped": 0}, {}
    if arguments[:1] == ["--add"]:
        add(arguments[1:], totals)
        arguments = []
    if arguments[:1] == ["--save"]:
        save, arguments = pathlib.Path(arguments[1]), arguments[2:]
    for folder in arguments:
        read_folder(folder, totals, drivers)
    for driver, of_driver in drivers.items():
        if driver:
            print(f"on Vulkan driver {driver}: {counts(of_driver)}")
    if save:
        save.write_text(json.dumps(totals))
    print(counts(totals))
    sys.exit(1 if totals["failed"] or not totals["passed"] else 0)


main()
