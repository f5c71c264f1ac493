# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call holds after it has returned: no bytes, no buffers of the caller, no cycles for the garbage collector."""

import contextlib
import ctypes
import gc
import os
import resource
import unittest

import quire

from support import consume, host_memory

SIZE = 32 << 20
COUNT = 40
MOST = 64 << 20  # that the process may grow by


def resident():
    """The bytes of the process that are in main memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Held(unittest.TestCase):
    def setUp(self):
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)

    def grows_little(self, work):
        """Run a function often; what it leaves behind must be small without a garbage collection."""
        work()
        before = resident()
        for _ in range(COUNT):
            work()
        self.assertLessEqual(resident() - before, MOST)

    @unittest.skipIf("QUIRE_PYTHON_SANITIZED" in os.environ, "the sanitizer keeps freed memory")
    def test_bytes(self):
        buffer, source = host_memory().buffer(SIZE), bytearray(SIZE)
        buffer.write(source)
        self.grows_little(buffer.read)
        self.grows_little(lambda: buffer.write(bytearray(SIZE)))
        self.grows_little(lambda: buffer.write(bytes(SIZE)))
        self.grows_little(lambda: buffer.read_into(bytearray(SIZE)))

    def test_buffers_of_the_caller(self):
        """A bytearray can be resized after a call that it was an argument of, also after a refused one."""
        buffer, source = host_memory().buffer(64), bytearray(64)
        buffer.write(source)
        source.append(1)
        with contextlib.suppress(quire.OutOfRangeError):
            buffer.write(source)
        source.append(1)
        del source[64:]
        buffer.read_into(source)
        source.append(1)

    def test_refused_calls(self):
        """What a refused call was about ends with its error."""
        device = quire.open_host()
        for refused in (lambda m: m.buffer(1 << 50), lambda m: m.buffer(64).array("float32", (100,)),
                        lambda m: m.buffer(64).read(60, 10), lambda m: m.buffer(64).write(b"x" * 70),
                        lambda m: m.buffer(64).flush(100, 1), lambda m: m.buffer(64).view().release() or m.trim(-1)):
            memory = device.create_memory("m", host_read=True, host_write=True)
            with contextlib.suppress(quire.QuireError):
                refused(memory)
            memory.destroy()
        device.destroy()

    def test_no_cycles(self):
        memory = host_memory()
        device = memory.device
        stream, kept = device.create_stream(), memory.buffer(256, name="kept")

        def allocate():
            with memory.allocate(64, stream=stream) as a:
                a.record_use(device.create_stream())

        def export():
            tensor = consume(kept.__dlpack__())
            tensor.deleter(ctypes.addressof(tensor))
            kept.__dlpack__(max_version=(1, 0))

        def refuse():
            for wrong in (lambda: kept.write(b"x", 256), kept.free, memory.destroy, device.destroy,
                          lambda: memory.allocate(0), lambda: quire.Trace("x")):
                with contextlib.suppress(quire.QuireError):
                    view = kept.view()
                    wrong()
            del view
        for work in (allocate, export, refuse, lambda: kept.write(b"x"), kept.read, lambda: kept.read_into(bytearray(8)),
                     lambda: kept.view()[0], lambda: kept.array("float32", (2, 4)).view(), lambda: kept.fill(1),
                     lambda: kept.fill(1, stream=stream).wait(), lambda: kept.info, lambda: memory.statistics,
                     memory.ranges, memory.report, memory.snapshot, lambda: device.budget(),
                     lambda: device.create_memory(on_out_of_memory=lambda _: False).destroy()):
            work()
            gc.collect()
            for _ in range(1000 if work is export else 50):
                work()
            self.assertLess(gc.collect(), 20, work)  # unreachable objects that only a collection ends
