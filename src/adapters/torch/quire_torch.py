# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire as the CUDA allocator of PyTorch.

    import quire_torch
    quire_torch.use()            # before PyTorch allocates CUDA memory

PyTorch offers no statistics and no snapshots with an allocator of its user; this module does:
statistics, snapshot, dump_snapshot (for https://pytorch.org/memory_viz), record. Tensors that were
allocated under a tag give their memory to others and get it back: tagged, sleep, wake.
docs/adapters/pytorch.md has the details. QUIRE_TORCH_LIBRARY names libquire_torch.so if it is neither
beside this file nor where the system looks for libraries.
"""

import contextlib
import ctypes
import difflib
import json
import os
import pathlib
import pickle
import warnings

_library = None
_allocator = None  # PyTorch keeps the functions, not the object

_HOOKS = {
    "set_init_fn": "quire_torch_init",
    "set_reset_fn": "quire_torch_reset",
    "set_memory_fraction_fn": "quire_torch_memory_fraction",
    "set_base_alloc_fn": "quire_torch_base_alloc",
    "set_record_stream_fn": "quire_torch_record_stream",
    "set_begin_allocate_to_pool": "quire_torch_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "quire_torch_end_allocate_to_pool",
    "set_release_pool": "quire_torch_release_pool",
}


_PREFIX, _VARIABLE = "QUIRE_TORCH_", "QUIRE_TORCH_LIBRARY"
_OTHER_PREFIX = "QUIRE_TORCH_CPU_"  # libquire_torch_cpu.so reads these, and reports unknown ones itself


def _warn_of_unknown_variables():
    for name, text in os.environ.items():
        if not text or name == _VARIABLE or not name.startswith(_PREFIX) or name.startswith(_OTHER_PREFIX):
            continue
        meant = f"; is {_VARIABLE} meant?" if difflib.get_close_matches(name, [_VARIABLE], cutoff=0.8) else ""
        # ascii: the name of a variable can have any bytes but '='
        warnings.warn(f"{ascii(name)[1:-1]} is unknown and has no effect{meant}", RuntimeWarning, stacklevel=4)


def library_path():
    """Returns the path of libquire_torch.so, or its name for the system's search."""
    given = os.environ.get(_VARIABLE)
    beside = pathlib.Path(__file__).resolve().with_name("libquire_torch.so")
    return given or (str(beside) if beside.exists() else "libquire_torch.so.0")


def library():
    """Loads libquire_torch.so once and returns it."""
    global _library
    if _library is None:
        _warn_of_unknown_variables()
        loaded = ctypes.CDLL(library_path())
        for name in ("quire_torch_statistics", "quire_torch_snapshot"):
            getattr(loaded, name).restype = ctypes.c_void_p
        loaded.quire_torch_text_free.argtypes = [ctypes.c_void_p]
        loaded.quire_torch_text_free.restype = None
        loaded.quire_torch_message.restype = ctypes.c_char_p
        loaded.quire_torch_record_history.argtypes = [ctypes.c_uint64]
        loaded.quire_torch_reset_peaks.argtypes = [ctypes.c_int]
        loaded.quire_torch_set_tag.argtypes = [ctypes.c_char_p]
        loaded.quire_torch_tag.restype = ctypes.c_char_p
        count = ctypes.POINTER(ctypes.c_uint64)
        loaded.quire_torch_sleep.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, count]
        loaded.quire_torch_wake.argtypes = [ctypes.c_int, ctypes.c_char_p, count]
        _library = loaded
    return _library


def _new_allocator(allocate, free):
    import torch

    library()  # reports a missing library by its own name
    return torch.cuda.memory.CUDAPluggableAllocator(library_path(), allocate, free)


def use():
    """Makes quire the CUDA allocator of this process. PyTorch refuses it after its first CUDA allocation."""
    global _allocator
    import torch

    if _allocator is not None:
        return
    allocator = _new_allocator("quire_torch_alloc", "quire_torch_free")
    inner = allocator.allocator()
    for setter, function in _HOOKS.items():
        address = ctypes.cast(getattr(library(), function), ctypes.c_void_p).value
        getattr(inner, setter)(address)
    torch.cuda.memory.change_current_allocator(allocator)
    _allocator = allocator


def mem_pool(**options):
    """Returns a torch.cuda.MemPool whose segments are quire's, for torch.cuda.use_mem_pool. PyTorch's own
    allocator stays in use, and divides the segments. `options` go to MemPool (no_split=True)."""
    import torch

    if _allocator is not None:
        raise RuntimeError("PyTorch has no MemPool when quire is its allocator: call mem_pool without use")
    allocator = _new_allocator("quire_torch_pool_alloc", "quire_torch_pool_free")
    return torch.cuda.MemPool(allocator.allocator(), **options)


def _check(result):
    if result:
        raise RuntimeError(library().quire_torch_message().decode())


def _encoded(tag):
    if tag is not None and "\0" in tag:
        raise ValueError(f"the tag {tag!r} contains a zero byte")
    return None if tag is None else tag.encode()


@contextlib.contextmanager
def tagged(tag):
    """Names by `tag` what this thread allocates inside, for sleep and wake; None: no tag. Blocks nest: the inner tag
    counts. Other threads, such as those of backward, keep their own tags."""
    loaded = library()
    previous = loaded.quire_torch_tag()
    _check(loaded.quire_torch_set_tag(_encoded(tag)))
    try:
        yield
    finally:
        _check(loaded.quire_torch_set_tag(previous))


def sleep(tag=None, keep=True, device=0):
    """Takes the memory of the tensors whose tags begin with `tag`; None: of all. With `keep` their contents wait in
    host memory, otherwise they are lost. Until wake nothing may use the tensors; they can be deleted. Waits for the
    work of the device first. Returns the bytes that the device has back. The memory must be elastic."""
    count = ctypes.c_uint64()
    _check(library().quire_torch_sleep(device, _encoded(tag), bool(keep), ctypes.byref(count)))
    return count.value


def wake(tag=None, device=0):
    """Gives memory at the same addresses to the sleeping tensors whose tags begin with `tag`; None: to all. All of
    them wake, or none: a RuntimeError says that memory is short. Returns the bytes that the device gave."""
    count = ctypes.c_uint64()
    _check(library().quire_torch_wake(device, _encoded(tag), ctypes.byref(count)))
    return count.value


def _text(function):
    pointer = function()
    if not pointer:
        raise MemoryError("quire_torch: no host memory for the text")
    try:
        return json.loads(ctypes.string_at(pointer).decode())
    finally:
        library().quire_torch_text_free(pointer)


def statistics():
    """Returns the statistics of all devices on which quire has allocated."""
    return _text(library().quire_torch_statistics)


def device_statistics(device=0):
    """Returns the statistics of one device; raises LookupError if nothing was allocated on it."""
    for found in statistics()["devices"]:
        if found["device"] == device:
            return found
    raise LookupError(f"quire has allocated nothing on device {device}")


def reset_peaks(device=0):
    """Lets the peaks of a device's memory begin at its present use."""
    _check(library().quire_torch_reset_peaks(device))


def record(entries=100000):
    """Records the last `entries` allocations, frees, refusals and changes of pages for snapshot; 0 stops and
    forgets them."""
    if entries < 0:
        raise ValueError(f"{entries} entries")
    _check(library().quire_torch_record_history(entries))


def snapshot():
    """Returns pages, ranges and recorded entries in the form of torch.cuda.memory._snapshot. It has no
    stack frames."""
    taken = _text(library().quire_torch_snapshot)
    for segment in taken["segments"]:
        segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
    for trace in taken["device_traces"]:
        for entry in trace:
            entry["pool_id"] = tuple(entry["pool_id"])
    return taken


def dump_snapshot(path):
    """Writes a snapshot that https://pytorch.org/memory_viz opens."""
    taken = snapshot()
    with open(path, "wb") as file:
        pickle.dump(taken, file, protocol=4)
