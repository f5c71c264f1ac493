"""The structures of the headers of the backends. A name is that of C."""

from ctypes import POINTER, Structure, c_bool, c_char_p, c_int, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from typing import ClassVar

from ._structs import MAX_HEAPS, MAX_KINDS, Fields, _unused, quire_device_options, quire_heap, quire_kind, quire_limits

CUDA_UUID_SIZE = 16


# ---- host.h ---------------------------------------------------------------------------------------------

class quire_host_profile(Structure):
    _fields_: ClassVar[Fields] = [
        ("name", c_char_p), ("heap_count", c_uint32), ("kind_count", c_uint32), ("heaps", quire_heap * MAX_HEAPS),
        ("kinds", quire_kind * MAX_KINDS), ("limits", quire_limits)]


class quire_host_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("profile", POINTER(quire_host_profile)), ("backing", c_int), ("huge_pages", c_int),
        ("row_alignment", c_uint64), ("budgets", c_uint64 * MAX_HEAPS), ("device", quire_device_options), _unused(4)]


class quire_host_stream_options(Structure):
    _fields_: ClassVar[Fields] = [("name", c_char_p), ("manual", c_bool), _unused(4)]


# ---- cuda.h ---------------------------------------------------------------------------------------------

class quire_cuda_pool_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("source", c_int), ("pool", c_void_p), ("max_bytes", c_uint64), ("release_threshold", c_uint64), _unused(4)]


class quire_cuda_settings(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", quire_device_options), ("kinds", c_uint32), ("export_types", c_uint32), ("numa_nodes", c_uint64),
        ("chunk_size", c_uint64), ("kept_bytes", c_uint64), ("peers", POINTER(c_int32)), ("peer_count", c_uint32),
        ("recommended_granularity", c_bool), ("hardware_decompression", c_bool), ("wait_before_release", c_bool),
        ("without", c_uint32), ("reachable_peers", c_bool), ("pool", POINTER(quire_cuda_pool_options)), _unused(4)]


class quire_cuda_options(Structure):
    _fields_: ClassVar[Fields] = [("device", c_char_p), ("library", c_char_p), ("settings", quire_cuda_settings),
                                  _unused(4)]


class quire_cuda_wrap_options(Structure):
    _fields_: ClassVar[Fields] = [("context", c_void_p), ("library", c_char_p), ("settings", quire_cuda_settings),
                                  _unused(4)]


class quire_cuda_info(Structure):
    _fields_: ClassVar[Fields] = [("context", c_void_p), ("ordinal", c_int32), ("driver_version", c_uint32)] + [
        (name, c_bool) for name in (
            "is_primary", "has_virtual_memory", "has_fd", "has_dma_buf", "has_rdma", "has_compression",
            "has_multicast", "has_host_numa", "has_host", "has_deferred_arrays", "has_sparse_arrays", "has_pools")] + [
        ("numa_node", c_int32), ("fabric", c_int), ("fabric_code", c_int32), ("kept_bytes", c_uint64),
        ("uuid", c_uint8 * CUDA_UUID_SIZE), _unused(4)]


class quire_cuda_kind_info(Structure):
    _fields_: ClassVar[Fields] = [
        ("page_kind", c_int), ("node", c_int32), ("is_virtual_memory", c_bool), ("granularity", c_uint64),
        ("recommended", c_uint64), ("is_rdma_capable", c_bool), ("export_types", c_uint32), _unused(4)]


# ---- vulkan.h -------------------------------------------------------------------------------------------

class quire_vulkan_settings(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", quire_device_options), ("callbacks", c_void_p), ("staging_size", c_uint64),
        ("page_usage", c_uint32), ("export_types", c_uint32), ("memory_limit", c_int), _unused(4)]


class quire_vulkan_options(Structure):
    _fields_: ClassVar[Fields] = [
        ("device", c_char_p), ("get_instance_proc_addr", c_void_p), ("instance_extensions", POINTER(c_char_p)),
        ("instance_extension_count", c_uint32), ("device_extensions", POINTER(c_char_p)),
        ("device_extension_count", c_uint32), ("chain", c_void_p), ("queue_flags", c_uint32),
        ("queues", POINTER(c_uint32)), ("queue_count", c_uint32), ("settings", quire_vulkan_settings), _unused(4)]
