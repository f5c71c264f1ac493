# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types of arrays: their names, the codes of the array interfaces, of DLPack and of memoryview."""

import sys
from typing import Dict, NamedTuple, Optional

_ORDER = "<" if sys.byteorder == "little" else ">"

# type codes of DLPack
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6


class DType(NamedTuple):
    """An element type."""

    name: str  #: "float32"
    itemsize: int  #: bytes
    typestr: Optional[str]  #: of the array interfaces, as "<f4"; None: they do not have the type
    format: Optional[str]  #: of memoryview, as "f"; None: it does not have the type
    code: int  #: of DLPack


def _entry(name: str, itemsize: int, kind: Optional[str], format_: Optional[str], code: int) -> DType:
    typestr = None if kind is None else f"{'|' if itemsize == 1 else _ORDER}{kind}{itemsize}"
    return DType(name, itemsize, typestr, format_, code)


DTYPES: Dict[str, DType] = {entry.name: entry for entry in (
    _entry("bool", 1, "b", "?", _BOOL),
    _entry("int8", 1, "i", "b", _INT), _entry("int16", 2, "i", "h", _INT),
    _entry("int32", 4, "i", "i", _INT), _entry("int64", 8, "i", "q", _INT),
    _entry("uint8", 1, "u", "B", _UINT), _entry("uint16", 2, "u", "H", _UINT),
    _entry("uint32", 4, "u", "I", _UINT), _entry("uint64", 8, "u", "Q", _UINT),
    _entry("float16", 2, "f", "e", _FLOAT), _entry("float32", 4, "f", "f", _FLOAT),
    _entry("float64", 8, "f", "d", _FLOAT), _entry("bfloat16", 2, None, None, _BFLOAT),
    _entry("complex64", 8, "c", None, _COMPLEX), _entry("complex128", 16, "c", None, _COMPLEX),
)}
_TYPESTRS = {entry.typestr: entry for entry in DTYPES.values() if entry.typestr}
_TYPESTRS.update({entry.typestr[1:]: entry for entry in DTYPES.values() if entry.typestr})  # "f4"
_TYPESTRS["bool_"] = DTYPES["bool"]  # the name of NumPy's class before version 2


def dtype(value: object) -> DType:
    """Return an element type by its name ("float32"), its typestr ("<f4", "f4"), or from a dtype of NumPy or PyTorch.

    The types of Python are those of 64 bits for each number, as in NumPy.

    >>> dtype("<f4").name
    'float32'
    >>> dtype("float128")
    Traceback (most recent call last):
        ...
    TypeError: 'float128' is no element type of quire; they are bool, int8, int16, int32, int64, uint8, uint16, \
uint32, uint64, float16, float32, float64, bfloat16, complex64, complex128
    """
    if isinstance(value, DType):
        return value
    for python, name in (int, "int64"), (float, "float64"), (complex, "complex128"):
        if value is python:
            return DTYPES[name]
    for known in (value, getattr(value, "name", None), getattr(value, "__name__", None),
                 str(value).replace("torch.", "")):
        if isinstance(known, str):
            found = DTYPES.get(known) or _TYPESTRS.get(known)
            order = getattr(value, "byteorder", "=")
            if found is not None and order in ("=", "|", _ORDER):
                return found
    raise TypeError(f"{value!r} is no element type of quire; they are {', '.join(DTYPES)}")
