# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire as the memory manager of Numba's CUDA target.

    import quire.numba
    quire.numba.set_memory_manager()            # before the first use of CUDA

or, without a change of the program, the environment variable ``NUMBA_CUDA_MEMORY_MANAGER=quire.numba``.

Device memory comes from quire, in the order of the legacy default stream, which waits for all streams that Numba
creates. Host memory stays Numba's.
"""

import ctypes
from typing import Any, Callable

from numba import cuda  # type: ignore[import]

from ._pointers import DevicePointers, Pointers
from .errors import QuireError
from .insight import Budget
from .memory import Memory

_LEGACY = 1  # the handle of the legacy default stream
_pointers = DevicePointers("numba", ())


def _free(pointers: Pointers, address: int) -> Callable[[], None]:
    def finalize() -> None:
        try:
            pointers.free(address)
        except QuireError:
            pass  # at the end of the process its memory may be destroyed
    return finalize


class MemoryManager(cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc]
    """Numba's memory manager for one context, with device memory from quire."""

    def _pointers(self) -> Pointers:
        return _pointers.of(int(self.context.device.id))

    def initialize(self) -> None:
        """Prepare the context."""
        super().initialize()
        self._pointers()

    def memalloc(self, size: int) -> Any:
        """Allocate device memory."""
        pointers = self._pointers()
        address = pointers.allocate(max(size, 1), _LEGACY)
        return cuda.MemoryPointer(self.context, ctypes.c_void_p(address), size, finalizer=_free(pointers, address))

    def get_memory_info(self) -> Any:
        """Return the free bytes, those in pages included, and the bytes of the device."""
        memory = self._pointers().memory
        budget: Budget = memory.device.budget(memory.device.info.kinds[memory.kind].heap)
        return cuda.MemoryInfo(free=budget.available + memory.statistics.free_bytes, total=budget.size)

    def get_ipc_handle(self, memory: Any) -> Any:
        """Raise NotImplementedError: pages of virtual memory have no CUDA IPC handles."""
        raise NotImplementedError("quire shares device memory by file descriptors, not by CUDA IPC handles")

    @property
    def interface_version(self) -> int:
        """The version of Numba's interface."""
        return 1


def memory(device_id: int = 0) -> Memory:
    """Return the memory that a device of Numba uses."""
    return _pointers.of(device_id).memory


def use_memory(memory: Memory) -> None:
    """Let Numba use this memory for its device. Call it before the first use of the device."""
    added = Pointers(memory)
    _pointers._by_ordinal[added.ordinal] = added


def set_memory_manager() -> None:
    """Make quire the memory manager of Numba. Call it before the first use of CUDA."""
    cuda.set_memory_manager(MemoryManager)


_numba_memory_manager = MemoryManager  # the name that NUMBA_CUDA_MEMORY_MANAGER looks up
