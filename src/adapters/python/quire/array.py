"""Typed arrays on the bytes of an allocation, which other libraries use without a copy."""

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union, cast

from . import dlpack
from ._arguments import number
from ._native import lib
from .allocation import Allocation, Export
from .dtypes import DType
from .dtypes import dtype as dtype_of
from .errors import NotHostVisibleError, OutOfRangeError, StaleHandleError
from .stream import Stream

if TYPE_CHECKING:
    from .memory import Memory


def _shape(shape: Union[int, Sequence[int], None], available: int, itemsize: int) -> Tuple[int, ...]:
    if shape is None:
        return (available // itemsize,)
    axes = (shape,) if isinstance(shape, int) else shape
    return tuple(number("shape", axis, 63) for axis in axes)


class Array:
    """Elements on the bytes of an allocation, made by :meth:`Allocation.array`, in C order.

    Other libraries take it without a copy: ``memoryview(array.view())``, ``numpy.asarray(array)``,
    ``torch.from_dlpack(array)``, ``cupy.from_dlpack(array)``, ``cupy.asarray(array)``. What they make keeps the
    allocation from being freed, except arrays that were made by ``__cuda_array_interface__``, which has no way to
    report their end: keep the Array as long as these, and do not free it before.
    """

    def __init__(self, allocation: Allocation, dtype: object = "uint8", shape: Union[int, Sequence[int], None] = None,
                 offset: int = 0, readonly: bool = False) -> None:
        self.allocation = allocation
        self.dtype: DType = dtype_of(dtype)
        self.offset = number("offset", offset)  #: bytes from the start of the allocation
        self.readonly = readonly
        available = allocation.nbytes - self.offset
        self.shape = _shape(shape, max(available, 0), self.dtype.itemsize)
        self.nbytes = self.dtype.itemsize
        for axis in self.shape:
            self.nbytes *= axis
        if self.nbytes > available:
            raise OutOfRangeError(f"{self.nbytes} bytes at offset {self.offset} lie outside an allocation of "
                                  f"{allocation.nbytes} bytes")

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

    def view(self) -> memoryview:
        """Return a memoryview of the elements. Complex types and bfloat16 have none: TypeError."""
        if self.dtype.format is None:
            raise TypeError(f"memoryview has no elements of type {self.dtype.name}")
        if not self._memory.is_mappable:
            raise NotHostVisibleError(f"the host cannot reach {self._memory!r}; use read, write or DLPack")
        export = Export(self.allocation)
        area: Any = (ctypes.c_char * self.nbytes).from_address(export.pointer + self.offset)
        area.export = export  # a view keeps the area, and so the allocation
        view = memoryview(area).cast("B")
        if self.readonly:
            view = view.toreadonly()
        if self.nbytes:
            view = cast(Any, view).cast(self.dtype.format, self.shape)
        return view

    def __buffer__(self, flags: int) -> memoryview:
        return self.view()

    def numpy(self) -> Any:
        """Return a NumPy array on the elements. bfloat16 has none: TypeError."""
        import numpy
        if self.dtype.typestr is None:
            raise TypeError(f"NumPy has no elements of type {self.dtype.name}")
        raw = Array(self.allocation, "uint8", self.nbytes, self.offset, self.readonly).view()
        return numpy.frombuffer(raw, dtype=self.dtype.typestr, count=-1 if self.nbytes else 0).reshape(self.shape)

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
        return dlpack.capsule(export.pointer + self.offset, device, self.dtype, self.shape, self.readonly,
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
        return {"shape": self.shape, "typestr": self.dtype.typestr,
                "data": (self.allocation.info.address + self.offset, self.readonly), "version": 3, "strides": None,
                "stream": _interface_stream(self.allocation.stream)}


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
