"""The structures of the public headers that every backend shares. A name is that of C.

The test abi.py compares sizes and offsets with the headers.
"""

from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_size_t,
                    c_uint8, c_uint32, c_uint64, c_void_p)
from typing import Any, ClassVar, List, Tuple

MAX_HEAPS, MAX_KINDS, MAX_PAGE_CLASSES = 16, 32, 4

Fields = List[Tuple[str, Any]]


def _unused(count: int) -> Tuple[str, Any]:
    return ("unused", c_uint64 * count)


# ---- base.h, device.h -----------------------------------------------------------------------------------

LOG_WRITE = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
SINK = CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t)


class quire_log(Structure):
    _fields_: ClassVar[Fields] = [("write", LOG_WRITE), ("user", c_void_p), ("level", c_int)]


class quire_device_options(Structure):
    _fields_: ClassVar[Fields] = [("host_memory", c_void_p), ("log", quire_log), _unused(4)]


class quire_heap(Structure):
    _fields_: ClassVar[Fields] = [("size", c_uint64), ("flags", c_uint32), ("reserved", c_uint32)]


class quire_kind(Structure):
    _fields_: ClassVar[Fields] = [("flags", c_uint32), ("heap", c_uint32)]


class quire_limits(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in (
        "page_granularity", "page_alignment", "max_page", "usual_page", "max_buffer", "max_pages",
        "buffer_image_granularity", "non_coherent_atom", "buffer_alignment", "image_row_alignment",
        "elastic_kinds")] + [("max_pages_is_advice", c_bool), _unused(1)]


class quire_device_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char * 256), ("backend", c_char_p), ("heap_count", c_uint32), ("kind_count", c_uint32),
        ("heaps", quire_heap * MAX_HEAPS), ("kinds", quire_kind * MAX_KINDS), ("limits", quire_limits),
        ("exportable", c_bool), ("survives_fork", c_bool), _unused(4)]


class quire_intent(Structure):
    _fields_: ClassVar[Fields] = [(name, c_bool) for name in ("host_read", "host_write", "upload", "exportable")]


class quire_kind_request(Structure):
    _fields_: ClassVar[Fields] = [("required", c_uint32), ("preferred", c_uint32), ("avoided", c_uint32),
            ("exact", c_bool),
            ("kind_mask", c_uint32)]


class quire_budget_info(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in (
        "size", "limit", "budget", "used", "usage", "available")] + [_unused(4)]


# ---- space.h, page_policy.h, memory.h -------------------------------------------------------------------

class quire_fit_options(Structure):
    _fields_: ClassVar[Fields] = [("algorithm", c_int), ("least_fragmentation", c_bool), ("slabs", c_bool),
            ("granule", c_uint64),
            ("max_alignment", c_uint64), _unused(2)]


class quire_page_class(Structure):
    _fields_: ClassVar[Fields] = [("max_request", c_uint64), ("page_size", c_uint64)]


class quire_page_policy(Structure):
    _fields_: ClassVar[Fields] = [
        ("page_size", c_uint64), ("first_page_size", c_uint64), ("growth_percent", c_uint32), ("max_pages", c_uint32),
        ("max_page", c_uint64), ("growth", c_int), ("request_factor", c_uint32), ("page_granularity", c_uint64),
        ("classes", quire_page_class * MAX_PAGE_CLASSES), ("dedicated", c_int), ("dedicated_threshold", c_uint64),
        ("size_granularity", c_uint64), ("extra_padding", c_uint64), ("retained_empty_bytes", c_uint64),
        ("retention_nanoseconds", c_uint64), _unused(4)]


class quire_clock(Structure):
    _fields_: ClassVar[Fields] = [("now", c_void_p), ("user", c_void_p)]


class quire_out_of_memory(Structure):
    _fields_: ClassVar[Fields] = [("size", c_uint64), ("alignment", c_uint64), ("reason", c_int), ("times", c_uint32)]


OUT_OF_MEMORY = CFUNCTYPE(c_bool, c_void_p, c_void_p, POINTER(quire_out_of_memory))


class quire_on_out_of_memory(Structure):
    _fields_: ClassVar[Fields] = [("callback", OUT_OF_MEMORY), ("user", c_void_p)]


class quire_memory_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("flags", c_uint32), ("exact", c_bool), ("contiguous", c_bool), ("find_by_address", c_bool),
        ("map_on_demand", c_bool), ("within_budget", c_bool), ("kind_mask", c_uint32),
        ("intent", POINTER(quire_intent)), ("fit", quire_fit_options), ("shards", c_uint32),
        ("pages", quire_page_policy), ("clock", quire_clock),
        ("on_out_of_memory", quire_on_out_of_memory), ("limit", c_uint64), ("limit_percent", c_uint32),
        ("priority", c_float), ("address_space", c_uint64), _unused(3)]


class quire_memory_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("device", c_void_p), ("kind", c_uint32), ("flags", c_uint32), ("mappable", c_bool),
        ("checked", c_bool), ("within_budget", c_bool), ("exportable", c_bool), ("fit", c_int), ("page_size", c_uint64),
        ("granule", c_uint64), ("page_count", c_uint32), ("shards", c_uint32), ("limit", c_uint64),
        ("address_space", c_uint64), _unused(3)]


class quire_page_info(Structure):
    _fields_: ClassVar[Fields] = [("page", c_uint32), ("dedicated", c_bool), ("mappable", c_bool)] + [
        (name, c_uint64) for name in ("size", "address", "live_bytes", "free_bytes", "largest_free",
                                      "allocation_count", "peak_live_bytes")] + [_unused(4)]


class quire_name_usage(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in (
        "limit", "held_bytes", "requested_bytes", "allocation_count")] + [_unused(4)]


# ---- allocation.h, resource.h, stream.h -----------------------------------------------------------------

class quire_allocation(Structure):
    _fields_: ClassVar[Fields] = [("id", c_uint64)]


class quire_allocation_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("page", c_uint32), ("dedicated", c_bool), ("committed", c_bool), ("offset", c_uint64),
        ("left_padding", c_uint64), ("size", c_uint64), ("requested", c_uint64), ("address", c_uint64),
        ("user_data", c_uint64), ("map_count", c_uint32), ("object", c_int), ("native", c_uint64), ("host", c_void_p),
        _unused(3)]


class quire_allocation_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("alignment", c_uint64), ("name", c_char_p), ("host_write", c_bool), ("host_read", c_bool),
        ("zero", c_bool), ("dedicated", c_bool), ("mapped", c_bool), ("existing_pages", c_bool),
        ("within_budget", c_bool), ("upper", c_bool), ("user_data", c_uint64), ("stream", c_void_p),
        ("info", POINTER(quire_allocation_info)), _unused(2)]


class quire_buffer(Structure):
    _fields_: ClassVar[Fields] = [("allocation", quire_allocation)]


class quire_buffer_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("usage", c_uint32), ("alignment", c_uint64), ("name", c_char_p), ("host_write", c_bool),
        ("host_read", c_bool), ("zero", c_bool), ("dedicated", c_bool), ("mapped", c_bool),
        ("existing_pages", c_bool), ("within_budget", c_bool), ("user_data", c_uint64), ("stream", c_void_p), ("info", POINTER(quire_allocation_info)), _unused(2)]


class quire_point(Structure):
    _fields_: ClassVar[Fields] = [("stream", c_void_p), ("value", c_uint64)]


class quire_stream_options(Structure):
    _fields_: ClassVar[Fields] = [("name", c_char_p), ("capture", c_bool), _unused(4)]


class quire_stream_info(Structure):
    _fields_: ClassVar[Fields] = [("name", c_char_p), ("device", c_void_p), ("capture", c_bool), ("native", c_uint64),
            ("marked", c_uint64), ("passed", c_uint64), ("deferred", c_uint64), _unused(4)]


# ---- transfer.h -----------------------------------------------------------------------------------------

class quire_copy_end(Structure):
    _fields_: ClassVar[Fields] = [("memory", c_void_p), ("allocation", quire_allocation), ("offset", c_uint64),
            ("row_pitch", c_uint64), ("slice_pitch", c_uint64)]


class quire_progress(Structure):
    _fields_: ClassVar[Fields] = [("goes_on", c_void_p), ("user", c_void_p), ("step", c_uint64)]


class quire_copy_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("to", quire_copy_end), ("from", quire_copy_end), ("host_to", c_void_p), ("host_from", c_void_p),
        ("size", c_uint64), ("rows", c_uint64), ("slices", c_uint64), ("stream", c_void_p),
        ("progress", quire_progress), _unused(4)]


class quire_fill_options(Structure):
    _fields_: ClassVar[Fields] = [("offset", c_uint64), ("size", c_uint64), ("value", c_uint8), ("stream", c_void_p),
                                  _unused(4)]


# ---- insight.h, trace.h ---------------------------------------------------------------------------------

class quire_fragmentation(Structure):
    _fields_: ClassVar[Fields] = [("reserved", c_double), ("free", c_double), ("internal", c_uint64),
                                  ("split", c_uint64)]


class quire_memory_stats(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in (
        "live_bytes", "requested_bytes", "reserved_bytes", "free_bytes", "empty_bytes", "largest_free",
        "allocation_count", "page_count", "peak_live_bytes", "peak_requested_bytes", "peak_reserved_bytes",
        "peak_allocation_count", "peak_page_count", "allocations", "frees", "failures", "pages_created",
        "pages_destroyed", "backend_calls", "backend_nanoseconds", "metadata_bytes", "metadata_peak", "full_passes",
        "full_pass_hits")] + [("fragmentation", quire_fragmentation), ("deferred_bytes", c_uint64),
                              ("deferred_count", c_uint64), ("pages_over_budget", c_uint64), _unused(1)]


class quire_device_stats(Structure):
    _fields_: ClassVar[Fields] = [("heap_reserved_bytes", c_uint64 * MAX_HEAPS)] + [(name, c_uint64) for name in (
        "reserved_bytes", "peak_reserved_bytes", "live_bytes", "allocation_count", "page_count", "memory_count",
        "backend_calls", "backend_nanoseconds", "metadata_bytes")] + [_unused(4)]


class quire_item(Structure):
    _fields_: ClassVar[Fields] = [
        ("page", c_uint32), ("dedicated", c_bool), ("is_free", c_bool), ("page_size", c_uint64), ("offset", c_uint64),
        ("left_padding", c_uint64), ("size", c_uint64), ("requested", c_uint64), ("user_data", c_uint64),
        ("allocation", quire_allocation), ("object", c_int), ("name", c_char_p)]


VISIT = CFUNCTYPE(c_bool, c_void_p, POINTER(quire_item))


class quire_trace_info(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in (
        "event_count", "alloc_count", "free_count", "use_count", "frame_count", "peak_bytes", "peak_event",
        "peak_ranges", "left_count", "left_bytes", "largest", "end_ns")] + [_unused(4)]


class quire_replay_options(Structure):
    _fields_: ClassVar[Fields] = [("event_count", c_uint64), ("keep", c_bool), ("name", c_bool), ("progress", c_void_p),
            ("user", c_void_p), ("progress_events", c_uint64), _unused(3)]


class quire_latency(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in ("p50", "p99", "p999", "max")]


class quire_replay_report(Structure):
    _fields_: ClassVar[Fields] = [(name, c_uint64) for name in (
        "operations", "allocations", "frees", "uses", "frames", "failures", "peak_live_bytes", "peak_requested_bytes",
        "peak_reserved_bytes", "pages_created", "pages_destroyed", "backend_calls", "peak_pages",
        "metadata_bytes_peak", "left_at_end", "left_bytes", "wall_ns")] + [
            ("alloc_ns", quire_latency), ("free_ns", quire_latency), ("fragmentation", quire_fragmentation),
            ("stopped", c_bool), _unused(4)]
