# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire: suballocation of device memory, from Python.

>>> import quire
>>> device = quire.open_host()
>>> memory = device.create_memory("example", host_read=True, host_write=True)
>>> with memory.buffer(1 << 20, name="weights") as b:
...     b.write(b"hello")
...     b.read(0, 5)
b'hello'
>>> memory.statistics.peak_live_bytes
1048576

A *device* is one backend opened on one physical device. A *memory* manages *pages* of one memory kind. An
*allocation* is a range of a page; a *buffer* is an allocation with a native buffer bound to it. The names are those
of the C interface; ``docs/adapters/python.md`` is a tutorial.

Modules that are imported on their own: :mod:`quire.cupy`, :mod:`quire.numba`, :mod:`quire.cuda_core`.
"""

from ._native import VERSION as __version__
from .allocation import Allocation, Buffer
from .array import Array
from .compaction import Compaction
from .cuda import CudaInfo, cuda_info, find_kind, open_cuda, wrap_context, wrap_stream
from .device import Device, HostProfile, open_host
from .dtypes import DType
from .enums import (CudaPageKind, CudaWithout, Dedicated, ElasticRules, Fit, Growth, HeapFlags, HostBacking,
                    HostHugePages, LogLevel, MemoryFlags, Result, SleepMode, Usage)
from .errors import (BackendError, BadFileError, BusyError, CorruptedError, DeviceLostError, ForeignHandleError,
                     InvalidArgumentError, NoSpaceError, NotHostVisibleError, NotMappedError, NotPermittedError,
                     OutOfDeviceMemoryError, OutOfHostMemoryError, OutOfMemoryError, OutOfRangeError, OverBudgetError,
                     OverlapError, QuireError, StaleHandleError, TooManyAllocationsError, TooManyPagesError,
                     UnsupportedError, WrongStateError)
from .insight import (AllocationInfo, Budget, CompactionStatistics, DeviceInfo, DeviceStatistics, Fragmentation, Heap,
                      Kind, Limits, NameUsage, OutOfMemory, PageInfo, Range, Statistics)
from .memory import Memory, Scope
from .options import FitOptions, PagePolicy
from .plans import Plan, PlanInfo, plan, plan_check
from .stream import Point, Stream
from .trace import Recorder, ReplayReport, Trace, TraceInfo, read_trace, record
from .vulkan import open_vulkan

__all__ = [
    "Allocation", "AllocationInfo", "Array", "BackendError", "BadFileError", "Budget", "Buffer", "BusyError",
    "Compaction", "CompactionStatistics", "CorruptedError", "CudaInfo", "CudaPageKind", "CudaWithout", "DType",
    "Dedicated", "Device", "DeviceInfo", "DeviceLostError", "DeviceStatistics", "ElasticRules", "Fit", "FitOptions",
    "ForeignHandleError", "Fragmentation", "Growth", "Heap", "HeapFlags", "HostBacking", "HostHugePages",
    "HostProfile", "InvalidArgumentError", "Kind", "Limits", "LogLevel", "Memory", "MemoryFlags", "NameUsage",
    "NoSpaceError", "NotHostVisibleError", "NotMappedError", "NotPermittedError", "OutOfDeviceMemoryError",
    "OutOfHostMemoryError", "OutOfMemory", "OutOfMemoryError", "OutOfRangeError", "OverBudgetError", "OverlapError",
    "PageInfo", "PagePolicy", "Plan", "PlanInfo", "Point", "QuireError", "Range", "Recorder", "ReplayReport",
    "Result", "Scope", "SleepMode", "StaleHandleError", "Statistics", "Stream", "TooManyAllocationsError",
    "TooManyPagesError", "Trace", "TraceInfo", "UnsupportedError", "Usage", "WrongStateError", "cuda_info",
    "find_kind", "open_cuda", "open_host", "open_vulkan", "plan", "plan_check", "read_trace", "record",
    "wrap_context", "wrap_stream",
]
