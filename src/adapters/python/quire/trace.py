# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces: recording the allocations of a memory or device, and replaying them on another memory.

>>> import quire
>>> device = quire.open_host()
>>> memory = device.create_memory()
>>> with quire.record(memory) as recorder:
...     weights = memory.allocate(4096, 256, "weights")
...     weights.free()
>>> trace = recorder.trace()
>>> trace.info.alloc_count, trace.info.peak_bytes
(1, 4096)
>>> trace.replay(device.create_memory()).peak_requested_bytes
4096

``docs/formats.md`` describes the text, which the program ``quire`` replays, draws and tunes as well.
"""

import ctypes
import dataclasses
import os
import tempfile
from typing import Any, Callable, Optional, Union

from . import _owner
from . import _tables as tables
from ._arguments import instance, must_be, number, text
from ._native import lib
from ._records import converted, read, written
from .device import Device
from .errors import StaleHandleError, check
from .insight import Fragmentation
from .memory import Memory


_NOTHING = "op,id,size,alignment,time_ns,stream,label\n"


@dataclasses.dataclass(frozen=True)
class TraceInfo:
    """The totals of a trace. Sizes are bytes."""

    event_count: int
    alloc_count: int
    free_count: int
    use_count: int
    frame_count: int
    peak_bytes: int  #: maximum of the requested bytes live at one time
    peak_event: int
    peak_ranges: int
    left_count: int
    left_bytes: int
    largest: int
    end_ns: int
    cut_bytes: int  #: of a recording that ends in an incomplete block: the bytes that were left out


def _fragmentation(struct: tables.quire_fragmentation) -> Fragmentation:
    return read(Fragmentation, struct)


@dataclasses.dataclass(frozen=True)
class ReplayReport:
    """What a replay did; see ``quire_replay_report`` in ``quire/trace.h``. Sizes are bytes."""

    operations: int
    allocations: int
    frees: int
    uses: int
    frames: int
    failures: int
    peak_live_bytes: int
    peak_requested_bytes: int
    peak_reserved_bytes: int
    pages_created: int
    pages_destroyed: int
    backend_calls: int
    peak_pages: int
    metadata_bytes_peak: int
    left_at_end: int
    left_bytes: int
    wall_ns: int
    fragmentation: Fragmentation = converted(_fragmentation)


class Trace(_owner.Unique):
    """A parsed trace, from text or from the bytes of a recording.

    Raises BadFileError with the position of the mistake for anything else.
    """

    __slots__ = ("_owner", "__weakref__")

    def __init__(self, content: Union[str, bytes], name: str = "trace") -> None:
        if not isinstance(content, (str, bytes)):
            raise must_be("content", "a str or bytes", content)
        data = content.encode("utf-8") if isinstance(content, str) else content
        self._owner = _owner.Owner(self, "trace", lib.quire_trace_destroy)
        check(lib.quire_trace_parse(text("name", name), data, len(data), None, ctypes.byref(self._owner.native)))

    @property
    def info(self) -> TraceInfo:
        """The totals of the trace."""
        info = tables.quire_trace_info()
        self._owner.call(lib.quire_trace_get_info, ctypes.byref(info))
        return read(TraceInfo, info)

    def text(self) -> str:
        """The trace as text, with times since its first event."""
        return written(self._owner, lib.quire_trace_write_csv)

    def replay(self, memory: Memory, *, event_count: int = 0, keep: bool = False, name: bool = False) -> ReplayReport:
        """Replay the trace on a memory, which should be new, because the report has statistics of the memory.

        `event_count`: number of events; 0: all. `keep` leaves what lives at the end in the memory, to look at it;
        its destruction frees that. `name` names allocations by their labels.
        """
        instance("memory", memory, Memory)
        options = tables.quire_replay_options(number("event_count", event_count), keep, name)
        report = tables.quire_replay_report()
        with memory._owner.held():
            self._owner.call(lib.quire_trace_replay, memory._owner.pointer, ctypes.byref(options), ctypes.byref(report))
        return read(ReplayReport, report)


def read_trace(path: "Union[str, os.PathLike[str]]") -> Trace:
    """Read a trace or a recording from a file."""
    with open(path, "rb") as file:
        return Trace(file.read(), os.fspath(path))


def record(what: Union[Memory, Device], path: "Optional[Union[str, os.PathLike[str]]]" = None, *,
           ring_bytes: int = 0) -> "Recorder":
    """Return a ``with`` block that records what is allocated and freed in a memory, or in all memories of a device.

    The recording is written to the path, or without one to a temporary file, which is deleted at the end of the block.
    With `ring_bytes` only the last events are kept, in so much memory, until the recorder is asked for them.
    What other code allocates there, such as a plugin in C, is recorded as well.
    """
    return Recorder(what, path, ring_bytes=ring_bytes)


class Recorder(_owner.Unique):
    """The recording of a memory or device during a ``with`` block; see :func:`record`."""

    __slots__ = ("_what", "_path", "_ring_bytes", "_bytes", "_native", "_file", "__weakref__")

    def __init__(self, what: Union[Memory, Device], path: "Optional[Union[str, os.PathLike[str]]]" = None, *,
                 ring_bytes: int = 0) -> None:
        if not isinstance(what, (Memory, Device)):
            raise must_be("what", "a quire.Memory or a quire.Device", what)
        self._what, self._path, self._bytes = what, path, b""
        self._ring_bytes = number("ring_bytes", ring_bytes)
        self._native = ctypes.c_void_p()  # the recorder, which ends with the memory or device at the latest
        self._file = ""

    def __enter__(self) -> "Recorder":
        if self._path is not None:
            file = os.fspath(self._path)
        else:
            opened, file = tempfile.mkstemp(prefix="quire-", suffix=".trace")
            os.close(opened)
        try:
            self._start(file)
        except BaseException:
            if self._path is None:
                os.unlink(file)
            raise
        self._file = file
        return self

    def _start(self, file: str) -> None:
        options = tables.quire_record_options(path=os.fsencode(file), ring_bytes=self._ring_bytes)
        with self._what._owner.held():
            field = "device" if isinstance(self._what, Device) else "memory"
            setattr(options, field, self._what._owner.pointer)
            check(lib.quire_record_start(ctypes.byref(options), ctypes.byref(self._native)))

    def __exit__(self, *_: object) -> None:
        try:
            self._call(lambda: lib.quire_record_stop(ctypes.byref(self._native)))
        finally:
            self._bytes, file, self._file = self._read(), self._file, ""
            if self._path is None:
                os.unlink(file)

    def _call(self, function: Callable[[], Any]) -> None:
        """Call a function with the recorder, unless its memory or device was destroyed, and it with it."""
        try:
            with self._what._owner.held():
                if self._native.value is not None:
                    check(function())
        except StaleHandleError:
            self._native.value = None

    def _read(self) -> bytes:
        with open(self._file, "rb") as file:
            return file.read()

    def frame(self) -> None:
        """Record the boundary between two frames."""
        self._call(lambda: lib.quire_record_frame(self._native))

    def content(self) -> bytes:
        """Return the recording so far, as its file has it; empty before the ``with`` block."""
        if not self._file:
            return self._bytes
        self._call(lambda: lib.quire_record_flush(self._native))
        return self._read()

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Write the recording so far to a file."""
        with open(path, "wb") as file:
            file.write(self.content())

    def trace(self) -> Trace:
        """Return the trace so far. Frees of what was allocated before the recording are left out."""
        return Trace(self.content() or _NOTHING)
