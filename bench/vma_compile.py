# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures how long a compiler takes for a file that uses VMA's interface, with each header.

usage: vma_compile.py [--cc CC] [--cxx CXX] [--vma FOLDER] [--reps N] [--json FILE]

Compiles the same small file with vk_mem_alloc.h and with quire/quire_vma.h, as C and as C++17, and
the file that every program with VMA has for the implementation. A program with quire links a library
instead. The repeats of all files take turns; the least and the median time count. --vma names the folder
of vk_mem_alloc.h unless the compiler finds it.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

SETTINGS = "#define VMA_STATIC_VULKAN_FUNCTIONS 0\n#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1\n"
USER = SETTINGS + """#include <{header}>
VkResult make(VmaAllocator allocator, const VkBufferCreateInfo *info, VkBuffer *buffer,
              VmaAllocation *allocation);
VkResult make(VmaAllocator allocator, const VkBufferCreateInfo *info, VkBuffer *buffer,
              VmaAllocation *allocation)
{{
    VmaAllocationCreateInfo options = {{}};
    options.usage = VMA_MEMORY_USAGE_AUTO;
    return vmaCreateBuffer(allocator, info, &options, buffer, allocation, 0);
}}
"""
VMA, QUIRE = "vk_mem_alloc.h", "quire/quire_vma.h"

# name, suffix of the file, its text
FILES = [
    ("VMA, C", ".c", USER.format(header=VMA)),
    ("quire_vma.h, C", ".c", USER.format(header=QUIRE)),
    ("VMA, C++", ".cpp", USER.format(header=VMA)),
    ("quire_vma.h, C++", ".cpp", USER.format(header=QUIRE)),
    ("VMA, implementation", ".cpp", SETTINGS + f"#define VMA_IMPLEMENTATION\n#include <{VMA}>\n"),
]


def command(args, path):
    words = [*args.cc.split(), "-std=c11"] if path.suffix == ".c" else [*args.cxx.split(), "-std=c++17"]
    folders = ["-I", ROOT / "include"] + (["-isystem", args.vma] if args.vma else [])
    return [*words, "-O2", "-w", *folders, "-c", path, "-o", path.with_suffix(".o")]


def spent(words):
    """The processor time of a compilation: other programs disturb it less than that of a clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lines_of(words):
    """Lines of the preprocessed file that are not empty."""
    text = subprocess.run([*words[:-4], "-E", "-P", words[-3]], capture_output=True, text=True,
                          check=True).stdout
    return len(text.splitlines())


def measure(args, folder):
    rows = []
    for number, (name, suffix, text) in enumerate(FILES):
        path = folder / f"file{number}{suffix}"
        path.write_text(text)
        words = command(args, path)
        if subprocess.run(words, stderr=subprocess.PIPE, check=False).returncode == 0:
            rows.append({"file": name, "words": words, "lines": lines_of(words), "seconds": []})
    for _ in range(args.reps):
        for row in rows:
            row["seconds"].append(spent(row["words"]))
    return [{"file": row["file"], "lines": row["lines"], "min_s": min(row["seconds"]),
             "median_s": statistics.median(row["seconds"]),
             "object_bytes": pathlib.Path(row["words"][-1]).stat().st_size} for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--vma")
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.reps < 1:
        parser.error("--reps is at least 1")
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(args, pathlib.Path(folder))
    print(f"{'file':22}{'lines':>9}{'min ms':>9}{'median':>9}{'object':>9}")
    for row in rows:
        print(f"{row['file']:22}{row['lines']:9}{row['min_s'] * 1e3:9.1f}{row['median_s'] * 1e3:9.1f}"
              f"{row['object_bytes']:9}")
    for name, _, _ in FILES:
        if name not in [row["file"] for row in rows]:
            print(f"{name} does not compile here", file=sys.stderr)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"compile": rows}, indent=2) + "\n")


main()
