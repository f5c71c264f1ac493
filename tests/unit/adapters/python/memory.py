# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices, memories, allocations, streams and what they report, on the host backend."""

import gc
import logging
import os
import tempfile
import time
import unittest
import xml.etree.ElementTree
from unittest import mock

import quire

from support import host_memory

MIB = 1 << 20


class Devices(unittest.TestCase):
    def test_info(self):
        info = quire.open_host().info
        self.assertEqual((info.backend, len(info.heaps), len(info.kinds)), ("host", 2, 4))
        self.assertIn(quire.MemoryFlags.HOST_VISIBLE | quire.MemoryFlags.HOST_COHERENT, info.kinds[1].flags)
        self.assertTrue(info.survives_fork)
        self.assertGreater(info.limits.page_granularity, 0)

    def test_profile(self):
        flags = quire.MemoryFlags.DEVICE_LOCAL | quire.MemoryFlags.HOST_VISIBLE
        profile = quire.HostProfile("small", (quire.Heap(64 * MIB, quire.HeapFlags.DEVICE_LOCAL),),
                                    (quire.Kind(flags, 0),))
        with quire.open_host(profile) as device:
            self.assertEqual((device.name, device.info.heaps[0].size), ("small", 64 * MIB))
            memory = device.create_memory()
            self.assertEqual((memory.kind, memory.flags, memory.is_mappable), (0, flags, True))
            with self.assertRaises(MemoryError) as caught:
                memory.allocate(65 * MIB)
            self.assertIsInstance(caught.exception, quire.OutOfDeviceMemoryError)
            self.assertEqual(memory.statistics.failures, 1)

    def test_budgets(self):
        device = quire.open_host(budgets=[8 * MIB, 16 * MIB])
        self.assertEqual(device.budget(1).budget, 16 * MIB)
        device.set_budget(1, 4 * MIB)
        self.assertEqual(device.budget(1).available, 4 * MIB)
        device.set_heap_limit(0, MIB)
        memory = device.create_memory()
        self.assertRaises(quire.OverBudgetError, memory.allocate, 2 * MIB)
        device.set_page_limit(1)
        allocation = memory.allocate(16)
        with self.assertRaises(quire.TooManyPagesError):
            device.create_memory().allocate(16)
        allocation.free()
        device.create_memory().allocate(16)  # the empty page of the other memory went

    def test_choose_kind(self):
        device, flags = quire.open_host(), quire.MemoryFlags
        kind = device.choose_kind(required=flags.HOST_VISIBLE, preferred=flags.HOST_CACHED)
        self.assertIn(flags.HOST_CACHED, device.info.kinds[kind].flags)
        self.assertEqual(device.create_memory(kind_mask=1 << kind, flags=flags.HOST_VISIBLE).kind, kind)
        self.assertRaises(quire.UnsupportedError, device.choose_kind, required=flags.PROTECTED)

    def test_log(self):
        with self.assertLogs("quire.test", logging.INFO) as caught:
            quire.open_host(log=logging.getLogger("quire.test"), log_level=quire.LogLevel.INFO).create_memory("seen")
        self.assertTrue(any("seen" in line for line in caught.output), caught.output)
        found = []
        device = quire.open_host(log=lambda *line: found.append(line), log_level=quire.LogLevel.INFO)
        device.create_memory("logged").destroy()
        self.assertTrue(any("logged" in line for _, line in found), found)
        self.assertEqual({level for level, _ in found}, {quire.LogLevel.INFO})

    def test_statistics(self):
        device = quire.open_host()
        memories = [device.create_memory() for _ in range(2)]
        kept = [memory.allocate(MIB) for memory in memories]
        stats = device.statistics
        self.assertEqual((stats.memory_count, stats.live_bytes, stats.allocation_count), (2, 2 * MIB, len(kept)))
        self.assertEqual(sum(stats.heap_reserved_bytes), stats.reserved_bytes)
        self.assertEqual((stats.requested_bytes, stats.allocations, stats.frees), (2 * MIB, 2, 0))

    def test_all_memories(self):
        device = quire.open_host()
        pages = quire.PagePolicy(page_size=MIB)
        first, second = (device.create_memory(name, pages=pages) for name in ("first", "second"))
        kept = first.allocate(100, name="kept")
        second.allocate(100).free()
        self.assertIn("memory 'first'", device.report())
        self.assertIn("memory 'second'", device.report())
        self.assertEqual([memory["name"] for memory in device.snapshot()["memories"]], ["first", "second"])
        self.assertEqual([report["name"] for report in device.report_values()["reports"]], ["first", "second"])
        self.assertIn(">kept: page 0", device.svg().replace("<title>", ">"))
        self.assertEqual(device.trim(MIB), 0)
        self.assertEqual(device.trim(), MIB)
        self.assertEqual((kept.info.page, device.statistics.page_count), (0, 1))


class Memories(unittest.TestCase):
    @staticmethod
    def half_empty(each=None, **options):
        """A memory of two pages, and the four allocations of each, which are half of it and are numbered."""
        memory = host_memory(pages=quire.PagePolicy(page_size=MIB), shards=1, **options)
        made = [memory.allocate(MIB // 8, **(each or {})) for _ in range(16)]
        kept = made[::2]
        for i, a in enumerate(kept):
            a.write(bytes([i]))
        return memory, kept

    def test_elastic(self):
        memory = quire.open_host().create_memory(elastic=True, address_space=64 * MIB, limit=8 * MIB,
                                                 pages=quire.PagePolicy(page_size=MIB))
        kept = [memory.allocate(MIB) for _ in range(8)]
        self.assertEqual((memory.page_size, memory.statistics.reserved_bytes), (MIB, 8 * MIB))
        for allocation in kept[::2]:
            allocation.free()
        large = memory.allocate(4 * MIB)  # of the memory of four free chunks that do not touch
        self.assertEqual((memory.statistics.reserved_bytes, memory.statistics.page_count), (8 * MIB, 1))
        self.assertEqual({item.page_bytes for item in memory.ranges()}, {8 * MIB})
        large.free()
        self.assertEqual(memory.trim(), 4 * MIB)

    def test_lazy(self):
        memory = quire.open_host().create_memory(elastic=True, address_space=64 * MIB, limit=8 * MIB,
                                                 host_read=True, host_write=True, pages=quire.PagePolicy(page_size=MIB))
        one, two = (memory.allocate(16 * MIB, name=name, lazy=True) for name in ("one", "two"))
        self.assertEqual((one.info.size, one.info.backed, memory.statistics.live_bytes), (16 * MIB, 0, 0))
        self.assertRaises(quire.WrongStateError, one.write, b"x")
        one.back(MIB, 2 * MIB)
        one.write(b"kept", MIB)
        one.back(MIB + 100, 3 * MIB)  # every chunk that it touches
        self.assertEqual((one.info.backed, one.read(MIB, 4)), (4 * MIB, b"kept"))
        memory.back_ranges([(one, 0, 1), (two, 14 * MIB, 0)])
        self.assertEqual((one.info.backed, two.info.backed), (5 * MIB, 2 * MIB))
        self.assertEqual({r.name: (r.size, r.backed) for r in memory.ranges() if not r.is_free},
                         {"one": (16 * MIB, 5 * MIB), "two": (16 * MIB, 2 * MIB)})
        memory.unback_ranges(part for part in [(one, 2 * MIB, MIB + 5), (two, 15 * MIB, 0)])
        self.assertEqual((one.info.backed, two.info.backed, one.read(MIB, 4)), (4 * MIB, MIB, b"kept"))
        one.unback()
        self.assertEqual((one.info.backed, memory.statistics.live_bytes), (0, MIB))
        self.assertEqual(memory.allocate(300).info.backed, 512)

    def test_sleep(self):
        memory = quire.open_host().create_memory(elastic=True, address_space=64 * MIB, limit=8 * MIB,
                                                 host_read=True, host_write=True, pages=quire.PagePolicy(page_size=MIB))
        lazy = memory.allocate(4 * MIB, name="a.lazy", lazy=True)
        lazy.back(MIB, MIB)
        plain, other = memory.allocate(MIB + 100, name="a.plain"), memory.allocate(100, name="b")
        for allocation in (plain, other):
            allocation.write(b"kept")
        address = plain.info.address
        self.assertEqual((memory.sleep("none"), memory.sleep("a."), memory.sleep("a.")), (0, 2 * MIB, 0))
        self.assertEqual((plain.info.asleep, plain.info.backed, other.info.asleep, other.read(0, 4)),
                         (True, 0, False, b"kept"))
        statistics = memory.statistics
        self.assertEqual((statistics.asleep_count, statistics.reserved_bytes), (2, MIB))
        self.assertEqual(sorted(r.name for r in memory.ranges() if r.asleep), ["a.lazy", "a.plain"])
        self.assertRaises(quire.WrongStateError, plain.read, 0, 4)
        self.assertRaises(quire.WrongStateError, lazy.back)
        memory.limit = MIB
        self.assertRaises(quire.OverBudgetError, memory.wake)
        memory.limit = 8 * MIB
        self.assertEqual((memory.wake("a."), memory.wake()), (2 * MIB, 0))
        self.assertEqual((plain.read(0, 4), plain.info.address, plain.info.asleep), (b"kept", address, False))
        self.assertEqual(memory.sleep(mode=quire.SleepMode.DISCARD), 3 * MIB)
        plain.free()
        self.assertEqual(memory.wake(), 2 * MIB)

    def test_sleep_refusals(self):
        memory = quire.open_host().create_memory(elastic=True, host_read=True, pages=quire.PagePolicy(page_size=MIB))
        held = memory.allocate(100)
        with memoryview(held.view()):
            self.assertRaises(quire.BusyError, memory.sleep)
        self.assertRaises(TypeError, memory.sleep, 1)
        self.assertRaises(TypeError, memory.sleep, None, "keep")
        self.assertRaises(TypeError, memory.sleep, None, quire.SleepMode.KEEP, 1)
        self.assertRaises(TypeError, memory.wake, 1)
        flat = quire.open_host().create_memory()
        self.assertRaises(quire.UnsupportedError, flat.sleep)

    def test_compaction(self):
        memory, kept = self.half_empty(movable=True)
        addresses = [a.info.address for a in kept]
        self.assertEqual(memory.estimate_compaction(), quire.CompactionStatistics(4, MIB // 2, 1, MIB, False))
        with memory.compaction() as compaction:
            self.assertRaises(quire.BusyError, memory.compaction)
            self.assertRaises(quire.BusyError, memory.destroy)
            done = compaction.step(moves=1)
            self.assertEqual((done.moves, done.bytes_moved, done.is_complete), (1, MIB // 8, False))
            self.assertEqual(compaction.step(bytes=1).moves, 2)
            self.assertEqual(compaction.step(records=1).moves, 4)
            done = compaction.step()
        self.assertEqual(done, quire.CompactionStatistics(4, MIB // 2, 1, MIB, True))
        self.assertEqual((memory.statistics.page_count, {a.info.page for a in kept}), (1, {kept[0].info.page}))
        self.assertEqual(sum(a.info.address != before for a, before in zip(kept, addresses)), 4)
        self.assertEqual([a.read(0, 1)[0] for a in kept], list(range(8)))
        self.assertEqual(memory.compact(), quire.CompactionStatistics(0, 0, 0, 0, True))
        self.assertRaisesRegex(quire.StaleHandleError, "compaction of the memory .* destroyed before", compaction.step)
        compaction.end()

    def test_what_moves(self):
        for options in ({}, {"movable": True}):
            for each in ({}, {"movable": True}):
                memory, kept = self.half_empty(each, **options)
                self.assertEqual((memory.compact().moves, len(kept)), (4 if options or each else 0, 8))
        memory, kept = self.half_empty(movable=True)
        views = [a.view() for a in kept]
        self.assertEqual(memory.compact().moves, 0)
        del views
        self.assertEqual(memory.compact().moves, 4)

    def test_compaction_on_a_stream(self):
        memory, kept = self.half_empty(movable=True)
        stream = memory.device.create_stream()
        with memory.compaction() as compaction:
            done = compaction.step(stream=stream)
            stream.synchronize()
        self.assertEqual((done.moves, memory.statistics.page_count), (4, 1))
        self.assertEqual([a.read(0, 1)[0] for a in kept], list(range(8)))
        with memory.compaction() as compaction:
            self.assertRaises(TypeError, compaction.step, stream=1)
            stream.destroy()
            self.assertRaises(quire.StaleHandleError, compaction.step, stream=stream)

    def test_eviction(self):
        memory, kept = self.half_empty(movable=True)
        kept[3].set_priority(-1)
        kept[0].set_priority(127)
        kept[1].touch()
        memory.frame()
        kept[2].touch()
        self.assertEqual((memory.evict(1), kept[3].info.asleep, kept[4].info.asleep), (MIB // 8, True, False))
        self.assertRaises(quire.WrongStateError, kept[3].touch)
        self.assertEqual((memory.evict(8 * MIB, 1), memory.evict(8 * MIB)), (4 * MIB // 8, MIB // 8))
        self.assertEqual(memory.statistics.asleep_count, 6)
        kept[3].wake()
        self.assertEqual((kept[3].read(0, 1)[0], memory.wake(), memory.wake()), (3, 5 * MIB // 8, 0))
        self.assertEqual([a.read(0, 1)[0] for a in kept], list(range(8)))
        with memoryview(kept[5].view()):
            self.assertEqual(memory.evict(8 * MIB), 5 * MIB // 8)
        self.assertRaises(quire.InvalidArgumentError, kept[5].set_priority, 128)
        self.assertEqual((memory.wake() > 0, memory.evict(1, mode=quire.SleepMode.DISCARD)), (True, MIB // 8))
        self.assertRaises(TypeError, memory.evict, None)
        self.assertRaises(TypeError, memory.evict, 1, 0, "keep")

    def test_largest_free(self):
        memory = quire.open_host().create_memory(movable=True, pages=quire.PagePolicy(page_size=MIB))
        kept = [memory.allocate(MIB // 8) for _ in range(8)][::2]
        self.assertEqual((memory.compact().moves, memory.statistics.largest_free), (0, MIB // 8))
        self.assertEqual(memory.compact(largest_free=MIB // 2).moves, 2)
        self.assertEqual((memory.statistics.largest_free, len(kept)), (MIB // 2, 4))

    def test_buffers_move(self):
        memory = quire.open_host().create_memory(pages=quire.PagePolicy(page_size=MIB))
        for movable in (False, True):
            kept = [memory.buffer(MIB // 4, movable=movable) for _ in range(8)][::2]
            kept[2].write(b"kept")
            self.assertEqual(memory.compact().moves, 2 if movable else 0)
            self.assertEqual(bytes(kept[2].read(0, 4)), b"kept")
            for buffer in kept:
                buffer.free()

    def test_compaction_refusals(self):
        device = quire.open_host()
        for options in ({"elastic": True}, {"fit": quire.FitOptions(quire.Fit.LINEAR)}):
            memory = device.create_memory(**options)
            self.assertRaises(quire.UnsupportedError, memory.compaction)
            self.assertRaises(quire.UnsupportedError, memory.compact)
            self.assertRaises(quire.UnsupportedError, memory.estimate_compaction)
            memory.destroy()
        memory = device.create_memory()
        with memory.compaction() as compaction:
            for name in ("moves", "bytes", "records", "largest_free"):
                self.assertRaises(TypeError, compaction.step, **{name: "1"})
                self.assertRaises(quire.InvalidArgumentError, compaction.step, **{name: -1})
        memory.destroy()
        self.assertRaises(quire.StaleHandleError, memory.compaction)

    def test_lazy_refusals(self):
        memory = quire.open_host().create_memory(elastic=True, address_space=64 * MIB, limit=4 * MIB,
                                                 pages=quire.PagePolicy(page_size=MIB))
        lazy, plain = memory.allocate(16 * MIB, lazy=True), memory.allocate(100)
        for other, options in ((host_memory(), {}), (memory, {"zero": True}), (memory, {"dedicated": True})):
            with self.assertRaises(quire.InvalidArgumentError):
                other.allocate(16 * MIB, lazy=True, **options)
        for change in (memory.back_ranges, memory.unback_ranges):
            self.assertRaises(quire.UnsupportedError, change, [(lazy, 0, MIB), (plain, 0, 0)])
            self.assertRaises(quire.OutOfRangeError, change, [(lazy, 16 * MIB, 1)])
            self.assertRaises(quire.InvalidArgumentError, change, [(lazy, -1, 0)])
            self.assertRaises(quire.InvalidArgumentError, change, [(lazy, 0, 1 << 64)])
            self.assertRaises(TypeError, change, [(lazy.handle, 0, 0)])
            self.assertRaises(ValueError, change, [(lazy, 0)])
        memory.back_ranges([])
        memory.unback_ranges([])
        self.assertRaises(quire.UnsupportedError, host_memory().back_ranges, [])
        with self.assertRaises(quire.OverBudgetError):
            memory.back_ranges([(lazy, 0, MIB), (lazy, 4 * MIB, 5 * MIB)])
        self.assertEqual(lazy.info.backed, 0)  # nothing of a list that is refused
        foreign = quire.open_host().create_memory(elastic=True, address_space=64 * MIB)
        self.assertRaises(quire.QuireError, foreign.back_ranges, [(lazy, 0, 0)])
        lazy.free()
        self.assertRaises(quire.StaleHandleError, lazy.back)
        self.assertRaises(quire.StaleHandleError, lazy.unback)

    def test_options(self):
        memory = quire.open_host().create_memory(
            "pool", fit=quire.FitOptions(quire.Fit.BUDDY), limit=32 * MIB, shards=1,
            pages=quire.PagePolicy(page_size=2 * MIB, dedicated_threshold=MIB, classes=()))
        self.assertEqual((memory.name, memory.fit, memory.page_size, memory.limit),
                         ("pool", quire.Fit.BUDDY, 2 * MIB, 32 * MIB))
        self.assertEqual(memory.allocate(300).info.size, 512)
        self.assertTrue(memory.allocate(MIB).info.dedicated)
        memory.limit = 0
        self.assertEqual(memory.limit, 0)
        half = quire.open_host(budgets=[]).create_memory(limit="50%")
        self.assertEqual(half.limit, half.device.info.heaps[0].size // 2)
        classes = quire.PagePolicy(page_size=MIB, classes=((4096, 64 << 10),))
        memory = quire.open_host().create_memory(pages=classes)
        self.assertEqual(memory.page_info(memory.allocate(100).info.page).size, 64 << 10)

    def test_allocations(self):
        memory = host_memory()
        a = memory.allocate(1000, 4096, "weights/0", user_data=7)
        info = a.info
        self.assertEqual((info.offset % 4096, info.address % 4096, info.requested, info.user_data), (0, 0, 1000, 7))
        self.assertEqual((a.name, a.nbytes, a.address, len(a)), ("weights/0", 1000, info.address, 1000))
        a.name, a.user_data = "späte", 1 << 63
        self.assertEqual((a.name, a.user_data), ("späte", 1 << 63))
        a.name = None
        self.assertEqual(a.name, "")
        self.assertTrue(memory.allocate(16, dedicated=True).info.dedicated)
        self.assertEqual(memory.page_info(info.page).page, info.page)
        self.assertIn("1000 bytes at page 0", repr(a))

    def test_bytes(self):
        memory = host_memory()
        a, b = memory.buffer(16, zero=True), memory.buffer(16, zero=True)
        a.write(b"0123456789")
        a.write(bytearray(b"xy"), 14)
        a.write(memoryview(b"ab_cd_")[::3], 10)
        a.write(b"")
        self.assertEqual(a.read(), b"0123456789ac\0\0xy")
        self.assertEqual((a.read(14), a.read(16), a.read(3, 0)), (b"xy", b"", b""))
        self.assertTrue(b.copy_from(a, offset=2, source_offset=4, size=6).has_passed)
        self.assertEqual(b.read(), b"\0\x00456789" + bytes(8))
        b.copy_from(a)
        self.assertEqual(b.read(), a.read())
        b.fill(ord("z"), 4, 2)
        b.fill(ord("y"), 14)
        target = bytearray(4)
        b.read_into(target, 3)
        self.assertEqual((bytes(target), b.read(14)), (b"3zz6", b"yy"))
        b.flush()
        b.invalidate(0, 4)

    def test_limits_of_names(self):
        memory = host_memory()
        memory.set_name_limit("a/", MIB)
        kept = memory.allocate(MIB // 2, name="a/1")
        self.assertRaisesRegex(quire.OverBudgetError, "a/", memory.allocate, MIB, name="a/2")
        usage = memory.name_usage("a/")
        self.assertEqual((usage.limit, usage.requested_bytes, usage.allocation_count), (MIB, len(kept), 1))

    def test_out_of_memory_callback(self):
        reports, held = [], []

        def free_some(report):
            reports.append(report)
            while held:
                held.pop().free()
                return True
            return False
        memory = quire.open_host().create_memory(limit=4 * MIB, on_out_of_memory=free_some)
        held.append(memory.allocate(3 * MIB))
        memory.allocate(2 * MIB).free()
        self.assertEqual((reports[0].times, quire.Result(reports[0].reason)), (1, quire.Result.OVER_BUDGET))
        self.assertRaises(quire.OverBudgetError, memory.allocate, 5 * MIB)

    def test_pages(self):
        memory = host_memory()
        memory.preallocate(2 * MIB)
        self.assertGreaterEqual(memory.statistics.reserved_bytes, 2 * MIB)
        memory.preallocate(0)
        self.assertGreaterEqual(memory.trim(), 2 * MIB)
        self.assertEqual(memory.trim(), 0)

    def test_insight(self):
        memory = host_memory(name="seen")
        kept = [memory.allocate(1000, name=f"layer/{i}") for i in range(3)]
        kept.pop(1).free()
        stats = memory.statistics
        self.assertEqual((stats.allocations, stats.frees, stats.allocation_count, stats.requested_bytes),
                         (3, 1, 2, 2000))
        self.assertIsInstance(stats.fragmentation, quire.Fragmentation)
        self.assertLessEqual(stats.fragmentation.free, 1.0)
        names = [r.name for r in memory.ranges() if not r.is_free]
        self.assertEqual(sorted(names), ["layer/0", "layer/2"])
        memory.check()
        self.assertIn("layer", memory.report())
        values = memory.report_values()
        self.assertEqual((values["what"], values["refusal"]), ("report", None))
        self.assertEqual(values["names"], [{"name": "layer", "live_bytes": stats.live_bytes, "allocation_count": 2}])
        snapshot = memory.snapshot()
        self.assertEqual(snapshot["name"], "seen")
        self.assertEqual(xml.etree.ElementTree.fromstring(memory.svg()).tag.split("}")[-1], "svg")
        page = memory._repr_html_()
        self.assertIn("<svg", page)
        self.assertNotIn("<?xml", page)
        memory.destroy_all()
        self.assertIn("destroyed", memory._repr_html_())

    def test_html_escapes(self):
        page = host_memory(name="<b>&")._repr_html_()
        self.assertNotIn("<b>&", page.replace("&amp;", "").replace("<b>&lt;", ""))
        self.assertIn("&lt;b&gt;&amp;", page)

    def test_scopes(self):
        memory = host_memory()
        memory.allocate(MIB).free()
        with memory.scope() as outer:
            memory.allocate(100).free()
            with memory.scope() as inner:
                memory.allocate(5000).free()
            self.assertEqual(outer.statistics.allocation_count, 0)
        self.assertEqual((inner.statistics.allocations, inner.statistics.peak_requested_bytes), (1, 5000))
        self.assertEqual((outer.statistics.allocations, outer.statistics.peak_requested_bytes), (2, 5000))


class Streams(unittest.TestCase):
    def setUp(self):
        self.memory = host_memory()
        self.device = self.memory.device

    def test_free_in_order(self):
        stream = self.device.create_stream("manual", manual=True)
        a = self.memory.buffer(4096, zero=True)
        point = a.fill(3, stream=stream)
        self.assertFalse(point.has_passed)
        a.free(stream=stream)
        self.assertEqual((self.memory.statistics.deferred_count, stream.deferred), (1, 1))
        self.assertRaises(quire.StaleHandleError, a.read)
        self.assertEqual(self.memory.collect(), 0)
        self.assertGreater(stream.run(), 0)
        self.assertTrue(point.has_passed)
        self.assertEqual(self.memory.collect(), 4096)

    def test_wait(self):
        stream = self.device.create_stream(manual=True)
        point = stream.mark()
        self.assertRaises(quire.BusyError, point.wait, 0)
        start = time.monotonic()
        with self.assertRaises(quire.BusyError):
            point.wait()  # only run makes it pass
        self.assertLess(time.monotonic() - start, 5)
        self.assertRaises(ValueError, point.wait, -1)
        stream.run()
        point.wait()
        worker = self.device.create_stream()
        worker.synchronize()
        worker.wait(point)
        quire.Point(None, 0).wait()

    def test_order_between_streams(self):
        first, second = (self.device.create_stream(manual=True) for _ in range(2))
        a = self.memory.buffer(64, zero=True)
        second.wait(a.fill(1, stream=first))
        done = a.fill(2, stream=second)
        second.run()
        self.assertFalse(done.has_passed)
        first.run()
        second.run()
        self.assertTrue(done.has_passed)
        self.assertEqual(a.read(0, 1), b"\2")

    def test_recorded_use(self):
        stream = self.device.create_stream(manual=True)
        a = self.memory.buffer(64)
        stream.mark()
        a.record_use(stream)
        self.assertRaises(quire.BusyError, stream.destroy)
        a.free()
        self.assertEqual(self.memory.statistics.deferred_count, 1)
        self.memory.collect()  # which marks the stream
        stream.run()
        self.memory.collect()
        stream.destroy()
        self.assertEqual(self.memory.statistics.deferred_count, 0)

    def test_free_after(self):
        stream = self.device.create_stream(manual=True)
        point = stream.mark()
        a = self.memory.buffer(64)
        self.assertRaises(quire.InvalidArgumentError, a.free, stream, point)
        a.free(after=point)
        self.assertEqual(stream.deferred, 1)
        stream.run()
        self.assertEqual(self.memory.collect(), self.memory.allocate(64).info.size)

    def test_unback_after(self):
        memory = self.device.create_memory(elastic=True, address_space=64 * MIB, pages=quire.PagePolicy(page_size=MIB))
        stream = self.device.create_stream(manual=True)
        lazy = memory.allocate(4 * MIB, lazy=True)
        lazy.back()
        lazy.unback(MIB, MIB, stream.mark())
        memory.unback_ranges([(lazy, 2 * MIB, MIB)], after=stream.mark())
        memory.collect()
        self.assertEqual(lazy.info.backed, 4 * MIB)
        stream.run()
        memory.collect()
        self.assertEqual(lazy.info.backed, 2 * MIB)
        lazy.unback(0, MIB, quire.Point(None, 0))  # a point that has passed
        self.assertEqual(lazy.info.backed, MIB)
        self.assertRaises(TypeError, lazy.unback, 0, 0, stream)
        point = stream.mark()
        stream.run()
        stream.destroy()
        self.assertRaises(quire.StaleHandleError, lazy.unback, 0, 0, point)

    def test_garbage_on_a_stream(self):
        """Garbage is freed in the order of the stream that it was allocated on."""
        stream = self.device.create_stream(manual=True)
        self.memory.buffer(64, stream=stream)
        self.assertEqual(stream.deferred, 1)
        a = self.memory.buffer(4096, stream=stream)
        a.free()
        self.assertEqual(stream.deferred, 2)
        kept = self.memory.buffer(128, stream=stream)
        self.memory.collect()  # which marks the stream
        stream.run()
        stream.destroy()
        self.assertIn("destroyed", repr(stream))
        kept.free()
        self.assertEqual(self.memory.statistics.allocation_count, 0)

    def test_frees_wait_for_work(self):
        """What a stream fills or copies is not reused before, although nobody names the stream again."""
        stream = self.device.create_stream(manual=True)
        source, target = self.memory.buffer(4096, zero=True), self.memory.buffer(4096)
        source.fill(5, stream=stream)
        target.copy_from(source, stream=stream)
        source.free()
        del target
        self.assertEqual(self.memory.statistics.deferred_count, 2)
        self.memory.collect()
        stream.run()
        self.memory.collect()
        self.assertEqual(self.memory.statistics.deferred_count, 0)

    def test_memory_ends_with_work(self):
        """No memory is destroyed under the work of a stream."""
        stream = self.device.create_stream(manual=True)
        kept = self.memory.buffer(64)
        kept.fill(1, stream=stream)
        for end in (self.memory.destroy_all, self.device.destroy_all):
            self.assertRaisesRegex(quire.BusyError, "work of a stream", end)
        owner, device = self.memory._owner, self.device._owner
        self.memory = self.device = kept = end = None
        gc.collect()
        self.assertIsNotNone(owner.pointer)  # garbage, but the stream still works on it
        stream.run()
        stream = None
        gc.collect()
        self.assertEqual((owner.pointer, device.pointer), (None, None))

    def test_device_ends_with_work(self):
        with quire.open_host() as device:
            memory, stream = device.create_memory(host_read=True), device.create_stream()
            kept = memory.buffer(1 << 20, stream=stream)
            kept.fill(1, stream=stream)
            memory.buffer(1 << 20).fill(2, stream=stream)
        for gone in (device, memory, stream):
            self.assertIsNone(gone._owner.pointer)

    def test_recorded_stream_lives(self):
        """A stream that a live allocation was used on does not end as garbage before it."""
        a = self.memory.buffer(64)
        a.record_use(self.device.create_stream())
        a.record_use(a._recorded[0])
        gc.collect()
        a.free()
        device = self.device._owner
        self.memory = self.device = a = None
        gc.collect()
        self.assertIsNone(device.pointer)

    def test_capture(self):
        stream = self.device.create_stream("graph", capture=True)
        self.assertTrue(stream.is_capture)
        self.memory.allocate(64, stream=stream).free()
        self.assertEqual(stream.deferred, 1)
        with self.assertRaises(quire.BusyError):
            stream.mark().wait()
        stream.destroy()
        self.assertRaises(quire.StaleHandleError, stream.mark)


class Traces(unittest.TestCase):
    def test_recording(self):
        memory = host_memory()
        before = memory.allocate(64, name="before")
        stream = memory.device.create_stream()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.csv")
            with quire.record(memory, path) as recorder:
                before.free()
                a = memory.allocate(100, 256, 'a,"b\n')
                memory.buffer(50, stream=stream)
                a.free()
            memory.allocate(1)
            trace = quire.read_trace(path)
            recorder.save(path + ".2")
            self.assertEqual(quire.read_trace(path + ".2").text(), trace.text())
        lines = trace.text().splitlines()
        self.assertEqual([line.split(",")[:3] for line in lines[1:]],
                         [["alloc", "1", "100"], ["alloc", "2", "50"], ["free", "2", ""], ["free", "1", ""]])
        self.assertEqual([line.split(",")[5:] for line in lines[1:]], [["0", "a__b_"], ["1", ""], ["1", ""], ["0", ""]])
        self.assertEqual(recorder.trace().text(), trace.text())
        self.assertEqual(quire.Trace(trace.text()).text(), trace.text())
        self.assertEqual((trace.info.alloc_count, trace.info.peak_bytes, trace.info.left_count), (2, 150, 0))
        target = host_memory()
        report = trace.replay(target)
        self.assertEqual((report.allocations, report.frees, report.failures), (2, 2, 0))
        self.assertEqual(trace.replay(target, event_count=1, keep=True, name=True).left_at_end, 1)
        self.assertEqual([r.name for r in target.ranges() if not r.is_free], ["a__b_"])

    def test_recording_so_far(self):
        device = quire.open_host()
        recorder = quire.record(device)
        self.assertEqual(recorder.trace().info.event_count, 0)
        with recorder:
            memory = device.create_memory()
            a = memory.allocate(64)
            recorder.frame()
            self.assertEqual(recorder.trace().info.frame_count, 1)
            a.free()
            self.assertEqual(recorder.trace().info.free_count, 1)
        self.assertEqual(recorder.trace().info.peak_bytes, 64)
        with recorder:  # again: a new trace
            memory.allocate(32)
        self.assertEqual(recorder.trace().info.peak_bytes, 32)

    def test_recording_ends_with_the_memory(self):
        memory = quire.open_host().create_memory()
        with quire.record(memory) as recorder:
            memory.allocate(64).free()
            memory.destroy()
            self.assertEqual(recorder.trace().info.alloc_count, 1)
            recorder.frame()
        self.assertEqual(recorder.trace().info.alloc_count, 1)

    def test_recording_in_a_ring(self):
        memory = host_memory()
        self.assertRaises(ValueError, quire.record, memory, ring_bytes=-1)
        with quire.record(memory, ring_bytes=1 << 17) as recorder:
            for i in range(20000):
                memory.allocate(64, name="last" if i == 19999 else None).free()
        info = recorder.trace().info
        self.assertTrue(1000 < info.alloc_count < 4000)
        self.assertTrue(recorder.trace().text().splitlines()[-2].endswith(",last"))

    def test_recording_to_no_file(self):
        memory = host_memory()
        with self.assertRaisesRegex(quire.BadFileError, "/nowhere/trace.csv.*No such file"):
            with quire.record(memory, "/nowhere/trace.csv"):
                pass

    def test_recording_that_does_not_start(self):
        memory = host_memory()
        recorder = quire.record(memory)
        memory.destroy()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(tempfile, "tempdir", folder):
            self.assertRaises(quire.StaleHandleError, recorder.__enter__)
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual(recorder.trace().info.event_count, 0)

    def test_bad_traces(self):
        for text in ("", "op\n", quire.trace._NOTHING.rstrip() + "\nalloc,1,0,1,0,0,\n"):
            with self.subTest(text), self.assertRaisesRegex(quire.BadFileError, "t.csv"):
                quire.Trace(text, "t.csv")
