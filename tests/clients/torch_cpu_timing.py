"""Times one elementwise operation of PyTorch on the CPU for tensors of several sizes.

usage: torch_cpu_timing.py LIBRARY|- BYTES...

Writes a JSON object: bytes -> nanoseconds of one operation, the least of several rounds. LIBRARY is
libquire_torch_cpu.so; - leaves PyTorch's own allocator, which calls the malloc of the process.
"""

import json
import sys
import time

import torch

ROUNDS = 30
ROUND_SECONDS = 0.02


def least_time(count):
    tensor = torch.ones(count)

    def run(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            torch.neg(tensor)  # its result is freed before the next one is allocated
        return (time.perf_counter_ns() - start) / times

    times = max(1, int(ROUND_SECONDS * 1e9 / max(run(10), 1)))
    return min(run(times) for _ in range(ROUNDS))


def main():
    torch.set_num_threads(1)
    if sys.argv[1] != "-":
        torch.ops.load_library(sys.argv[1])
        assert torch.ops.quire_cpu.is_active()
    print(json.dumps({int(size): least_time(int(size) // 4) for size in sys.argv[2:]}))


if __name__ == "__main__":
    main()
