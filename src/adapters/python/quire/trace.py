"""Traces: recording the allocations of a memory, and replaying them on another one.

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
import itertools
import os
import time
from typing import Dict, List, Optional, Tuple, Union

from . import _owner
from . import _tables as tables
from ._arguments import number, text
from ._native import lib
from ._records import converted, read
from .errors import check
from .insight import Fragmentation
from .memory import Memory
from .stream import Stream

_HEADER = "op,id,size,alignment,time_ns,stream,label"
_FORBIDDEN = str.maketrans({",": "_", '"': "_", "\n": "_", "\r": "_"})


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
    """A parsed trace. Raises BadFileError with line and column for a text that is no trace."""

    def __init__(self, content: str, name: str = "trace") -> None:
        data = content.encode("utf-8")
        self._owner = _owner.Owner(self, "trace", lib.quire_trace_destroy)
        check(lib.quire_trace_parse(text("name", name), data, len(data), None, ctypes.byref(self._owner.native)))

    @property
    def info(self) -> TraceInfo:
        """The totals of the trace."""
        info = tables.quire_trace_info()
        self._owner.call(lib.quire_trace_get_info, ctypes.byref(info))
        return read(TraceInfo, info)

    def replay(self, memory: Memory, *, event_count: int = 0, keep: bool = False, name: bool = False) -> ReplayReport:
        """Replay the trace on a memory, which should be new, because the report has statistics of the memory.

        `event_count`: number of events; 0: all. `keep` leaves what lives at the end in the memory, to look at it;
        its destruction frees that. `name` names allocations by their labels.
        """
        options = tables.quire_replay_options(number("event_count", event_count), keep, name)
        report = tables.quire_replay_report()
        with memory._owner.held():
            self._owner.call(lib.quire_trace_replay, memory._owner.pointer, ctypes.byref(options), ctypes.byref(report))
        return read(ReplayReport, report)


def read_trace(path: "Union[str, os.PathLike[str]]") -> Trace:
    """Read a trace from a file."""
    with open(path, encoding="utf-8", newline="") as file:
        return Trace(file.read(), os.fspath(path))


def record(memory: Memory, path: "Optional[Union[str, os.PathLike[str]]]" = None) -> "Recorder":
    """Return a ``with`` block that records what is allocated and freed through Python.

    With a path the trace is written there at the end of the block. What other code allocates from the memory,
    such as a plugin in C, is not recorded.
    """
    return Recorder(memory, path)


class Recorder(_owner.Unique):
    """The events of a memory during a ``with`` block; see :func:`record`."""

    def __init__(self, memory: Memory, path: "Optional[Union[str, os.PathLike[str]]]" = None) -> None:
        self._memory, self._path = memory, path
        self._events: List[Tuple[int, str, int, int, int, int, str]] = []
        self._streams: Dict[_owner.Owner, int] = {}
        self._numbers = itertools.count(1)

    def __enter__(self) -> "Recorder":
        self._memory._owner.recorders.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._memory._owner.recorders.remove(self)
        if self._path is not None:
            self.save(self._path)

    def _stream(self, stream: Optional[_owner.Owner]) -> int:
        """The number of a stream in the trace, from 1; 0: none."""
        if stream is None:
            return 0
        return self._streams.get(stream) or self._streams.setdefault(stream, next(self._numbers))

    def _allocated(self, handle: int, size: int, alignment: int, name: Optional[str], stream: Optional[Stream]) -> None:
        number_ = self._stream(stream._owner if stream else None)
        self._events.append((time.monotonic_ns(), "alloc", handle, size, max(alignment, 1), number_,
                             (name or "").translate(_FORBIDDEN)))

    def _freed(self, handle: int, time_ns: int, stream: Optional[_owner.Owner]) -> None:
        self._events.append((time_ns or time.monotonic_ns(), "free", handle, 0, 0, self._stream(stream), ""))

    def text(self) -> str:
        """Return the trace so far. Frees of what was allocated before the recording are left out."""
        lines: List[str] = [_HEADER]
        numbers: Dict[int, int] = {}
        for time_ns, op, handle, size, alignment, stream, label in sorted(list(self._events), key=lambda e: e[0]):
            if op == "alloc":
                numbers[handle] = len(numbers) + 1
                lines.append(f"alloc,{numbers[handle]},{size},{alignment},{time_ns},{stream},{label}")
            elif handle in numbers:
                lines.append(f"free,{numbers[handle]},,,{time_ns},{stream},")
        return "\n".join(lines) + "\n"

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Write the trace so far to a file."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(self.text())

    def trace(self) -> Trace:
        """Return the trace so far."""
        return Trace(self.text())
