"""bench_vulkan and what is made of its figures, on one Vulkan driver: a very short run and its tables.

usage: bench_vulkan.py BENCH_VULKAN SOURCE_ROOT

Skipped where no driver is found (VK_ICD_FILENAMES names one).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from tap import Tap

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SHORT = ("--reps", "1", "--pairs", "100", "--family", "full-pages")


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def usage_problems():
    for words in (("--reps", "0"), ("--pairs", "x"), ("--nothing",), ("stray",)):
        done = run(*words)
        if done.returncode != 2 or not done.stderr:
            yield f"{words}: {done.returncode} {done.stderr[:80]}"
    if run("--family", "none", "--json", "/no/such/folder/file").returncode != 1:
        yield "a file that cannot be made is taken"


def row_problems(figures):
    present = {s["name"] for s in figures["subjects"] if not s["absent"]}
    if "quire" not in present or not figures["device"]:
        yield str(figures["subjects"])
    wanted = {(name, n) for name in present for n in (1, 16, 64, 256, 1024)}
    for part in ("ranges", "buffers"):
        found = {(row["subject"], row["pages"]) for row in figures[part]}
        if found != wanted:
            yield f"{part}: {sorted(found)}, not {sorted(wanted)}"
        for row in figures[part]:
            if not 0 < row["pair_ns"]["min"] <= row["pair_ns"]["median"] or row["pairs"] < 100:
                yield str(row)


def page_problems(folder, figures):
    page = folder / "page.md"
    page.write_text("before\n<!-- vulkan figures -->\nold\n<!-- end of vulkan figures -->\nafter\n")
    done = subprocess.run([sys.executable, ROOT / "bench/vulkan_tables.py", figures, page],
                          capture_output=True, text=True, check=False)
    text = page.read_text()
    if done.returncode:
        yield done.stderr
    if "old" in text or not text.startswith("before\n") or not text.endswith("\nafter\n"):
        yield "the rest of the page is not kept"
    for words in ("reached", "16384 in pages of 1 MiB", "Ranges:", "Buffers:"):
        if words not in text:
            yield f"{words} is not on the page"


def main():
    tap = Tap()
    tap.case("bad usage is refused", usage_problems())
    listed = run("--list")
    if "device: none" in listed.stdout:
        tap.skip("measurements", listed.stdout.split("not supported: ")[-1].splitlines()[0])
        tap.end()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "vulkan.json"
        done = run(*SHORT, "--json", path)
        tap.case("a short run succeeds", [done.stderr] if done.returncode or done.stderr else [])
        if not done.returncode:
            tap.case("ranges and buffers are measured", row_problems(json.loads(path.read_text())))
            tap.case("its tables go into a page", page_problems(folder, path))
    tap.end()


main()
