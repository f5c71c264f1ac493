# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structures and functions of the public headers that the package uses. A name is that of C.

Written by scripts/interface.py. The test abi.py compares it with a program of C.
"""

from ctypes import (
    Structure, CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_int8,
    c_size_t, c_uint32, c_uint64, c_uint8, c_void_p)
from typing import Any, ClassVar, Dict, List, Tuple

Fields = List[Tuple[str, Any]]
MAX_HEAPS = 16
MAX_KINDS = 32
MAX_PAGE_CLASSES = 4
CUDA_UUID_SIZE = 16


class quire_heap(Structure):
    _fields_: ClassVar[Fields] = [("size", c_uint64), ("flags", c_uint32), ("reserved", c_uint32)]


class quire_kind(Structure):
    _fields_: ClassVar[Fields] = [("flags", c_uint32), ("heap", c_uint32)]


class quire_limits(Structure):
    _fields_: ClassVar[Fields] = [
        ("page_granularity", c_uint64), ("page_alignment", c_uint64), ("max_page", c_uint64),
        ("usual_page", c_uint64), ("max_buffer", c_uint64), ("max_pages", c_uint64),
        ("buffer_image_granularity", c_uint64), ("non_coherent_atom", c_uint64), ("buffer_alignment", c_uint64),
        ("image_row_alignment", c_uint64), ("elastic_kinds", c_uint64), ("elastic_granularity", c_uint64),
        ("max_chunks", c_uint64), ("elastic_rules", c_uint32), ("max_pages_is_advice", c_bool),
        ("elastic_unmapped", c_bool), ("max_elastic_page", c_uint64), ("elastic_missing", c_char_p),
        ("unused", c_uint64 * 2)]


class quire_device_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char * 256), ("backend", c_char_p), ("heap_count", c_uint32), ("kind_count", c_uint32),
        ("heaps", quire_heap * MAX_HEAPS), ("kinds", quire_kind * MAX_KINDS), ("limits", quire_limits),
        ("exportable", c_bool), ("survives_fork", c_bool), ("unused", c_uint64 * 4)]


class quire_kind_request(Structure):
    _fields_: ClassVar[Fields] = [
        ("intent", c_uint64), ("required", c_uint32), ("preferred", c_uint32), ("avoided", c_uint32),
        ("mask", c_uint32), ("exact", c_bool), ("unused", c_uint64 * 4)]


class quire_budget_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("limit", c_uint64), ("budget", c_uint64), ("reserved", c_uint64), ("usage", c_uint64),
        ("available", c_uint64), ("unused", c_uint64 * 4)]


class quire_fit_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("algorithm", c_int), ("least_fragmentation", c_bool), ("slabs", c_bool), ("granule", c_uint64),
        ("max_alignment", c_uint64), ("unused", c_uint64 * 4)]


class quire_page_class(Structure):
    _fields_: ClassVar[Fields] = [("max_request", c_uint64), ("page_size", c_uint64)]


class quire_page_policy(Structure):
    _fields_: ClassVar[Fields] = [
        ("page_size", c_uint64), ("first_page_size", c_uint64), ("growth_percent", c_uint32),
        ("max_pages", c_uint32), ("max_page", c_uint64), ("growth", c_int), ("request_factor", c_uint32),
        ("page_granularity", c_uint64), ("classes", quire_page_class * MAX_PAGE_CLASSES), ("dedicated", c_int),
        ("dedicated_threshold", c_uint64), ("size_granularity", c_uint64), ("extra_padding", c_uint64),
        ("retained_empty_bytes", c_uint64), ("retention_nanoseconds", c_uint64), ("unused", c_uint64 * 4)]


quire_clock_now = CFUNCTYPE(c_uint64, c_void_p)


class quire_clock(Structure):
    _fields_: ClassVar[Fields] = [("now", quire_clock_now), ("user", c_void_p)]


class quire_out_of_memory(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("alignment", c_uint64), ("reason", c_int), ("times", c_uint32), ("name", c_char_p),
        ("unused", c_uint64 * 4)]


quire_on_out_of_memory_callback = CFUNCTYPE(c_bool, c_void_p, c_void_p, POINTER(quire_out_of_memory))


class quire_on_out_of_memory(Structure):
    _fields_: ClassVar[Fields] = [("callback", quire_on_out_of_memory_callback), ("user", c_void_p)]


class quire_memory_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("kind", quire_kind_request), ("elastic", c_bool), ("find_by_address", c_bool),
        ("map_on_demand", c_bool), ("within_budget", c_bool), ("movable", c_bool), ("fit", quire_fit_options),
        ("shards", c_uint32), ("pages", quire_page_policy), ("clock", quire_clock),
        ("on_out_of_memory", quire_on_out_of_memory), ("limit", c_uint64), ("priority", c_float),
        ("address_space", c_uint64), ("unused", c_uint64 * 4)]


class quire_memory_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("device", c_void_p), ("kind", c_uint32), ("flags", c_uint32), ("mappable", c_bool),
        ("checked", c_bool), ("within_budget", c_bool), ("exportable", c_bool), ("fit", c_int),
        ("page_size", c_uint64), ("granule", c_uint64), ("page_count", c_uint32), ("shards", c_uint32),
        ("limit", c_uint64), ("address_space", c_uint64), ("unused", c_uint64 * 4)]


class quire_page_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("page", c_uint32), ("dedicated", c_bool), ("mappable", c_bool), ("size", c_uint64), ("address", c_uint64),
        ("live_bytes", c_uint64), ("free_bytes", c_uint64), ("largest_free", c_uint64),
        ("allocation_count", c_uint64), ("peak_live_bytes", c_uint64), ("unused", c_uint64 * 4)]


class quire_name_usage(Structure):
    _fields_: ClassVar[Fields] = [
        ("limit", c_uint64), ("held_bytes", c_uint64), ("requested_bytes", c_uint64), ("allocation_count", c_uint64),
        ("unused", c_uint64 * 4)]


class quire_allocation_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("page", c_uint32), ("dedicated", c_bool), ("committed", c_bool), ("asleep", c_bool), ("offset", c_uint64),
        ("left_padding", c_uint64), ("size", c_uint64), ("requested", c_uint64), ("address", c_uint64),
        ("user_data", c_uint64), ("map_count", c_uint32), ("object", c_int), ("native", c_uint64),
        ("host", c_void_p), ("backed", c_uint64), ("extent_offset", c_uint64), ("extent_size", c_uint64),
        ("unused", c_uint64 * 1)]


class quire_allocation_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("alignment", c_uint64), ("name", c_char_p), ("host_write", c_bool),
        ("host_read", c_bool), ("zero", c_bool), ("dedicated", c_bool), ("mapped", c_bool),
        ("existing_pages", c_bool), ("within_budget", c_bool), ("upper", c_bool), ("user_data", c_uint64),
        ("stream", c_void_p), ("info", POINTER(quire_allocation_info)), ("offset_alignment", c_uint64),
        ("lazy", c_bool), ("movable", c_bool), ("unused", c_uint64 * 3)]


class quire_allocation(Structure):
    _fields_: ClassVar[Fields] = [("id", c_uint64)]


class quire_buffer_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("usage", c_uint32), ("alignment", c_uint64), ("name", c_char_p), ("host_write", c_bool),
        ("host_read", c_bool), ("zero", c_bool), ("dedicated", c_bool), ("mapped", c_bool),
        ("existing_pages", c_bool), ("within_budget", c_bool), ("movable", c_bool), ("user_data", c_uint64),
        ("stream", c_void_p), ("info", POINTER(quire_allocation_info)), ("unused", c_uint64 * 4)]


class quire_buffer(Structure):
    _fields_: ClassVar[Fields] = [("allocation", quire_allocation)]


class quire_stream_options(Structure):
    _fields_: ClassVar[Fields] = [("name", c_char_p), ("capture", c_bool), ("unused", c_uint64 * 4)]


class quire_stream_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("device", c_void_p), ("capture", c_bool), ("native", c_uint64), ("marked", c_uint64),
        ("passed", c_uint64), ("deferred", c_uint64), ("unused", c_uint64 * 4)]


class quire_point(Structure):
    _fields_: ClassVar[Fields] = [("stream", c_void_p), ("value", c_uint64)]


class quire_view(Structure):
    _fields_: ClassVar[Fields] = [("allocation", quire_allocation), ("offset", c_uint64), ("size", c_uint64)]


class quire_compact_stats(Structure):
    _fields_: ClassVar[Fields] = [
        ("moves", c_uint64), ("bytes_moved", c_uint64), ("pages_freed", c_uint64), ("bytes_freed", c_uint64),
        ("is_complete", c_bool), ("unused", c_uint64 * 4)]


class quire_compact_limits(Structure):
    _fields_: ClassVar[Fields] = [
        ("moves", c_uint64), ("bytes", c_uint64), ("records", c_uint64), ("largest_free", c_uint64),
        ("unused", c_uint64 * 3)]


class quire_evict_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("bytes", c_uint64), ("recent_frames", c_uint64), ("mode", c_int), ("unused", c_uint64 * 4)]


class quire_copy_end(Structure):
    _fields_: ClassVar[Fields] = [
        ("memory", c_void_p), ("allocation", quire_allocation), ("offset", c_uint64), ("row_pitch", c_uint64),
        ("slice_pitch", c_uint64)]


quire_progress_goes_on = CFUNCTYPE(c_bool, c_void_p, c_uint64, c_uint64)


class quire_progress(Structure):
    _fields_: ClassVar[Fields] = [("goes_on", quire_progress_goes_on), ("user", c_void_p), ("step", c_uint64)]


class quire_copy_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("to", quire_copy_end), ("from", quire_copy_end), ("host_to", c_void_p), ("host_from", c_void_p),
        ("size", c_uint64), ("rows", c_uint64), ("slices", c_uint64), ("stream", c_void_p),
        ("progress", quire_progress), ("unused", c_uint64 * 4)]


class quire_fill_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("offset", c_uint64), ("size", c_uint64), ("value", c_uint8), ("stream", c_void_p), ("unused", c_uint64 * 4)]


class quire_fragmentation(Structure):
    _fields_: ClassVar[Fields] = [
        ("reserved", c_double), ("free", c_double), ("internal", c_uint64), ("split", c_uint64)]


class quire_memory_stats(Structure):
    _fields_: ClassVar[Fields] = [
        ("live_bytes", c_uint64), ("requested_bytes", c_uint64), ("reserved_bytes", c_uint64),
        ("free_bytes", c_uint64), ("empty_bytes", c_uint64), ("largest_free", c_uint64),
        ("allocation_count", c_uint64), ("page_count", c_uint64), ("peak_live_bytes", c_uint64),
        ("peak_requested_bytes", c_uint64), ("peak_reserved_bytes", c_uint64), ("peak_allocation_count", c_uint64),
        ("peak_page_count", c_uint64), ("allocations", c_uint64), ("frees", c_uint64), ("failures", c_uint64),
        ("pages_created", c_uint64), ("pages_destroyed", c_uint64), ("backend_calls", c_uint64),
        ("backend_nanoseconds", c_uint64), ("metadata_bytes", c_uint64), ("metadata_peak", c_uint64),
        ("full_passes", c_uint64), ("full_pass_hits", c_uint64), ("fragmentation", quire_fragmentation),
        ("deferred_bytes", c_uint64), ("deferred_count", c_uint64), ("pages_over_budget", c_uint64),
        ("asleep_bytes", c_uint64), ("asleep_count", c_uint64), ("unused", c_uint64 * 2)]


class quire_device_stats(Structure):
    _fields_: ClassVar[Fields] = [
        ("heap_reserved_bytes", c_uint64 * MAX_HEAPS), ("reserved_bytes", c_uint64),
        ("peak_reserved_bytes", c_uint64), ("live_bytes", c_uint64), ("allocation_count", c_uint64),
        ("page_count", c_uint64), ("memory_count", c_uint64), ("backend_calls", c_uint64),
        ("backend_nanoseconds", c_uint64), ("metadata_bytes", c_uint64), ("requested_bytes", c_uint64),
        ("free_bytes", c_uint64), ("empty_bytes", c_uint64), ("deferred_bytes", c_uint64), ("allocations", c_uint64),
        ("frees", c_uint64), ("failures", c_uint64), ("pages_created", c_uint64), ("pages_destroyed", c_uint64),
        ("pages_over_budget", c_uint64), ("unused", c_uint64 * 4)]


class quire_item(Structure):
    _fields_: ClassVar[Fields] = [
        ("page", c_uint32), ("dedicated", c_bool), ("is_free", c_bool), ("asleep", c_bool), ("page_size", c_uint64),
        ("page_bytes", c_uint64), ("offset", c_uint64), ("left_padding", c_uint64), ("size", c_uint64),
        ("requested", c_uint64), ("user_data", c_uint64), ("allocation", quire_allocation), ("object", c_int),
        ("name", c_char_p), ("backed", c_uint64)]


quire_memory_walk_visit = CFUNCTYPE(c_bool, c_void_p, POINTER(quire_item))


quire_sink = CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t)


class quire_record_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("memory", c_void_p), ("device", c_void_p), ("path", c_char_p), ("sink", quire_sink), ("user", c_void_p),
        ("ring_bytes", c_uint64), ("unused", c_uint64 * 4)]


quire_host_memory_allocate = CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)


quire_host_memory_release = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_size_t)


class quire_host_memory(Structure):
    _fields_: ClassVar[Fields] = [
        ("allocate", quire_host_memory_allocate), ("release", quire_host_memory_release), ("user", c_void_p)]


class quire_trace_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("event_count", c_uint64), ("alloc_count", c_uint64), ("free_count", c_uint64), ("use_count", c_uint64),
        ("frame_count", c_uint64), ("peak_bytes", c_uint64), ("peak_event", c_uint64), ("peak_ranges", c_uint64),
        ("left_count", c_uint64), ("left_bytes", c_uint64), ("largest", c_uint64), ("end_ns", c_uint64),
        ("cut_bytes", c_uint64), ("unused", c_uint64 * 4)]


quire_replay_options_progress = CFUNCTYPE(c_bool, c_void_p, c_uint64, c_uint64)


class quire_replay_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("event_count", c_uint64), ("keep", c_bool), ("name", c_bool), ("progress", quire_replay_options_progress),
        ("user", c_void_p), ("progress_events", c_uint64), ("time", POINTER(c_uint64)), ("size_percent", c_uint32),
        ("unused", c_uint64 * 4)]


class quire_latency(Structure):
    _fields_: ClassVar[Fields] = [("p50", c_uint64), ("p99", c_uint64), ("p999", c_uint64), ("max", c_uint64)]


class quire_replay_report(Structure):
    _fields_: ClassVar[Fields] = [
        ("operations", c_uint64), ("allocations", c_uint64), ("frees", c_uint64), ("uses", c_uint64),
        ("frames", c_uint64), ("failures", c_uint64), ("peak_live_bytes", c_uint64),
        ("peak_requested_bytes", c_uint64), ("peak_reserved_bytes", c_uint64), ("pages_created", c_uint64),
        ("pages_destroyed", c_uint64), ("backend_calls", c_uint64), ("peak_pages", c_uint64),
        ("metadata_bytes_peak", c_uint64), ("left_at_end", c_uint64), ("left_bytes", c_uint64),
        ("wall_ns", c_uint64), ("alloc_ns", quire_latency), ("free_ns", quire_latency),
        ("fragmentation", quire_fragmentation), ("stopped", c_bool), ("unused", c_uint64 * 4)]


class quire_plan_item(Structure):
    _fields_: ClassVar[Fields] = [
        ("size", c_uint64), ("alignment", c_uint64), ("first_use", c_uint64), ("last_use", c_uint64),
        ("fixed_offset", c_uint64), ("arena", c_uint32), ("alias_group", c_uint32), ("is_fixed", c_bool),
        ("name", c_char_p)]


class quire_plan_arena(Structure):
    _fields_: ClassVar[Fields] = [("capacity", c_uint64)]


class quire_plan_separation(Structure):
    _fields_: ClassVar[Fields] = [("first", c_uint32), ("second", c_uint32)]


class quire_plan_problem(Structure):
    _fields_: ClassVar[Fields] = [
        ("items", POINTER(quire_plan_item)), ("arenas", POINTER(quire_plan_arena)),
        ("separations", POINTER(quire_plan_separation)), ("item_count", c_uint32), ("arena_count", c_uint32),
        ("separation_count", c_uint32), ("unused", c_uint64 * 4)]


class quire_plan_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("peak_bytes", c_uint64), ("lower_bound_bytes", c_uint64), ("steps", c_uint64), ("wall_ns", c_uint64),
        ("proven_optimal", c_bool), ("unused", c_uint64 * 4)]


quire_plan_options_progress = CFUNCTYPE(c_bool, c_void_p, POINTER(quire_plan_info))


class quire_plan_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("step_limit", c_uint64), ("time_limit_ns", c_uint64), ("seed", c_uint64),
        ("progress", quire_plan_options_progress), ("user", c_void_p), ("host_memory", POINTER(quire_host_memory)),
        ("unused", c_uint64 * 4)]


class quire_plan_place(Structure):
    _fields_: ClassVar[Fields] = [("offset", c_uint64), ("arena", c_uint32)]


class quire_host_profile(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("heap_count", c_uint32), ("kind_count", c_uint32), ("heaps", quire_heap * MAX_HEAPS),
        ("kinds", quire_kind * MAX_KINDS), ("limits", quire_limits), ("unused", c_uint64 * 4)]


quire_log_write = CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class quire_log(Structure):
    _fields_: ClassVar[Fields] = [("write", quire_log_write), ("user", c_void_p), ("level", c_int)]


class quire_device_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("host_memory", POINTER(quire_host_memory)), ("log", quire_log), ("untraced", c_bool),
        ("unused", c_uint64 * 4)]


class quire_host_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("profile", POINTER(quire_host_profile)), ("backing", c_int), ("huge_pages", c_int),
        ("row_alignment", c_uint64), ("budgets", c_uint64 * MAX_HEAPS), ("device", quire_device_options),
        ("unused", c_uint64 * 4)]


class quire_host_stream_options(Structure):
    _fields_: ClassVar[Fields] = [("name", c_char_p), ("manual", c_bool), ("unused", c_uint64 * 4)]


class quire_cuda_pool_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("source", c_int), ("pool", c_void_p), ("max_bytes", c_uint64), ("release_threshold", c_uint64),
        ("unused", c_uint64 * 4)]


class quire_cuda_settings(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", quire_device_options), ("kinds", c_uint32), ("export_types", c_uint32), ("numa_nodes", c_uint64),
        ("chunk_size", c_uint64), ("kept_bytes", c_uint64), ("peers", POINTER(c_int32)), ("peer_count", c_uint32),
        ("recommended_granularity", c_bool), ("hardware_decompression", c_bool), ("wait_before_release", c_bool),
        ("without", c_uint32), ("reachable_peers", c_bool), ("pool", POINTER(quire_cuda_pool_options)),
        ("elastic_rules", c_uint32), ("max_chunks", c_uint64), ("unused", c_uint64 * 4)]


class quire_cuda_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", c_char_p), ("library", c_char_p), ("settings", quire_cuda_settings), ("unused", c_uint64 * 4)]


class quire_cuda_wrap_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("context", c_void_p), ("library", c_char_p), ("settings", quire_cuda_settings), ("unused", c_uint64 * 4)]


class quire_cuda_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("context", c_void_p), ("ordinal", c_int32), ("driver_version", c_uint32), ("is_primary", c_bool),
        ("has_virtual_memory", c_bool), ("has_fd", c_bool), ("has_dma_buf", c_bool), ("has_rdma", c_bool),
        ("has_compression", c_bool), ("has_multicast", c_bool), ("has_host_numa", c_bool), ("has_host", c_bool),
        ("has_deferred_arrays", c_bool), ("has_sparse_arrays", c_bool), ("has_pools", c_bool),
        ("numa_node", c_int32), ("fabric", c_int), ("fabric_code", c_int32), ("kept_bytes", c_uint64),
        ("uuid", c_uint8 * CUDA_UUID_SIZE), ("unused", c_uint64 * 4)]


class quire_cuda_kind_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("page_kind", c_int), ("node", c_int32), ("is_virtual_memory", c_bool), ("granularity", c_uint64),
        ("recommended", c_uint64), ("is_rdma_capable", c_bool), ("export_types", c_uint32), ("unused", c_uint64 * 4)]


class quire_vulkan_settings(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", quire_device_options), ("callbacks", c_void_p), ("staging_size", c_uint64),
        ("page_usage", c_uint32), ("export_types", c_uint32), ("memory_limit", c_int),
        ("queue_families", POINTER(c_uint32)), ("queue_family_count", c_uint32), ("unused", c_uint64 * 4)]


class quire_vulkan_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", c_char_p), ("get_instance_proc_addr", c_void_p), ("instance_extensions", POINTER(c_char_p)),
        ("instance_extension_count", c_uint32), ("device_extensions", POINTER(c_char_p)),
        ("device_extension_count", c_uint32), ("chain", c_void_p), ("queue_flags", c_uint32), ("queues", c_void_p),
        ("queue_count", c_uint32), ("settings", quire_vulkan_settings), ("unused", c_uint64 * 4)]


# name, result, arguments
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "quire_result_sentence": (c_char_p, [c_int]),
    "quire_last_error": (c_char_p, []),
    "quire_last_result": (c_int, []),
    "quire_last_native_code": (c_int64, []),
    "quire_version": (c_char_p, []),
    "quire_device_get_info": (c_int, [c_void_p, POINTER(quire_device_info)]),
    "quire_device_choose_kind": (c_int, [c_void_p, POINTER(quire_kind_request), POINTER(c_uint32)]),
    "quire_device_get_budget": (c_int, [c_void_p, c_uint32, POINTER(quire_budget_info)]),
    "quire_device_set_heap_limit": (c_int, [c_void_p, c_uint32, c_uint64]),
    "quire_device_set_page_limit": (c_int, [c_void_p, c_uint64]),
    "quire_device_destroy": (c_int, [POINTER(c_void_p)]),
    "quire_memory_create": (c_int, [c_void_p, POINTER(quire_memory_options), POINTER(c_void_p)]),
    "quire_memory_destroy": (c_int, [POINTER(c_void_p)]),
    "quire_memory_destroy_all": (None, [POINTER(c_void_p)]),
    "quire_memory_get_info": (c_int, [c_void_p, POINTER(quire_memory_info)]),
    "quire_page_get_info": (c_int, [c_void_p, c_uint32, POINTER(quire_page_info)]),
    "quire_memory_trim": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "quire_device_trim": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "quire_memory_preallocate": (c_int, [c_void_p, c_uint64]),
    "quire_memory_set_limit": (c_int, [c_void_p, c_uint64]),
    "quire_memory_set_name_limit": (c_int, [c_void_p, c_char_p, c_uint64]),
    "quire_memory_get_name_usage": (c_int, [c_void_p, c_char_p, POINTER(quire_name_usage)]),
    "quire_allocate": (c_int, [c_void_p, POINTER(quire_allocation_options), POINTER(quire_allocation)]),
    "quire_free": (c_int, [c_void_p, quire_allocation]),
    "quire_allocation_get_info": (c_int, [c_void_p, quire_allocation, POINTER(quire_allocation_info)]),
    "quire_allocation_get_name": (c_int, [c_void_p, quire_allocation, c_char_p, c_size_t]),
    "quire_allocation_set_name": (c_int, [c_void_p, quire_allocation, c_char_p]),
    "quire_allocation_set_user_data": (c_int, [c_void_p, quire_allocation, c_uint64]),
    "quire_map": (c_int, [c_void_p, quire_allocation, POINTER(c_void_p)]),
    "quire_unmap": (c_int, [c_void_p, quire_allocation]),
    "quire_flush": (c_int, [c_void_p, quire_allocation, c_uint64, c_uint64]),
    "quire_invalidate": (c_int, [c_void_p, quire_allocation, c_uint64, c_uint64]),
    "quire_write": (c_int, [c_void_p, quire_allocation, c_uint64, c_void_p, c_uint64]),
    "quire_read": (c_int, [c_void_p, quire_allocation, c_uint64, c_void_p, c_uint64]),
    "quire_buffer_create": (c_int, [c_void_p, POINTER(quire_buffer_options), POINTER(quire_buffer)]),
    "quire_stream_create": (c_int, [c_void_p, POINTER(quire_stream_options), POINTER(c_void_p)]),
    "quire_stream_destroy": (c_int, [POINTER(c_void_p)]),
    "quire_stream_get_info": (c_int, [c_void_p, POINTER(quire_stream_info)]),
    "quire_stream_mark": (c_int, [c_void_p, POINTER(quire_point)]),
    "quire_stream_wait": (c_int, [c_void_p, POINTER(quire_point)]),
    "quire_point_has_passed": (c_int, [POINTER(quire_point), POINTER(c_bool)]),
    "quire_point_await": (c_int, [POINTER(quire_point), c_uint64]),
    "quire_free_after_point": (c_int, [c_void_p, quire_allocation, POINTER(quire_point)]),
    "quire_free_on_stream": (c_int, [c_void_p, quire_allocation, c_void_p]),
    "quire_record_use": (c_int, [c_void_p, quire_allocation, c_void_p]),
    "quire_collect": (c_int, [c_void_p, POINTER(c_uint64)]),
    "quire_back_range": (c_int, [c_void_p, POINTER(quire_view), c_uint64]),
    "quire_unback_range": (c_int, [c_void_p, POINTER(quire_view), c_uint64, POINTER(quire_point)]),
    "quire_memory_sleep": (c_int, [c_void_p, c_char_p, c_int, POINTER(quire_point), POINTER(c_uint64)]),
    "quire_memory_wake": (c_int, [c_void_p, c_char_p, POINTER(c_uint64)]),
    "quire_compact_estimate": (c_int, [c_void_p, POINTER(quire_compact_stats)]),
    "quire_compact_begin": (c_int, [c_void_p, POINTER(c_void_p)]),
    "quire_compact_step": (c_int, [c_void_p, POINTER(quire_compact_limits), POINTER(quire_compact_stats)]),
    "quire_compact_step_on_stream": (c_int, [
        c_void_p, POINTER(quire_compact_limits), c_void_p, POINTER(quire_compact_stats)]),
    "quire_compact_end": (None, [POINTER(c_void_p)]),
    "quire_set_priority": (c_int, [c_void_p, quire_allocation, c_int8]),
    "quire_memory_frame": (c_int, [c_void_p]),
    "quire_touch": (c_int, [c_void_p, quire_allocation]),
    "quire_memory_evict": (c_int, [c_void_p, POINTER(quire_evict_options), POINTER(c_uint64)]),
    "quire_wake": (c_int, [c_void_p, quire_allocation]),
    "quire_copy": (c_int, [POINTER(quire_copy_options), POINTER(quire_point)]),
    "quire_fill": (c_int, [c_void_p, quire_allocation, POINTER(quire_fill_options), POINTER(quire_point)]),
    "quire_memory_get_stats": (c_int, [c_void_p, POINTER(quire_memory_stats)]),
    "quire_memory_push_stats": (c_int, [c_void_p]),
    "quire_memory_pop_stats": (c_int, [c_void_p, POINTER(quire_memory_stats)]),
    "quire_device_get_stats": (c_int, [c_void_p, POINTER(quire_device_stats)]),
    "quire_memory_check": (c_int, [c_void_p]),
    "quire_memory_walk": (c_int, [c_void_p, quire_memory_walk_visit, c_void_p]),
    "quire_memory_write_report": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_device_write_report": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_memory_write_report_json": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_device_write_report_json": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_device_write_json": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_memory_write_json": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_device_write_svg": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_memory_write_svg": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_record_start": (c_int, [POINTER(quire_record_options), POINTER(c_void_p)]),
    "quire_record_frame": (c_int, [c_void_p]),
    "quire_record_flush": (c_int, [c_void_p]),
    "quire_record_stop": (c_int, [POINTER(c_void_p)]),
    "quire_trace_parse": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(quire_host_memory), POINTER(c_void_p)]),
    "quire_trace_destroy": (None, [POINTER(c_void_p)]),
    "quire_trace_get_info": (c_int, [c_void_p, POINTER(quire_trace_info)]),
    "quire_trace_write_csv": (c_int, [c_void_p, quire_sink, c_void_p]),
    "quire_trace_replay": (c_int, [c_void_p, c_void_p, POINTER(quire_replay_options), POINTER(quire_replay_report)]),
    "quire_plan": (c_int, [
        POINTER(quire_plan_problem), POINTER(quire_plan_options), POINTER(quire_plan_place),
        POINTER(quire_plan_info)]),
    "quire_plan_check": (c_int, [
        POINTER(quire_plan_problem), POINTER(quire_plan_place), POINTER(c_uint64), POINTER(quire_host_memory)]),
    "quire_allocation_hold": (c_int, [c_void_p, quire_allocation]),
    "quire_allocation_release": (c_int, [c_void_p, quire_allocation]),
    "quire_host_open": (c_int, [POINTER(quire_host_options), POINTER(c_void_p)]),
    "quire_host_set_budget": (c_int, [c_void_p, c_uint32, c_uint64]),
    "quire_host_stream_create": (c_int, [c_void_p, POINTER(quire_host_stream_options), POINTER(c_void_p)]),
    "quire_host_stream_run": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "quire_cuda_open": (c_int, [POINTER(quire_cuda_options), POINTER(c_void_p)]),
    "quire_cuda_wrap": (c_int, [POINTER(quire_cuda_wrap_options), POINTER(c_void_p)]),
    "quire_cuda_get_info": (c_int, [c_void_p, POINTER(quire_cuda_info)]),
    "quire_cuda_get_kind_info": (c_int, [c_void_p, c_uint32, POINTER(quire_cuda_kind_info)]),
    "quire_cuda_find_kind": (c_int, [c_void_p, c_int, c_int32, POINTER(c_uint32)]),
    "quire_cuda_stream_wrap": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(c_void_p)]),
    "quire_cuda_stream_get": (c_int, [c_void_p, POINTER(c_void_p)]),
    "quire_vulkan_open": (c_int, [POINTER(quire_vulkan_options), POINTER(c_void_p)]),
}
