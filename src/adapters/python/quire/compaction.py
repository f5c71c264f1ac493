# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compaction: movable allocations leave the emptiest pages of a memory, which become free."""

import ctypes
from typing import TYPE_CHECKING, Optional

from . import _owner
from . import _tables as tables
from ._arguments import number, optional
from ._native import lib
from ._records import read
from .insight import CompactionStatistics
from .stream import Stream

if TYPE_CHECKING:
    from .memory import Memory


class Compaction(_owner.Unique):
    """A compaction of a memory, in steps; :meth:`Memory.compaction` begins it.

    >>> import quire
    >>> memory = quire.open_host().create_memory(pages=quire.PagePolicy(page_size=1 << 20), movable=True)
    >>> kept = [memory.allocate(256 << 10) for _ in range(8)][::2]      # two pages, each half empty
    >>> with memory.compaction() as compaction:
    ...     while not compaction.step(moves=1).is_complete:
    ...         pass                                                    # a frame, for example
    >>> memory.statistics.page_count
    1

    Allocations move that were requested as ``movable``, with their contents. Their page, offset and address change.
    What is in use stays: allocations with a view, with a fill or a copy on a stream that is not done, or with a use
    that :meth:`Allocation.record_use` recorded. No other work of a device may use them during a step. Other
    threads may use the memory meanwhile; one thread at a time uses a compaction. A memory has one compaction at a
    time.

    Leaving a ``with`` block ends the compaction; so does the end of its memory by a block or by
    :meth:`Memory.destroy_all`. What has moved stays where it is.
    """

    __slots__ = ("_memory", "_owner", "__weakref__")

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory
        self._owner = _owner.Owner(self, f"compaction of the {memory._owner.what}", lib.quire_compact_end,
                                   memory._owner)
        memory._owner.call(lib.quire_compact_begin, ctypes.byref(self._owner.native))

    def step(self, moves: int = 0, bytes: int = 0, records: int = 0, largest_free: int = 0,
             stream: Optional[Stream] = None) -> CompactionStatistics:
        """Move allocations until a limit is reached, or no further page can be freed. Return what was done so far.

        A step moves at most `moves` allocations and `bytes` of contents (a larger allocation moves alone), and looks
        at about `records` pages and allocations; 0: no limit. `largest_free` is a goal: once no page can be freed,
        allocations leave a stretch of a page, so that a free range of so many bytes exists. The statistics are those
        since the compaction began. With a stream the copies come after its earlier work, which may use the
        allocations, and before its later work. Pages that become empty go back to the device at once, or after the
        copies. Raises OutOfHostMemoryError, TooManyAllocationsError and what copies raise; every allocation then has
        its contents, and the next step goes on.
        """
        optional("stream", stream, Stream)
        limits = tables.quire_compact_limits(moves=number("moves", moves), bytes=number("bytes", bytes),
                                             records=number("records", records),
                                             largest_free=number("largest_free", largest_free))
        done = tables.quire_compact_stats()
        if stream is None:
            self._owner.call(lib.quire_compact_step, ctypes.byref(limits), ctypes.byref(done))
        else:
            with stream._owner.held():
                self._memory._owner.use_on(stream._owner)
                self._owner.call(lib.quire_compact_step_on_stream, ctypes.byref(limits), stream._owner.pointer,
                                 ctypes.byref(done))
        return read(CompactionStatistics, done)

    def end(self) -> None:
        """End the compaction, complete or not; a second call does nothing."""
        self._owner.close()

    def __enter__(self) -> "Compaction":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
