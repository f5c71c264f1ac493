# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Vulkan device from Python, on the driver that the machine has."""

import ctypes
import unittest

import quire
from quire import dlpack

from support import consume


class Vulkan(unittest.TestCase):
    def setUp(self):
        try:
            self.device = quire.open_vulkan()
        except quire.UnsupportedError as error:
            self.skipTest(str(error))

    def test_buffer(self):
        memory = self.device.create_memory("uploads", host_read=True, host_write=True)
        self.assertEqual(self.device.backend, "vulkan")
        with memory.buffer(4096, zero=True, usage=quire.Usage.STORAGE | quire.Usage.TRANSFER_SOURCE) as b:
            self.assertNotEqual(b.info.native, 0)
            view = b.view()
            view[7] = 5
            del view
            b.flush()
            self.assertEqual(b.read(6, 3), b"\0\5\0")
            self.assertEqual(b.__dlpack_device__(), (dlpack.CPU, 0))
            managed = consume(b.__dlpack__())
            self.assertEqual(managed.dl_tensor.shape[0], 4096)
            self.assertRaises(BufferError, b.free)
            managed.deleter(ctypes.addressof(managed))
            self.assertFalse(hasattr(b, "__cuda_array_interface__"))
        self.device.create_memory("device").allocate(1 << 20).free()

    def test_misuse(self):
        self.assertRaises(quire.UnsupportedError, quire.open_vulkan, "no such device")
        with self.assertRaisesRegex(quire.UnsupportedError, "VK_EXT_no_such"):
            quire.open_vulkan(device_extensions=["VK_EXT_no_such"])
        self.assertRaises(quire.InvalidArgumentError, quire.open_vulkan, staging_size=1)
