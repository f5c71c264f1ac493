# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views, arrays, NumPy and DLPack on host memory."""

import ctypes
import gc
import struct
import sys
import threading
import unittest

import quire
from quire import dlpack

from support import consume, host_memory, needs_numpy, numpy


class Views(unittest.TestCase):
    def setUp(self):
        self.memory = host_memory()

    def test_bytes(self):
        b = self.memory.buffer(100, zero=True)
        view = b.view()
        self.assertEqual((view.nbytes, view.format, view.readonly), (100, "B", False))
        view[3] = 77
        self.assertEqual(b.read(3, 1), b"\x4d")
        b.write(b"abc", 10)
        self.assertEqual(bytes(view[10:13]), b"abc")

    def test_shape_and_type(self):
        b = self.memory.buffer(96, zero=True)
        view = b.array("float64", (3, 4)).view()
        view[1, 2] = 2.5
        self.assertEqual((view.shape, view.format, view[1, 2]), ((3, 4), "d", 2.5))
        self.assertEqual(b.array("float64").shape, (12,))
        self.assertEqual(b.array("int16", 4, offset=8).nbytes, 8)
        self.assertEqual(b.array("float64", ()).view()[()], 0.0)
        self.assertEqual(b.array("float64", (3, 0)).nbytes, 0)
        self.assertEqual(b.array("uint8", 0).view().nbytes, 0)

    def test_array_of_a_memory(self):
        a = self.memory.array("float32", (3, 4), "table", zero=True)
        self.assertEqual((a.shape, a.strides, a.nbytes, a.allocation.name), ((3, 4), (16, 4), 48, "table"))
        self.assertEqual((a.allocation.nbytes, a.view()[2, 3]), (48, 0.0))
        self.assertEqual(self.memory.array(float, 2).dtype.name, "float64")
        self.assertEqual(self.memory.array(int, (2, 0)).nbytes, 0)
        del a
        gc.collect()
        self.assertEqual(self.memory.statistics.allocation_count, 0)
        self.assertRaises(quire.InvalidArgumentError, self.memory.array, "uint8", (2, -1))
        self.assertRaises(TypeError, self.memory.array, "text", 3)

    def test_parts(self):
        a = self.memory.array("int32", (4, 6))
        a.allocation.write(memoryview(bytes(range(96))).cast("i"))
        whole = a.view()
        part = a[1:4:2, ::3]
        self.assertEqual((part.shape, part.strides, part.is_contiguous), ((2, 2), (48, 12), False))
        self.assertEqual([[part[i, j].item() for j in range(2)] for i in range(2)],
                         [[whole[i, j] for j in (0, 3)] for i in (1, 3)])
        self.assertEqual(a[2].view().tolist(), [whole[2, j] for j in range(6)])
        self.assertEqual(a[:, 5].view().tolist(), [whole[i, 5] for i in range(4)])
        self.assertEqual(a[..., -1].shape, (4,))
        self.assertEqual((a[-1, -1].item(), a[-1, -1].shape), (whole[3, 5], ()))
        self.assertEqual(a[1:1].nbytes, 0)
        self.assertEqual(a[2:, 1:][0, 0].item(), whole[2, 1])
        for shape in ((3, 8), [3, 8], (-1, 8)):
            self.assertEqual(a.reshape(shape).shape, (3, 8))
        self.assertEqual((a.reshape((24,)).shape, a[0, 0].reshape(()).shape), ((24,), ()))
        self.assertRaisesRegex(ValueError, r"\(4, 6\) does not become \(3, -1, 5\)", a.reshape, (3, -1, 5))
        for wrong in ("24", 24.0, None, self.memory, (24.0,), ((24,),)):
            with self.subTest(wrong), self.assertRaisesRegex(TypeError, "shape must be an integer, not"):
                a.reshape(wrong)
        self.assertEqual(a.reshape(2, -1).view().tolist()[1], [whole[2 + i // 6, i % 6] for i in range(12)])
        self.assertTrue(a[1:3].is_contiguous and a[1:3].reshape(12).is_contiguous)
        part[0, 0].view()[()] = 77
        self.assertEqual(whole[1, 0], 77)
        for wrong in (4, (0, 6), (0, 0, 0), (..., ...)):
            with self.subTest(wrong), self.assertRaises(IndexError):
                a[wrong]
        for wrong in (lambda: a[::-1], lambda: a.reshape(5, 5), lambda: part.reshape(4), lambda: a.item()):
            self.assertRaises(ValueError, wrong)
        self.assertRaisesRegex(TypeError, "numpy", part.view)
        with self.assertRaises(TypeError):
            a["x"]

    def test_items_of_each_type(self):
        for name, value in (("bool", True), ("int8", -5), ("uint64", 1 << 63), ("float64", 0.1)):
            a = self.memory.array(name, 2)
            a.view()[1] = value
            self.assertEqual(a[1].item(), value)
        a = self.memory.array("float16", 2)  # which memoryview has from Python 3.12 on
        a.allocation.write(struct.pack("2e", 0, 1.5))
        self.assertEqual(a[1].item(), 1.5)
        a = self.memory.array("complex64", 2)
        a.allocation.write(memoryview(struct.pack("4f", 0, 0, 1.5, -2)))
        self.assertEqual(a[1].item(), 1.5 - 2j)
        a = self.memory.array("bfloat16", 1)
        a.allocation.write(struct.pack("=H", 0xC040))
        self.assertEqual(a.reshape().item(), -3.0)

    def test_free_waits_for_views(self):
        b = self.memory.buffer(64)
        first, second = b.view(), b.view()[8:]
        with self.assertRaisesRegex(BufferError, "^2 views use .*: drop every memoryview") as caught:
            b.free()
        self.assertIsInstance(caught.exception, quire.BusyError)
        first.release()
        del first
        self.assertRaises(quire.BusyError, b.free)
        second[0] = 1  # still valid
        del second
        b.free()
        self.assertEqual(self.memory.statistics.allocation_count, 0)

    def test_garbage_waits_for_views(self):
        view = self.memory.buffer(64, zero=True).view()
        gc.collect()
        self.assertEqual(self.memory.statistics.allocation_count, 1)
        view[63] = 9
        self.assertEqual(view[63], 9)
        del view
        gc.collect()
        self.assertEqual(self.memory.statistics.allocation_count, 0)

    def test_memory_waits_for_views(self):
        view = self.memory.buffer(64, zero=True).view()
        self.assertRaises(quire.BusyError, self.memory.destroy_all)
        self.assertRaises(quire.BusyError, self.memory.__exit__, None, None, None)
        self.memory = None
        gc.collect()
        self.assertEqual(view[0], 0)

    def test_readonly(self):
        b = self.memory.buffer(16, zero=True)
        view = b.view(readonly=True)
        self.assertTrue(view.readonly)
        with self.assertRaises(TypeError):
            view[0] = 1

    @unittest.skipUnless(sys.version_info >= (3, 12), "Python before 3.12 has no __buffer__")
    def test_buffer_protocol(self):
        b = self.memory.buffer(16, zero=True)
        with memoryview(b) as view:
            view[1] = 5
            self.assertRaises(quire.BusyError, b.free)
        del view
        self.assertEqual(bytes(b)[:2], b"\x00\x05")
        gc.collect()
        b.free()

    def test_no_host_pointer(self):
        device = quire.open_host()
        hidden = device.create_memory(flags=quire.MemoryFlags.DEVICE_LOCAL).buffer(64)
        for wrong in (hidden.view, hidden.array()[::2].view, hidden.array("int8", (8, 8))[:, ::2].view):
            self.assertRaisesRegex(quire.NotHostVisibleError, "; use read and write$", wrong)
        self.assertRaises(BufferError, hidden.__dlpack__)
        self.assertFalse(hasattr(hidden, "__cuda_array_interface__"))
        hidden.write(b"abc")
        self.assertEqual(hidden.read(0, 3), b"abc")

    def test_rest(self):
        """Bytes that are no whole number of elements are an error, unless the shape is given."""
        b = self.memory.buffer(100)
        with self.assertRaisesRegex(quire.InvalidArgumentError, "100 bytes .* of 8 bytes: 4 would .* such as 12"):
            b.array("float64")
        with self.assertRaisesRegex(quire.InvalidArgumentError, "3 bytes .* of 4 bytes: 3 would"):
            b.array("int32", offset=97)
        self.assertEqual((b.array("float64", 12).nbytes, b.array("float64", offset=4).shape), (96, (12,)))

    def test_type_names(self):
        b = self.memory.buffer(16)
        for short, name in (("f2", "float16"), ("f4", "float32"), ("f8", "float64"), ("i1", "int8"), ("u8", "uint64"),
                            ("c8", "complex64"), ("c16", "complex128"), ("b1", "bool"),
                            ("bool_", "bool")):
            self.assertEqual(b.array(short, 1).dtype.name, name)
        for wrong in ("f3", "f16", "4", "", ">f4"):
            self.assertRaisesRegex(TypeError, "they are bool, int8, .*complex128", b.array, wrong)

    def test_errors(self):
        b = self.memory.buffer(16)
        for arguments in (("float32", 5), ("float32", (2, 3)), ("uint8", 1, 16), ("uint8", None, 17), ("uint8", 17)):
            with self.subTest(arguments), self.assertRaises(quire.OutOfRangeError):
                b.array(*arguments)
        for wrong in ("float12", 7, None, object()):
            self.assertRaises(TypeError, b.array, wrong)
        self.assertRaises(quire.InvalidArgumentError, b.array, "uint8", (-1,))
        self.assertRaises(quire.InvalidArgumentError, b.array, "uint8", (1 << 62, 1 << 62, 4, -4))
        self.assertRaises(quire.OutOfRangeError, b.array, "uint8", (1 << 32, 1 << 32))
        for name in ("bfloat16", "complex64"):
            with self.assertRaises(TypeError):
                b.array(name).view()
        with self.assertRaises(TypeError):
            len(b.array("uint8", ()))
        b.free()
        self.assertRaises(quire.StaleHandleError, b.view)
        self.assertRaises(quire.StaleHandleError, b.__dlpack__)


class DLPack(unittest.TestCase):
    def setUp(self):
        self.memory = host_memory()
        self.b = self.memory.buffer(64, zero=True)

    def assert_free(self):
        self.b.free()
        self.assertEqual(self.memory.statistics.allocation_count, 0)

    def test_tensor(self):
        self.b.write(b"\x01\x00\x00\x00", 4)
        array = self.b.array("int32", (2, 3), offset=4)
        self.assertEqual(array.__dlpack_device__(), (dlpack.CPU, 0))
        managed = consume(array.__dlpack__())
        tensor = managed.dl_tensor
        self.assertEqual((tensor.ndim, tensor.shape[:2], tensor.strides[:2]), (2, [2, 3], [3, 1]))
        self.assertEqual((tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes), (0, 32, 1))
        self.assertEqual((tensor.device.device_type, tensor.device.device_id, tensor.byte_offset), (1, 0, 0))
        self.assertEqual(ctypes.c_int32.from_address(tensor.data).value, 1)
        self.assertRaises(quire.BusyError, self.b.free)
        managed.deleter(ctypes.addressof(managed))
        self.assert_free()

    def test_versioned(self):
        array = self.b.array("float32", readonly=True)
        self.assertRaises(BufferError, array.__dlpack__)
        capsule = array.__dlpack__(max_version=(1, 1), dl_device=(1, 0), copy=False)
        managed = consume(capsule, b"dltensor_versioned", dlpack._ManagedVersioned)
        self.assertEqual((managed.major, managed.minor, managed.flags), (1, 0, 1))
        self.assertEqual(managed.dl_tensor.shape[0], 16)
        managed.deleter(ctypes.addressof(managed))
        self.assert_free()

    def test_garbage_capsules(self):
        for options in ({}, {"max_version": (1, 0)}, {"max_version": (0, 8)}):
            capsule = self.b.__dlpack__(**options)
            self.assertRaises(quire.BusyError, self.b.free)
            del capsule
        self.assertEqual(len(dlpack._live), 0)
        self.assert_free()

    def test_deleter_of_another_thread(self):
        managed = consume(self.b.__dlpack__())
        thread = threading.Thread(target=managed.deleter, args=(ctypes.addressof(managed),))
        thread.start()
        thread.join()
        self.assert_free()

    def test_deleter_after_everything_is_garbage(self):
        managed = consume(self.b.__dlpack__())
        self.b = self.memory = None
        gc.collect()
        ctypes.c_char.from_address(managed.dl_tensor.data).value = b"x"
        managed.deleter(ctypes.addressof(managed))

    def test_refusals(self):
        for options in ({"copy": True}, {"dl_device": (2, 0)}, {"stream": 1}):
            with self.subTest(options), self.assertRaises(BufferError):
                self.b.__dlpack__(**options)
        self.assert_free()


@needs_numpy
class NumPy(unittest.TestCase):
    def setUp(self):
        self.memory = host_memory()

    def test_arrays(self):
        b = self.memory.buffer(4 * 12, zero=True)
        array = b.numpy("float32", (3, 4))
        array[:] = numpy.arange(12).reshape(3, 4)
        self.assertEqual(b.array("float32").view()[7], 7.0)
        self.assertTrue(array.flags.writeable)
        with self.assertRaisesRegex(ValueError, "100 bytes .* of 8 bytes: 4 would"):
            self.memory.buffer(100).numpy("float64")
        self.assertEqual(self.memory.buffer(100).numpy("float64", 12).shape, (12,))
        row = array[1]
        del array
        self.assertRaises(quire.BusyError, b.free)
        self.assertEqual(row.sum(), 22)
        del row
        b.free()

    def test_conversions(self):
        b = self.memory.buffer(16, zero=True)
        self.assertEqual(numpy.asarray(b).dtype, "uint8")
        array = b.array("int32")
        numpy.asarray(array)[2] = -5
        self.assertEqual(numpy.asarray(array).tolist(), [0, 0, -5, 0])
        self.assertEqual(numpy.array(array, dtype="float64").tolist(), [0, 0, -5, 0])
        self.assertEqual(b.array(numpy.float32).dtype.name, "float32")
        self.assertEqual(b.array(numpy.dtype("int16")).dtype.name, "int16")
        with self.assertRaises(TypeError):
            b.array(numpy.dtype(">i4"))
        with self.assertRaises(TypeError):
            b.array("bfloat16").numpy()
        self.assertFalse(b.array("complex64", readonly=True).numpy().flags.writeable)
        gc.collect()
        b.free()

    def test_from_dlpack(self):
        b = self.memory.buffer(16, zero=True)
        array = numpy.from_dlpack(b.array("float32", (2, 2)))
        b.array("float32").view()[3] = 4.0
        self.assertEqual(array[1, 1], 4.0)
        self.assertRaises(quire.BusyError, b.free)
        del array
        b.free()

    def test_write_and_read(self):
        b = self.memory.buffer(64)
        source = numpy.arange(16, dtype="float32").reshape(4, 4)
        b.write(source)
        target = numpy.empty((4, 4), "float32")
        b.read_into(target)
        self.assertTrue((source == target).all())
        b.write(source[:, ::2])  # not contiguous: its elements in C order
        self.assertEqual(b.array("float32", 4).view().tolist(), [0, 2, 4, 6])
        with self.assertRaises(BufferError):
            b.read_into(target[:, ::2])
