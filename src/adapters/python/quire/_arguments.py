"""Conversion of arguments of Python into numbers and texts of C, without silent truncation."""

import operator
import re
from typing import Optional, Union

from .errors import InvalidArgumentError


def number(name: str, value: object, bits: int = 64) -> int:
    """Return an unsigned number that fits `bits` bits. Raise TypeError for what is no integer."""
    if type(value) is int and 0 <= value < 1 << bits:
        return value
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not bool")
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
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
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidArgumentError(f"{name} contains a null character")
    return value.encode("utf-8")
