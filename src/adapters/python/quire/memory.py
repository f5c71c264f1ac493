# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memories: pages of one memory kind, and the allocations in them."""

import ctypes
import json
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from . import _owner, dlpack
from . import _tables as tables
from ._arguments import instance, number, one_of, optional, text
from ._native import lib
from ._records import read, written
from .allocation import Allocation, Buffer, Part, PartOf, views_of
from .compaction import Compaction
from .enums import CudaPageKind, Fit, MemoryFlags, SleepMode, Usage
from .errors import BusyError, NotHostVisibleError, QuireError, StaleHandleError, check, guarded
from .insight import CompactionStatistics, NameUsage, PageInfo, Range, Statistics
from .stream import Point, Stream

if TYPE_CHECKING:
    from .array import Array
    from .device import Device

_MAX_WAIT = 60 * 10**9  # nanoseconds for work of a stream before the end of a memory

_PINNED_KINDS = (CudaPageKind.PINNED, CudaPageKind.COMBINED, CudaPageKind.HOST_NUMA, CudaPageKind.HOST)


class MemoryOwner(_owner.Owner):
    """The owner of a memory, with what lies in it."""

    __slots__ = ("streams", "allocations", "views", "orphans", "_last")

    def __init__(self, public: "Memory", parent: _owner.Owner) -> None:
        self.streams: "weakref.WeakSet[_owner.Owner]" = weakref.WeakSet()  # whose work has used the memory
        self._last: Callable[[], Optional[_owner.Owner]] = lambda: None  # of these; most calls use it again
        self.allocations: Dict[Part, PartOf] = {}  # until they are freed
        self.views: Dict[Part, PartOf] = {}  # until they have ended
        self.orphans: List[PartOf] = []  # of these, whose public object ended before
        super().__init__(public, "memory", lib.quire_memory_destroy, parent, lib.quire_memory_destroy_all)

    def use_on(self, stream: _owner.Owner) -> None:
        """Note that work of a stream uses allocations of the memory."""
        if self._last() is not stream:
            self.streams.add(stream)
            stream.touches.add(self)
            self._last = weakref.ref(stream)

    def close(self, force: bool = False) -> bool:
        """Destroy the memory. With `force`, first end its compaction and await the work of streams on its bytes."""
        if force and self.pointer is not None:
            for child in list(self.children):
                child.close(force=True)
            for stream in list(self.streams):
                self._await(stream)
        return super().close(force)

    def view_count(self) -> int:
        """The number of views and arrays on the bytes of the memory."""
        return sum(of() is not None for of in list(self.views.values()))

    def settle_parts(self) -> None:
        """End allocations and views that no public object refers to. Raises no error of the library."""
        for parts in (self.views, self.allocations):
            for of in list(parts.values()):
                if of() is None:
                    of.part.end()
        self.orphans.clear()

    def reap(self) -> None:
        """End the parts whose public object ended while an interrupt, or a view, kept them from ending with it."""
        for of in list(self.orphans):
            of.part.end()
            try:
                self.orphans.remove(of)
            except ValueError:
                pass  # another thread was faster

    def _await(self, stream: _owner.Owner) -> None:
        info, point = tables.quire_stream_info(), tables.quire_point()
        try:
            with stream.held():
                stream.call(lib.quire_stream_get_info, ctypes.byref(info))
                if not info.capture:  # which no device runs
                    stream.call(lib.quire_stream_mark, ctypes.byref(point))
                    check(lib.quire_point_await(ctypes.byref(point), _MAX_WAIT))
        except BusyError:
            raise BusyError(f"work of a stream that is not done uses the {self.what}") from None
        except QuireError:
            pass  # the stream was destroyed, its device is lost, or this is the child of a fork


class Memory(_owner.Unique):
    """Pages of one memory kind, made by :meth:`Device.create_memory`.

    >>> import quire
    >>> device = quire.open_host()
    >>> memory = device.create_memory("staging", host_read=True, host_write=True)
    >>> with memory.buffer(1 << 20, name="frames/0") as b:
    ...     b.write(b"pixels")
    ...     memory.statistics.live_bytes
    1048576
    >>> memory.statistics.live_bytes
    0
    >>> memory.trim() > 0
    True

    At the end of a ``with`` block the memory and everything in it is destroyed. A memory that is garbage is
    destroyed when nothing uses it any more. Any thread may use a memory. In a notebook the last line of a cell
    shows its page map.
    """

    __slots__ = ("_device", "_owner", "_name", "_kind", "_flags", "_is_mappable", "__weakref__")

    def __init__(self, device: "Device", options: tables.quire_memory_options, keep: Tuple[object, ...] = ()) -> None:
        self._device = device
        info = tables.quire_memory_info()
        self._owner: MemoryOwner = MemoryOwner(self, device._owner)
        self._owner.keep.extend(keep)
        device._owner.call(lib.quire_memory_create, ctypes.byref(options), ctypes.byref(self._owner.native))
        self._owner.call(lib.quire_memory_get_info, ctypes.byref(info))
        self._name: str = info.name.decode("utf-8", "replace")
        self._owner.what = f'memory "{self._name}"'
        self._kind, self._flags = info.kind, MemoryFlags(info.flags)
        self._is_mappable = bool(info.mappable)

    # ---- what it is -------------------------------------------------------------------------------------

    @property
    def device(self) -> "Device":
        """The device of the memory."""
        return self._device

    @property
    def name(self) -> str:
        """The name of the memory."""
        return self._name

    @property
    def kind(self) -> int:
        """The index of the memory kind in ``device.info.kinds``."""
        return int(self._kind)

    @property
    def flags(self) -> MemoryFlags:
        """The flags of the memory kind."""
        return self._flags

    @property
    def is_mappable(self) -> bool:
        """Whether the host can reach the bytes by a pointer."""
        return self._is_mappable

    def _info(self) -> tables.quire_memory_info:
        info = tables.quire_memory_info()
        self._owner.call(lib.quire_memory_get_info, ctypes.byref(info))
        return info

    @property
    def fit(self) -> Fit:
        """The algorithm that places allocations."""
        return Fit(self._info().fit)

    @property
    def page_size(self) -> int:
        """Bytes of the next page, unless its request needs another size."""
        return int(self._info().page_size)

    @property
    def limit(self) -> int:
        """Maximum bytes of pages; 0: none. May be set at any time; a page beyond it is OverBudgetError."""
        return int(self._info().limit)

    @limit.setter
    def limit(self, size: int) -> None:
        self._owner.call(lib.quire_memory_set_limit, number("limit", size))

    @property
    def is_alive(self) -> bool:
        """Whether the memory was not destroyed."""
        return self._owner.pointer is not None

    def __repr__(self) -> str:
        state = "" if self.is_alive else ", destroyed"
        return f"<quire.Memory {self._name!r} of {self._device.name}{state}>"

    def _native_device(self) -> Optional[Tuple[int, int]]:
        """DLPack's type and number of the device that reaches the bytes by their address, or None."""
        if self._device.backend != "cuda":
            return (dlpack.CPU, 0) if self._is_mappable else None
        kind, info = tables.quire_cuda_kind_info(), tables.quire_cuda_info()
        self._device._owner.call(lib.quire_cuda_get_kind_info, self._kind, ctypes.byref(kind))
        self._device._owner.call(lib.quire_cuda_get_info, ctypes.byref(info))
        if kind.page_kind == CudaPageKind.TILES:
            return None
        if kind.page_kind == CudaPageKind.MANAGED:
            return (dlpack.CUDA_MANAGED, info.ordinal)
        return (dlpack.CUDA_HOST if kind.page_kind in _PINNED_KINDS else dlpack.CUDA, info.ordinal)

    def _dlpack_device(self) -> Tuple[int, int]:
        device = self._native_device()
        if device is None:
            raise NotHostVisibleError(f"DLPack has no device for {self!r}: the host cannot reach it")
        return device

    # ---- allocating -------------------------------------------------------------------------------------

    def allocate(self, size: int, alignment: int = 0, name: Optional[str] = None, *, zero: bool = False,
                 dedicated: bool = False, host_read: bool = False, host_write: bool = False, user_data: int = 0,
                 stream: Optional[Stream] = None, lazy: bool = False, movable: bool = False) -> Allocation:
        """Allocate a raw range of `size` bytes.

        `alignment` is a power of two in bytes; 0: 1. `zero` clears the bytes, `dedicated` requests a page for
        this allocation alone. `host_read` and `host_write` raise NotHostVisibleError if the host cannot reach the
        memory. With `stream` the first work on the range is submitted to that stream after the call. With `lazy`,
        in an elastic memory, the range is addresses alone; :meth:`Allocation.back` gives memory to parts of it.
        With `movable` a :meth:`compaction` may move it, unless it is dedicated, lazy, or made with a stream.

        Raises InvalidArgumentError (also for `lazy` in a memory that is not elastic, and with `zero`, `dedicated` or
        `stream`), NotHostVisibleError, and the classes of OutOfMemoryError.
        """
        optional("stream", stream, Stream)
        options = tables.quire_allocation_options()
        handle = tables.quire_allocation()
        self._fill(options, size, alignment, name, zero, dedicated, host_read, host_write, user_data)
        options.lazy, options.movable = lazy, movable
        made = Allocation(self, handle, options.size, stream)
        self._create(lib.quire_allocate, options, handle, stream)
        return made

    def buffer(self, size: int, alignment: int = 0, name: Optional[str] = None, *, usage: Usage = Usage(0),
               zero: bool = False, dedicated: bool = False, host_read: bool = False, host_write: bool = False,
               user_data: int = 0, stream: Optional[Stream] = None, movable: bool = False) -> Buffer:
        """Create a buffer of `size` bytes: an allocation with a native buffer, such as a VkBuffer, bound to it.

        `usage` of 0 means storage and both transfers. The other arguments and errors are those of
        :meth:`allocate`; UnsupportedError if the memory kind cannot hold the buffer.
        """
        optional("stream", stream, Stream)
        options = tables.quire_buffer_options(usage=number("usage", usage, 32), movable=movable)
        handle = tables.quire_buffer()
        self._fill(options, size, alignment, name, zero, dedicated, host_read, host_write, user_data)
        made = Buffer(self, handle.allocation, options.size, stream)
        self._create(lib.quire_buffer_create, options, handle, stream)
        return made

    def array(self, dtype: object, shape: Union[int, Sequence[int]], name: Optional[str] = None, *,
              alignment: int = 0, usage: Usage = Usage(0), zero: bool = False, dedicated: bool = False,
              stream: Optional[Stream] = None) -> "Array":
        """Create a buffer for an array of this type and shape, and return the array, which owns the buffer.

        The arguments and errors are those of :meth:`buffer` and :meth:`Allocation.array`.

        >>> import quire
        >>> memory = quire.open_host().create_memory(host_read=True, host_write=True)
        >>> table = memory.array("float32", (3, 4), zero=True)
        >>> table[2, 1].item()
        0.0
        """
        from .array import axes_of
        from .dtypes import dtype as dtype_of
        optional("stream", stream, Stream)
        element = dtype_of(dtype)
        size = element.itemsize
        shape = axes_of(shape)
        for axis in shape:
            size *= axis
        buffer = self.buffer(max(size, 1), max(alignment, element.itemsize), name, usage=usage, zero=zero,
                             dedicated=dedicated, stream=stream)
        return buffer.array(element, shape)

    @staticmethod
    def _fill(options: Any, size: int, alignment: int, name: Optional[str], zero: bool, dedicated: bool,
              host_read: bool, host_write: bool, user_data: int) -> None:
        options.size, options.alignment = number("size", size), number("alignment", alignment)
        options.name, options.user_data = text("name", name), number("user_data", user_data)
        options.zero, options.dedicated = zero, dedicated
        options.host_read, options.host_write = host_read, host_write

    def _create(self, function: Callable[..., int], options: Any, handle: Any, stream: Optional[Stream]) -> None:
        owner = self._owner
        if owner.orphans:
            owner.reap()
        if stream is None:
            owner.call(function, ctypes.byref(options), ctypes.byref(handle))
            return
        with stream._owner.held():
            owner.use_on(stream._owner)
            options.stream = stream._owner.pointer
            owner.call(function, ctypes.byref(options), ctypes.byref(handle))

    # ---- memory of lazy allocations ---------------------------------------------------------------------

    def back_ranges(self, ranges: Iterable[Tuple[Allocation, int, int]]) -> None:
        """Give memory to ranges of lazy allocations, each an allocation, an offset and a size: to all or to none.

        The chunks that a range touches get memory, of :attr:`page_size` bytes each. A size of 0 means up to the end.
        New memory has unspecified contents. Raises UnsupportedError if an allocation is not lazy, OutOfRangeError,
        BusyError, and the classes of OutOfMemoryError.
        """
        views = views_of(ranges)
        self._owner.call(lib.quire_back_range, views, len(views))

    def unback_ranges(self, ranges: Iterable[Tuple[Allocation, int, int]], after: Optional[Point] = None) -> None:
        """Take the memory of ranges of lazy allocations: of all or of none.

        The chunks that lie in a range as a whole lose it, and their contents: once the point `after` has passed, by
        :meth:`collect` or when the memory needs room, or else at once. Work of a device may use them until then, and
        no view of the host. Raises UnsupportedError if an allocation is not lazy, OutOfRangeError and BusyError.
        """
        optional("after", after, Point)
        views = views_of(ranges)
        if after is None or after.stream is None:
            self._owner.call(lib.quire_unback_range, views, len(views), None)
            return
        with after.stream._owner.held():
            self._owner.use_on(after.stream._owner)
            self._owner.call(lib.quire_unback_range, views, len(views), after._native())

    # ---- sleep ------------------------------------------------------------------------------------------

    def sleep(self, prefix: Optional[str] = None, mode: SleepMode = SleepMode.KEEP,
              after: Optional[Point] = None) -> int:
        """Put allocations of an elastic memory to sleep, all or none. Return the bytes of chunks that lost memory.

        Those whose names start with `prefix` sleep; None: all of them. They keep their addresses, and their contents
        in host memory unless `mode` says otherwise. Until :meth:`wake` they can be queried and freed; whatever needs their
        bytes raises WrongStateError. No view of them may exist. With a point the call waits until it has passed.
        Raises UnsupportedError if the memory is not elastic or has slabs, BusyError, and OutOfHostMemoryError.
        """
        optional("after", after, Point)
        mode = one_of("mode", mode, SleepMode)
        freed = ctypes.c_uint64()
        name = text("prefix", prefix)
        if after is None or after.stream is None:
            self._owner.call(lib.quire_memory_sleep, name, mode, None, ctypes.byref(freed))
            return freed.value
        with after.stream._owner.held():
            self._owner.call(lib.quire_memory_sleep, name, mode, after._native(), ctypes.byref(freed))
        return freed.value

    def wake(self, prefix: Optional[str] = None) -> int:
        """Wake sleeping allocations, all or none, at the same addresses. Return the bytes of chunks that got memory.

        In a memory of pages those wake that :meth:`evict` has evicted, at other places; the bytes are theirs. Raises
        BusyError, and the classes of OutOfMemoryError: all of them stay asleep then.
        """
        got = ctypes.c_uint64()
        self._owner.call(lib.quire_memory_wake, text("prefix", prefix), ctypes.byref(got))
        return got.value

    # ---- compaction -------------------------------------------------------------------------------------

    def compaction(self) -> Compaction:
        """Begin a compaction, which moves allocations in steps: see :class:`Compaction`.

        Raises UnsupportedError if the memory is elastic, has slabs or another fit than segregated, if its kind has
        no bytes that can be copied, or in a checked build; BusyError if it has a compaction.
        """
        return Compaction(self)

    def estimate_compaction(self) -> CompactionStatistics:
        """Return what a compaction that begins now would do at most.

        The bytes of the pages decide, and whether their allocations are movable. The errors are those of
        :meth:`compaction` without BusyError.
        """
        most = tables.quire_compact_stats()
        self._owner.call(lib.quire_compact_estimate, ctypes.byref(most))
        return read(CompactionStatistics, most)

    def compact(self, largest_free: int = 0) -> CompactionStatistics:
        """Move movable allocations until no further page can be freed. Return what was done.

        With `largest_free` a free range of so many bytes is made, too, if that is possible. The errors are those of
        :meth:`compaction` and :meth:`Compaction.step`.
        """
        with self.compaction() as compaction:
            return compaction.step(largest_free=largest_free)

    # ---- eviction ---------------------------------------------------------------------------------------

    def frame(self) -> None:
        """Begin a frame: :meth:`Allocation.touch` says what it uses, and :meth:`evict` leaves that."""
        self._owner.call(lib.quire_memory_frame)

    def evict(self, size: int, recent_frames: int = 0, mode: SleepMode = SleepMode.KEEP) -> int:
        """Evict movable allocations of at least `size` bytes, as far as they may leave. Return the bytes.

        Their contents wait in host memory until :meth:`Allocation.wake` or :meth:`wake`, unless `mode` discards them.
        Lower priorities leave first (:meth:`Allocation.set_priority`), then what was used longest ago. What the current
        frame and `recent_frames` before it have used stays, and what views use. Raises UnsupportedError where
        :meth:`compaction` does.
        """
        evicted = ctypes.c_uint64()
        options = tables.quire_evict_options(number("size", size), number("recent_frames", recent_frames),
                                             one_of("mode", mode, SleepMode))
        self._owner.call(lib.quire_memory_evict, ctypes.byref(options), ctypes.byref(evicted))
        return evicted.value

    # ---- pages and limits -------------------------------------------------------------------------------

    def trim(self, target: int = 0) -> int:
        """Release empty pages until at most `target` bytes of them are left. Return the released bytes."""
        released = ctypes.c_uint64()
        self._owner.call(lib.quire_memory_trim, number("target", target), ctypes.byref(released))
        return released.value

    def preallocate(self, size: int) -> None:
        """Create pages until the memory has at least `size` bytes of them, and keep that many; 0: keep none."""
        self._owner.call(lib.quire_memory_preallocate, number("size", size))

    def collect(self) -> int:
        """Free what waits for points of streams that have passed. Return the bytes. Waits for nothing."""
        released = ctypes.c_uint64()
        self._owner.settle_parts()
        self._owner.call(lib.quire_collect, ctypes.byref(released))
        return released.value

    def set_name_limit(self, prefix: str, size: int) -> None:
        """Limit the bytes held by the allocations whose names start with `prefix`; 0: no limit."""
        self._owner.call(lib.quire_memory_set_name_limit, text("prefix", prefix), number("size", size))

    def name_usage(self, prefix: str = "") -> NameUsage:
        """Return what the allocations whose names start with `prefix` hold."""
        usage = tables.quire_name_usage()
        self._owner.call(lib.quire_memory_get_name_usage, text("prefix", prefix), ctypes.byref(usage))
        return read(NameUsage, usage)

    # ---- insight ----------------------------------------------------------------------------------------

    @property
    def statistics(self) -> Statistics:
        """The statistics of the memory."""
        stats = tables.quire_memory_stats()
        if self._owner.orphans:
            self._owner.reap()
        self._owner.call(lib.quire_memory_get_stats, ctypes.byref(stats))
        return read(Statistics, stats)

    def scope(self) -> "Scope":
        """Return a ``with`` block that counts on its own: see :class:`Scope`."""
        return Scope(self)

    def page_info(self, page: int) -> PageInfo:
        """Return the description of a page. Raises OutOfRangeError if no live page has this number."""
        info = tables.quire_page_info()
        self._owner.call(lib.quire_page_get_info, number("page", page, 32), ctypes.byref(info))
        return read(PageInfo, info)

    def ranges(self) -> List[Range]:
        """Return every range of every page, free and live, in the order of pages and addresses."""
        found: List[Range] = []

        def visit(_: object, item: Any) -> bool:
            found.append(read(Range, item.contents))
            return True
        self._owner.call(lib.quire_memory_walk, tables.quire_memory_walk_visit(guarded(visit, False)), None)
        return found

    def check(self) -> None:
        """Verify every record of the memory. Raises CorruptedError."""
        self._owner.call(lib.quire_memory_check)

    def report(self) -> str:
        """Return a text for people: heap, last refusal, pages, live bytes by name."""
        return written(self._owner, lib.quire_memory_write_report)

    def report_values(self) -> Any:
        """Return the report as the value of a JSON document, which ``docs/formats.md`` describes."""
        return json.loads(written(self._owner, lib.quire_memory_write_report_json))

    def snapshot(self) -> Any:
        """Return the memory, its statistics, its pages and all their ranges as the value of a JSON document.

        ``docs/formats.md`` describes it.
        """
        return json.loads(written(self._owner, lib.quire_memory_write_json))

    def svg(self) -> str:
        """Return a picture of the pages as an SVG document."""
        return written(self._owner, lib.quire_memory_write_svg)

    def _repr_html_(self) -> str:
        from .notebook import memory_page
        return memory_page(self)

    # ---- the end ----------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Destroy the memory; a second call does nothing.

        Raises BusyError while allocations live or wait for a point of a stream.
        """
        self._owner.close()

    def destroy_all(self) -> None:
        """Destroy the memory with everything in it; a second call does nothing.

        Waits for the work of streams on its allocations. Raises BusyError while a view, or an array of another
        library, uses its bytes, and if work is not done after a minute; at once for a manual stream.
        """
        self._owner.close(force=True)

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        _owner.end_block(self._owner, self.destroy_all, kind)


class Scope(_owner.Unique):
    """Statistics of a part of a program: peaks and counts from the start of a ``with`` block on.

    >>> import quire
    >>> memory = quire.open_host().create_memory()
    >>> with memory.scope() as scope:
    ...     memory.allocate(1000).free()
    >>> scope.statistics.allocations, scope.statistics.peak_requested_bytes
    (1, 1000)

    Scopes nest. They belong to the memory, not to a thread; threads that use them take turns.
    """

    __slots__ = ("_memory", "_statistics", "__weakref__")

    def __init__(self, memory: Memory) -> None:
        self._memory = instance("memory", memory, Memory)
        self._statistics: Optional[Statistics] = None

    @property
    def statistics(self) -> Statistics:
        """The statistics of the block; during the block, those so far."""
        return self._statistics or self._memory.statistics

    def __enter__(self) -> "Scope":
        self._memory._owner.call(lib.quire_memory_push_stats)
        return self

    def __exit__(self, *_: object) -> None:
        stats = tables.quire_memory_stats()
        try:
            self._memory._owner.call(lib.quire_memory_pop_stats, ctypes.byref(stats))
        except StaleHandleError:
            return  # the block destroyed the memory
        self._statistics = read(Statistics, stats)
