# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's caching allocator of its own: bytes reserved at the peak of traces, and the time of a pair of
free and allocate, to compare with bench_cuda.

usage: torch_native.py TRACE...

PYTORCH_CUDA_ALLOC_CONF chooses expandable segments. Prints the rows of the families peaks and mixed.
"""

import csv
import os
import pathlib
import random
import sys
import time

import torch

MIB = 1 << 20
LIVE, PAIRS = 1000, 10000


def allocate(size):
    return torch.cuda.caching_allocator_alloc(size)


def free(pointer):
    torch.cuda.caching_allocator_delete(pointer)


def replay(path):
    """(peak of live bytes, refused allocations): the allocs and frees of a trace in order."""
    blocks, live, peak, refused = {}, 0, 0, 0
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["op"] == "alloc":
                size = int(row["size"])
                live += size
                peak = max(peak, live)
                try:
                    blocks[row["id"]] = (allocate(size), size)
                except torch.OutOfMemoryError:
                    blocks[row["id"]] = (None, size)
                    refused += 1
            elif row["op"] == "free" and row["id"] in blocks:
                pointer, size = blocks.pop(row["id"])
                live -= size
                if pointer is not None:
                    free(pointer)
    for pointer, _ in blocks.values():
        if pointer is not None:
            free(pointer)
    return peak, refused


def print_peak(path):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    peak, refused = replay(path)
    spent = time.perf_counter() - begin
    reserved = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
    print(f"  {path.name:40} {'PyTorch':18} {peak / MIB:10.1f} {reserved / MIB:10.1f} {reserved / peak:7.3f} "
          f"{refused:8} {spent * 1e3:9.2f}")


def print_pairs():
    """Sizes from 256 B to 64 KiB, evenly in their logarithm, as the family mixed has them."""
    source = random.Random(6000)
    sizes = [int(256 * 256 ** source.random()) for _ in range(LIVE + PAIRS)]
    slots = [source.randrange(LIVE) for _ in range(PAIRS)]
    blocks = [allocate(size) for size in sizes[:LIVE]]
    begin = time.perf_counter_ns()
    for slot, size in zip(slots, sizes[LIVE:]):
        free(blocks[slot])
        blocks[slot] = allocate(size)
    spent = time.perf_counter_ns() - begin
    for block in blocks:
        free(block)
    print(f"mixed, through Python: {spent / PAIRS:.0f} ns per pair")


def main():
    config = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    torch.cuda.init()
    print(f"PyTorch {torch.__version__}, {config}")
    print_pairs()
    for path in map(pathlib.Path, sys.argv[1:]):
        print_peak(path)


main()
