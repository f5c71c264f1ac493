# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong arguments and wrong states: each is a specific error, and nothing changes."""

import errno
import gc
import os
import re
import subprocess
import sys
import tempfile
import unittest

import quire
import quire.cupy
from quire import _native, _pointers, errors
from quire.enums import Result

from support import CUDA_DRIVER, host_memory, run_python

BIG = 1 << 64


class Misuse(unittest.TestCase):
    def refused(self, kind, function, *arguments, **options):
        with self.subTest(f"{getattr(function, '__name__', function)} {arguments} {options}"):
            with self.assertRaises(kind) as caught:
                function(*arguments, **options)
            self.assertTrue(str(caught.exception))

    def test_allocate(self):
        memory = host_memory()
        before = memory.statistics
        invalid, out = quire.InvalidArgumentError, quire.OutOfMemoryError
        for create in (memory.allocate, memory.buffer):
            for size in (0, -1, BIG, BIG + 64):
                self.refused(invalid, create, size)
            for size in ("64", 64.0, None, True):
                self.refused(TypeError, create, size)
            for alignment in (3, -2, BIG):
                self.refused(invalid, create, 64, alignment)
            self.refused(out, create, BIG - 1)
            self.refused(invalid, create, 64, name="n" * 256)
            self.refused(invalid, create, 64, name="a\0b")
            self.refused(TypeError, create, 64, name=b"bytes")
            self.refused(invalid, create, 64, user_data=BIG)
        self.refused(invalid, memory.buffer, 64, usage=1 << 31)
        self.refused(quire.InvalidArgumentError, memory.buffer, 64, usage=1 << 32)
        self.assertEqual(memory.statistics.allocation_count, before.allocation_count)
        self.assertEqual(memory.statistics.live_bytes, before.live_bytes)

    def test_bytes(self):
        memory = host_memory()
        a = memory.buffer(64, zero=True)
        for function in (lambda: a.write(b"x" * 65), lambda: a.write(b"x", 64), lambda: a.write(b"x", BIG - 1),
                         lambda: a.read(65, 0), lambda: a.read(0, 65), lambda: a.read(BIG - 1, 2),
                         lambda: a.read_into(bytearray(65)), lambda: a.fill(0, 65), lambda: a.fill(0, 64),
                         lambda: a.fill(0, 60, 5), lambda: a.flush(65, 1), lambda: a.invalidate(0, 300),
                         lambda: a.copy_from(a, 0, 1, 64)):
            self.refused(quire.OutOfRangeError, function)
        for function in (lambda: a.write(b"x", -1), lambda: a.fill(256), lambda: a.fill(-1), lambda: a.read(-1),
                         lambda: a.read(0, -1)):
            self.refused(quire.InvalidArgumentError, function)
        self.refused(quire.OverlapError, lambda: a.copy_from(a, 0, 1, 32))
        for wrong in ("text", 7, None, [1]):
            self.refused(TypeError, a.write, wrong)
        self.refused(BufferError, a.read_into, b"12")
        self.assertEqual(a.read(), bytes(64))
        a.free()
        for function in (lambda: a.write(b"x"), a.read, a.fill, a.flush, a.invalidate, lambda: a.address,
                         lambda: a.copy_from(a), lambda: setattr(a, "name", "x"), lambda: a.name,
                         lambda: setattr(a, "user_data", 1), a.free, lambda: memory.buffer(64).copy_from(a)):
            self.refused(quire.StaleHandleError, function)

    def test_foreign(self):
        first, second = host_memory(), host_memory()
        a = first.buffer(64)
        self.assertRaises(quire.ForeignHandleError, second._owner.call, _native.lib.quire_free, a._record.id)
        stream = second.device.create_stream()
        self.refused(quire.ForeignHandleError, a.fill, 1, stream=stream)
        manual = first.device.create_stream(manual=True)
        manual_point = manual.mark()
        self.refused(quire.ForeignHandleError, stream.wait, manual_point)
        self.refused(quire.InvalidArgumentError, manual.wait, quire.Point(manual, 1 << 40))
        self.refused(quire.InvalidArgumentError, a.free, after=quire.Point(manual, 1 << 40))
        self.assertEqual(first.statistics.allocation_count, 1)

    def test_wrong_state(self):
        device = quire.open_host()
        memory = device.create_memory(flags=quire.MemoryFlags.DEVICE_LOCAL)
        stream = device.create_stream()
        self.refused(quire.WrongStateError, stream.run)
        self.refused(quire.NotHostVisibleError, memory.allocate, 64, host_write=True)
        a = memory.allocate(64)
        self.refused(quire.NotHostVisibleError, a.flush)
        foreign = quire.InvalidArgumentError if CUDA_DRIVER else quire.QuireError  # a build may lack the backend
        self.refused(foreign, quire.cuda_info, device)
        self.refused(foreign, quire.find_kind, device, quire.CudaPageKind.DEVICE)
        self.refused(foreign, quire.wrap_stream, device, 0)
        stream.destroy()
        for function in (stream.mark, stream.synchronize, lambda: stream.name,
                         lambda: memory.allocate(1, stream=stream), lambda: a.free(stream=stream),
                         lambda: a.record_use(stream), lambda: a.fill(stream=stream)):
            self.refused(quire.StaleHandleError, function)
        self.assertEqual(memory.statistics.allocation_count, 1)
        scope = memory.scope()
        self.refused(quire.WrongStateError, scope.__exit__)

    def test_options(self):
        device = quire.open_host()
        invalid, flags = quire.InvalidArgumentError, quire.MemoryFlags
        create = device.create_memory
        for options in ({"flags": 1 << 20}, {"flags": 1 << 40}, {"kind_mask": -1}, {"limit": -1}, {"limit": BIG},
                        {"limit": "101%"}, {"limit": "0%"}, {"limit": "half"}, {"shards": 65}, {"shards": 1 << 32},
                        {"name": "n" * 256}, {"name": "\0"}, {"host_read": True, "flags": flags.HOST_VISIBLE},
                        {"upload": True, "host_read": True},
                        {"priority": 2.0}, {"fit": quire.FitOptions(granule=3)}, {"fit": quire.FitOptions(7)},
                        {"fit": quire.FitOptions(granule=BIG)}, {"pages": quire.PagePolicy(growth_percent=1001)},
                        {"pages": quire.PagePolicy(page_size=-1)}, {"pages": quire.PagePolicy(max_pages=1 << 32)},
                        {"pages": quire.PagePolicy(classes=((1, 2),) * 5)}, {"address_space": 1}):
            self.refused(invalid, create, **options)
        self.refused(quire.UnsupportedError, create, flags=flags.PROTECTED)
        self.refused(TypeError, create, fit=quire.FitOptions(granule="1"))
        self.assertEqual(device.statistics.memory_count, 0)
        for options in ({"budgets": [0] * 17}, {"budgets": [-1]}, {"row_alignment": 3}):
            self.refused(invalid, quire.open_host, **options)
        self.refused(ValueError, quire.open_host, backing=9)
        empty = quire.HostProfile("empty", (), ())
        self.refused(invalid, quire.open_host, empty)
        self.refused(invalid, quire.open_host, quire.HostProfile("many", (quire.Heap(1),) * 17, ()))
        self.refused(invalid, device.create_stream, capture=True, manual=True)
        for function in (device.budget, device.set_heap_limit, device.set_budget):
            self.refused(quire.OutOfRangeError, function, 2, *([1] if function != device.budget else []))
            self.refused(invalid, function, -1, *([1] if function != device.budget else []))
        memory = create()
        for function, arguments in ((memory.trim, (-1,)), (memory.preallocate, (BIG,)), (memory.page_info, (-1,)),
                                    (memory.set_name_limit, ("n" * 256, 1)), (memory.name_usage, ("n" * 256,))):
            self.refused(invalid, function, *arguments)
        self.refused(quire.OutOfRangeError, memory.page_info, 0)
        self.refused(quire.OutOfMemoryError, memory.preallocate, 1 << 50)

    def test_classes(self):
        """Every error of the library has a class of its own, below the ones that the page names."""
        self.assertEqual(set(errors.CLASSES), set(Result) - {Result.SUCCESS})
        self.assertEqual(len(set(errors.CLASSES.values())), len(Result) - 1)
        exhausted = {Result.OUT_OF_DEVICE_MEMORY, Result.OUT_OF_HOST_MEMORY, Result.OVER_BUDGET, Result.TOO_MANY_PAGES,
                     Result.TOO_MANY_ALLOCATIONS, Result.NO_SPACE}
        for result, kind in errors.CLASSES.items():
            self.assertEqual(kind.result, result)
            self.assertEqual(issubclass(kind, MemoryError), result in exhausted)
            self.assertTrue(hasattr(quire, kind.__name__))
            self.assertTrue(kind.__doc__)
        self.assertEqual(str(errors.from_result(-999)), "unknown result")

    def test_native_code(self):
        """An error of the system keeps its number."""
        profile = quire.HostProfile("vast", (quire.Heap(1 << 62),), (quire.Kind(quire.MemoryFlags(3), 0),))
        memory = quire.open_host(profile).create_memory(fit=quire.FitOptions(quire.Fit.FIRST))
        with self.assertRaises(quire.OutOfDeviceMemoryError) as caught:
            memory.allocate(1 << 60)
        self.assertEqual(caught.exception.native_code, errno.ENOMEM)


class WrongClasses(unittest.TestCase):
    """An object of another class in place of each parameter: TypeError, before anything happens."""

    OBJECTS = ("device", "memory", "stream", "point", "buffer", "array", "trace", "scope", "recorder", "fit", "pages",
               "profile", "kind", "str", "bytes", "int", "float", "None")

    def setUp(self):
        self.device = quire.open_host()
        self.memory = self.device.create_memory(host_read=True, host_write=True)
        self.stream = self.device.create_stream()
        self.buffer = self.memory.buffer(64)
        recorder = quire.record(self.memory)
        with recorder:
            pass
        self.objects = {
            "device": self.device, "memory": self.memory, "stream": self.stream, "point": self.stream.mark(),
            "buffer": self.buffer, "array": self.buffer.array(), "trace": recorder.trace(),
            "scope": self.memory.scope(), "recorder": recorder, "fit": quire.FitOptions(), "pages": quire.PagePolicy(),
            "profile": quire.HostProfile("p", (), ()), "kind": quire.Dedicated.NEVER, "str": "x", "bytes": b"123",
            "int": 32 << 20, "float": 1.5, "None": None}
        self.assertEqual(tuple(self.objects), self.OBJECTS)

    def parameters(self):
        """Each public parameter: its name, a call with a value for it, the classes in the error, what it takes."""
        memory, buffer, stream, device = self.memory, self.buffer, self.stream, self.device
        foreign = "a CUDA stream of another library or its number"
        take = "a quire.Stream", ("stream", "None")
        point, owner = "a quire.Point", "a quire.Device"
        return (
            ("stream", lambda x: memory.allocate(4, stream=x), *take),
            ("stream", lambda x: memory.buffer(4, stream=x), *take),
            ("stream", lambda x: memory.array("uint8", 4, stream=x), *take),
            ("stream", lambda x: buffer.fill(1, stream=x), *take),
            ("stream", lambda x: buffer.copy_from(buffer, 0, 32, 8, stream=x), *take),
            ("stream", lambda x: memory.allocate(4).free(stream=x), *take),
            ("after", lambda x: memory.allocate(4).free(after=x), point, ("point", "None")),
            ("stream", buffer.record_use, "a quire.Stream", ("stream",)),
            ("source", lambda x: memory.allocate(64).copy_from(x), "a quire.Allocation", ("buffer",)),
            ("point", stream.wait, point, ("point",)),
            ("stream", lambda x: quire.Point(x, 0), *take),
            ("timeout", self.objects["point"].wait, "a number of seconds, or None", ("int", "float", "None", "kind")),
            ("memory", self.objects["trace"].replay, "a quire.Memory", ("memory",)),
            ("what", quire.record, "a quire.Memory or a quire.Device", ("memory", "device")),
            ("what", quire.Recorder, "a quire.Memory or a quire.Device", ("memory", "device")),
            ("content", quire.Trace, "a str or bytes", ("str", "bytes")),
            ("memory", quire.Scope, "a quire.Memory", ("memory",)),
            ("allocation", quire.Array, "a quire.Allocation", ("buffer",)),
            ("shape", lambda x: buffer.array("uint8", x), "an integer, or integers for each axis",
             ("int", "None", "kind")),
            ("fit", lambda x: device.create_memory(fit=x), "a quire.FitOptions.*", ("fit",)),
            ("pages", lambda x: device.create_memory(pages=x), "a quire.PagePolicy.*", ("pages",)),
            ("profile", quire.open_host, "a quire.HostProfile", ("profile", "None")),
            ("heap", lambda x: quire.open_host(quire.HostProfile("p", (x,), ())), "a quire.Heap", ()),
            ("kind", lambda x: quire.open_host(quire.HostProfile("p", (), (x,))), "a quire.Kind", ()),
            ("backing", lambda x: quire.open_host(backing=x), "a quire.HostBacking", ("int",)),
            ("huge_pages", lambda x: quire.open_host(huge_pages=x), "a quire.HostHugePages", ("int",)),
            ("log_level", lambda x: quire.open_host(log_level=x), "a quire.LogLevel", ("int",)),
            ("log_level", lambda x: quire.open_vulkan(log_level=x), "a quire.LogLevel", ("int",)),
            ("log_level", lambda x: quire.open_cuda(log_level=x), "a quire.LogLevel", ("int",)),
            ("kind", lambda x: quire.open_cuda(kinds=[x]), "a quire.CudaPageKind", ("int",)),
            ("device", quire.cuda_info, owner, ("device",)),
            ("device", lambda x: quire.find_kind(x, quire.CudaPageKind.DEVICE), owner, ("device",)),
            ("page_kind", lambda x: quire.find_kind(device, x), "a quire.CudaPageKind", ("int",)),
            ("device", lambda x: quire.wrap_stream(x, 5), owner, ("device",)),
            ("stream", lambda x: quire.wrap_stream(device, x), foreign, ("int", "kind")),
            ("stream", quire.cuda.native_stream, "a quire.Stream", ("stream",)),
            ("memory", _pointers.Pointers, "a quire.Memory", ("memory",)),
            ("memory", quire.cupy.Allocator, "a quire.Memory", ("memory",)),
        )

    def test_each_parameter(self):
        before = self.device.statistics
        for number, (name, function, wanted, takes) in enumerate(self.parameters()):
            for kind in self.OBJECTS:
                value = self.objects[kind]
                if kind in takes:
                    continue
                was = "None" if value is None else type(value).__name__
                was = f"quire.{was}" if type(value).__module__.startswith("quire") else was
                with self.subTest(f"{number}: {name}={kind}"):
                    with self.assertRaisesRegex(TypeError, f"^{name} must be {wanted}, not {re.escape(was)}$"):
                        function(value)
        gc.collect()
        after = self.device.statistics
        self.assertEqual(after.allocation_count, before.allocation_count)
        self.assertEqual((after.memory_count, after.live_bytes), (before.memory_count, before.live_bytes))
        self.memory.check()
        self.buffer.free()
        self.stream.destroy()

    def test_subclasses(self):
        """An object of a class of the user is one of its base."""
        class Options(quire.FitOptions):
            pass
        self.assertEqual(self.device.create_memory(fit=Options(quire.Fit.BUDDY)).fit, quire.Fit.BUDDY)

    def test_fields(self):
        for classes in (5, (1, 2), ((1,),), "ab"):
            with self.assertRaisesRegex(TypeError, "classes must be pairs"):
                self.device.create_memory(pages=quire.PagePolicy(classes=classes))
        with self.assertRaisesRegex(TypeError, "algorithm must be an integer, not str"):
            self.device.create_memory(fit=quire.FitOptions("buddy"))
        with self.assertRaisesRegex(TypeError, "size must be an integer, not quire.Memory"):
            self.memory.allocate(self.memory)


class Loading(unittest.TestCase):
    def failure(self, library):
        done = subprocess.run([sys.executable, "-c", "import quire"], text=True, capture_output=True, check=False,
                              env={**os.environ, "QUIRE_LIBRARY": library})
        self.assertEqual(done.returncode, 1)
        return done.stderr

    def test_no_library(self):
        self.assertIn("set QUIRE_LIBRARY to its path", self.failure("/nonexistent/libquire.so"))
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            self.assertIn("ImportError: quire: the library cannot be loaded", self.failure(file.name))
        self.assertIn("is not a library of quire", self.failure("libc.so.6"))

    def test_version(self):
        for found in ("0.1.0", "1.2.0", "0.20.0", ""):
            self.assertRaisesRegex(ImportError, "this package is for", _native.check_version, "libquire.so", found)
        _native.check_version("libquire.so", "0.2.99")

    def test_search(self):
        """The installed library is used if it exists and QUIRE_LIBRARY is not set; then the loader's."""
        code = ("import sys, types\nmodule = types.ModuleType('quire._installed')\nmodule.LIBRARY = {!r}\n"
                "sys.modules['quire._installed'] = module\nimport quire\nimport os\ndel os.environ['QUIRE_LIBRARY']\n"
                "print(quire._native.library_name())")
        own = os.environ["QUIRE_LIBRARY"]
        self.assertEqual(run_python(code.format(own)).strip(), own)
        self.assertEqual(run_python(code.format("/nonexistent/libquire.so.0")).strip(), _native.SONAME)
