"""Allocations and buffers: ranges of the pages of a memory."""

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

from . import _owner
from . import _structs as structs
from ._arguments import number, text
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


class Record:
    """The handle of an allocation, shared by the public object, its finalizer and the views on its bytes."""

    __slots__ = ("owner", "id", "stream", "exports", "is_abandoned", "is_freed")

    def __init__(self, owner: "MemoryOwner", handle: structs.quire_allocation, stream: Optional[_owner.Owner]) -> None:
        self.owner: "MemoryOwner" = owner
        self.id = handle
        self.stream = stream  # that it was allocated on
        self.exports = 0
        self.is_abandoned = False
        self.is_freed = False

    def free(self, after: Optional[Point] = None, stream: Optional[_owner.Owner] = None) -> None:
        """Free the allocation: after a point, in the order of a stream, or at once."""
        recorded = self.owner.before_free()
        if after is not None and after.stream is not None:
            with after.stream._owner as pointer:
                self.owner.use_on(after.stream._owner)
                self.owner.call(lib.quire_free_after, self.id, structs.quire_point(pointer, after.value))
        elif stream is not None:
            with stream as pointer:
                self.owner.use_on(stream)
                self.owner.call(lib.quire_free_on, self.id, pointer)
        else:
            self.owner.call(lib.quire_free, self.id)
        self.is_freed = True
        self.owner.record_free(self.id.id, recorded, stream)

    def abandon(self) -> None:
        """Free the allocation now, or with its last view. Never raises."""
        with _owner._lock:
            self.is_abandoned = True
            if self.exports or self.is_freed:
                return
        # a destroyed stream has no work left
        stream = self.stream if self.stream is not None and self.stream.pointer is not None else None
        try:
            self.free(stream=stream)
        except QuireError:
            pass  # it was freed, or its memory was destroyed

    def begin_export(self, pointer: Optional[ctypes.c_void_p]) -> None:
        """Keep the allocation from being freed, and write its host pointer unless that is None."""
        self.owner.export()
        try:
            if pointer is None:
                self.owner.call(lib.quire_allocation_hold, self.id)
            else:
                self.owner.call(lib.quire_map, self.id, ctypes.byref(pointer))
        except BaseException:
            self.owner.end_export()
            raise
        with _owner._lock:
            self.exports += 1

    def end_export(self, is_mapped: bool) -> None:
        """End a view. Never raises."""
        try:
            self.owner.call(lib.quire_unmap if is_mapped else lib.quire_allocation_release, self.id)
        except QuireError:
            pass  # in the child of a fork
        with _owner._lock:
            self.exports -= 1
            is_last = self.is_abandoned and not self.exports
        if is_last:
            self.abandon()
        self.owner.end_export()


class Export(_owner.Unique):
    """A view of the bytes of an allocation: its pointer, and a function that ends it."""

    def __init__(self, allocation: "Allocation") -> None:
        memory, record = allocation._memory, allocation._record
        host = ctypes.c_void_p() if memory.is_mappable else None
        record.begin_export(host)
        self.keep = allocation
        self._end = weakref.finalize(self, record.end_export, host is not None)
        self._end.atexit = False  # arrays of the program may outlive the finalizers
        self.pointer: int = (host.value if host is not None else allocation.info.address) or 0

    def end(self) -> None:
        """End the view; a second call does nothing."""
        self._end()


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

    def __init__(self, memory: "Memory", handle: structs.quire_allocation, size: int, stream: Optional[Stream]) -> None:
        self._memory = memory
        self._size = size
        self._stream = stream
        self._recorded: List[Stream] = []  # which must not be destroyed before the allocation is freed
        self._record: Record = Record(memory._owner, handle, stream._owner if stream else None)

    def __del__(self) -> None:
        record = getattr(self, "_record", None)  # None: the allocation failed
        # a memory that was destroyed has no allocations; at the exit memories end first
        if record is not None and not record.is_freed and record.owner.pointer is not None:
            record.abandon()

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
        info = structs.quire_allocation_info()
        self._call(lib.quire_allocation_get_info, ctypes.byref(info))
        return read(AllocationInfo, info)

    @property
    def address(self) -> int:
        """The native address of the first byte: a CUdeviceptr, a VkDeviceAddress, a host pointer; 0: none."""
        return self.info.address

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
        return self.info.user_data

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
        options = structs.quire_fill_options(number("offset", offset), number("size", size), number("value", value, 8))
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
        options = structs.quire_copy_options()
        options.to.offset, from_end = number("offset", offset), getattr(options, "from")
        from_end.offset = number("source_offset", source_offset)
        rest = min(self._size - options.to.offset, source._size - from_end.offset)
        options.size = max(rest, 0) if size is None else number("size", size)
        options.to.allocation, from_end.allocation = self._record.id, source._record.id
        with source._record.owner as from_memory, self._record.owner as to_memory:
            options.to.memory, from_end.memory = to_memory, from_memory

            def copy(done: structs.quire_point) -> None:
                check(lib.quire_copy(ctypes.byref(options), ctypes.byref(done)))
            if stream is not None:
                source._used_on(stream)
            return self._on_stream(stream, options, copy)

    def _used_on(self, stream: Stream) -> None:
        """Let the free wait for work that is submitted to a stream, unless it follows in its order anyway."""
        if stream is not self._stream:
            self.record_use(stream)

    def _on_stream(self, stream: Optional[Stream], options: Any, work: Any) -> Point:
        done = structs.quire_point()
        if stream is None:
            work(done)
            return Point(None, 0)
        self._used_on(stream)
        with stream._owner as pointer:
            options.stream = pointer
            work(done)
        return point_of(stream, done)

    def flush(self, offset: int = 0, size: int = 0) -> None:
        """Make what the host wrote through a view visible to the device. A size of 0: to the end."""
        self._call(lib.quire_flush, number("offset", offset), number("size", size))

    def invalidate(self, offset: int = 0, size: int = 0) -> None:
        """Make what the device wrote visible to views of the host. A size of 0: to the end."""
        self._call(lib.quire_invalidate, number("offset", offset), number("size", size))

    # ---- views ------------------------------------------------------------------------------------------

    def array(self, dtype: object = "uint8", shape: Union[int, Sequence[int], None] = None, offset: int = 0,
              readonly: bool = False) -> "Array":
        """Return a typed array on the bytes, for other libraries; shape None: one axis to the end.

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
        ``release``, or with a ``with`` block.
        """
        return self.array(readonly=readonly).view()

    def numpy(self, dtype: object = "uint8", shape: Union[int, Sequence[int], None] = None) -> Any:
        """Return a NumPy array on the bytes, without a copy, as :meth:`view` does."""
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

    # ---- the end ----------------------------------------------------------------------------------------

    def record_use(self, stream: Stream) -> None:
        """Record that work on a stream uses the allocation: its free then also waits for that work."""
        with stream._owner as pointer:
            self._record.owner.use_on(stream._owner)
            self._call(lib.quire_record_use, pointer)
        if stream not in self._recorded:
            self._recorded.append(stream)

    def free(self, stream: Optional[Stream] = None, after: Optional[Point] = None) -> None:
        """Free the allocation. Raises StaleHandleError if it was freed, BusyError while views use it.

        With `stream`, or with the stream that it was allocated on, the range returns in the order of the stream,
        with `after` once the point has passed. Otherwise no work of a device may use it any more.
        """
        if stream is not None and after is not None:
            raise InvalidArgumentError("name a stream or a point, not both")
        if stream is None and after is None and self._stream and self._stream._owner.pointer is not None:
            stream = self._stream
        try:
            self._record.free(after, stream._owner if stream else None)
        except BusyError as error:
            if not self._record.exports:
                raise
            raise BusyError(f"{error}; {self._record.exports} views or arrays use its bytes") from None

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


class Buffer(Allocation):
    """An allocation with a native buffer bound to it, made by :meth:`Memory.buffer`.

    Its native object, such as a VkBuffer, is ``buffer.info.native``.
    """
