# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The browser of the other tests: it reports what a page does wrong, ends its waits, and leaves nothing behind.

usage: chromium_test.py PATH_TO_QUIRE SOURCE_ROOT
"""

import pathlib
import time

from browsing import browser, run_pages
from chromium import Browser, BrowserError, find_program
from tool_run import here, write


def case_reports():
    """What a page reports is noticed: messages, exceptions, requests, files that are missing, and endless waits"""
    page = write("bad.html", "<!doctype html><link rel=icon href=data:,><script>console.error('one', 1);"
                 "console.warn('two'); console.log('three'); fetch('http://quire.invalid/four').catch(() => 0);"
                 "setTimeout(() => { throw new Error('five'); });</script>")
    browser.open(page)
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    reports = "\n".join(browser.take_problems())
    for words in ("console error: one 1", "console warning: two", "request of http://quire.invalid/four",
                  "exception: Error: five"):
        if words not in reports:
            yield f"no {words!r} in {reports!r}"
    if "three" in reports:
        yield "a plain message is a problem"
    for words, wait in (("no answer in 0.5 s", lambda: browser.evaluate("new Promise(() => 0)", limit=0.5)),
                        ("missing.html", lambda: browser.open(here() / "missing.html")),
                        ("Error: six", lambda: browser.evaluate("(() => { throw new Error('six'); })()")),
                        ("not within 0.5 s", lambda: browser.wait_for("Page.none", limit=0.5))):
        try:
            wait()
            yield f"nothing refused: {words}"
        except BrowserError as error:
            if words not in str(error):
                yield str(error)
    browser.take_problems()


def case_end():
    """A program that fails to start is reported; after its end nothing of it is left"""
    program = write("no-browser", "#!/bin/sh\necho it says why >&2\nexit 1\n")
    program.chmod(0o700)
    before = set(pathlib.Path(browser.folder).parent.glob("quire-chromium-*"))
    try:
        with Browser(str(program)):
            yield "a program that ends at once is a browser"
    except BrowserError as error:
        if "it says why" not in str(error):
            yield str(error)
    with Browser(find_program()) as other:
        leader = other.process
    if set(browser.folder.parent.glob("quire-chromium-*")) != before:
        yield "a folder is left"
    for state in alive(leader):
        yield f"a process is left: {state}"


def alive(group):
    """The states of the processes of a group that have not ended within five seconds."""
    end = time.monotonic() + 5
    while (left := [state for state, its in processes() if its == group and state != "Z"]) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def processes():
    """The state and the group of each process."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has ended
            continue
        yield state, int(group)


run_pages(globals())
