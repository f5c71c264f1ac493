# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""KeyboardInterrupt between any two operations of the package loses no allocation and blocks no destruction."""

import gc
import os
import sys
import unittest

import quire

PACKAGE = os.path.dirname(quire.__file__)
# modules that only convert values and own nothing
CONVERSIONS = tuple(os.path.join(PACKAGE, f"{name}.py") for name in ("_arguments", "_records", "enums", "insight"))


class Interrupter:
    """Raises KeyboardInterrupt before one operation of the interpreter in the package, by its number from 1."""

    def __init__(self, number):
        self.rest = number
        self.place = None  # where it was raised; None: the code was shorter

    def __call__(self, frame, event, _):
        name = frame.f_code.co_filename
        if self.rest <= 0 or not name.startswith(PACKAGE) or name in CONVERSIONS:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.rest -= 1
            if self.rest == 0:
                self.place = f"{frame.f_code.co_name}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self

    def run(self, work, *arguments):
        """Return the interrupt that ended a function; None: none did, or a finalizer had it."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            work(*arguments)
        except KeyboardInterrupt as error:
            return error
        finally:
            sys.settrace(before)
        return None


class Interrupts(unittest.TestCase):
    def setUp(self):
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None  # for the interrupts in finalizers
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        gc.collect()
        gc.disable()  # everything must end without a collection
        self.addCleanup(gc.enable)

    def at_each_operation(self, scenario, look=lambda memory, error: None):
        """Interrupt a function of a memory at each of its operations in turn; look at what it left."""
        number = 0
        while True:
            number += 1
            device = quire.open_host()
            memory = device.create_memory("m", host_read=True, host_write=True)
            native, interrupter = memory._owner.native, Interrupter(number)
            error = interrupter.run(scenario, memory)
            with self.subTest(f"{number}: {interrupter.place}"):
                look(memory, error)
                error = None
                if memory.is_alive:
                    self.assertEqual(memory.statistics.allocation_count, 0)
                    memory.destroy_all()
                self.assertIsNone(native.value)
                self.assertEqual(device.statistics.allocation_count, 0)
                device.destroy()
                self.assertIsNone(device._owner.pointer)
            if interrupter.place is None:
                break
        self.assertGreater(number, 50)

    def test_views(self):
        def scenario(memory):
            a = memory.allocate(100)
            view = a.view()
            a.write(b"x")
            del view
            a.free()
            memory.destroy()
        self.at_each_operation(scenario)

    def test_garbage(self):
        """What finalizers end, and a capsule, which a consumer has taken, by a function of C."""
        def scenario(memory):
            view = memory.buffer(64).view()
            del view
            memory.allocate(64, name="a")
        self.at_each_operation(scenario)

    def test_streams(self):
        def scenario(memory):
            stream = memory.device.create_stream()
            a = memory.allocate(100, stream=stream)
            a.fill(1, stream=stream).wait()
            a.free()
            stream.destroy()
            memory.destroy_all()
        self.at_each_operation(scenario)

    def test_compaction(self):
        def scenario(memory):
            with memory.compaction() as compaction:
                compaction.step(moves=1)
            memory.compact()
            memory.destroy()
        self.at_each_operation(scenario)

    def test_with_the_traceback(self):
        """Python keeps the traceback of the last error; what its frames refer to is not in use for that."""
        def scenario(memory):
            memory.allocate(100).write(b"x")
            memory.destroy_all()

        def look(memory, error):
            memory.destroy_all()
            self.assertFalse(memory.is_alive)
            self.assertTrue(error is None or error.__traceback__)
        self.at_each_operation(scenario, look)

    def test_creation(self):
        """A device, a memory and a stream that nobody has got end."""
        def scenario(made):
            made.append(quire.open_host())
            made.append(made[0].create_memory())
            made.append(made[0].create_stream())
        number, place = 0, ""
        while place is not None:
            number += 1
            made, interrupter = [], Interrupter(number)
            with self.subTest(number):
                interrupter.run(scenario, made)
                place = interrupter.place
                if made:
                    del made[1:]
                    made[0].destroy()
                    made.clear()
                else:
                    quire.open_host().destroy()  # ends what an interrupted finalizer has left
                self.assertEqual([o.what for o in quire._owner._roots if o.public() is None], [], place)
        self.assertGreater(number, 50)
