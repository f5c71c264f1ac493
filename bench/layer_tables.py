# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs bench_layer with the Vulkan layer and without in turn, and writes the least times into a page,
between its marks `<!-- layer figures -->`.

usage: layer_tables.py BENCH_LAYER LAYER_FOLDER PAGE.md [--rounds N] [-- OPTIONS OF BENCH_LAYER]

VK_ICD_FILENAMES selects the driver, as for every program.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from page import replace, table

BEGIN, END = "<!-- layer figures -->", "<!-- end of layer figures -->"
LAYER = "VK_LAYER_QUIRE_suballocate"
CALLS = {"allocate": "`vkAllocateMemory`", "bind": "`vkBindBufferMemory`", "map": "`vkMapMemory`",
         "unmap": "`vkUnmapMemory`", "free": "`vkFreeMemory`"}
BUSY = 0.5  # load for each processor above which the page says that the machine was busy


def run(program, folder, layered, options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_LAYER_")}
    environment.pop("VK_INSTANCE_LAYERS", None)
    if layered:
        environment.update(VK_LAYER_PATH=folder, VK_INSTANCE_LAYERS=LAYER)
    done = subprocess.run([program, *options], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def least(runs, key):
    return min(one[key] for one in runs)


def page_lines(without, layered, load):
    one = without[0]
    busy = f" The machine was busy (load {load:.1f} on {os.cpu_count()} processors): compare the ratios." \
        if load > BUSY * os.cpu_count() else ""
    lines = [f"Least nanoseconds per call, on '{one['device']}', release build: {one['objects']} memory objects of",
             f"{one['size'] // 1024} KiB, {len(without)} runs of {one['reps']} repeats.{busy}", ""]
    rows = []
    for key, name in CALLS.items():
        before, after = least(without, key), least(layered, key)
        rows.append((name, f"{before:.0f}", f"{after:.0f}", f"{after / before:.2f}"))
    return lines + table(("call", "without the layer", "with it", "ratio"), rows)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    arguments, options = parser.parse_args(words[:at]), words[at + 1:]
    without, layered = [], []
    for _ in range(arguments.rounds):
        without.append(run(arguments.program, arguments.folder, False, options))
        layered.append(run(arguments.program, arguments.folder, True, options))
    replace(arguments.page, BEGIN, END, page_lines(without, layered, os.getloadavg()[0]))


main()
