# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack: capsules that other libraries turn into arrays on the same bytes.

https://dmlc.github.io/dlpack has the structures. A capsule that nobody has consumed ends the view when it is
garbage; a consumer ends it with the deleter.
"""

import ctypes
from ctypes import (CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16,
                    c_uint32, c_uint64, c_void_p)
from typing import Any, Set, Tuple

# device types
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13

_VERSION = (1, 0)
_READ_ONLY = 1
_NAME, _VERSIONED_NAME = b"dltensor", b"dltensor_versioned"


class _Device(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class _DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device", _Device), ("ndim", c_int32), ("dtype", _DataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


_DELETER = CFUNCTYPE(None, c_void_p)


class _Managed(Structure):
    _fields_ = [("dl_tensor", _Tensor), ("manager_ctx", c_void_p), ("deleter", _DELETER)]


class _ManagedVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", _DELETER),
                ("flags", c_uint64), ("dl_tensor", _Tensor)]


class _Live(int):
    """The address of a managed tensor, with the tensor and the view, which end with this object."""

    managed: Any
    export: object


_live: "Set[_Live]" = set()
_delete = _DELETER(_live.discard)  # a function of C, which no interrupt can stop; it takes the address alone


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_capsule_is_valid = _python("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
_capsule_get = _python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


_DESTRUCTOR = PYFUNCTYPE(None, c_void_p)


@_DESTRUCTOR
def _destroy_capsule(capsule: int) -> None:
    for name in (_NAME, _VERSIONED_NAME):
        if _capsule_is_valid(capsule, name):  # a consumer changes the name
            _live.discard(_capsule_get(capsule, name))


_capsule_new = _python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, _DESTRUCTOR)


def capsule(pointer: int, device: Tuple[int, int], dtype: Any, shape: Tuple[int, ...], strides: Tuple[int, ...],
            is_read_only: bool, is_versioned: bool, export: object) -> Any:
    """Return a capsule, which keeps `export` until the last user of the bytes ends. Strides count elements."""
    managed: Any = _ManagedVersioned() if is_versioned else _Managed()
    sizes, steps = (c_int64 * max(len(shape), 1))(*shape), (c_int64 * max(len(shape), 1))(*strides)
    if is_versioned:
        managed.major, managed.minor = _VERSION
        managed.flags = _READ_ONLY if is_read_only else 0
    tensor = managed.dl_tensor
    tensor.data = pointer
    tensor.device = _Device(*device)
    tensor.ndim = len(shape)
    tensor.dtype = _DataType(dtype.code, 8 * dtype.itemsize, 1)
    tensor.shape = sizes
    tensor.strides = steps
    managed.deleter = _delete
    live = _Live(ctypes.addressof(managed))
    live.managed, live.export = managed, export
    made = _capsule_new(int(live), _VERSIONED_NAME if is_versioned else _NAME, _destroy_capsule)
    _live.add(live)  # from here on the end of the capsule is that of the view
    return made
