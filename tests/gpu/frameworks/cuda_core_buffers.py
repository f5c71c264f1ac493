# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cuda.core on quire: buffers, their bytes, their order, and figures beside its own memory resource."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from package import IS_QUICK, begin, case, end, leaks, microseconds  # noqa: E402

try:
    import cuda.core  # noqa: F401
    NAME = "cuda.core" if hasattr(cuda.core, "Device") else "cuda.core.experimental"
except ImportError:
    NAME = "cuda.core"
tap, quire, core = begin("cuda.core", NAME)
import quire.cuda_core  # noqa: E402

device = core.Device()
device.set_current()
own = getattr(device, "memory_resource", None)
resource = quire.cuda_core.MemoryResource(device.device_id)
device.memory_resource = resource
stream = device.create_stream()
SIZE = 1 << 20


def bytes_of_buffers():
    memory = quire.open_cuda(device.device_id).create_memory("host side")
    source, target = memory.buffer(SIZE), memory.buffer(SIZE, zero=True)
    source.write(bytes(range(256)) * (SIZE // 256))
    buffer = device.allocate(SIZE, stream=stream)
    if resource.memory.statistics.allocation_count != 1 or buffer.size != SIZE:
        yield f"{resource.memory.statistics}"
    buffer.copy_from(core.Buffer.from_handle(source.address, SIZE), stream=stream)
    buffer.copy_to(core.Buffer.from_handle(target.address, SIZE), stream=stream)
    stream.sync()
    if target.read() != source.read():
        yield "the bytes differ"
    buffer.close()


def order():
    """A buffer that is closed on a stream is reused on it at once."""
    first = device.allocate(SIZE, stream=stream)
    address = int(first.handle)
    first.close(stream)
    second = device.allocate(SIZE, stream=stream)
    if int(second.handle) != address:
        yield f"{int(second.handle):#x} is not {address:#x}"
    second.close(stream)


def frees():
    return leaks(resource.memory, lambda: (list(order()), device.sync()))


def figures():
    count = 100 if IS_QUICK else 2000
    print("buffer allocated and closed, microseconds: bytes, quire, cuda.core's own resource")
    for size in (512, SIZE, 64 << 20):
        times = [microseconds(lambda: used.allocate(size, stream=stream).close(stream), count)
                 for used in (resource, own) if used is not None]
        print(size, *(f"{value:.2f}" for value in times))


case(tap, "bytes of buffers in quire's memory", bytes_of_buffers)
case(tap, "the order of a stream", order)
case(tap, "buffers that are closed are freed", frees)
end(tap, resource.memory, lambda: device.allocate(1 << 50, stream=stream), figures)
