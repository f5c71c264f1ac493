# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numba on quire: a kernel with the right result, where the arrays lie, memory information, and figures."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from package import IS_QUICK, begin, case, end, leaks, microseconds  # noqa: E402

tap, quire, numpy, cuda = begin("Numba", "numpy", "numba.cuda")
if not hasattr(numpy, "row_stack"):  # NumPy 2.5 has removed it; numba-cuda up to 0.30 reads it
    numpy.row_stack = numpy.vstack
import quire.numba  # noqa: E402

quire.numba.set_memory_manager()
memory = quire.numba.memory(cuda.get_current_device().id)
COUNT = 1 << 20


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


def kernel():
    x = numpy.arange(COUNT, dtype="float32")
    before = memory.statistics
    device_x, device_y = cuda.to_device(x), cuda.to_device(x)
    after = memory.statistics
    if after.allocation_count < before.allocation_count + 2 or after.live_bytes < before.live_bytes + 2 * x.nbytes:
        yield f"{after}"
    saxpy[COUNT // 256, 256](2.0, device_x, device_y)
    if (device_y.copy_to_host() != 3 * x).any():
        yield "the result differs"


def frees():
    return leaks(memory, lambda: (list(kernel()), cuda.synchronize()))


def streams():
    """Copies and kernels on two streams, with arrays that are dropped while work runs."""
    made = [cuda.stream() for _ in range(2)]
    for step in range(20):
        for stream in made:
            x = numpy.full(COUNT, step, dtype="float32")
            device = cuda.to_device(x, stream=stream)
            saxpy[COUNT // 256, 256, stream](1.0, device, device)
            result = device.copy_to_host(stream=stream)
            stream.synchronize()
            if (result != 2 * step).any():
                yield f"step {step}"
                return


def shared():
    """An array of Numba on a buffer of quire, without a copy."""
    buffer = quire.open_cuda(cuda.get_current_device().id).create_memory("shared").buffer(4 * COUNT)
    buffer.write(numpy.arange(COUNT, dtype="float32"))
    array = cuda.as_cuda_array(buffer.array("float32"))
    saxpy[COUNT // 256, 256](1.0, array, array)
    cuda.synchronize()
    if numpy.frombuffer(buffer.read(), dtype="float32")[COUNT - 1] != 2 * (COUNT - 1):
        yield "the buffer does not have the result"


def information():
    info = cuda.current_context().get_memory_info()
    if not 0 < info.free <= info.total:
        yield f"{info}"


def figures():
    count = 100 if IS_QUICK else 2000
    print("array made and dropped, microseconds: bytes, quire through Numba, quire alone")
    for size in (512, 1 << 20, 64 << 20):
        with_numba = microseconds(lambda: cuda.device_array(size, dtype="uint8"), count)
        alone = microseconds(lambda: memory.allocate(size).free(), count)
        print(size, f"{with_numba:.2f} {alone:.2f}")


case(tap, "a kernel on arrays in quire's memory", kernel)
case(tap, "arrays that are dropped are freed", frees)
case(tap, "two streams", streams)
case(tap, "the CUDA array interface shares bytes", shared)
case(tap, "memory information", information)
end(tap, memory, lambda: cuda.device_array(1 << 50, dtype="uint8"), figures)
