# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allocations and buffers: ranges of the pages of a memory."""

import ctypes
import functools
import operator
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from . import _owner
from . import _tables as tables
from ._arguments import instance, number, optional, text
from ._native import lib
from ._records import read
from .errors import BusyError, InvalidArgumentError, OutOfRangeError, QuireError, StaleHandleError, check
from .insight import AllocationInfo
from .stream import Point, Stream, point_of

if TYPE_CHECKING:
    from .array import Array
    from .memory import Memory, MemoryOwner

_MAX_NAME = 255


def _bytes_of(data: Any) -> Any:
    """Return an array of C on the bytes of an object; on a copy, if the object is read-only or not contiguous."""
    view = memoryview(data)
    if view.c_contiguous and not view.readonly and view.nbytes:
        return (ctypes.c_char * view.nbytes).from_buffer(view.cast("B"))
    return (ctypes.c_char * view.nbytes).from_buffer_copy(view.tobytes())


class Part:
    """What a memory has of a public object, an allocation or a view. It does not refer to that."""

    __slots__ = ("owner",)

    def __init__(self, owner: "MemoryOwner") -> None:
        self.owner: "MemoryOwner" = owner

    def end(self) -> None:
        """End it if it exists. A second call does nothing. Raises no error of the library."""
        raise NotImplementedError


class PartOf(weakref.ref):  # type: ignore[type-arg]
    """The reference of a part to its public object. The memory gets it when that ends before the part."""

    __slots__ = ("part",)
    part: Part


def _reference(public: object, part: Part) -> PartOf:
    # the callback is a function of C, which no interrupt can stop
    of = PartOf(public, part.owner.orphans.append)  # type: ignore[arg-type]
    of.part = part
    return of


class Record(Part):
    """The handle of an allocation. The call that makes the allocation writes it."""

    __slots__ = ("id", "stream", "is_freed")

    def __init__(self, owner: "MemoryOwner", public: "Allocation", handle: tables.quire_allocation,
                 stream: Optional[_owner.Owner]) -> None:
        self.owner = owner
        self.id = handle
        self.stream = stream  # that it was allocated on
        self.is_freed = False
        owner.allocations[self] = _reference(public, self)

    def free(self, after: Optional[Point] = None, stream: Optional[_owner.Owner] = None) -> None:
        """Free the allocation: after a point, in the order of a stream, or at once."""
        owner = self.owner
        if after is not None and after.stream is not None:
            with after.stream._owner.held():
                owner.use_on(after.stream._owner)
                owner.call(lib.quire_free_after_point, self.id, after._native())
        elif stream is not None:
            with stream.held():
                owner.use_on(stream)
                owner.call(lib.quire_free_on_stream, self.id, stream.pointer)
        else:
            owner.call(lib.quire_free, self.id)
        self.is_freed = True
        owner.allocations.pop(self, None)

    def end(self) -> None:
        """Free the allocation. If something still uses it, the memory tries again later."""
        if self.id.id and not self.is_freed and self.owner.pointer is not None:
            # a destroyed stream has no work left
            stream = self.stream if self.stream is not None and self.stream.pointer is not None else None
            try:
                self.free(stream=stream)
            except StaleHandleError:
                pass  # it was freed, or its memory or stream was destroyed
            except QuireError:
                return
        self.owner.allocations.pop(self, None)

    def view_count(self) -> int:
        """The number of views and arrays on the bytes of the allocation."""
        return sum(of() is not None for view, of in list(self.owner.views.items())
                   if isinstance(view, View) and view.record is self)


class _Begin:
    """The argument for the handle of an allocation whose view begins: a function that notes that and returns it.

    ctypes calls it on the way into the library, so that no interrupt comes between the note and the call.
    """

    from_param = operator.methodcaller("__call__")


class _End:
    """The argument for the handle of an allocation whose view ends: the note, which loses it."""

    from_param = operator.methodcaller("pop", "id")


def _noting(name: str, kind: Any) -> Any:
    """A function of the library that takes a note instead of the handle of an allocation."""
    function = lib[name]
    declared = getattr(lib, name)
    function.restype, function.argtypes = declared.restype, [declared.argtypes[0], kind, *declared.argtypes[2:]]
    return function


_map, _unmap = _noting("quire_map", _Begin), _noting("quire_unmap", _End)
_hold, _release = _noting("quire_allocation_hold", _Begin), _noting("quire_allocation_release", _End)


class View(Part):
    """A use of the bytes of an allocation, by a map or a hold."""

    __slots__ = ("record", "is_mapped", "note")

    def __init__(self, record: Record, public: "Export", is_mapped: bool) -> None:
        self.owner, self.record, self.is_mapped = record.owner, record, is_mapped
        self.note: Dict[str, tables.quire_allocation] = {}  # has the handle while the library counts the view
        self.owner.views[self] = _reference(public, self)

    def begin(self, pointer: ctypes.c_void_p) -> None:
        """Keep the allocation from being freed. Write its host pointer if the view is a map."""
        noted = functools.partial(self.note.setdefault, "id", self.record.id)
        try:
            if self.is_mapped:
                self.owner.call(_map, noted, ctypes.byref(pointer))
            else:
                self.owner.call(_hold, noted)
        except QuireError:
            self.note.clear()
            raise

    def end(self) -> None:
        """End the view, and with the last view the allocation and the memory, if they are garbage."""
        if self.note and self.owner.pointer is not None:
            try:
                self.owner.call(_unmap if self.is_mapped else _release, self.note)
            except (QuireError, ctypes.ArgumentError):
                pass  # in the child of a fork; another thread was faster
        self.owner.views.pop(self, None)
        of = self.owner.allocations.get(self.record)
        if of is not None and of() is None:
            self.record.end()
        self.owner.settle()


class Export(_owner.Unique):
    """A view of the bytes of an allocation: its pointer. The view ends with the object."""

    def __init__(self, allocation: "Allocation") -> None:
        memory, record = allocation._memory, allocation._record
        host = ctypes.c_void_p()
        self.keep = allocation
        self._view = View(record, self, memory.is_mappable)
        self._view.begin(host)
        self.pointer: int = (host.value if memory.is_mappable else allocation.info.address) or 0

    def __del__(self) -> None:
        view = getattr(self, "_view", None)  # None: interrupted before
        if view is not None:
            view.end()


class Allocation(_owner.Unique):
    """A range of a page, made by :meth:`Memory.allocate`.

    >>> import quire
    >>> memory = quire.open_host().create_memory(host_read=True, host_write=True)
    >>> a = memory.allocate(1000, alignment=64, name="weights/0")
    >>> a.write(b"abc")
    >>> a.read(1, 2)
    b'bc'
    >>> a.info.page, a.info.offset, len(a)
    (0, 0, 1000)
    >>> a.free()
    >>> a.read()
    Traceback (most recent call last):
        ...
    quire.errors.StaleHandleError: ...

    It is freed by :meth:`free`, at the end of a ``with`` block, or when it is garbage. While a view or an array of
    another library uses its bytes, :meth:`free` raises BusyError, which is a BufferError; garbage is then freed
    with the last of them. Any thread may use an allocation.
    """

    __slots__ = ("_memory", "_size", "_stream", "_recorded", "_record", "__weakref__")

    def __init__(self, memory: "Memory", handle: tables.quire_allocation, size: int, stream: Optional[Stream]) -> None:
        self._memory = memory
        self._size = size
        self._stream = stream
        self._recorded: List[Stream] = []  # which must not be destroyed before the allocation is freed
        self._record: Record = Record(memory._owner, self, handle, stream._owner if stream else None)

    def __del__(self) -> None:
        record = getattr(self, "_record", None)  # None: interrupted before
        if record is not None and not record.is_freed:
            record.end()

    # ---- what it is -------------------------------------------------------------------------------------

    @property
    def memory(self) -> "Memory":
        """The memory of the allocation."""
        return self._memory

    @property
    def nbytes(self) -> int:
        """The bytes that were requested."""
        return self._size

    def __len__(self) -> int:
        return self._size

    @property
    def handle(self) -> int:
        """The number of the handle: ``quire_allocation.id``."""
        return int(self._record.id.id)

    @property
    def stream(self) -> Optional[Stream]:
        """The stream that it was allocated on, or None."""
        return self._stream

    @property
    def info(self) -> AllocationInfo:
        """Where the allocation lies."""
        return read(AllocationInfo, self._native_info())

    def _native_info(self) -> tables.quire_allocation_info:
        info = tables.quire_allocation_info()
        self._call(lib.quire_allocation_get_info, ctypes.byref(info))
        return info

    @property
    def address(self) -> int:
        """The native address of the first byte: a CUdeviceptr, a VkDeviceAddress, a host pointer; 0: none."""
        return int(self._native_info().address)

    @property
    def name(self) -> str:
        """The name; "" if it has none. At most 255 bytes. Assign None to remove it."""
        name = ctypes.create_string_buffer(_MAX_NAME + 1)
        self._call(lib.quire_allocation_get_name, name, len(name))
        return name.value.decode("utf-8", "replace")

    @name.setter
    def name(self, name: Optional[str]) -> None:
        self._call(lib.quire_allocation_set_name, text("name", name))

    @property
    def user_data(self) -> int:
        """Any number of the caller."""
        return int(self._native_info().user_data)

    @user_data.setter
    def user_data(self, value: int) -> None:
        self._call(lib.quire_allocation_set_user_data, number("user_data", value))

    def __repr__(self) -> str:
        try:
            info, name = self.info, self.name
        except QuireError:
            return f"<quire.{type(self).__name__} of {self._size} bytes, freed>"
        title = f" {name!r}" if name else ""
        return f"<quire.{type(self).__name__}{title} of {self._size} bytes at page {info.page}, offset {info.offset}>"

    # ---- bytes ------------------------------------------------------------------------------------------

    def write(self, data: Any, offset: int = 0) -> None:
        """Copy the bytes of an object with the buffer protocol into the allocation. Complete on return."""
        area = _bytes_of(data)
        self._call(lib.quire_write, number("offset", offset), area, len(area))

    def read(self, offset: int = 0, size: Optional[int] = None) -> bytes:
        """Return a copy of `size` bytes from `offset` on; None: to the end of the requested bytes."""
        at = number("offset", offset)
        count = max(self._size - at, 0) if size is None else number("size", size)
        if count + at > self._size:
            raise self._outside(at, count)
        area = (ctypes.c_char * count)()
        self._call(lib.quire_read, at, area, count)
        return area.raw

    def _outside(self, offset: int, count: int) -> QuireError:
        return OutOfRangeError(f"{count} bytes at offset {offset} lie outside an allocation of {self._size} bytes")

    def read_into(self, target: Any, offset: int = 0) -> None:
        """Copy bytes from `offset` on into an object with the buffer protocol, which they fill."""
        view = memoryview(target)
        if view.readonly or not view.c_contiguous:
            raise BufferError("the target must be writable and contiguous")
        if not view.nbytes:
            return
        area = (ctypes.c_char * view.nbytes).from_buffer(view.cast("B"))
        self._call(lib.quire_read, number("offset", offset), area, view.nbytes)

    def fill(self, value: int = 0, offset: int = 0, size: int = 0, stream: Optional[Stream] = None) -> Point:
        """Set `size` bytes from `offset` on to a value; a size of 0: to the end of the requested bytes.

        With a stream the fill runs in its order, the point passes when it is done, and a free waits for it.
        Otherwise it is complete on return, and the point has passed.
        """
        optional("stream", stream, Stream)
        options = tables.quire_fill_options(number("offset", offset), number("size", size), number("value", value, 8))
        if not options.size:
            if options.offset >= self._size:
                raise self._outside(options.offset, 0)
            options.size = self._size - options.offset
        return self._on_stream(stream, options, lambda done: self._call(
            lib.quire_fill, ctypes.byref(options), ctypes.byref(done)))

    def copy_from(self, source: "Allocation", offset: int = 0, source_offset: int = 0, size: Optional[int] = None,
                  stream: Optional[Stream] = None) -> Point:
        """Copy `size` bytes of another allocation, of any memory and device; None: as many as both have.

        The order is that of :meth:`fill`. With a stream both are freed after the copy.
        """
        instance("source", source, Allocation)
        optional("stream", stream, Stream)
        options = tables.quire_copy_options()
        options.to.offset, from_end = number("offset", offset), getattr(options, "from")
        from_end.offset = number("source_offset", source_offset)
        rest = min(self._size - options.to.offset, source._size - from_end.offset)
        options.size = max(rest, 0) if size is None else number("size", size)
        options.to.allocation, from_end.allocation = self._record.id, source._record.id
        with source._record.owner.held(), self._record.owner.held():
            options.to.memory, from_end.memory = self._record.owner.pointer, source._record.owner.pointer

            def copy(done: tables.quire_point) -> None:
                if not options.size:  # to the C function that is all bytes
                    return
                check(lib.quire_copy(ctypes.byref(options), ctypes.byref(done)))
            if stream is not None:
                source._used_on(stream)
            return self._on_stream(stream, options, copy)

    def _used_on(self, stream: Stream) -> None:
        """Let the free wait for work that is submitted to a stream, unless it follows in its order anyway."""
        if stream is not self._stream:
            self.record_use(stream)

    def _on_stream(self, stream: Optional[Stream], options: Any, work: Any) -> Point:
        done = tables.quire_point()
        if stream is None:
            work(done)
            return Point(None, 0)
        self._used_on(stream)
        with stream._owner.held():
            options.stream = stream._owner.pointer
            work(done)
        return point_of(stream, done)

    def flush(self, offset: int = 0, size: int = 0) -> None:
        """Make what the host wrote through a view visible to the device. A size of 0: to the end."""
        self._call(lib.quire_flush, number("offset", offset), number("size", size))

    def invalidate(self, offset: int = 0, size: int = 0) -> None:
        """Make what the device wrote visible to views of the host. A size of 0: to the end."""
        self._call(lib.quire_invalidate, number("offset", offset), number("size", size))

    # ---- memory of a lazy allocation --------------------------------------------------------------------

    def back(self, offset: int = 0, size: int = 0) -> None:
        """Give memory to `size` bytes of a lazy allocation from `offset` on; a size of 0: to the end.

        :meth:`Memory.back_ranges` does it for many ranges, and has the errors.

        >>> import quire
        >>> memory = quire.open_host().create_memory(elastic=True, address_space=1 << 30,
        ...                                          pages=quire.PagePolicy(page_size=1 << 20))
        >>> cache = memory.allocate(64 << 20, lazy=True)
        >>> cache.back(0, 3 << 20)
        >>> cache.info.size >> 20, cache.info.backed >> 20, memory.statistics.live_bytes >> 20
        (64, 3, 3)
        >>> cache.unback(1 << 20)
        >>> cache.info.backed >> 20
        1
        """
        self._memory.back_ranges(((self, offset, size),))

    def unback(self, offset: int = 0, size: int = 0, after: Optional[Point] = None) -> None:
        """Take the memory of `size` bytes of a lazy allocation from `offset` on; a size of 0: to the end.

        :meth:`Memory.unback_ranges` does it for many ranges, and has the errors.
        """
        self._memory.unback_ranges(((self, offset, size),), after)

    # ---- views ------------------------------------------------------------------------------------------

    def array(self, dtype: object = "uint8", shape: Union[int, Sequence[int], None] = None, offset: int = 0,
              readonly: bool = False) -> "Array":
        """Return a typed array on the bytes, for other libraries.

        shape None: one axis to the end, which must be a whole number of elements: otherwise InvalidArgumentError.

        >>> import quire
        >>> memory = quire.open_host().create_memory(host_read=True, host_write=True)
        >>> table = memory.buffer(48, zero=True).array("float32", (3, 4))
        >>> memoryview(table.view())[2, 3]
        0.0
        """
        from .array import Array
        return Array(self, dtype, shape, offset, readonly)

    def view(self, readonly: bool = False) -> memoryview:
        """Return a memoryview of the requested bytes, without a copy. The memory must be host-visible.

        While the view or anything on it lives, :meth:`free` raises BusyError. Release it with its method
        ``release``, or with a ``with`` block. Only bytes that have memory may be used: of a lazy allocation those
        that :meth:`back` was called for; a use of others ends the process.
        """
        return self.array(readonly=readonly).view()

    def numpy(self, dtype: object = "uint8", shape: Union[int, Sequence[int], None] = None) -> Any:
        """Return a NumPy array on the bytes, without a copy, as :meth:`view` does. The arguments are those of
        :meth:`array`."""
        return self.array(dtype, shape).numpy()

    def __buffer__(self, flags: int) -> memoryview:
        return self.view()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        return self.array().__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array().__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.array().__cuda_array_interface__

    # ---- eviction ---------------------------------------------------------------------------------------

    def set_priority(self, priority: int) -> None:
        """Set the priority, -128 to 127: :meth:`Memory.evict` evicts lower ones first, and never 127. It is 0 at first."""
        value = operator.index(priority)
        if not -128 <= value <= 127:
            raise InvalidArgumentError(f"priority is {value}; it must be between -128 and 127")
        self._call(lib.quire_set_priority, value)

    def touch(self) -> None:
        """Say that the current frame uses the allocation. Raises WrongStateError if it is evicted."""
        self._call(lib.quire_touch)

    def wake(self) -> None:
        """Give the allocation a place again if it is evicted. Raises the classes of OutOfMemoryError, and BusyError."""
        self._call(lib.quire_wake)

    # ---- the end ----------------------------------------------------------------------------------------

    def record_use(self, stream: Stream) -> None:
        """Record that work on a stream uses the allocation: its free then also waits for that work."""
        instance("stream", stream, Stream)
        with stream._owner.held():
            self._record.owner.use_on(stream._owner)
            self._call(lib.quire_record_use, stream._owner.pointer)
        if stream not in self._recorded:
            self._recorded.append(stream)

    def free(self, stream: Optional[Stream] = None, after: Optional[Point] = None) -> None:
        """Free the allocation. Raises StaleHandleError if it was freed, BusyError while views use it.

        With `stream`, or with the stream that it was allocated on, the range returns in the order of the stream,
        with `after` once the point has passed. Otherwise no work of a device may use it any more.
        """
        optional("stream", stream, Stream)
        optional("after", after, Point)
        if stream is not None and after is not None:
            raise InvalidArgumentError("name a stream or a point, not both")
        if stream is None and after is None and self._stream and self._stream._owner.pointer is not None:
            stream = self._stream
        record, in_order = self._record, stream._owner if stream else None
        try:
            record.free(after, in_order)
        except BusyError:
            record.owner.settle_parts()
            count = record.view_count()
            if count:
                views = "1 view uses" if count == 1 else f"{count} views use"
                raise BusyError(f"{views} the bytes of the allocation: drop every memoryview, NumPy array and DLPack "
                                "array on them first") from None
            record.free(after, in_order)  # an interrupt had kept a view from ending

    def __enter__(self) -> "Allocation":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.free()
        except StaleHandleError:
            pass  # freed in the block
        except BusyError:
            if kind is None:
                raise  # otherwise a frame of the traceback may have the view

    def _call(self, function: Any, *arguments: object) -> None:
        self._record.owner.call(function, self._record.id, *arguments)


def views_of(ranges: Iterable[Tuple[Allocation, int, int]]) -> Any:
    """Return an array of C with a view for each range: an allocation, an offset and a size."""
    views = [tables.quire_view(instance("allocation", allocation, Allocation)._record.id, number("offset", offset),
                               number("size", size)) for allocation, offset, size in ranges]
    return (tables.quire_view * len(views))(*views)


class Buffer(Allocation):
    """An allocation with a native buffer bound to it, made by :meth:`Memory.buffer`.

    Its native object, such as a VkBuffer, is ``buffer.info.native``.
    """

    __slots__ = ()
