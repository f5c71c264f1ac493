# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire as the allocator of CuPy.

    import quire.cupy
    allocator = quire.cupy.set_allocator()
    ...                                         # arrays of CuPy are allocations of quire now
    print(allocator.memory().report())

Memory is allocated and freed in the order of CuPy's current stream, as in CuPy's own pool.
"""

from typing import Any, Callable, Optional

from ._pointers import DevicePointers
from .memory import Memory


def _current_stream() -> Any:
    import cupy  # type: ignore[import]
    return cupy.cuda.get_current_stream()


class Allocator:
    """The functions that CuPy allocates and frees with.

    `memories` serve the devices that they are on; a device without one gets a memory with default options.
    `current_stream` returns the stream to allocate on; None: CuPy's current stream.
    """

    __slots__ = ("_pointers", "_current_stream", "__weakref__")

    def __init__(self, *memories: Memory, current_stream: Optional[Callable[[], Any]] = None) -> None:
        self._pointers = DevicePointers("cupy", memories)
        self._current_stream = current_stream or _current_stream

    def malloc(self, size: int, device_id: int) -> int:
        """Return the address of `size` bytes on a device. Raises the classes of OutOfMemoryError."""
        return self._pointers.of(device_id).allocate(size, self._current_stream())

    def free(self, pointer: int, device_id: int) -> None:
        """Free an address, in the order of the stream that it was allocated on."""
        self._pointers.of(device_id).free(pointer)

    def memory(self, device_id: int = 0) -> Memory:
        """Return the memory of a device."""
        return self._pointers.of(device_id).memory


def set_allocator(*memories: Memory) -> Allocator:
    """Make quire the allocator of CuPy; arrays that exist stay where they are. Return the allocator.

    ``cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)`` ends that.
    """
    import cupy
    allocator = Allocator(*memories)
    cupy.cuda.set_allocator(cupy.cuda.PythonFunctionAllocator(allocator.malloc, allocator.free).malloc)
    return allocator
