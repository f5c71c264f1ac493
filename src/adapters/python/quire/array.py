# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Typed arrays on the bytes of an allocation, which other libraries use without a copy."""

import ctypes
import operator
import struct
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterable, Optional, Sequence, Tuple, Union, cast

from . import dlpack
from ._arguments import instance, must_be, number
from ._native import lib
from .allocation import Allocation, Export
from .dtypes import DType
from .dtypes import dtype as dtype_of
from .errors import InvalidArgumentError, NotHostVisibleError, OutOfRangeError, StaleHandleError
from .stream import Stream

if TYPE_CHECKING:
    from .memory import Memory


def axes_of(shape: Union[int, Iterable[int]]) -> Tuple[int, ...]:
    """Return the elements of each axis, from a number of them for one axis or for each."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, (int, Iterable)):
        raise must_be("shape", "an integer, or integers for each axis", shape)
    return tuple(number("shape", axis, 63) for axis in ((shape,) if isinstance(shape, int) else shape))


def _shape(shape: Union[int, Sequence[int], None], available: int, itemsize: int) -> Tuple[int, ...]:
    if shape is None:
        if available % itemsize:
            raise InvalidArgumentError(f"{available} bytes are no whole number of elements of {itemsize} bytes: "
                                       f"{available % itemsize} would be left out; name a shape, such as "
                                       f"{available // itemsize}")
        return (available // itemsize,)
    return axes_of(shape)


def _size(shape: Sequence[int], itemsize: int) -> int:
    """The bytes of elements side by side."""
    size = itemsize
    for axis in shape:
        size *= axis
    return size


def _strides(shape: Tuple[int, ...], itemsize: int) -> Tuple[int, ...]:
    """The bytes between two elements of each axis, in C order."""
    return tuple(_size(shape[axis + 1:], itemsize) for axis in range(len(shape)))


class Array:
    """Elements on the bytes of an allocation, made by :meth:`Memory.array` or :meth:`Allocation.array`, in C order.

    Other libraries take it without a copy: ``memoryview(array.view())``, ``numpy.asarray(array)``,
    ``torch.from_dlpack(array)``, ``cupy.from_dlpack(array)``, ``cupy.asarray(array)``. What they make keeps the
    allocation from being freed, except arrays that were made by ``__cuda_array_interface__``, which has no way to
    report their end: keep the Array as long as these, and do not free it before.

    An index or a slice for each axis selects a part, an Array on the same bytes: ``array[3]``, ``array[:, 1:9:2]``,
    ``array[..., 0]``.
    """

    __slots__ = ("allocation", "dtype", "offset", "readonly", "shape", "strides", "__weakref__")

    def __init__(self, allocation: Allocation, dtype: object = "uint8", shape: Union[int, Sequence[int], None] = None,
                 offset: int = 0, readonly: bool = False) -> None:
        self.allocation = instance("allocation", allocation, Allocation)
        self.dtype: DType = dtype_of(dtype)
        self.offset = number("offset", offset)  #: bytes from the start of the allocation
        self.readonly = readonly
        available = allocation.nbytes - self.offset
        self.shape = _shape(shape, max(available, 0), self.dtype.itemsize)
        self.strides = _strides(self.shape, self.dtype.itemsize)  #: bytes between two elements of each axis
        if self.nbytes > available:
            raise OutOfRangeError(f"{self.nbytes} bytes at offset {self.offset} lie outside an allocation of "
                                  f"{allocation.nbytes} bytes")

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return _size(self.shape, self.dtype.itemsize)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie side by side in C order."""
        return not self.nbytes or all(size == 1 or stride == wanted for size, stride, wanted in
                                      zip(self.shape, self.strides, _strides(self.shape, self.dtype.itemsize)))

    @property
    def _span(self) -> int:
        """The bytes from the first element to the end of the last one."""
        if not self.nbytes:
            return 0
        return self.dtype.itemsize + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))

    def _part(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> "Array":
        part = Array(self.allocation, self.dtype, 0, 0, self.readonly)
        part.offset, part.shape, part.strides = offset, tuple(shape), tuple(strides)
        return part

    def __getitem__(self, index: Any) -> "Array":
        keys = list(index) if isinstance(index, tuple) else [index]
        if keys.count(Ellipsis) > 1 or len(keys) - keys.count(Ellipsis) > len(self.shape):
            raise IndexError(f"{len(keys)} indices for an array with {len(self.shape)} axes")
        if Ellipsis not in keys:
            keys.append(Ellipsis)
        place = keys.index(Ellipsis)
        keys[place:place + 1] = [slice(None)] * (len(self.shape) - len(keys) + 1)
        offset, shape, strides = self.offset, [], []
        for key, size, stride in zip(keys, self.shape, self.strides):
            if isinstance(key, slice):
                first, end, step = key.indices(size)
                if step < 0:
                    raise ValueError("the step of a slice of an array is positive")
                count = len(range(first, end, step))
                offset += first * stride if count else 0
                shape.append(count)
                strides.append(step * stride)
            else:
                at = operator.index(key)
                if not -size <= at < size:
                    raise IndexError(f"index {at} of an axis of {size} elements")
                offset += at % size * stride
        return self._part(offset, shape, strides)

    def reshape(self, *shape: Union[int, Iterable[int]]) -> "Array":
        """Return the elements with another shape; the elements must lie side by side. One axis may be -1.

        The axes are the arguments, or one tuple as in NumPy.
        """
        given: Iterable[object] = shape[0] if len(shape) == 1 and isinstance(shape[0], Iterable) else shape
        asked = tuple(-1 if axis == -1 else number("shape", axis, 63) for axis in given)
        axes = list(asked)
        if axes.count(-1) == 1:
            rest = _size([axis for axis in axes if axis != -1], self.dtype.itemsize)
            axes[axes.index(-1)] = self.nbytes // rest if rest else 0
        wanted = _shape(axes, 0, self.dtype.itemsize)
        if _size(wanted, self.dtype.itemsize) != self.nbytes:
            raise ValueError(f"{self.shape} does not become {asked}: the number of elements differs")
        if not self.is_contiguous:
            raise ValueError("the elements do not lie side by side")
        return self._part(self.offset, wanted, _strides(wanted, self.dtype.itemsize))

    def item(self) -> Any:
        """Return the only element as a value of Python, also from memory that the host cannot reach."""
        if self.nbytes != self.dtype.itemsize:
            raise ValueError(f"an array of the shape {self.shape} has not exactly one element")
        bytes_ = self.allocation.read(self.offset, self.dtype.itemsize)
        if self.dtype.format is not None:
            return struct.unpack(self.dtype.format, bytes_)[0]
        if self.dtype.name == "bfloat16":
            return struct.unpack("f", struct.pack("=I", int.from_bytes(bytes_, sys.byteorder) << 16))[0]
        return complex(*struct.unpack("2f" if self.dtype.itemsize == 8 else "2d", bytes_))

    @property
    def _memory(self) -> "Memory":
        return self.allocation.memory

    def __repr__(self) -> str:
        return f"<quire.Array {self.dtype.name} {self.shape} on {self.allocation!r}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("the array has no axis")
        return self.shape[0]

    # ---- host -------------------------------------------------------------------------------------------

    def _need_host(self) -> None:
        """Raise NotHostVisibleError unless the host can reach the bytes by a pointer."""
        if not self._memory.is_mappable:
            others = "read and write" if self._memory._native_device() is None else "read, write or DLPack"
            raise NotHostVisibleError(f"the host cannot reach {self._memory!r}; use {others}")

    def _bytes(self) -> memoryview:
        """Return a view of the bytes from the first element to the end of the last one."""
        self._need_host()
        export = Export(self.allocation)
        area: Any = (ctypes.c_char * self._span).from_address(export.pointer + self.offset)
        area.export = export  # a view keeps the area, and so the allocation
        view = memoryview(area).cast("B")
        return view.toreadonly() if self.readonly else view

    def view(self) -> memoryview:
        """Return a memoryview of the elements. TypeError for complex types and bfloat16, and for a part whose
        elements do not lie side by side, unless it has one axis."""
        if self.dtype.format is None:
            raise TypeError(f"memoryview has no elements of type {self.dtype.name}")
        if self.is_contiguous:
            view = self._bytes()
            if self.nbytes:
                view = cast(Any, view).cast(self.dtype.format, self.shape)
            return view
        if len(self.shape) != 1 or self.strides[0] % self.dtype.itemsize:
            self._need_host()
            raise TypeError("memoryview has no steps of several axes; use numpy() or DLPack")
        return self._bytes().cast(cast(Any, self.dtype.format))[::self.strides[0] // self.dtype.itemsize]

    def __buffer__(self, flags: int) -> memoryview:
        return self.view()

    def numpy(self) -> Any:
        """Return a NumPy array on the elements. bfloat16 has none: TypeError."""
        import numpy
        if self.dtype.typestr is None:
            raise TypeError(f"NumPy has no elements of type {self.dtype.name}")
        if not self.nbytes:
            return numpy.empty(self.shape, self.dtype.typestr)
        return numpy.ndarray(self.shape, self.dtype.typestr, self._bytes(), 0, self.strides)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"elements of {self.dtype.name} become {dtype} only by a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    # ---- DLPack -----------------------------------------------------------------------------------------

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._memory._dlpack_device()

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        device = self.__dlpack_device__()
        if dl_device is not None and tuple(map(int, dl_device)) != device:
            raise BufferError(f"the array is on DLPack's device {device}, not on {tuple(dl_device)}")
        if copy:
            raise BufferError("quire exports arrays without a copy; the consumer can copy")
        is_versioned = max_version is not None and max_version[0] >= 1
        if self.readonly and not is_versioned:
            raise BufferError("DLPack before version 1 has no read-only arrays")
        if device[0] != dlpack.CUDA:
            if stream is not None and device[0] == dlpack.CPU:
                raise BufferError("an array of the host has no stream")
        elif stream != -1:
            self._order(stream)
        export = Export(self.allocation)
        steps = tuple(stride // self.dtype.itemsize for stride in self.strides)
        return dlpack.capsule(export.pointer + self.offset, device, self.dtype, self.shape, steps, self.readonly,
                              is_versioned, export)

    def _order(self, native: Optional[int]) -> None:
        """Let the consumer's stream wait for work of the stream that the allocation was made on."""
        own = self.allocation.stream
        if own is None:
            return
        from .cuda import wrap_stream
        try:
            point = own.mark()
        except StaleHandleError:
            return  # a destroyed stream has no work left
        with wrap_stream(self._memory.device, 1 if native is None else native, "DLPack") as consumer:
            consumer.wait(point)

    # ---- CUDA -------------------------------------------------------------------------------------------

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        device = self._memory._native_device()
        if device is None or device[0] == dlpack.CPU:
            raise AttributeError("the array is not of a CUDA device")
        if self.dtype.typestr is None:
            raise AttributeError(f"the CUDA array interface has no elements of type {self.dtype.name}")
        return {"shape": self.shape, "strides": None if self.is_contiguous else self.strides,
                "typestr": self.dtype.typestr, "data": (self.allocation.info.address + self.offset, self.readonly),
                "version": 3, "stream": _interface_stream(self.allocation.stream)}


def _interface_stream(stream: Optional[Stream]) -> Optional[int]:
    """The number of a stream in the CUDA array interface: 1 is the legacy default stream."""
    if stream is None:
        return None
    native = ctypes.c_void_p()
    try:
        stream._owner.call(lib.quire_cuda_stream_get, ctypes.byref(native))
    except StaleHandleError:
        return None
    return native.value or 1
