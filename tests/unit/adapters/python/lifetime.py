# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which objects end: explicit, by garbage collection, at the exit, in threads and in forks."""

import copy
import gc
import os
import pickle
import threading
import unittest
import weakref

import quire

from support import host_memory, in_child, in_threads, run_python


class Ends(unittest.TestCase):
    def test_with_blocks(self):
        with quire.open_host() as device, device.create_memory() as memory:
            kept = memory.allocate(1000)
            with memory.allocate(500) as a:
                self.assertEqual(memory.statistics.allocation_count, 2)
            self.assertIn("freed", repr(a))
        self.assertIn("destroyed", repr(memory))
        self.assertIn("destroyed", repr(device))
        for use in (kept.free, lambda: kept.info, lambda: memory.statistics, lambda: device.statistics,
                    lambda: memory.allocate(1), lambda: device.create_memory(), memory.report):
            self.assertRaisesRegex(quire.StaleHandleError, "was destroyed before", use)
        del kept, a, memory
        device.destroy()  # again: nothing

    def test_free_twice(self):
        memory = host_memory()
        a = memory.allocate(64)
        a.free()
        self.assertRaises(quire.StaleHandleError, a.free)
        with memory.allocate(64) as a:
            a.free()

    def test_destroy_with_allocations(self):
        device = quire.open_host()
        memory = device.create_memory("m")
        a = memory.allocate(64, name="kept")
        self.assertRaisesRegex(quire.BusyError, "kept", memory.destroy)
        self.assertRaises(quire.BusyError, device.destroy)
        a.free()
        memory.destroy()
        device.destroy()

    def test_garbage(self):
        memory = host_memory()
        for _ in range(10):
            memory.allocate(64)
        self.assertEqual(memory.statistics.allocation_count, 0)

    def test_garbage_cycles(self):
        for make in (lambda m: [m, m.allocate(64), m.allocate(64)], lambda m: [m.allocate(64).view(), m]):
            memory = host_memory()
            cycle = make(memory)
            cycle.append(cycle)
            owner, device = memory._owner, memory.device._owner
            del memory, cycle
            gc.collect()
            self.assertEqual((owner.pointer, device.pointer, owner.view_count()), (None, None, 0))

    def test_compactions(self):
        """A compaction keeps its memory, and ends with its block, as garbage, or with a forced end of its memory."""
        with quire.open_host() as device:
            memory = device.create_memory()
            memory.compaction()
            with memory.compaction() as in_block, memory:
                self.assertRaises(quire.BusyError, memory.destroy)
            self.assertFalse(memory.is_alive)
            self.assertRaises(quire.StaleHandleError, in_block.step)
            owner = device.create_memory().compaction()._owner
            self.assertEqual((owner.pointer, device.statistics.memory_count), (None, 0))
            kept = device.create_memory().compaction()
            self.assertEqual((kept.step().is_complete, device.statistics.memory_count), (True, 1))
            in_block = device.create_memory().compaction()
        self.assertRaises(quire.StaleHandleError, kept.step)
        kept.end()

    def test_exception_in_a_block(self):
        """The error of the block is not replaced by that of a view, which the traceback keeps."""
        with self.assertRaises(ZeroDivisionError):
            with quire.open_host() as device, device.create_memory(host_read=True) as memory:
                with memory.allocate(64) as a:
                    view = a.view()
                    raise ZeroDivisionError
        self.assertEqual(len(view), 64)
        self.assertTrue(memory.is_alive)
        del a, view
        gc.collect()
        self.assertFalse(memory.is_alive)  # it ends with the last view
        self.assertIsNone(device._owner.pointer)

    def test_exit(self):
        """Objects of modules end with the process, in any order, without a message."""
        run_python("import quire\n"
                   "device = quire.open_host()\nmemory = device.create_memory(host_read=True)\n"
                   "a = memory.allocate(64)\nview = a.view()\nstream = device.create_stream()\n"
                   "b = memory.allocate(64, stream=stream)\ncapsule = a.__dlpack__()\n"
                   "class Late:\n    def __del__(self, view=view): view[0] = 1\nlate = Late()\n")

    def test_callback_exceptions(self):
        """What a callback raises is raised by the call that ran it, and by no other call."""
        for kind in (KeyboardInterrupt, SystemExit, ZeroDivisionError):
            def fail(*_, kind=kind):
                raise kind("from the callback")
            device = quire.open_host()
            memory = device.create_memory(limit=1 << 16, on_out_of_memory=fail)
            for _ in range(2):
                self.assertRaisesRegex(kind, "from the callback", memory.allocate, 1 << 20)
                memory.allocate(64).free()
            memory.destroy()
            device.destroy()

        lines = []

        def refuse_first(level, line):
            lines.append(line)
            if sum("logged" in line for line in lines) == 1 and "logged" in line:
                raise ZeroDivisionError
        device = quire.open_host(log=refuse_first, log_level=quire.LogLevel.INFO)
        with self.assertRaises(ZeroDivisionError):
            device.create_memory("logged")  # the library made it
        gc.collect()
        self.assertEqual(device.statistics.memory_count, 0)


class Threads(unittest.TestCase):
    def test_allocate_and_free(self):
        memory, errors = host_memory(), []

        def work(seed):
            try:
                live = []
                for i in range(200):
                    live.append(memory.buffer(64 + (seed * 37 + i * 13) % 1000, name=f"t{seed}/{i % 3}"))
                    live[-1].write(bytes([seed]) * 64)
                    if i % 3 == 2:
                        a = live.pop((seed + i) % len(live))
                        if a.read(0, 64) != bytes([seed]) * 64:
                            errors.append(a)
                        a.free()
            except quire.QuireError as error:
                errors.append(error)
        in_threads(work, 4)
        self.assertEqual(errors, [])
        gc.collect()
        memory.check()
        self.assertEqual(memory.statistics.allocation_count, 0)

    def test_free_race(self):
        """One of several threads frees an allocation; the others get an error."""
        memory = host_memory()
        for _ in range(50):
            a, results = memory.allocate(64), []

            def free(_, a=a, results=results):
                try:
                    a.free()
                    results.append("freed")
                except quire.QuireError as error:
                    results.append(type(error).__name__)
            in_threads(free, 3)
            self.assertEqual(results.count("freed"), 1, results)

    def test_compaction_race(self):
        """Threads begin compactions and destroy the memory: each call does so as a whole or raises an error."""
        for _ in range(50):
            memory, errors = host_memory(), []

            def work(number, memory=memory, errors=errors):
                try:
                    if number:
                        memory.compact()
                    else:
                        memory.destroy_all()
                except (quire.BusyError, quire.StaleHandleError, quire.WrongStateError):
                    pass
                except Exception as error:  # pylint: disable=broad-except
                    errors.append(error)
            in_threads(work, 3)
            self.assertEqual(errors, [])
            gc.collect()
            memory.destroy()

    def test_destroy_race(self):
        """A memory is not destroyed under a thread that uses it."""
        for _ in range(20):
            memory = host_memory()
            stop, unexpected = threading.Event(), []

            def work(memory=memory, stop=stop, unexpected=unexpected):
                while not stop.is_set():
                    try:
                        memory.allocate(64)
                        memory.report()
                    except (quire.StaleHandleError, quire.WrongStateError):
                        return
                    except quire.QuireError as error:
                        unexpected.append(error)
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for _ in range(1000):
                try:
                    memory.destroy_all()
                    break
                except quire.BusyError:
                    pass
            stop.set()
            for thread in threads:
                thread.join()
            self.assertEqual(unexpected, [])


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class Fork(unittest.TestCase):
    def test_host_survives(self):
        memory = host_memory()
        a = memory.buffer(64, zero=True)
        a.write(b"parent")
        view = a.view()

        def work():
            assert bytes(view[:6]) == b"parent"
            view[0] = ord("x")
            b = memory.allocate(64)
            b.free()
            assert memory.statistics.allocation_count == 1
        in_child(work)
        self.assertEqual(bytes(view[:6]), b"parent")

    def test_calls_of_other_threads(self):
        """A child destroys what a thread of its parent was using."""
        memory = host_memory()
        inside, go_on = threading.Event(), threading.Event()

        def hold():
            with memory._owner.held():
                inside.set()
                go_on.wait()
        thread = threading.Thread(target=hold)
        thread.start()
        self.addCleanup(go_on.set)
        inside.wait()
        in_child(memory.destroy_all)
        self.assertRaises(quire.BusyError, memory.destroy_all)
        go_on.set()
        thread.join()
        memory.destroy_all()

    def test_memfd_does_not_survive(self):
        device = quire.open_host(backing=quire.HostBacking.MEMFD)
        memory = device.create_memory(host_read=True, host_write=True)
        a = memory.allocate(64)

        def work():
            try:
                memory.allocate(64)
                raise AssertionError("no error")
            except quire.NotPermittedError:
                pass
            a.__class__
            memory.destroy_all()
            device.destroy()
        in_child(work)
        a.free()


class Attributes(unittest.TestCase):
    """The objects have no attribute that the package does not know: a misspelled one is an error."""

    def setUp(self):
        self.memory = host_memory()
        buffer = self.memory.buffer(64)
        recorder = quire.record(self.memory)
        stream = self.memory.device.create_stream()
        self.objects = (self.memory.device, self.memory, stream, stream.mark(), self.memory.allocate(64), buffer,
                        buffer.array(), self.memory.scope(), recorder, recorder.trace(), self.memory.compaction())

    def test_unknown(self):
        for public in self.objects:
            with self.subTest(type(public).__name__), self.assertRaises(AttributeError):
                public.limt = 5
        self.memory.limit = 1 << 30
        self.assertEqual(self.memory.limit, 1 << 30)

    def test_weak_references(self):
        for public in self.objects:
            if not isinstance(public, quire.Point):
                self.assertIs(weakref.ref(public)(), public)

    def test_subclasses(self):
        """An object of a class of the user may have more attributes."""
        class Named(quire.Array):
            pass
        named = Named(self.memory.buffer(64), "float32")
        named.title = "weights"
        self.assertEqual((named.title, named.shape), ("weights", (16,)))

    def test_copies_of_arrays(self):
        """A shallow copy of an array is another one on the same bytes; a deep one would copy what it owns."""
        array = self.memory.buffer(64, zero=True).array("float32", (4, 4))
        twin = copy.copy(array)
        twin.view()[1, 1] = 2.0
        self.assertEqual((array[1, 1].item(), twin.shape), (2.0, (4, 4)))
        for duplicate in (copy.deepcopy, pickle.dumps):
            self.assertRaises(TypeError, duplicate, array)

    def test_owners_are_not_copied(self):
        """A copy would share what the original owns, and free it when the copy is garbage."""
        count = self.memory.statistics.allocation_count
        for owner in (o for o in self.objects if not isinstance(o, (quire.Point, quire.Array))):
            for duplicate in (copy.copy, copy.deepcopy, pickle.dumps, lambda o: pickle.dumps(o, 0),
                              lambda o: copy.deepcopy([o])):
                with self.subTest(f"{type(owner).__name__} {duplicate}"):
                    with self.assertRaisesRegex(TypeError, f"quire.{type(owner).__name__} .*copied.*pickled.*owns"):
                        duplicate(owner)
        gc.collect()
        self.objects[5].write(b"alive")
        self.assertEqual(self.memory.statistics.allocation_count, count)
