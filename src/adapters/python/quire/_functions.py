"""The functions of the library that the package calls: name, result and arguments.

The test abi.py compares them with the prototypes in the headers.
"""

from ctypes import POINTER, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Tuple

from . import _backend_structs as backend
from . import _structs as structs

DEVICE = MEMORY = STREAM = TRACE = POINTER_TO = c_void_p
OUT = POINTER(c_void_p)  # of a handle
ID = structs.quire_allocation

Prototype = Tuple[Any, List[Any]]

FUNCTIONS: Dict[str, Prototype] = {
    "quire_version": (c_char_p, []),
    "quire_result_sentence": (c_char_p, [c_int]),
    "quire_last_error": (c_char_p, []),
    "quire_last_result": (c_int, []),
    "quire_last_native_code": (c_int64, []),

    "quire_device_get_info": (c_int, [DEVICE, POINTER(structs.quire_device_info)]),
    "quire_device_choose_kind": (c_int, [DEVICE, POINTER(structs.quire_kind_request), POINTER(c_uint32)]),
    "quire_device_get_budget": (c_int, [DEVICE, c_uint32, POINTER(structs.quire_budget_info)]),
    "quire_device_set_heap_limit": (c_int, [DEVICE, c_uint32, c_uint64]),
    "quire_device_set_page_limit": (c_int, [DEVICE, c_uint64]),
    "quire_device_get_stats": (c_int, [DEVICE, POINTER(structs.quire_device_stats)]),
    "quire_device_destroy": (c_int, [OUT]),

    "quire_memory_create": (c_int, [DEVICE, POINTER(structs.quire_memory_options), OUT]),
    "quire_memory_destroy": (c_int, [OUT]),
    "quire_memory_destroy_all": (None, [OUT]),
    "quire_memory_get_info": (c_int, [MEMORY, POINTER(structs.quire_memory_info)]),
    "quire_page_get_info": (c_int, [MEMORY, c_uint32, POINTER(structs.quire_page_info)]),
    "quire_memory_trim": (c_int, [MEMORY, c_uint64, POINTER(c_uint64)]),
    "quire_memory_preallocate": (c_int, [MEMORY, c_uint64]),
    "quire_memory_set_limit": (c_int, [MEMORY, c_uint64]),
    "quire_memory_set_name_limit": (c_int, [MEMORY, c_char_p, c_uint64]),
    "quire_memory_get_name_usage": (c_int, [MEMORY, c_char_p, POINTER(structs.quire_name_usage)]),

    "quire_allocate": (c_int, [MEMORY, POINTER(structs.quire_allocation_options), POINTER(ID)]),
    "quire_buffer_create": (c_int, [MEMORY, POINTER(structs.quire_buffer_options), POINTER(structs.quire_buffer)]),
    "quire_free": (c_int, [MEMORY, ID]),
    "quire_allocation_get_info": (c_int, [MEMORY, ID, POINTER(structs.quire_allocation_info)]),
    "quire_allocation_get_name": (c_int, [MEMORY, ID, c_char_p, c_size_t]),
    "quire_allocation_set_name": (c_int, [MEMORY, ID, c_char_p]),
    "quire_allocation_set_user_data": (c_int, [MEMORY, ID, c_uint64]),
    "quire_allocation_hold": (c_int, [MEMORY, ID]),
    "quire_allocation_release": (c_int, [MEMORY, ID]),
    "quire_map": (c_int, [MEMORY, ID, OUT]),
    "quire_unmap": (c_int, [MEMORY, ID]),
    "quire_flush": (c_int, [MEMORY, ID, c_uint64, c_uint64]),
    "quire_invalidate": (c_int, [MEMORY, ID, c_uint64, c_uint64]),
    "quire_write": (c_int, [MEMORY, ID, c_uint64, POINTER_TO, c_uint64]),
    "quire_read": (c_int, [MEMORY, ID, c_uint64, POINTER_TO, c_uint64]),

    "quire_copy": (c_int, [POINTER(structs.quire_copy_options), POINTER(structs.quire_point)]),
    "quire_fill": (c_int, [MEMORY, ID, POINTER(structs.quire_fill_options), POINTER(structs.quire_point)]),

    "quire_stream_create": (c_int, [DEVICE, POINTER(structs.quire_stream_options), OUT]),
    "quire_stream_destroy": (c_int, [OUT]),
    "quire_stream_get_info": (c_int, [STREAM, POINTER(structs.quire_stream_info)]),
    "quire_stream_mark": (c_int, [STREAM, POINTER(structs.quire_point)]),
    "quire_stream_wait": (c_int, [STREAM, POINTER(structs.quire_point)]),
    "quire_point_has_passed": (c_int, [POINTER(structs.quire_point), POINTER(c_bool)]),
    "quire_point_await": (c_int, [POINTER(structs.quire_point), c_uint64]),
    "quire_free_after": (c_int, [MEMORY, ID, POINTER(structs.quire_point)]),
    "quire_free_on": (c_int, [MEMORY, ID, STREAM]),
    "quire_record_use": (c_int, [MEMORY, ID, STREAM]),
    "quire_collect": (c_int, [MEMORY, POINTER(c_uint64)]),

    "quire_memory_get_stats": (c_int, [MEMORY, POINTER(structs.quire_memory_stats)]),
    "quire_memory_push_stats": (c_int, [MEMORY]),
    "quire_memory_pop_stats": (c_int, [MEMORY, POINTER(structs.quire_memory_stats)]),
    "quire_memory_check": (c_int, [MEMORY]),
    "quire_memory_walk": (c_int, [MEMORY, structs.VISIT, c_void_p]),
    "quire_memory_write_report": (c_int, [MEMORY, structs.SINK, c_void_p]),
    "quire_memory_write_json": (c_int, [MEMORY, structs.SINK, c_void_p]),
    "quire_memory_write_svg": (c_int, [MEMORY, structs.SINK, c_void_p]),

    "quire_trace_parse": (c_int, [c_char_p, c_char_p, c_size_t, c_void_p, OUT]),
    "quire_trace_destroy": (None, [OUT]),
    "quire_trace_get_info": (c_int, [TRACE, POINTER(structs.quire_trace_info)]),
    "quire_trace_replay": (c_int, [TRACE, MEMORY, POINTER(structs.quire_replay_options),
                                   POINTER(structs.quire_replay_report)]),

    "quire_host_open": (c_int, [POINTER(backend.quire_host_options), OUT]),
    "quire_host_set_budget": (c_int, [DEVICE, c_uint32, c_uint64]),
    "quire_host_stream_create": (c_int, [DEVICE, POINTER(backend.quire_host_stream_options), OUT]),
    "quire_host_stream_run": (c_int, [STREAM, c_uint64, POINTER(c_uint64)]),

    "quire_cuda_open": (c_int, [POINTER(backend.quire_cuda_options), OUT]),
    "quire_cuda_wrap": (c_int, [POINTER(backend.quire_cuda_wrap_options), OUT]),
    "quire_cuda_get_info": (c_int, [DEVICE, POINTER(backend.quire_cuda_info)]),
    "quire_cuda_get_kind_info": (c_int, [DEVICE, c_uint32, POINTER(backend.quire_cuda_kind_info)]),
    "quire_cuda_find_kind": (c_int, [DEVICE, c_int, c_int, POINTER(c_uint32)]),
    "quire_cuda_stream_wrap": (c_int, [DEVICE, c_void_p, c_char_p, OUT]),
    "quire_cuda_stream_get": (c_int, [STREAM, OUT]),

    "quire_vulkan_open": (c_int, [POINTER(backend.quire_vulkan_options), OUT]),
}
