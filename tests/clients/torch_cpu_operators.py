# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of libquire_torch_cpu, its refusals, and tensors from before it was loaded.

usage: torch_cpu_operators.py LIBRARY

Needs QUIRE_TORCH_CPU_LIMIT=64m. Ends with "done".
"""

import json
import os
import sys
import tempfile

import torch


def refused(function, *words, error=RuntimeError):
    try:
        function(*words)
    except error as found:
        return str(found)
    raise AssertionError(f"{function} was not refused")


def main():
    before = torch.ones(100000)
    for _ in range(2):  # loading it again changes nothing
        torch.ops.load_library(sys.argv[1])
    quire = torch.ops.quire_cpu
    assert quire.is_active()
    after = before + 1
    del before  # freed by the allocator that it came from
    stats = json.loads(quire.stats())
    assert stats["requested_bytes"] == after.nbytes and stats["allocation_count"] == 1, stats
    assert torch.empty(0).data_ptr() == 0

    sentence = refused(torch.empty, 20 << 20, error=torch.OutOfMemoryError)  # 80 MiB of floats
    assert "83886080" in sentence and "torch cpu" in sentence, sentence
    assert json.loads(quire.stats())["memory"]["failures"] == 1
    torch.empty(10 << 20)
    assert quire.trim() >= 40 << 20

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        quire.snapshot(path)
        with open(path, encoding="utf-8") as file:
            assert "torch cpu" in json.dumps(json.load(file))
        assert "no trace" in refused(quire.stop_trace)
        quire.start_trace(path)
        assert "already" in refused(quire.start_trace, path)
        torch.empty(1000)
        quire.stop_trace()
        with open(path, encoding="utf-8") as file:
            assert [line.split(",")[0] for line in file] == ["op", "alloc", "free"]
    assert "/nowhere/at/all" in refused(quire.snapshot, "/nowhere/at/all")
    assert "/nowhere/at/all" in refused(quire.start_trace, "/nowhere/at/all")
    print("done")


if __name__ == "__main__":
    main()
