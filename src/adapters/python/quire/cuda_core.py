# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire as a memory resource of cuda.core.

    import quire.cuda_core
    from cuda.core import Device
    device = Device()
    device.set_current()
    device.memory_resource = quire.cuda_core.MemoryResource(device.device_id)
    buffer = device.allocate(1 << 20, stream=device.default_stream)

Buffers are allocated and freed in the order of the streams that the calls name.
"""

from typing import Any, Union

try:
    from cuda.core import Buffer, MemoryResource as _MemoryResource  # type: ignore[import]
except ImportError:
    from cuda.core.experimental import Buffer, MemoryResource as _MemoryResource  # type: ignore[import]

from ._pointers import Pointers
from .cuda import open_cuda
from .errors import InvalidArgumentError
from .memory import Memory

_LEGACY = 1  # the handle of the legacy default stream


class MemoryResource(_MemoryResource):  # type: ignore[misc]
    """A memory resource on a memory of quire, or on a new memory of a device that an ordinal names."""

    def __init__(self, memory: Union[Memory, int] = 0) -> None:
        super().__init__()
        if isinstance(memory, int):
            memory = open_cuda(memory, reachable_peers=True).create_memory("cuda.core")
        self._quire = Pointers(memory)

    @property
    def memory(self) -> Memory:
        """The memory of the buffers."""
        return self._quire.memory

    def allocate(self, size: int, stream: Any = None) -> Any:
        """Return a buffer for work that is submitted to a stream; None: the legacy default stream."""
        if size <= 0:
            raise InvalidArgumentError(f"a buffer of {size} bytes is requested")
        address = self._quire.allocate(size, _LEGACY if stream is None else stream)
        return Buffer.from_handle(ptr=address, size=size, mr=self)

    def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
        """Free a buffer after the work of its stream, and of `stream` if that is given."""
        self._quire.free(int(ptr), stream)

    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the buffers."""
        return True

    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can use the buffers by their pointers."""
        return self._quire.memory.is_mappable

    @property
    def device_id(self) -> int:
        """The ordinal of the device."""
        return self._quire.ordinal
