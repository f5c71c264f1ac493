"""Wrong arguments and wrong states: each is a specific error, and nothing changes."""

import errno
import os
import subprocess
import sys
import tempfile
import unittest

import quire
from quire import _native, errors
from quire.enums import Result

from support import CUDA_DRIVER, SOURCE, host_memory, run_python

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
        with self.assertRaises(quire.ForeignHandleError):
            second._owner.call(_native.lib.quire_free, a._record.id)
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
        for found in ("0.2.0", "1.1.0", "0.10.0", ""):
            with self.assertRaisesRegex(ImportError, "this package is for"):
                _native.check_version("libquire.so", found)
        _native.check_version("libquire.so", "0.1.99")

    def test_search(self):
        """The installed library is used if it exists and QUIRE_LIBRARY is not set; then the loader's."""
        code = ("import sys, types\nmodule = types.ModuleType('quire._installed')\nmodule.LIBRARY = {!r}\n"
                "sys.modules['quire._installed'] = module\nimport quire\nimport os\ndel os.environ['QUIRE_LIBRARY']\n"
                "print(quire._native.library_name())")
        own = os.environ["QUIRE_LIBRARY"]
        self.assertEqual(run_python(code.format(own)).strip(), own)
        self.assertEqual(run_python(code.format("/nonexistent/libquire.so.0")).strip(), _native.SONAME)

    def test_types(self):
        """mypy accepts the package in its strict mode."""
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("mypy is not installed")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-warn-unused-ignores",
                               "--allow-untyped-decorators", "--python-version", "3.9", "--cache-dir",
                               os.devnull, "-p", "quire"], text=True, capture_output=True, check=False,
                              cwd=os.path.join(SOURCE, "src/adapters/python"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
