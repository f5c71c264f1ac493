# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuPy on quire: the same results, where the arrays lie, streams, arrays shared by DLPack, and figures."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from package import IS_QUICK, begin, case, end, leaks, microseconds  # noqa: E402

tap, quire, cupy = begin("CuPy", "cupy")
import quire.cupy  # noqa: E402

POOL = cupy.get_default_memory_pool()


def compute():
    """Work whose results do not depend on addresses, with allocations of many sizes."""
    cupy.random.seed(7)
    a = cupy.random.random((1024, 1024), dtype="float32")
    results = [cupy.sort(a.ravel()), cupy.fft.fft(a).real, a @ a, cupy.cumsum(a, axis=1)]
    for size in (1, 1000, 70000, 5000000):
        results.append(cupy.arange(size, dtype="int64")[::-1] * 3)
    return [cupy.asnumpy(result) for result in results]


expected = compute()
POOL.free_all_blocks()
allocator = quire.cupy.set_allocator()
memory = allocator.memory()


def same_results():
    before, pool = memory.statistics.allocations, POOL.total_bytes()
    for number, (wanted, got) in enumerate(zip(expected, compute())):
        if wanted.tobytes() != got.tobytes():
            yield f"result {number} differs"
    if memory.statistics.allocations <= before or POOL.total_bytes() > pool:
        yield f"{memory.statistics.allocations - before} allocations, {POOL.total_bytes() - pool} bytes of CuPy's pool"


def frees():
    return leaks(memory, lambda: (compute(), cupy.cuda.Device().synchronize()))


def streams():
    """Each stream computes on arrays that it allocates while the others do the same."""
    made = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    sums = []
    for step in range(50):
        for number, stream in enumerate(made):
            with stream:
                part = cupy.full(100000 + 1000 * number, step + number, dtype="int64")
                sums.append((part * 2).sum())
    for stream in made:
        stream.synchronize()
    for at, value in enumerate(sums):
        step, number = divmod(at, 4)
        if int(value) != 2 * (step + number) * (100000 + 1000 * number):
            yield f"step {step}, stream {number}: {int(value)}"
            return


def shared():
    """Arrays on buffers of quire, without a copy, by DLPack and by the CUDA array interface."""
    own = quire.open_cuda(int(cupy.cuda.Device())).create_memory("shared")
    buffer = own.buffer(4096)
    buffer.fill(0)
    array = cupy.from_dlpack(buffer.array("int32", (32, 32)))
    array += 5
    cupy.cuda.Device().synchronize()
    if array.data.ptr != buffer.address or buffer.read(0, 8) != b"\5\0\0\0\5\0\0\0":
        yield f"{array.data.ptr:#x} is not {buffer.address:#x}"
    view = cupy.asarray(buffer.array("int32"))
    if view.data.ptr != buffer.address or int(view.sum()) != 5 * 1024:
        yield f"the CUDA array interface: {int(view.sum())}"
    try:
        buffer.free()
        yield "a buffer with an array was freed"
    except quire.BusyError:
        pass
    del array, view
    buffer.free()


def figures():
    """Microseconds for one array that is made and dropped, and the bytes that the allocator keeps."""
    count = 100 if IS_QUICK else 5000
    print("array made and dropped, microseconds: bytes, quire, CuPy's pool, cudaMalloc")
    for size in (512, 1 << 20, 64 << 20):
        times = []
        for use in (cupy.cuda.PythonFunctionAllocator(allocator.malloc, allocator.free).malloc, POOL.malloc, None):
            cupy.cuda.set_allocator(use)
            times.append(microseconds(lambda: cupy.empty(size, dtype="uint8"), count if use else count // 10))
            cupy.cuda.Device().synchronize()
        print(size, *(f"{value:.2f}" for value in times))
    peaks = []
    for use in (cupy.cuda.PythonFunctionAllocator(allocator.malloc, allocator.free).malloc, POOL.malloc):
        cupy.cuda.set_allocator(use)
        memory.trim()
        POOL.free_all_blocks()
        compute()
        peaks.append(memory.statistics.reserved_bytes if len(peaks) == 0 else POOL.total_bytes())
    print(f"bytes reserved after the computation: quire {peaks[0]}, CuPy's pool {peaks[1]}")


case(tap, "results equal those with CuPy's pool", same_results)
case(tap, "arrays that are dropped are freed", frees)
case(tap, "four streams", streams)
case(tap, "DLPack and the CUDA array interface share bytes", shared)
end(tap, memory, lambda: cupy.empty(1 << 50, dtype="uint8"), figures)
