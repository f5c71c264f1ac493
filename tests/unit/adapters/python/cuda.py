# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA devices from Python, and the functions that CuPy, Numba and cuda.core call, on the emulated driver.

Where a framework is not installed, a module with the names that it has stands in for it. tests/gpu/frameworks has
the tests of the real ones, on a device.
"""

import ctypes
import gc
import importlib.util
import os
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

import quire
from quire import dlpack

from support import CUDA_DRIVER, SOURCE, consume, in_child, in_threads, needs_cuda, run_python

NUMBA_PROGRAM = """
import gc, numpy, quire.numba
from numba import cuda
quire.numba.set_memory_manager()
array = cuda.to_device(numpy.arange(1000, dtype="float32"))
memory = quire.numba.memory(0)
print(memory.statistics.allocation_count, memory.statistics.requested_bytes, array.copy_to_host()[-1])
info = cuda.current_context().get_memory_info()
assert 0 < info.free <= info.total
del array
gc.collect()
while memory.statistics.deferred_count:
    memory.collect()
print(memory.statistics.allocation_count)
try:
    cuda.device_array(1 << 45, dtype="uint8")
except MemoryError as error:
    print(type(error).__name__)
buffer = quire.open_cuda().create_memory().buffer(64)
buffer.write(numpy.arange(16, dtype="float32"))
shared = cuda.as_cuda_array(buffer.array("float32"))
print(shared.copy_to_host()[5], cuda.from_cuda_array_interface(
    buffer.array("float32").__cuda_array_interface__).copy_to_host()[5])
"""

TWO_DEVICES = """
import ctypes, quire
from quire._pointers import DevicePointers
driver = ctypes.CDLL("libcuda.so.1")
pointers = DevicePointers("two", ())
contexts = [ctypes.c_void_p(quire.cuda_info(pointers.of(i).memory.device).context) for i in (0, 1)]
for mine, other in (contexts, contexts[::-1]):
    driver.cuCtxSetCurrent(mine)
    driver.cuCtxEnablePeerAccess(other, 0)
a, b = (pointers.of(i).allocate(4096, 1) for i in (0, 1))
print(driver.cuMemcpyDtoD_v2(ctypes.c_uint64(b), ctypes.c_uint64(a), ctypes.c_size_t(4096)))
print(quire.open_cuda(0, peers=[1]).create_memory().buffer(64).address > 0)
"""


# where programs find the emulated driver
DRIVER_PATH = os.pathsep.join([os.path.dirname(CUDA_DRIVER), os.environ.get("LD_LIBRARY_PATH", "")])


def open_device(**options):
    return quire.open_cuda(library=CUDA_DRIVER, **options)


class NativeStream:
    """A stream of another library: a CUstream of the driver."""

    def __init__(self, device):
        self.driver = ctypes.CDLL(CUDA_DRIVER)
        handle = ctypes.c_void_p()
        assert self.driver.cuCtxSetCurrent(ctypes.c_void_p(quire.cuda_info(device).context)) == 0
        assert self.driver.cuStreamCreate(ctypes.byref(handle), 0) == 0
        self.ptr = handle.value

    def __cuda_stream__(self):
        return (0, self.ptr)


@needs_cuda
class Cuda(unittest.TestCase):
    def setUp(self):
        self.device = open_device(kinds=[quire.CudaPageKind.DEVICE, quire.CudaPageKind.PINNED,
                                         quire.CudaPageKind.MANAGED])
        self.memory = self.device.create_memory("device")

    def kind(self, page_kind):
        flags = quire.MemoryFlags.HOST_VISIBLE if page_kind != quire.CudaPageKind.DEVICE else quire.MemoryFlags(0)
        return self.device.create_memory(kind_mask=1 << quire.find_kind(self.device, page_kind), flags=flags)

    def test_device(self):
        info = quire.cuda_info(self.device)
        self.assertEqual((self.device.backend, info.ordinal, len(info.uuid)), ("cuda", 0, 16))
        self.assertTrue(info.is_primary and info.has_virtual_memory)
        wrapped = quire.wrap_context(info.context, library=CUDA_DRIVER)
        self.assertEqual(quire.cuda_info(wrapped).context, info.context)
        self.assertFalse(quire.cuda_info(wrapped).is_primary)

    def test_bytes(self):
        a = self.memory.buffer(4096, zero=True)
        a.write(b"device", 10)
        self.assertEqual(a.read(8, 10), b"\0\0device\0\0")
        self.assertRaisesRegex(quire.NotHostVisibleError, "use read, write or DLPack$", a.view)
        pinned = self.kind(quire.CudaPageKind.PINNED).buffer(4096)
        pinned.copy_from(a, size=4096)
        self.assertEqual(bytes(pinned.view()[10:16]), b"device")

    def test_interface(self):
        a = self.memory.buffer(4096)
        array = a.array("float32", (4, 8), offset=256)
        self.assertEqual(array.__cuda_array_interface__, {
            "shape": (4, 8), "typestr": "<f4", "data": (a.address + 256, False), "version": 3, "strides": None,
            "stream": None})
        self.assertEqual(a.__cuda_array_interface__["shape"], (4096,))
        stream = quire.wrap_stream(self.device, 0)
        on_default = self.memory.buffer(64, stream=stream)
        self.assertEqual(on_default.__cuda_array_interface__["stream"], 1)
        native = NativeStream(self.device)
        on_stream = self.memory.buffer(64, stream=quire.wrap_stream(self.device, native))
        self.assertEqual(on_stream.__cuda_array_interface__["stream"], native.ptr)
        self.assertFalse(hasattr(a.array("bfloat16"), "__cuda_array_interface__"))
        a.free()
        with self.assertRaises(quire.StaleHandleError):
            a.__cuda_array_interface__["data"]

    def test_dlpack(self):
        a = self.memory.buffer(4096)
        self.assertEqual(a.__dlpack_device__(), (dlpack.CUDA, 0))
        for stream in (None, -1, 1, 2):
            managed = consume(a.array("bfloat16", (16, 128)).__dlpack__(stream=stream))
            tensor = managed.dl_tensor
            self.assertEqual((tensor.data, tensor.dtype.code, tensor.dtype.bits, tensor.shape[:2]),
                             (a.address, 4, 16, [16, 128]))
            self.assertEqual((tensor.device.device_type, tensor.device.device_id), (2, 0))
            self.assertRaisesRegex(BufferError, "1 view uses", a.free)
            managed.deleter(ctypes.addressof(managed))
        a.free()
        for kind, expected in ((quire.CudaPageKind.PINNED, 3), (quire.CudaPageKind.MANAGED, 13)):
            b = self.kind(kind).buffer(64)
            self.assertEqual(b.__dlpack_device__(), (expected, 0))
            managed = consume(b.__dlpack__())
            self.assertEqual(managed.dl_tensor.device.device_type, expected)
            managed.deleter(ctypes.addressof(managed))
            b.free()

    def test_dlpack_order(self):
        """The stream of the consumer waits for the stream of the allocation."""
        stream, consumer = self.device.create_stream(), NativeStream(self.device)
        a = self.memory.buffer(4096, stream=stream)
        with mock.patch.object(quire.Stream, "wait", autospec=True, side_effect=quire.Stream.wait) as wait:
            capsule = a.__dlpack__(stream=consumer.ptr)
            self.assertEqual(wait.call_args[0][1].stream, stream)
            del capsule
            a.__dlpack__(stream=-1)
            self.assertEqual(wait.call_count, 1)
        a.free()

    def test_streams(self):
        native = NativeStream(self.device)
        stream = quire.wrap_stream(self.device, native, "cupy")
        self.assertEqual((stream.name, quire.cuda.native_stream(stream)), ("cupy", native.ptr))
        a = self.memory.buffer(4096, stream=stream)
        address = a.address
        a.fill(3, stream=stream)
        a.free()
        b = self.memory.buffer(4096, stream=stream)
        self.assertEqual(b.address, address)  # reused in the order of the stream
        b.free()
        stream.synchronize()
        self.memory.collect()
        self.assertEqual(self.memory.statistics.allocation_count, 0)
        for value, expected in ((0, 0), (2, 2), (types.SimpleNamespace(cuda_stream=5), 5),
                                (types.SimpleNamespace(handle=ctypes.c_void_p(6)), 6),
                                (types.SimpleNamespace(handle=ctypes.c_void_p(0)), 0),
                                (types.SimpleNamespace(__cuda_stream__=(0, 7)), 7)):
            self.assertEqual(quire.cuda.stream_handle(value), expected)
        for value in ("stream", None, object()):
            self.assertRaises(TypeError, quire.cuda.stream_handle, value)
        with self.assertRaises(quire.UnsupportedError):
            quire.cuda.stream_handle(types.SimpleNamespace(__cuda_stream__=(1, 7)))
        self.assertRaises(TypeError, quire.cuda.native_stream, native)
        self.assertRaises(quire.InvalidArgumentError, quire.cuda.stream_handle, -1)

    def test_misuse(self):
        with self.assertRaisesRegex(quire.UnsupportedError, "not found|cannot"):
            quire.open_cuda(library="/nonexistent/libcuda.so.1")
        self.assertRaises(quire.UnsupportedError, open_device, device=7)
        self.assertRaises(quire.UnsupportedError, open_device, device="no such device")
        self.assertRaises(ValueError, open_device, kinds=[99])
        self.assertRaises(quire.InvalidArgumentError, quire.wrap_context, 0, library=CUDA_DRIVER)
        self.assertRaises(quire.UnsupportedError, quire.find_kind, self.device, quire.CudaPageKind.TILES)
        self.assertRaises(MemoryError, self.memory.allocate, 1 << 40)

    def test_fork(self):
        """In a child nothing works, and everything can be destroyed, also by the end of the process."""
        a = self.memory.allocate(64)

        def work():
            self.assertRaises(quire.NotPermittedError, self.memory.allocate, 64)
            self.assertRaises(quire.NotPermittedError, a.free)
            self.memory.destroy_all()
            self.device.destroy_all()
        in_child(work)
        a.free()


@needs_cuda
class Frameworks(unittest.TestCase):
    def setUp(self):
        self.memory = open_device().create_memory("frameworks")

    def assert_empty(self):
        end = time.monotonic() + 5
        while self.memory.statistics.allocation_count and time.monotonic() < end:
            self.memory.collect()  # which marks streams; their points pass later
        self.assertEqual(self.memory.statistics.allocation_count, 0)

    def test_scripts_for_a_gpu(self):
        """Each script of scripts/test-gpu says why it skips, and prints its plan."""
        folder = os.path.join(SOURCE, "tests/gpu/frameworks")
        for name in ("cupy_arrays", "numba_arrays", "cuda_core_buffers"):
            done = subprocess.run([sys.executable, os.path.join(folder, name + ".py")], text=True, check=False,
                                  capture_output=True, env={
                                      **os.environ, "QUIRE_EMULATED": "yes",
                                      "QUIRE_BUILD": os.path.dirname(os.environ["QUIRE_LIBRARY"]),
                                      "PYTHONPATH": os.path.join(SOURCE, "tests/static")})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^ok 1 - \S+ # SKIP .* emulated driver\n1\.\.1\n$")

    def test_two_devices(self):
        """CuPy, Numba and cuda.core copy between devices without asking quire."""
        outputs = [run_python(TWO_DEVICES if flags else TWO_DEVICES.rsplit("print", 1)[0], LD_LIBRARY_PATH=DRIVER_PATH,
                              QUIRE_FAKE_CUDA_MODELS="h200,h200", QUIRE_FAKE_CUDA_FLAGS=flags)
                   for flags in ("peers", "")]
        self.assertEqual(outputs, ["0\nTrue\n", "0\n"])

    def test_settings(self):
        info = self.memory.device.info
        self.assertEqual(len(info.kinds), 3)
        plain = open_device(without=quire.CudaWithout.VIRTUAL_MEMORY).create_memory()
        self.assertFalse(plain.device.info.limits.elastic_kinds & 1)
        for wrong, error in (({"peers": [-1]}, quire.InvalidArgumentError), ({"peers": ["a"]}, TypeError),
                             ({"peers": [0]}, quire.InvalidArgumentError), ({"kind": []}, TypeError),
                             ({"without": 8}, quire.InvalidArgumentError), ({"peers": [1, 1]}, quire.QuireError)):
            self.assertRaises(error, open_device, **wrong)

    def test_pointers(self):
        from quire._pointers import Pointers
        pointers = Pointers(self.memory)
        first, second = NativeStream(self.memory.device), NativeStream(self.memory.device)
        a = pointers.allocate(1000, first)
        self.assertEqual((pointers.count, a % 256), (1, 0))
        pointers.free(a)
        self.assertEqual(pointers.allocate(1000, first), a)
        pointers.free(a, second)
        self.assertEqual([pointers._stream(stream).deferred for stream in (first, second)], [1, 1])
        pointers.free(0)
        self.assertEqual((pointers.allocate(0, first), pointers.count), (0, 0))
        for wrong in (a, 12345):
            self.assertRaises(quire.InvalidArgumentError, pointers.free, wrong)
        self.assertRaises(MemoryError, pointers.allocate, 1 << 40, first)
        self.assertRaises(TypeError, pointers.allocate, 64, "stream")
        for stream in (first, second):
            quire.wrap_stream(self.memory.device, stream).synchronize()
        self.assert_empty()

    def test_threads(self):
        from quire._pointers import Pointers
        pointers, errors, per_thread = Pointers(self.memory), [], []

        def work(seed):
            try:
                stream, live = NativeStream(self.memory.device), []
                for i in range(100):
                    live.append(pointers.allocate(256 * (1 + (seed + i) % 7), stream if i % 2 else 2))
                    if i % 3 == 0:
                        pointers.free(live.pop(0))
                per_thread.append(pointers._stream(2))
                for address in live:
                    pointers.free(address)
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)
        in_threads(work, 3)
        self.assertEqual((errors, pointers.count, len(set(per_thread))), ([], 0, 3))

    def test_cupy(self):
        import quire.cupy
        self.assertRaises(quire.InvalidArgumentError, quire.cupy.Allocator, self.memory, self.memory)
        calls, stream = [], NativeStream(self.memory.device)
        cuda = types.SimpleNamespace(
            set_allocator=calls.append, get_current_stream=lambda: stream,
            PythonFunctionAllocator=lambda malloc, free: types.SimpleNamespace(malloc=malloc, free=free))
        with mock.patch.dict(sys.modules, {"cupy": types.SimpleNamespace(cuda=cuda)}):
            allocator = quire.cupy.set_allocator(self.memory)
            address = calls[0](1000, 0)
            self.assertEqual(self.memory.statistics.requested_bytes, 1000)
            self.assertEqual(allocator.memory(), self.memory)
            self.assertEqual(calls[0](0, 0), 0)
            allocator.free(address, 0)
            self.assertEqual(calls[0](1000, 0), address)
            allocator.free(address, 0)
            with self.assertRaises(MemoryError):
                calls[0](1 << 40, 0)
        quire.wrap_stream(self.memory.device, stream).synchronize()
        self.assert_empty()

    def test_numba(self):
        class Manager:
            """What Numba's class for host memory has."""

            def __init__(self, context):
                self.context, self.is_ready = context, False

            def initialize(self):
                self.is_ready = True

        def pointer(context, pointer, size, finalizer=None):
            return types.SimpleNamespace(context=context, value=pointer.value, size=size, finalizer=finalizer)

        managers = []
        cuda = types.ModuleType("numba.cuda")
        cuda.HostOnlyCUDAMemoryManager, cuda.MemoryPointer = Manager, pointer
        cuda.MemoryInfo = lambda free, total: (free, total)
        cuda.set_memory_manager = managers.append
        numba = types.SimpleNamespace(cuda=cuda, config=types.SimpleNamespace())
        sys.modules.pop("quire.numba", None)
        with mock.patch.dict(sys.modules, {"numba": numba, "numba.cuda": cuda}):
            import quire.numba
            quire.numba.use_memory(self.memory)
            quire.numba.set_memory_manager()
            self.assertEqual(managers, [quire.numba._numba_memory_manager])
            manager = managers[0](types.SimpleNamespace(device=types.SimpleNamespace(id=0)))
            manager.initialize()
            self.assertEqual((manager.is_ready, manager.interface_version), (True, 1))
            allocated = [manager.memalloc(size) for size in (1000, 0)]
            self.assertEqual([a.size for a in allocated], [1000, 0])
            self.assertEqual(self.memory.statistics.allocation_count, 2)
            free, total = manager.get_memory_info()
            self.assertTrue(0 < free < total)
            with self.assertRaises(NotImplementedError):
                manager.get_ipc_handle(allocated[0])
            for a in allocated:
                a.finalizer()
                a.finalizer()  # after a reset of the context: nothing
            self.assertEqual(quire.numba.memory(), self.memory)
        sys.modules.pop("quire.numba", None)
        quire.wrap_stream(self.memory.device, 1).synchronize()
        self.assert_empty()

    @unittest.skipUnless(importlib.util.find_spec("numba"), "Numba is not installed")
    def test_real_numba(self):
        """Arrays of Numba itself; kernels need a compiler that the emulated driver does not have."""
        output = run_python(NUMBA_PROGRAM, NUMBA_CUDA_DRIVER=CUDA_DRIVER, LD_LIBRARY_PATH=DRIVER_PATH)
        self.assertEqual(output.split(), ["1", "4000", "999.0", "0", "OutOfDeviceMemoryError", "5.0", "5.0"])

    def test_cuda_core(self):
        class Buffer:
            """What cuda.core's class does with a foreign resource."""

            @classmethod
            def from_handle(cls, ptr, size, mr):
                buffer = cls()
                buffer.ptr, buffer.size, buffer.mr = ptr, size, mr
                return buffer

            def close(self, stream=None):
                self.mr.deallocate(self.ptr, self.size, stream=stream)

        core = types.ModuleType("cuda.core")
        core.Buffer, core.MemoryResource = Buffer, type("MemoryResource", (), {})
        sys.modules.pop("quire.cuda_core", None)
        with mock.patch.dict(sys.modules, {"cuda": types.ModuleType("cuda"), "cuda.core": core}):
            import quire.cuda_core
            resource = quire.cuda_core.MemoryResource(self.memory)
            first, second = NativeStream(self.memory.device), NativeStream(self.memory.device)
            self.assertEqual((resource.device_id, resource.is_device_accessible, resource.is_host_accessible),
                             (0, True, False))
            buffer = resource.allocate(4096, stream=first)
            self.assertEqual((buffer.size, resource.memory.statistics.requested_bytes), (4096, 4096))
            buffer.close()
            resource.allocate(4096, stream=first).close(second)
            resource.allocate(64).close()
            for size in (0, -1):
                self.assertRaises(quire.InvalidArgumentError, resource.allocate, size)
            self.assertRaises(quire.InvalidArgumentError, buffer.close)
            for stream in (first, second, 1):
                quire.wrap_stream(self.memory.device, stream).synchronize()
        sys.modules.pop("quire.cuda_core", None)
        gc.collect()
        self.assert_empty()
