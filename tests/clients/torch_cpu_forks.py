# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data loaders with forked workers, while a thread of the parent makes and frees tensors.

usage: torch_cpu_forks.py LIBRARY ROUNDS

Each round makes a loader with two new workers, and compares the batches. Ends with "N rounds".
"""

import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    """An element of 4 KiB and one of 256 KiB, which a worker computes."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((1024,), float(index)) ** 2, torch.full((65536,), float(index)) + 1


def churn(is_done):
    while not is_done.is_set():
        torch.ones(250) + torch.ones(250)
        torch.ones(300000) * 2


def main():
    torch.set_num_threads(1)
    torch.ops.load_library(sys.argv[1])
    assert torch.ops.quire_cpu.is_active()
    is_done = threading.Event()
    thread = threading.Thread(target=churn, args=(is_done,))
    thread.start()
    rounds = 0
    try:
        for _ in range(int(sys.argv[2])):
            for index, (small, large) in enumerate(DataLoader(Squares(), num_workers=2, multiprocessing_context="fork")):
                assert bool((small == index**2).all()) and bool((large == index + 1).all())
            rounds += 1
    finally:
        is_done.set()
        thread.join()
    print(rounds, "rounds")


if __name__ == "__main__":
    main()
