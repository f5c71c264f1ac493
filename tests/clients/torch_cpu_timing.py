# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times an operation of PyTorch on the CPU for tensors of several sizes.

usage: torch_cpu_timing.py LIBRARY|- neg|expression BYTES...

neg makes one tensor. expression makes three, and all of them live at its end. Writes a JSON object:
bytes -> nanoseconds of one operation, the least of several rounds. LIBRARY is libquire_torch_cpu.so; -
leaves PyTorch's own allocator, which calls the malloc of the process.
"""

import json
import sys
import time

import torch

ROUNDS = 20
ROUND_SECONDS = 0.01

OPERATIONS = {"neg": torch.neg, "expression": lambda tensor: (tensor + 1) * (tensor - 1)}


def least_time(operation, count):
    tensor = torch.ones(count)

    def run(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            operation(tensor)  # its result is freed before the next operation
        return (time.perf_counter_ns() - start) / times

    times = max(1, int(ROUND_SECONDS * 1e9 / max(run(10), 1)))
    return min(run(times) for _ in range(ROUNDS))


def main():
    library, name, *sizes = sys.argv[1:]
    torch.set_num_threads(1)
    if library != "-":
        torch.ops.load_library(library)
        assert torch.ops.quire_cpu.is_active()
    print(json.dumps({size: least_time(OPERATIONS[name], int(size) // 4) for size in sizes}))


if __name__ == "__main__":
    main()
