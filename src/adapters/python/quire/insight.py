# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the library knows about a memory or a device: statistics, ranges, pages, budgets."""

import dataclasses
from typing import Optional, Tuple

from . import _tables as tables
from ._records import converted, read
from .enums import ElasticRules, HeapFlags, MemoryFlags


@dataclasses.dataclass(frozen=True)
class Fragmentation:
    """Four measures of lost memory. `reserved` and `free` are shares from 0 to 1, the others bytes."""

    reserved: float  #: 1 - peak live / peak reserved
    free: float  #: 1 - largest free / all free
    internal: int  #: bytes that live allocations hold beyond the requested ones
    split: int  #: free bytes in pages that also hold allocations


def _fragmentation(struct: tables.quire_fragmentation) -> Fragmentation:
    return read(Fragmentation, struct)


@dataclasses.dataclass(frozen=True)
class Statistics:
    """The statistics of a memory; see ``quire_memory_stats`` in ``quire/insight.h``. Sizes are bytes."""

    live_bytes: int  #: held by allocations, including left padding
    requested_bytes: int  #: requested by those allocations
    reserved_bytes: int  #: the sum of the pages
    free_bytes: int  #: reserved_bytes - live_bytes
    empty_bytes: int  #: part of free_bytes: in pages without an allocation
    largest_free: int  #: the largest free range in shared pages
    allocation_count: int
    page_count: int
    peak_live_bytes: int  #: peaks since creation, or of the running scope, each on its own
    peak_requested_bytes: int
    peak_reserved_bytes: int
    peak_allocation_count: int
    peak_page_count: int
    allocations: int  #: counts since creation, or of the scope
    frees: int
    failures: int  #: allocations refused for lack of memory, pages or handles
    pages_created: int
    pages_destroyed: int
    backend_calls: int
    backend_nanoseconds: int
    metadata_bytes: int  #: host memory of the memory's own records
    metadata_peak: int
    full_passes: int
    full_pass_hits: int
    fragmentation: Fragmentation = converted(_fragmentation)
    deferred_bytes: int = converted(int)  #: part of live_bytes: freed, until a point passes
    deferred_count: int = converted(int)
    pages_over_budget: int = converted(int)
    asleep_bytes: int = converted(int)  #: of allocations that sleep; no part of live_bytes
    asleep_count: int = converted(int)


@dataclasses.dataclass(frozen=True)
class CompactionStatistics:
    """What a compaction has done since it began, or would do at most. Sizes are bytes."""

    moves: int  #: allocations that have moved
    bytes_moved: int  #: of their contents
    pages_freed: int
    bytes_freed: int  #: of these pages
    is_complete: bool  #: no further page can be freed now


@dataclasses.dataclass(frozen=True)
class DeviceStatistics:
    """The statistics of a device: sums over its memories. Sizes are bytes."""

    reserved_bytes: int
    peak_reserved_bytes: int
    live_bytes: int
    allocation_count: int
    page_count: int
    memory_count: int
    backend_calls: int
    backend_nanoseconds: int
    metadata_bytes: int
    requested_bytes: int
    free_bytes: int
    empty_bytes: int
    deferred_bytes: int
    allocations: int
    frees: int
    failures: int
    pages_created: int
    pages_destroyed: int
    pages_over_budget: int
    heap_reserved_bytes: Tuple[int, ...] = converted(tuple)  #: of pages, for each heap


@dataclasses.dataclass(frozen=True)
class Heap:
    """A heap of a device: its size in bytes and its flags."""

    size: int
    flags: HeapFlags = dataclasses.field(default=HeapFlags(0), metadata={"convert": HeapFlags})


@dataclasses.dataclass(frozen=True)
class Kind:
    """A memory kind of a device: its flags and the index of its heap."""

    flags: MemoryFlags = converted(MemoryFlags)
    heap: int = 0


def _optional_text(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.decode()


@dataclasses.dataclass(frozen=True)
class Limits:
    """Constraints of a backend on pages and placements, in bytes; 0 means no constraint."""

    page_granularity: int
    page_alignment: int
    max_page: int
    usual_page: int
    max_buffer: int
    max_pages: int  #: number of live pages of the device
    buffer_image_granularity: int
    non_coherent_atom: int
    buffer_alignment: int
    image_row_alignment: int
    elastic_kinds: int  #: bit i: pages of kind i can be elastic
    elastic_granularity: int  #: bytes that an elastic page gets or returns at least
    max_chunks: int  #: of an elastic page; 0: no limit
    elastic_rules: ElasticRules = converted(ElasticRules)
    max_pages_is_advice: bool = False  #: more pages may exist
    elastic_unmapped: bool = False  #: elastic pages cannot be mapped
    max_elastic_page: int = 0  #: bytes of addresses of an elastic page
    #: what the other kinds lack for elastic pages; None: unknown
    elastic_missing: Optional[str] = dataclasses.field(default=None, metadata={"convert": _optional_text})


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """The description of a device."""

    name: str
    backend: str  #: "host", "vulkan", "cuda", ...
    heaps: Tuple[Heap, ...]
    kinds: Tuple[Kind, ...]
    limits: Limits
    exportable: bool  #: pages can be exported to another API or process
    survives_fork: bool  #: the child of a fork can keep using the device


def device_info(struct: tables.quire_device_info) -> DeviceInfo:
    """Return the description that a structure of C has."""
    return DeviceInfo(struct.name.decode("utf-8", "replace"), struct.backend.decode(),
                      tuple(read(Heap, heap) for heap in struct.heaps[:struct.heap_count]),
                      tuple(read(Kind, kind) for kind in struct.kinds[:struct.kind_count]),
                      read(Limits, struct.limits), struct.exportable, struct.survives_fork)


@dataclasses.dataclass(frozen=True)
class Budget:
    """The budget of a heap, in bytes; see ``quire_budget_info``."""

    size: int  #: of the heap
    limit: int  #: set by :meth:`Device.set_heap_limit`; 0: none
    budget: int  #: what the backend advises to use of the heap
    reserved: int  #: by pages of this device
    usage: int  #: in use as the backend reports it
    available: int  #: for further pages


@dataclasses.dataclass(frozen=True)
class AllocationInfo:
    """Where an allocation lies; see ``quire_allocation_info``. Sizes are bytes."""

    page: int  #: number of the page
    dedicated: bool  #: the page holds only this allocation
    offset: int  #: from the start of the page to the first usable byte
    left_padding: int  #: bytes before `offset` that belong to the allocation
    size: int  #: bytes held from `offset` on
    requested: int  #: bytes that the request asked for
    address: int  #: native address of the first byte; 0: it has none
    user_data: int
    map_count: int  #: maps and views that have not ended
    native: int  #: the bound native object, such as a VkBuffer; 0: none
    backed: int  #: bytes of `size` that have memory: fewer in a lazy allocation, 0 asleep
    extent_offset: int  #: of the native memory that holds it, in the page: chunks of an elastic page, or the page
    extent_size: int
    asleep: bool  #: :meth:`Memory.sleep` took its memory


@dataclasses.dataclass(frozen=True)
class PageInfo:
    """The description of a page. Sizes are bytes."""

    page: int  #: its number
    dedicated: bool
    mappable: bool
    size: int
    address: int  #: native address of the first byte; 0: unknown
    live_bytes: int
    free_bytes: int
    largest_free: int
    allocation_count: int
    peak_live_bytes: int


@dataclasses.dataclass(frozen=True)
class NameUsage:
    """The sum over all allocations whose names start with one prefix. Sizes are bytes."""

    limit: int  #: set for exactly this prefix; 0: none
    held_bytes: int
    requested_bytes: int
    allocation_count: int


def _name(value: bytes) -> str:
    return (value or b"").decode("utf-8", "replace")


@dataclasses.dataclass(frozen=True)
class Range:
    """One range of a page, free or live. Sizes are bytes."""

    page: int
    dedicated: bool
    is_free: bool
    page_size: int
    page_bytes: int
    offset: int
    left_padding: int
    size: int
    requested: int
    user_data: int
    backed: int  #: bytes of `size` that have memory: fewer in a lazy allocation, 0 asleep
    asleep: bool
    name: str = converted(_name)


@dataclasses.dataclass(frozen=True)
class OutOfMemory:
    """A request that fits into no page, for the callback `on_out_of_memory` of a memory."""

    size: int  #: bytes to place
    alignment: int
    reason: int  #: a :class:`Result`
    times: int  #: number of this call for the same request, from 1
