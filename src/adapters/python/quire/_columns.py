# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Columns: integers of a list or an array, checked and copied into a field of many structures at once.

An array is anything with the buffer protocol: arrays of NumPy need no NumPy here. No loop of Python runs over its
entries, unless one of them is wrong.
"""

import array
import collections.abc
import ctypes
import math
import sys
from typing import Any, List, NamedTuple, Optional, Tuple, Type

from ._arguments import must_be, number
from .errors import InvalidArgumentError

_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
_ORDER = "<" if sys.byteorder == "little" else ">"
_PRESENT = bytes(byte < 128 for byte in range(256))  # by the byte with the sign
_WANTED = "a sequence or an array of integers"


class Column(NamedTuple):
    """Unsigned integers side by side."""

    data: bytes
    itemsize: int  #: bytes of each
    length: int


def _sign_bytes(data: bytes, itemsize: int) -> bytes:
    """The byte of each integer that has its sign."""
    return data[(itemsize - 1 if _ORDER == "<" else 0)::itemsize]


def _of_sequence(name: str, values: List[Any], code: str, bits: int) -> Tuple[bytes, int, bool]:
    """The integers of a list as those of an array of the module array. Raises as `number` does, but not for -1 if
    the code has a sign."""
    if all(hasattr(kind, "__index__") and not issubclass(kind, bool) for kind in set(map(type, values))):
        try:
            made = array.array(code, values)
            return made.tobytes(), made.itemsize, code.islower()
        except (OverflowError, TypeError):
            pass
    made = array.array(code, [value if code == "q" and type(value) is int and value == -1 else
                              number(f"{name}[{i}]", value, bits) for i, value in enumerate(values)])
    return made.tobytes(), made.itemsize, code.islower()


def _of_buffer(name: str, view: memoryview) -> Tuple[bytes, int, bool]:
    if view.ndim != 1:
        raise InvalidArgumentError(f"{name} has {view.ndim} axes; it must have 1")
    letter = view.format.lstrip("@=" + _ORDER)
    if letter not in tuple("bBhHiIlLqQnN"):
        raise TypeError(f"{name} must be {_WANTED}, not an array of the format {view.format!r}")
    return view.tobytes(), view.itemsize, letter.islower()


def _integers(name: str, values: object, code: str, bits: int) -> Tuple[bytes, int, bool]:
    """The bytes of the integers, the bytes of each, and whether they have a sign."""
    if isinstance(values, (list, tuple)):
        return _of_sequence(name, list(values), code, bits)
    try:
        view = memoryview(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        if isinstance(values, str) or not isinstance(values, collections.abc.Sequence):
            raise must_be(name, _WANTED, values) from None
        return _of_sequence(name, list(values), code, bits)
    return _of_buffer(name, view)


def _check(name: str, data: bytes, itemsize: int, is_signed: bool, bits: int) -> None:
    """Raise InvalidArgumentError for an integer of an array that is negative, or needs more bits."""
    is_wrong = is_signed and not _sign_bytes(data, itemsize).isascii()
    for lane in range(bits // 8, itemsize):
        is_wrong = is_wrong or bool(data[(lane if _ORDER == "<" else itemsize - 1 - lane)::itemsize].strip(b"\0"))
    if is_wrong:
        for i, value in enumerate(memoryview(data).cast((_SIGNED if is_signed else _UNSIGNED)[itemsize])):
            number(f"{name}[{i}]", value, bits)


def column(name: str, values: object, bits: int = 64) -> Column:
    """Return unsigned integers. Raise TypeError for what is none, InvalidArgumentError for one that does not fit."""
    data, itemsize, is_signed = _integers(name, values, _UNSIGNED[bits // 8], bits)
    _check(name, data, itemsize, is_signed, bits)
    return Column(data, itemsize, len(data) // itemsize)


def optional_column(name: str, values: object) -> Tuple[Column, Column]:
    """Return unsigned integers of 63 bits, and a column of 1 and 0 that says which there are.

    None, in a list, and -1 mean that there is no number.
    """
    if isinstance(values, (list, tuple)):
        values = [-1 if value is None else value for value in values]
    data, itemsize, is_signed = _integers(name, values, "q", 63)
    count = len(data) // itemsize
    present = _sign_bytes(data, itemsize).translate(_PRESENT) if is_signed else b"\1" * count
    if b"\0" in present:
        for i, value in enumerate(memoryview(data).cast(_SIGNED[itemsize])):
            if value < -1:
                number(f"{name}[{i}]", value, 63)
    return Column(data, itemsize, count), Column(present, 1, count)


class _Field(NamedTuple):
    """Where integers lie in bytes: the first one, the distance of two, the size of one."""

    start: int
    stride: int
    size: int


def _field(struct: Type[ctypes.Structure], name: str) -> _Field:
    member = getattr(struct, name)
    return _Field(member.offset, ctypes.sizeof(struct), member.size)


def _copy(target: bytearray, to: _Field, source: Any, of: _Field) -> None:
    """Copy the low bytes of every integer of `source` to every one of `target`."""
    size = min(to.size, of.size)
    if _ORDER == ">":
        to, of = (field._replace(start=field.start + field.size - size) for field in (to, of))
    unit = math.gcd(size, to.start, to.stride, of.start, of.stride)
    targets, sources = memoryview(target).cast(_UNSIGNED[unit]), memoryview(source).cast(_UNSIGNED[unit])
    for lane in range(size // unit):
        targets[to.start // unit + lane::to.stride // unit] = sources[of.start // unit + lane::of.stride // unit]


def put(records: bytearray, struct: Type[ctypes.Structure], field: str, values: Column) -> None:
    """Set a field of every structure. Its other bytes are 0 before."""
    if values.length:
        _copy(records, _field(struct, field), values.data, _Field(0, values.itemsize, values.itemsize))


def get(records: bytearray, struct: Type[ctypes.Structure], field: str) -> bytearray:
    """Return a field of every structure, side by side."""
    of = _field(struct, field)
    target = bytearray(len(records) // of.stride * of.size)
    if target:
        _copy(target, _Field(0, of.size, of.size), records, of)
    return target


def numpy_of(values: object) -> Optional[Any]:
    """Return NumPy if `values` is an array of it."""
    numpy = sys.modules.get("numpy")
    return numpy if numpy is not None and isinstance(values, numpy.ndarray) else None


def result_of(numpy: Optional[Any], data: bytearray, itemsize: int, dtype: str) -> Any:
    """Return integers as an array of NumPy, or without NumPy as a list."""
    if numpy is not None:
        return numpy.frombuffer(data, dtype)
    return memoryview(data).cast(_UNSIGNED[itemsize]).tolist() if data else []
