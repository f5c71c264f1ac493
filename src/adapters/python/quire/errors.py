# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors: one exception for each error of the library, with the library's sentence.

>>> import quire
>>> with quire.open_host() as device, device.create_memory() as memory:
...     memory.allocate(0)
Traceback (most recent call last):
    ...
quire.errors.InvalidArgumentError: an allocation of size 0 is requested

Every exception is a :class:`QuireError`. Where Python has a class of the same meaning, the exception is one of
that class too: exhaustion is a ``MemoryError``, a wrong argument a ``ValueError``, a range outside its parent an
``IndexError``, and an allocation that something still uses, such as a view, a ``BufferError``.
"""

import threading
from typing import Any, Callable, Dict, Type

from . import _native
from .enums import Result


class QuireError(Exception):
    """The base class of all errors of quire.

    ``result`` is the error of the library, ``native_code`` the code of the backend (errno, VkResult, CUresult), or
    0 if the failure did not come from a backend.
    """

    result: Result = Result.SUCCESS
    native_code: int = 0


class InvalidArgumentError(QuireError, ValueError):
    """An argument is null, zero, unknown or contradictory."""

    result = Result.INVALID_ARGUMENT


class OutOfMemoryError(QuireError, MemoryError):
    """The base class of errors by exhaustion."""


class OutOfDeviceMemoryError(OutOfMemoryError):
    """The backend has no memory left for the request."""

    result = Result.OUT_OF_DEVICE_MEMORY


class OutOfHostMemoryError(OutOfMemoryError):
    """The process has no memory left for records of the library."""

    result = Result.OUT_OF_HOST_MEMORY


class OverBudgetError(OutOfMemoryError):
    """The request would exceed a budget or a limit."""

    result = Result.OVER_BUDGET


class TooManyPagesError(OutOfMemoryError):
    """The memory or the device has as many pages as it may."""

    result = Result.TOO_MANY_PAGES


class TooManyAllocationsError(OutOfMemoryError):
    """A table of handles is full."""

    result = Result.TOO_MANY_ALLOCATIONS


class NoSpaceError(OutOfMemoryError):
    """No free range of a space is large enough."""

    result = Result.NO_SPACE


class UnsupportedError(QuireError):
    """The backend or this version does not offer it."""

    result = Result.UNSUPPORTED


class NotPermittedError(QuireError):
    """The system or the driver refused the permission, or the process is the child of a fork."""

    result = Result.NOT_PERMITTED


class NotHostVisibleError(QuireError, BufferError):
    """The memory cannot be reached by a host pointer."""

    result = Result.NOT_HOST_VISIBLE


class NotMappedError(QuireError):
    """The allocation is not mapped."""

    result = Result.NOT_MAPPED


class StaleHandleError(QuireError):
    """The allocation, memory, stream or device was freed or destroyed before."""

    result = Result.STALE_HANDLE


class ForeignHandleError(QuireError):
    """The allocation, stream or point belongs to another memory or device."""

    result = Result.FOREIGN_HANDLE


class OutOfRangeError(QuireError, IndexError):
    """The range lies outside its parent."""

    result = Result.OUT_OF_RANGE


class OverlapError(QuireError):
    """Two ranges overlap that must not."""

    result = Result.OVERLAP


class BusyError(QuireError, BufferError):
    """Something still uses the object: a view, a call of another thread, live allocations, work of a stream."""

    result = Result.BUSY


class WrongStateError(QuireError):
    """The object is not in the state that the call needs."""

    result = Result.WRONG_STATE


class DeviceLostError(QuireError):
    """The device is lost."""

    result = Result.DEVICE_LOST


class BackendError(QuireError):
    """The backend failed; ``native_code`` has its own code."""

    result = Result.BACKEND_FAILURE


class BadFileError(QuireError):
    """A file or text does not follow its format."""

    result = Result.BAD_FILE


class CorruptedError(QuireError):
    """A check found records or red zones damaged."""

    result = Result.CORRUPTED


def _leaves(parent: Type[QuireError]) -> Dict[int, Type[QuireError]]:
    found: Dict[int, Type[QuireError]] = {} if parent.result == Result.SUCCESS else {parent.result: parent}
    for child in parent.__subclasses__():
        found.update(_leaves(child))
    return found


CLASSES: Dict[int, Type[QuireError]] = _leaves(QuireError)


def from_result(result: int) -> QuireError:
    """Return the exception of a call that this thread has just made and that failed."""
    lib = _native.lib
    if lib.quire_last_result() == result:
        sentence, native = lib.quire_last_error(), lib.quire_last_native_code()
    else:  # another call of this thread has failed since, as in a finalizer
        sentence, native = lib.quire_result_sentence(result), 0
    kind = CLASSES.get(result, QuireError)
    error = kind(sentence.decode("utf-8", "replace"))
    error.native_code = int(native)
    return error


raised: Dict[int, BaseException] = {}  # by the thread: what a callback of its running call has raised first


def guarded(function: Callable[..., Any], default: object = None) -> Callable[..., Any]:
    """Return a callback that keeps what a function raises for the end of the call, and returns `default` then."""
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            raised.setdefault(threading.get_ident(), error)
            return default
    return call


def raise_of_callbacks() -> None:
    """Raise what a callback has raised during the call that this thread has just made."""
    if threading.get_ident() in raised:
        raise raised.pop(threading.get_ident())


def check(result: int) -> None:
    """Raise what a callback of the call has raised, otherwise the exception of a failed call."""
    if raised:
        raise_of_callbacks()
    if result:
        raise from_result(result)
