# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The enumerations of the public headers. The test abi.py compares names and values with C."""

import enum


class Result(enum.IntEnum):
    """What a function of the library returns; see :mod:`quire.errors`."""

    SUCCESS = 0
    INVALID_ARGUMENT = -1
    OUT_OF_DEVICE_MEMORY = -2
    OUT_OF_HOST_MEMORY = -3
    OVER_BUDGET = -4
    TOO_MANY_PAGES = -5
    TOO_MANY_ALLOCATIONS = -6
    UNSUPPORTED = -7
    NOT_PERMITTED = -8
    NOT_HOST_VISIBLE = -9
    NOT_MAPPED = -10
    STALE_HANDLE = -11
    FOREIGN_HANDLE = -12
    OUT_OF_RANGE = -13
    OVERLAP = -14
    BUSY = -15
    WRONG_STATE = -16
    NO_SPACE = -17
    DEVICE_LOST = -18
    BACKEND_FAILURE = -19
    BAD_FILE = -20
    CORRUPTED = -21


class LogLevel(enum.IntEnum):
    """How important a line of the log is; lower is more important. As a level: DEFAULT is WARNING, NONE drops all."""

    DEFAULT = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    DEBUG = 4
    NONE = 5


class MemoryFlags(enum.IntFlag):
    """Properties of a memory kind."""

    DEVICE_LOCAL = 0x01
    HOST_VISIBLE = 0x02
    HOST_COHERENT = 0x04
    HOST_CACHED = 0x08
    LAZILY_ALLOCATED = 0x10
    PROTECTED = 0x20
    DEVICE_COHERENT = 0x40
    DEVICE_UNCACHED = 0x80
    OBJECTS_ONLY = 0x100


class HeapFlags(enum.IntFlag):
    """Properties of a heap."""

    DEVICE_LOCAL = 0x01
    MULTI_INSTANCE = 0x02


class ElasticRules(enum.IntFlag):
    """What a driver demands of elastic pages."""

    KEEPS_MEMORY = 0x01
    NEEDS_IDLE = 0x02


class Fit(enum.IntEnum):
    """The algorithm that places allocations in pages."""

    SEGREGATED = 0
    FIRST = 1
    BUDDY = 2
    LINEAR = 3


class SleepMode(enum.IntEnum):
    """What becomes of the contents of allocations that sleep."""

    KEEP = 0
    DISCARD = 1


class Dedicated(enum.IntEnum):
    """Which allocations get a page of their own."""

    BY_SIZE = 0
    ALWAYS = 1
    NEVER = 2


class Growth(enum.IntEnum):
    """What :attr:`PagePolicy.growth_percent` refers to."""

    LAST = 0
    LARGEST = 1
    RESERVED = 2


class Usage(enum.IntFlag):
    """Uses of a buffer."""

    TRANSFER_SOURCE = 0x01
    TRANSFER_TARGET = 0x02
    STORAGE = 0x04
    UNIFORM = 0x08
    VERTEX = 0x10
    INDEX = 0x20


class HostBacking(enum.IntEnum):
    """The memory that backs pages of a host device."""

    ANONYMOUS = 0
    MEMFD = 1


class HostHugePages(enum.IntEnum):
    """The huge pages that a host device uses."""

    NONE = 0
    ADVISE = 1
    RESERVED = 2


class CudaPageKind(enum.IntEnum):
    """Sorts of pages of a CUDA device."""

    DEVICE = 0
    PLAIN = 1
    COMPRESSED = 2
    REGISTERED = 3
    PINNED = 4
    COMBINED = 5
    HOST_NUMA = 6
    HOST = 7
    MANAGED = 8
    TILES = 9
    POOL = 10


class CudaWithout(enum.IntFlag):
    """What pages of CudaPageKind.DEVICE do without."""

    VIRTUAL_MEMORY = 1
    RDMA = 2
    EXPORT = 4
