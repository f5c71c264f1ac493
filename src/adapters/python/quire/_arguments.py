# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversion of arguments of Python into numbers and texts of C, without silent truncation."""

import enum
import operator
import re
from typing import Optional, Type, TypeVar, Union

from .errors import InvalidArgumentError

T = TypeVar("T")
E = TypeVar("E", bound=enum.IntEnum)


def class_name(kind: type) -> str:
    """Return the name of a class as a user writes it: quire.Stream, int, numpy.ndarray."""
    if kind.__module__.split(".")[0] == __package__:
        return f"{__package__}.{kind.__name__}"
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def must_be(name: str, wanted: str, value: object) -> TypeError:
    """Return the error for an argument of the wrong class: the parameter, what it must be, what it was."""
    return TypeError(f"{name} must be {wanted}, not {'None' if value is None else class_name(type(value))}")


def instance(name: str, value: object, kind: Type[T], hint: str = "") -> T:
    """Return an argument that must be an object of a class. Raise TypeError for any other.

    A function calls this before it does anything else: ctypes takes the pointer of any object of the library.
    """
    if isinstance(value, kind):
        return value
    raise must_be(name, f"a {class_name(kind)}{hint}", value)


def optional(name: str, value: object, kind: Type[T]) -> Optional[T]:
    """Return an argument that must be None or an object of a class. Raise TypeError for any other."""
    return None if value is None else instance(name, value, kind)


def one_of(name: str, value: object, kind: Type[E]) -> E:
    """Return a value of an enumeration, or of its numbers. Raise TypeError for what is neither."""
    if isinstance(value, kind):
        return value
    if isinstance(value, (bool, enum.Enum)) or not isinstance(value, int):
        raise must_be(name, f"a {class_name(kind)}", value)
    return kind(value)


def number(name: str, value: object, bits: int = 64) -> int:
    """Return an unsigned number that fits `bits` bits. Raise TypeError for what is no integer."""
    if type(value) is int and 0 <= value < 1 << bits:
        return value
    if isinstance(value, bool):
        raise must_be(name, "an integer", value)
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise must_be(name, "an integer", value) from None
    if not 0 <= result < 1 << bits:
        raise InvalidArgumentError(f"{name} is {result}; it must be between 0 and 2^{bits} - 1")
    return result


def limit_of(value: Union[int, str]) -> int:
    """Return the limit of a memory: a number of bytes, or a share of the heap such as "50%"."""
    if not isinstance(value, str):
        return number("limit", value)
    share = re.fullmatch("([0-9]+)%", value)
    percent = int(share[1]) if share else 0
    if not 1 <= percent <= 100:
        raise InvalidArgumentError(f"limit is {value!r}; it must be a number of bytes, or from '1%' to '100%'")
    return (1 << 64) - 1 - 1000 + percent  # QUIRE_PERCENT_OF_HEAP


def text(name: str, value: Optional[str]) -> Optional[bytes]:
    """Return the UTF-8 bytes of a text, or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise must_be(name, "a str", value)
    if "\0" in value:
        raise InvalidArgumentError(f"{name} contains a null character")
    return value.encode("utf-8")
