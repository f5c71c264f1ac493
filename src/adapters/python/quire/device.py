# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices: one backend opened on one physical device, or a host device that emulates one."""

import ctypes
import dataclasses
import json
import logging
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from . import _owner
from . import _tables as tables
from ._arguments import instance, limit_of, number, one_of, optional, text
from ._native import lib
from ._records import read, write, written
from .enums import HostBacking, HostHugePages, LogLevel, MemoryFlags
from .errors import InvalidArgumentError, check, guarded
from .insight import Budget, DeviceInfo, DeviceStatistics, Heap, Kind, OutOfMemory, device_info
from .memory import Memory, MemoryOwner
from .options import FitOptions, PagePolicy
from .stream import Stream

Log = Union[Callable[[LogLevel, str], None], logging.Logger, None]

_LOGGING = {LogLevel.ERROR: logging.ERROR, LogLevel.WARNING: logging.WARNING, LogLevel.INFO: logging.INFO,
            LogLevel.DEBUG: logging.DEBUG}


def device_options(options: tables.quire_device_options, log: Log, level: LogLevel) -> List[object]:
    """Write the options that every backend takes. Return what must live as long as the device."""
    level = one_of("log_level", level, LogLevel)
    if log is None:
        return []
    sink = log

    def write_line(_: object, line_level: int, line: bytes) -> None:
        sentence = line.decode("utf-8", "replace")
        if isinstance(sink, logging.Logger):
            sink.log(_LOGGING[LogLevel(line_level)], "%s", sentence)
        else:
            sink(LogLevel(line_level), sentence)

    options.log = tables.quire_log(tables.quire_log_write(guarded(write_line)), None, level)
    return [options.log.write]


@dataclasses.dataclass(frozen=True)
class HostProfile:
    """A device for the host backend to emulate: its heaps and memory kinds."""

    name: str
    heaps: Tuple[Heap, ...]
    kinds: Tuple[Kind, ...]

    def _struct(self) -> tables.quire_host_profile:
        profile = tables.quire_host_profile(text("name", self.name), len(self.heaps), len(self.kinds))
        if len(self.heaps) > tables.MAX_HEAPS or len(self.kinds) > tables.MAX_KINDS:
            raise InvalidArgumentError("a profile has at most 16 heaps and 32 kinds")
        for index, heap in enumerate(self.heaps):
            instance("heap", heap, Heap)
            profile.heaps[index] = tables.quire_heap(number("size", heap.size), number("flags", heap.flags, 32))
        for index, kind in enumerate(self.kinds):
            instance("kind", kind, Kind)
            profile.kinds[index] = tables.quire_kind(number("flags", kind.flags, 32), number("heap", kind.heap, 32))
        return profile


def open_host(profile: Optional[HostProfile] = None, *, backing: HostBacking = HostBacking.ANONYMOUS,
              huge_pages: HostHugePages = HostHugePages.NONE, row_alignment: int = 0, budgets: Sequence[int] = (),
              log: Log = None, log_level: LogLevel = LogLevel.WARNING) -> "Device":
    """Open a host device, whose pages are memory of this process.

    `profile` emulates the heaps and kinds of another device. `budgets` are the bytes that the device reports as
    the budget of each heap. `log` gets the lines of the log: a function of level and line, or a logger.

    >>> import quire
    >>> with quire.open_host() as device:
    ...     device.backend, len(device.info.kinds)
    ('host', 4)
    """
    optional("profile", profile, HostProfile)
    options = tables.quire_host_options(None, one_of("backing", backing, HostBacking),
                                        one_of("huge_pages", huge_pages, HostHugePages),
                                        number("row_alignment", row_alignment))
    if profile is not None:
        options.profile = ctypes.pointer(profile._struct())
    if len(budgets) > tables.MAX_HEAPS:
        raise InvalidArgumentError("a device has at most 16 heaps")
    for index, budget in enumerate(budgets):
        options.budgets[index] = number("budget", budget)
    keep = device_options(options.device, log, log_level)
    return Device(lib.quire_host_open, options, keep)


class Device(_owner.Unique):
    """A device, made by :func:`open_host`, :func:`open_cuda` or :func:`open_vulkan`.

    At the end of a ``with`` block its memories and streams are destroyed, and then the device. A device that is
    garbage is destroyed when nothing uses it any more. Any thread may use a device.
    """

    __slots__ = ("_owner", "_info", "__weakref__")

    def __init__(self, function: Callable[..., int], options: ctypes.Structure, keep: Sequence[object] = ()) -> None:
        _owner.settle_roots()
        self._owner = _owner.Owner(self, "device", lib.quire_device_destroy)
        self._owner.keep.extend(keep)
        check(function(ctypes.byref(options), ctypes.byref(self._owner.native)))
        info = tables.quire_device_info()
        self._owner.call(lib.quire_device_get_info, ctypes.byref(info))
        self._info = device_info(info)
        self._owner.what = f'device "{self._info.name}"'

    # ---- what it is -------------------------------------------------------------------------------------

    @property
    def info(self) -> DeviceInfo:
        """The description of the device: heaps, kinds, limits."""
        return self._info

    @property
    def name(self) -> str:
        """The name of the device."""
        return self._info.name

    @property
    def backend(self) -> str:
        """The name of the backend: "host", "vulkan", "cuda"."""
        return self._info.backend

    @property
    def statistics(self) -> DeviceStatistics:
        """Sums over the memories of the device."""
        stats = tables.quire_device_stats()
        self._owner.call(lib.quire_device_get_stats, ctypes.byref(stats))
        return read(DeviceStatistics, stats)

    def report(self) -> str:
        """Return a text for people: the heaps, then the report of each memory."""
        return written(self._owner, lib.quire_device_write_report)

    def report_values(self) -> Any:
        """Return the heaps and the reports of all memories as the value of a JSON document, which ``docs/formats.md`` describes."""
        return json.loads(written(self._owner, lib.quire_device_write_report_json))

    def snapshot(self) -> Any:
        """Return the device, its statistics, its heaps and all its memories as the value of a JSON document.

        ``docs/formats.md`` describes it.
        """
        return json.loads(written(self._owner, lib.quire_device_write_json))

    def svg(self) -> str:
        """Return a picture of the pages of all memories as an SVG document."""
        return written(self._owner, lib.quire_device_write_svg)

    def trim(self, target: int = 0) -> int:
        """Release empty pages of all memories until at most `target` bytes of them are left in all. Return the
        released bytes."""
        released = ctypes.c_uint64()
        self._owner.call(lib.quire_device_trim, number("target", target), ctypes.byref(released))
        return released.value

    def __repr__(self) -> str:
        state = "" if self._owner.pointer is not None else ", destroyed"
        return f"<quire.Device {self.name!r}, {self.backend}{state}>"

    # ---- budgets ----------------------------------------------------------------------------------------

    def budget(self, heap: int = 0) -> Budget:
        """Return what is left of a heap."""
        info = tables.quire_budget_info()
        self._owner.call(lib.quire_device_get_budget, number("heap", heap, 32), ctypes.byref(info))
        return read(Budget, info)

    def set_heap_limit(self, heap: int, size: int) -> None:
        """Limit the bytes of the pages of one heap; 0: no limit."""
        self._owner.call(lib.quire_device_set_heap_limit, number("heap", heap, 32), number("size", size))

    def set_page_limit(self, pages: int) -> None:
        """Limit the number of live pages of the device; 0: only the limit of the backend."""
        self._owner.call(lib.quire_device_set_page_limit, number("pages", pages))

    def set_budget(self, heap: int, size: int) -> None:
        """Change the budget that a host device reports for a heap; 0: only the size of the heap."""
        self._owner.call(lib.quire_host_set_budget, number("heap", heap, 32), number("size", size))

    # ---- memories and streams ---------------------------------------------------------------------------

    def choose_kind(self, *, required: MemoryFlags = MemoryFlags(0), preferred: MemoryFlags = MemoryFlags(0),
                    avoided: MemoryFlags = MemoryFlags(0), exact: bool = False, kind_mask: int = 0) -> int:
        """Return the index of the memory kind that fits best. Raises UnsupportedError if none fits."""
        request = tables.quire_kind_request(
            required=number("required", required, 32), preferred=number("preferred", preferred, 32),
            avoided=number("avoided", avoided, 32), exact=exact, mask=number("kind_mask", kind_mask, 32))
        kind = ctypes.c_uint32()
        self._owner.call(lib.quire_device_choose_kind, ctypes.byref(request), ctypes.byref(kind))
        return kind.value

    def create_memory(self, name: Optional[str] = None, *, host_read: bool = False, host_write: bool = False,
                      upload: bool = False, exportable: bool = False, flags: MemoryFlags = MemoryFlags(0),
                      exact: bool = False, kind_mask: int = 0, fit: FitOptions = FitOptions(),
                      pages: PagePolicy = PagePolicy(), shards: int = 0, limit: Union[int, str] = 0,
                      elastic: bool = False, address_space: int = 0, movable: bool = False,
                      map_on_demand: bool = False, within_budget: bool = False, priority: float = 0.0,
                      on_out_of_memory: Optional[Callable[[OutOfMemory], bool]] = None) -> Memory:
        """Create a memory without pages.

        The intent (`host_read`, `host_write`, `upload`, `exportable`) or `flags` select the memory kind; neither:
        device-local memory. `kind_mask` restricts both: bit i allows kind i. `on_out_of_memory` may free something
        and return True before a request is refused. `movable` makes all raw allocations and buffers movable:
        :meth:`Memory.compaction`. The other arguments are the fields of ``quire_memory_options`` in
        ``quire/memory.h``. The `limit` is a number of bytes, or a share of the heap such as "50%".

        Raises InvalidArgumentError, UnsupportedError, OutOfHostMemoryError.
        """
        instance("fit", fit, FitOptions, ", such as quire.FitOptions(quire.Fit.BUDDY)")
        instance("pages", pages, PagePolicy, ", such as quire.PagePolicy(page_size=32 << 20)")
        options = tables.quire_memory_options(
            name=text("name", name), elastic=elastic, map_on_demand=map_on_demand, movable=movable,
            within_budget=within_budget, shards=number("shards", shards, 32), limit=limit_of(limit), priority=priority,
            address_space=number("address_space", address_space))
        options.kind = tables.quire_kind_request(
            intent=bool(host_read) << 1 | bool(host_write) << 2 | bool(upload) << 3 | bool(exportable) << 4,
            required=number("flags", flags, 32), mask=number("kind_mask", kind_mask, 32), exact=exact)
        write(options.fit, fit)
        _write_policy(options.pages, pages)
        keep: Tuple[object, ...] = ()
        if on_out_of_memory is not None:
            options.on_out_of_memory.callback = _out_of_memory(on_out_of_memory)
            keep = (options.on_out_of_memory.callback,)
        return Memory(self, options, keep)

    def create_stream(self, name: Optional[str] = None, *, capture: bool = False, manual: bool = False) -> Stream:
        """Create a stream of the device. `capture`: for a captured graph; no device runs it.

        `manual`: a stream of the host backend whose work :meth:`Stream.run` does.
        """
        if manual and capture:
            raise InvalidArgumentError("a capture stream is not manual")
        if manual:
            host = tables.quire_host_stream_options(text("name", name), True)
            return Stream(self, lib.quire_host_stream_create, ctypes.byref(host), is_manual=True)
        options = tables.quire_stream_options(text("name", name), capture)
        return Stream(self, lib.quire_stream_create, ctypes.byref(options))

    # ---- the end ----------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Destroy the device; a second call does nothing. Raises BusyError while memories or streams live on it."""
        self._owner.close()

    def destroy_all(self) -> None:
        """Destroy the memories and streams of the device, with everything in them, and the device.

        Raises BusyError as :meth:`Memory.destroy_all`.
        """
        for child in sorted(list(self._owner.children), key=lambda child: not isinstance(child, MemoryOwner)):
            child.close(force=True)
        self._owner.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        _owner.end_block(self._owner, self.destroy_all, kind)


def _write_policy(struct: tables.quire_page_policy, policy: PagePolicy) -> None:
    try:
        classes = [(request, size) for request, size in policy.classes]
    except (TypeError, ValueError):
        raise TypeError("classes must be pairs of the largest request and the page size, "
                        f"not {policy.classes!r}") from None
    if len(classes) > tables.MAX_PAGE_CLASSES:
        raise InvalidArgumentError("a policy has at most 4 classes")
    for index, (request, size) in enumerate(classes):
        struct.classes[index] = tables.quire_page_class(number("max_request", request), number("page_size", size))
    write(struct, policy, skip="classes")


def _out_of_memory(function: Callable[[OutOfMemory], bool]) -> Any:
    def call(_: object, memory: object, report: Any) -> bool:
        return bool(function(read(OutOfMemory, report.contents)))
    return tables.quire_on_out_of_memory_callback(guarded(call, False))
