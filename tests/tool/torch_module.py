# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire_torch.py and libquire_torch.so on the emulated driver. A module stands in for PyTorch, as PyTorch itself
needs a GPU: it loads the functions that it is given by ctypes, and calls them as PyTorch does.

usage: torch_module.py SOURCE_ROOT LIBRARY DRIVER_FOLDER
"""

import ctypes
import os
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile

from tap import Tap

STAND_IN = """
import ctypes, sys, types
current = None

class Inner:
    def __init__(self, allocate, free):
        self.allocate, self.free, self.hooks = allocate, free, {}
    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda address: self.hooks.__setitem__(name, address)

class CUDAPluggableAllocator:
    def __init__(self, path, allocate, free):
        library = ctypes.CDLL(path)
        malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        self.inner = Inner(malloc((allocate, library)), release((free, library)))
        self.names = allocate, free
    def allocator(self):
        return self.inner

def change_current_allocator(allocator):
    global current
    if current:
        raise RuntimeError("swapped twice")
    current = allocator

class MemPool:
    def __init__(self, allocator, **options):
        self.allocator, self.options = allocator, options

cuda = types.SimpleNamespace(MemPool=MemPool, memory=types.SimpleNamespace(
    CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=change_current_allocator))
"""

HOOKS = {"set_init_fn", "set_reset_fn", "set_memory_fraction_fn", "set_base_alloc_fn", "set_record_stream_fn",
         "set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool"}


# What the reader of PyTorch's viewer knows (torch/utils/viz/MemoryViz.js, unpickle).
VIEWER_OPCODES = set("""PROTO APPEND APPENDS LIST TUPLE NEWFALSE NEWTRUE NONE BINGET BININT BININT1 BININT2 EMPTY_DICT
    EMPTY_LIST FRAME LONG1 LONG_BINGET MARK MEMOIZE BINPUT LONG_BINPUT SETITEMS SETITEM DICT SHORT_BINUNICODE
    BINUNICODE STOP EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 BINFLOAT""".split())


def as_allocator(folder):
    import quire_torch
    import torch

    quire_torch.use()
    quire_torch.use()
    inner = torch.current.inner
    if torch.current.names != ("quire_torch_alloc", "quire_torch_free") or set(inner.hooks) != HOOKS:
        yield f"{torch.current.names} {inner.hooks}"
    if not all(inner.hooks.values()):
        yield f"addresses: {inner.hooks}"
    if quire_torch.statistics()["devices"]:
        yield "a device is open before the first allocation"
    quire_torch.record(10)
    kept, freed = inner.allocate(1000, 0, None), inner.allocate(3 << 20, 0, None)
    inner.free(freed, 3 << 20, 0, None)
    found = quire_torch.device_statistics(0)
    memory = found["memory"]
    waiting, peak = memory["waiting_bytes"], memory["peak_requested_bytes"]
    if memory["requested_bytes"] - waiting != 1000 or peak != 1000 + (3 << 20):
        yield str(found)
    quire_torch.reset_peaks(0)
    ctypes.CFUNCTYPE(None)(inner.hooks["set_reset_fn"])()
    if quire_torch.device_statistics(0)["memory"]["waiting_bytes"]:
        yield "reset leaves ranges waiting"
    yield from snapshot_problems(quire_torch, folder, kept)
    inner.free(kept, 1000, 0, None)


def snapshot_problems(quire_torch, folder, kept):
    quire_torch.dump_snapshot(folder / "snapshot.pickle")
    data = (folder / "snapshot.pickle").read_bytes()
    taken = pickle.loads(data)
    unknown = {code.name for code, _, _ in pickletools.genops(data)} - VIEWER_OPCODES
    if data[:2] != b"\x80\x04" or unknown:
        yield f"the viewer cannot read this pickle: {unknown}"
    blocks = [block for segment in taken["segments"] for block in segment["blocks"]]
    live = [block for block in blocks if block["state"] == "active_allocated"]
    if [(block["address"], block["requested_size"]) for block in live] != [(kept, 1000)]:
        yield str(taken)
    for segment in taken["segments"]:
        end = segment["address"]
        for block in segment["blocks"]:
            if block["address"] != end or block["frames"] != []:
                yield str(block)
            end += block["size"]
        if end != segment["address"] + segment["total_size"] or segment["segment_pool_id"] != (0, 0):
            yield str(segment)
    actions = [entry["action"] for entry in taken["device_traces"][0]]
    if actions != ["segment_alloc", "alloc", "segment_alloc", "alloc", "free_requested", "free_completed",
                   "segment_free"]:
        yield str(actions)


def refused(kind, part, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return [] if part in str(error) else [str(error)]
    return [f"{call} refuses nothing"]


def asleep(_):
    import quire_torch
    import torch

    os.environ["QUIRE_OPTIONS"] = "elastic"
    quire_torch.use()
    inner, size = torch.current.inner, 4 << 20
    with quire_torch.tagged("a.weights"):
        weights = inner.allocate(size, 0, None)
        with quire_torch.tagged("a.cache"):
            cache = inner.allocate(size, 0, None)
        with quire_torch.tagged(None):
            untagged = inner.allocate(size, 0, None)
        yield from refused(RuntimeError, "a tag is empty", quire_torch.tagged("").__enter__)
        more = inner.allocate(size, 0, None)
    last = inner.allocate(size, 0, None)
    found = [quire_torch.sleep("a.weights"), quire_torch.sleep("a.", keep=False), quire_torch.sleep("b")]
    if found != [2 * size, size, 0] or quire_torch.device_statistics(0)["memory"]["asleep_bytes"] != 3 * size:
        yield f"asleep: {found} {quire_torch.device_statistics(0)}"
    found = [quire_torch.wake("a.cache"), quire_torch.wake(), quire_torch.sleep(), quire_torch.wake()]
    if found != [size, 2 * size, 5 * size, 5 * size]:
        yield f"awake: {found}"
    for pointer in weights, cache, untagged, more, last:
        inner.free(pointer, size, 0, None)
    if quire_torch.device_statistics(0)["memory"]["allocations"]:
        yield str(quire_torch.device_statistics(0))


def misuse(_):
    import quire_torch

    quire_torch.use()
    yield from refused(RuntimeError, "without use", quire_torch.mem_pool)
    yield from refused(ValueError, "-1 entries", quire_torch.record, -1)
    yield from refused(RuntimeError, "history", quire_torch.record, 2**64 - 1)
    yield from refused(RuntimeError, "device 99", quire_torch.reset_peaks, 99)
    yield from refused(LookupError, "device 5", quire_torch.device_statistics, 5)
    yield from refused(ValueError, "zero byte", quire_torch.sleep, "a\0b")
    yield from refused(RuntimeError, "256 bytes", quire_torch.sleep, "a" * 256)
    yield from refused(RuntimeError, "device 0 has no allocation", quire_torch.sleep)
    yield from refused(RuntimeError, "device 0 has no allocation", quire_torch.wake)
    plain = torch_allocation(1000)
    yield from refused(RuntimeError, "elastic", quire_torch.sleep)
    if quire_torch.wake():
        yield "something slept"
    plain()


def torch_allocation(size):
    """Allocates as PyTorch does. Returns what frees it."""
    import torch

    inner = torch.current.inner
    pointer = inner.allocate(size, 0, None)
    return lambda: inner.free(pointer, size, 0, None)


def unknown_variables(_):
    import warnings

    import quire_torch

    os.environ.update(QUIRE_TORCH_LIBARY="/opt/libquire_torch.so", QUIRE_TORCH_PAGE_SIZE="8m", QUIRE_TORCH_EMPTY="",
                      QUIRE_TORCH_CPU_PAGE_SIZE="8m", QUIRE_TRACE="")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        quire_torch.statistics()
        quire_torch.statistics()
    said = sorted(f"{warning.category.__name__}: {warning.message}" for warning in found)
    if said != ["RuntimeWarning: QUIRE_TORCH_LIBARY is unknown and has no effect; is QUIRE_TORCH_LIBRARY meant?",
                "RuntimeWarning: QUIRE_TORCH_PAGE_SIZE is unknown and has no effect"]:
        yield str(said)


def as_pool(_):
    """In a process of its own: a process has one allocator."""
    import quire_torch

    pool = quire_torch.mem_pool(no_split=True)
    pointer = pool.allocator.allocate(20 << 20, 0, None)
    if not pointer or pool.options != {"no_split": True}:
        yield f"{pointer} {pool.options}"
    if pool.allocator.allocate(1 << 45, 0, None):
        yield "exhausted memory gives a pointer"
    pool.allocator.free(pointer, 20 << 20, 0, None)


def pool_asleep(_):
    """The segments of a pool have the tag of the thread that makes PyTorch request them."""
    import quire_torch

    os.environ["QUIRE_OPTIONS"] = "elastic"
    pool, size = quire_torch.mem_pool(), 20 << 20
    with quire_torch.tagged("pool"):
        pointer = pool.allocator.allocate(size, 0, None)
    found = [quire_torch.sleep("pool"), quire_torch.wake("pool")]
    if found != [size, size]:
        yield str(found)
    pool.allocator.free(pointer, size, 0, None)


def run_inside(name, folder):
    for problem in globals()[name](pathlib.Path(folder)):
        print(problem)


def sanitizer_of(library):
    """The runtime of an address sanitizer, which must be loaded before the library."""
    listed = subprocess.run(["ldd", library], text=True, capture_output=True, check=True).stdout
    return [word for line in listed.splitlines() if "libasan" in line for word in line.split() if word[0] == "/"]


def main():
    root, library, driver = map(pathlib.Path, sys.argv[1:4])
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "torch.py").write_text(STAND_IN)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (folder, root / "src/adapters/torch", root / "tests/static"))),
            "LD_LIBRARY_PATH": str(driver),
            "LD_PRELOAD": " ".join(sanitizer_of(library)),
            "QUIRE_TORCH_LIBRARY": str(library),
        }
        program = "import runpy, sys; runpy.run_path(sys.argv[1])['run_inside'](*sys.argv[2:])"
        for case, function in (("as PyTorch's allocator", "as_allocator"), ("misuse", "misuse"),
                               ("tags sleep and wake", "asleep"),
                               ("unknown variables are reported", "unknown_variables"),
                               ("as the allocator of a pool", "as_pool"),
                               ("the segments of a pool sleep and wake", "pool_asleep")):
            done = subprocess.run([sys.executable, "-c", program, __file__, function, str(folder)], text=True,
                                  capture_output=True, check=False, env=environment)
            problems = done.stdout.splitlines()
            if done.returncode:
                problems += done.stderr.splitlines()[-8:] or [f"status {done.returncode}"]
            tap.case(case, problems)
    tap.end()


if __name__ == "__main__":
    main()
