# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allocations of a memory by address, for libraries that allocate and free device pointers."""

import threading
from typing import Any, Dict, Optional, Tuple

from ._arguments import instance
from .allocation import Allocation
from .cuda import cuda_info, open_cuda, stream_handle, wrap_stream
from .device import Device
from .errors import InvalidArgumentError
from .memory import Memory
from .stream import Stream

_PER_THREAD = 2  # the handle of the default stream of the calling thread


class Pointers:
    """Device pointers from one memory, in the order of CUDA streams of another library.

    The streams are kept as long as this object, because memory that was freed on them may wait for their work.
    Any thread may call it.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = instance("memory", memory, Memory)
        self.ordinal = cuda_info(memory.device).ordinal
        self._live: Dict[int, Allocation] = {}
        self._streams: Dict[int, Stream] = {}
        self._thread = threading.local()  # has the default stream of the thread; numbers of threads are used again
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """The number of live allocations."""
        return len(self._live)

    def _stream(self, native: Any) -> Stream:
        handle = stream_handle(native)
        if handle == _PER_THREAD:
            if not hasattr(self._thread, "stream"):
                self._thread.stream = wrap_stream(self.memory.device, native)
            own: Stream = self._thread.stream
            return own
        stream = self._streams.get(handle)
        if stream is None:
            with self._lock:
                stream = self._streams.get(handle)
                if stream is None:
                    stream = self._streams[handle] = wrap_stream(self.memory.device, native)
        return stream

    def allocate(self, size: int, stream: Any, name: Optional[str] = None) -> int:
        """Return the address of `size` bytes for work that is submitted to a stream; 0 for a size of 0."""
        if size == 0:
            return 0
        made = self.memory.allocate(size, 256, name, stream=self._stream(stream))
        address = made.address
        self._live[address] = made
        return address

    def free(self, address: int, stream: Any = None) -> None:
        """Free an address; 0 does nothing.

        It is reused after the work of the stream that it was allocated on, and of `stream` if that is given.
        """
        if address == 0:
            return
        allocation = self._live.pop(address, None)
        if allocation is None:
            raise InvalidArgumentError(f"{address:#x} is no live allocation of {self.memory!r}")
        after = None if stream is None else self._stream(stream)
        if after is not None and allocation.stream is not None and after is not allocation.stream:
            allocation.record_use(allocation.stream)
        allocation.free(after)


class DevicePointers:
    """Pointers of several devices. A device without a memory gets one when it is first used."""

    def __init__(self, name: str, memories: Tuple[Memory, ...]) -> None:
        self._name = name
        self._by_ordinal: Dict[int, Pointers] = {}
        self._lock = threading.Lock()
        for memory in memories:
            pointers = Pointers(memory)
            if pointers.ordinal in self._by_ordinal:
                raise InvalidArgumentError(f"device {pointers.ordinal} has two memories")
            self._by_ordinal[pointers.ordinal] = pointers

    def of(self, ordinal: int) -> Pointers:
        """Return the pointers of a device."""
        found = self._by_ordinal.get(ordinal)
        if found is None:
            with self._lock:
                found = self._by_ordinal.get(ordinal)
                if found is None:
                    device: Device = open_cuda(ordinal, reachable_peers=True)
                    found = self._by_ordinal[ordinal] = Pointers(device.create_memory(self._name))
        return found
