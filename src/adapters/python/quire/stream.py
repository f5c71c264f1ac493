# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams of device work, and points in them."""

import ctypes
import math
import numbers
import time
from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from . import _owner
from . import _tables as tables
from ._arguments import instance, must_be, number, optional
from ._native import lib
from .enums import Result
from .errors import BusyError, StaleHandleError, check

if TYPE_CHECKING:
    from .device import Device

_SLICE = 0.05  # seconds between two looks at signals, such as that of Ctrl-C


def _destroy_manual(handle: Any) -> int:
    """Destroy a manual stream. The first attempt marks it for the frees that wait; running it lets them pass."""
    result: int = lib.quire_stream_destroy(handle)
    if result == Result.BUSY:
        lib.quire_host_stream_run(handle._as_parameter_.contents, (1 << 64) - 1, None)
        result = lib.quire_stream_destroy(handle)
    return result


class Stream(_owner.Unique):
    """A sequence of work on a device.

    Make one with :meth:`Device.create_stream`, or wrap one that exists with :func:`quire.cuda.wrap_stream`.
    An allocation that is freed in the order of a stream is reused by later work of the stream at once, and by
    everything else once the work is done.

    >>> import quire
    >>> device = quire.open_host()
    >>> memory = device.create_memory(host_read=True, host_write=True)
    >>> stream = device.create_stream("uploads")
    >>> buffer = memory.buffer(4096, stream=stream)
    >>> done = buffer.fill(7, stream=stream)
    >>> done.wait()
    >>> buffer.read(0, 2)
    b'\\x07\\x07'
    >>> buffer.free()

    Any thread may use a stream. Leaving a ``with`` block destroys it.
    """

    __slots__ = ("_device", "_wrapped", "_owner", "__weakref__")

    def __init__(self, device: "Device", function: Callable[..., int], *arguments: object, is_manual: bool = False,
                 wrapped: object = None) -> None:
        self._device = device
        self._wrapped = wrapped  # the stream of another library, which must live as long
        self._owner = _owner.Owner(self, "stream", _destroy_manual if is_manual else lib.quire_stream_destroy,
                                   device._owner)
        device._owner.call(function, *arguments, ctypes.byref(self._owner.native))

    @property
    def device(self) -> "Device":
        """The device of the stream."""
        return self._device

    def _info(self) -> tables.quire_stream_info:
        info = tables.quire_stream_info()
        self._owner.call(lib.quire_stream_get_info, ctypes.byref(info))
        return info

    @property
    def name(self) -> str:
        """The name of the stream."""
        return str(self._info().name.decode("utf-8", "replace"))

    @property
    def is_capture(self) -> bool:
        """Whether it is a capture stream, which no device runs."""
        return bool(self._info().capture)

    @property
    def deferred(self) -> int:
        """The number of allocations that wait for points of the stream."""
        return int(self._info().deferred)

    def mark(self) -> "Point":
        """Return a point after all work submitted so far."""
        native = tables.quire_point()
        self._owner.call(lib.quire_stream_mark, ctypes.byref(native))
        return Point(self, native.value)

    def wait(self, point: "Point") -> None:
        """Let later work of this stream wait on the device for a point of another stream. The host does not wait."""
        instance("point", point, Point)
        if point.stream is not None:
            with point.stream._owner.held():
                self._owner.call(lib.quire_stream_wait, point._native())

    def run(self, most: Optional[int] = None) -> int:
        """Run work of a manual stream of the host backend in this thread. Return the number of pieces.

        At most `most` pieces; None: all, until a piece waits for a point of another stream.
        """
        done = ctypes.c_uint64()
        limit = (1 << 64) - 1 if most is None else number("most", most)
        self._owner.call(lib.quire_host_stream_run, limit, ctypes.byref(done))
        return done.value

    def synchronize(self) -> None:
        """Sleep until all work submitted so far is done."""
        self.mark().wait()

    def destroy(self) -> None:
        """Destroy the stream; a second call does nothing.

        A wrapped native stream stays with its owner. A manual stream runs its work first. Raises
        BusyError if work is not done after a second, or if live allocations have a recorded use of the stream.
        """
        self._owner.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __repr__(self) -> str:
        try:
            return f"<quire.Stream {self.name!r}>"
        except StaleHandleError:
            return "<quire.Stream, destroyed>"


class Point:
    """A position in a stream, which has passed once all work before it is done."""

    __slots__ = ("stream", "value")

    def __init__(self, stream: Optional[Stream], value: int) -> None:
        #: None: the point has passed, because its work was complete on return
        self.stream = optional("stream", stream, Stream)
        self.value = number("value", value)  #: higher is later

    def _native(self) -> tables.quire_point:
        """The point in C. The caller holds its stream."""
        return tables.quire_point(self.stream._owner.pointer if self.stream else None, self.value)

    @property
    def has_passed(self) -> bool:
        """Whether all work before the point is done."""
        if self.stream is None:
            return True
        passed = ctypes.c_bool()
        with self.stream._owner.held():
            check(lib.quire_point_has_passed(self._native(), ctypes.byref(passed)))
        return passed.value

    def wait(self, timeout: Optional[float] = None) -> None:
        """Sleep until the point has passed, at most `timeout` seconds. Raises BusyError when the time is over.

        None: without a limit. Signals are handled during the wait. On a manual or capture stream the error comes
        at once, because no wait makes the point pass.
        """
        if timeout is not None and not isinstance(cast(object, timeout), numbers.Real):
            raise must_be("timeout", "a number of seconds, or None", timeout)
        if self.stream is None:
            return
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is {timeout}; it must be at least 0")
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            rest = max(end - time.monotonic(), 0.0)
            part = min(rest, _SLICE)
            start = time.monotonic()
            try:
                with self.stream._owner.held():
                    check(lib.quire_point_await(self._native(), int(part * 1e9)))
                return
            except BusyError:
                if rest <= part or time.monotonic() - start < part / 2:
                    raise

    def __repr__(self) -> str:
        return f"<quire.Point {self.value} of {self.stream!r}>"


def point_of(stream: Stream, native: Any) -> Point:
    """Return the point that a call on a stream has written."""
    return Point(stream if native.stream else None, native.value)
