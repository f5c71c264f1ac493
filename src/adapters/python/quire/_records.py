# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversion between what C has and what the package returns: structures field by field, and texts."""

import ctypes
import dataclasses
import enum
import functools
from typing import Any, Callable, List, Tuple, Type, TypeVar, cast

from . import _owner
from . import _tables as tables
from ._arguments import number
from .errors import guarded

T = TypeVar("T")


@functools.lru_cache(maxsize=None)
def _fields(kind: Type[Any]) -> List[Tuple[str, Any]]:
    """The names of a dataclass's fields, and what converts them: dataclasses.fields takes microseconds."""
    return [(field.name, field.metadata.get("convert")) for field in dataclasses.fields(kind)]


def read(kind: Type[T], struct: ctypes.Structure) -> T:
    """Return a dataclass with the fields of a structure that have its names."""
    values = {}
    for name, convert in _fields(cast(Any, kind)):
        value = getattr(struct, name)
        values[name] = convert(value) if convert else value
    return kind(**values)


def converted(convert: Any) -> Any:
    """A field of a dataclass that `read` converts."""
    return dataclasses.field(metadata={"convert": convert})


def write(struct: ctypes.Structure, record: object, skip: str = "") -> None:
    """Set the fields of a structure to those of a dataclass, without the field `skip`.

    Raises InvalidArgumentError for an integer that does not fit.
    """
    kinds = dict(cast(Any, struct)._fields_)
    for field in dataclasses.fields(cast(Any, record)):
        if field.name == skip:
            continue
        value, kind = getattr(record, field.name), kinds[field.name]
        if isinstance(value, (bool, float)) and kind in (ctypes.c_bool, ctypes.c_float):
            setattr(struct, field.name, value)
        elif isinstance(value, enum.IntEnum) or kind is ctypes.c_int:
            setattr(struct, field.name, number(field.name, value, 31))
        else:
            setattr(struct, field.name, number(field.name, value, 8 * ctypes.sizeof(kind)))


def written(owner: _owner.Owner, function: Callable[..., int]) -> str:
    """Return the text that a function of C writes to a sink."""
    pieces: List[bytes] = []

    def sink(_: object, piece: int, size: int) -> bool:
        pieces.append(ctypes.string_at(piece, size))
        return True
    owner.call(function, tables.quire_sink(guarded(sink, False)), None)
    return b"".join(pieces).decode("utf-8", "replace")
