# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: lists and arrays, every kind of constraint, limits, progress, and what is refused."""

import array
import ctypes
import random
import sys
import time
import unittest

import quire
from quire import _columns

from support import needs_numpy, numpy, run_python

BIG = 1 << 64
SIZES, FIRSTS, LASTS = [4096, 1024, 4096], [0, 1, 3], [2, 3, 4]
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def hard_problem(count=3000):
    """Items whose first plan is not the best: the work goes on until a limit."""
    rng = random.Random(7)
    firsts = [rng.randrange(1000) for _ in range(count)]
    return ([rng.randrange(1, 100000) for _ in range(count)], firsts, [f + rng.randrange(200) for f in firsts])


class Index:
    """An integer of another library."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Plans(unittest.TestCase):
    def test_lists(self):
        made = quire.plan(SIZES, FIRSTS, LASTS)
        self.assertEqual((made.peak_bytes, made.lower_bound_bytes, made.proven_optimal), (5120, 5120, True))
        self.assertEqual(made.offsets[0], made.offsets[2])
        self.assertEqual((type(made.offsets), made.arenas), (list, [1, 1, 1]))
        self.assertNotIn("offsets", repr(made))
        self.assertEqual(quire.plan_check(SIZES, FIRSTS, LASTS, made.offsets, made.arenas), [5120])

    def test_kinds_of_sequences(self):
        expected = quire.plan(SIZES, FIRSTS, LASTS).offsets
        for kind in (tuple, lambda v: array.array("Q", v), lambda v: array.array("h", v),
                     lambda v: [Index(x) for x in v], lambda v: (ctypes.c_uint32 * len(v))(*v),
                     lambda v: memoryview(array.array("q", v * 2))[:len(v)]):
            made = quire.plan(kind(SIZES), kind(FIRSTS), kind(LASTS), alignments=kind([1, 1, 1]))
            self.assertEqual(made.offsets, expected)
        every_second = memoryview(array.array("I", [9, 0, 9, 1, 9, 3]))[1::2]
        self.assertEqual(quire.plan(SIZES, every_second, LASTS).offsets, expected)
        self.assertEqual(quire.plan([5, 6], range(2), range(2)).peak_bytes, 6)

    def test_no_items(self):
        made = quire.plan([], [], [], alignments=[], fixed_offsets=[], arenas=[], alias_groups=[], separations=[])
        self.assertEqual((made.offsets, made.arenas, made.peak_bytes, made.proven_optimal), ([], [], 0, True))
        self.assertEqual(quire.plan_check([], [], [], [], []), [0])
        self.assertEqual(quire.plan(array.array("Q"), (), [], capacities=[]).offsets, [])

    def test_constraints(self):
        for fixed in ([None, 0, None, None], [-1, 0, -1, -1], array.array("b", [-1, 0, -1, -1])):
            options = {"alignments": [3, 0, 1, 1], "fixed_offsets": fixed, "alias_groups": [0, 0, 7, 7]}
            given = [100, 50, 10, 30], [0, 0, 20, 25], [9, 9, 30, 40]
            made = quire.plan(*given, **options)
            self.assertEqual((made.offsets[:2], made.peak_bytes), ([51, 0], 151))
            self.assertEqual(made.offsets[2], made.offsets[3])
            self.assertEqual(quire.plan_check(*given, made.offsets, **options), [151])
        all_fixed = quire.plan([4, 4], [0, 0], [0, 0], fixed_offsets=array.array("Q", [8, 2]))
        self.assertEqual((all_fixed.offsets, all_fixed.peak_bytes), ([8, 2], 12))

    def test_arenas_and_separations(self):
        given = [60, 60, 10], [0, 1, 0], [0, 1, 1]
        options = {"arenas": [0, 0, 2], "capacities": [100, 0]}
        made = quire.plan(*given, **options)
        self.assertEqual((made.peak_bytes, made.arenas), (70, [1, 1, 2]))
        self.assertEqual(quire.plan_check(*given, made.offsets, made.arenas, **options), [60, 10])
        for separations in ([(0, 1)], ([0, 1],)):
            made = quire.plan(*given, separations=separations, **options)
            self.assertEqual((made.peak_bytes, sorted(made.arenas)), (130, [1, 2, 2]))
        with self.assertRaises(quire.InvalidArgumentError):
            quire.plan_check(*given, made.offsets, [1, 1, 1], **options)

    def test_limits(self):
        given = hard_problem()
        one, two = (quire.plan(*given, step_limit=3000000, seed=5) for _ in range(2))
        self.assertEqual((one.offsets, one.steps), (two.offsets, two.steps))
        self.assertLessEqual(one.lower_bound_bytes, one.peak_bytes)
        for options in ({"step_limit": 0}, {"time_limit": 0}, {"time_limit": 0.0, "step_limit": 1}):
            first = quire.plan(*given, **options)
            self.assertLess(first.steps, one.steps)
            self.assertGreaterEqual(first.peak_bytes, one.peak_bytes)
        timed = quire.plan(*given, time_limit=0.05)
        self.assertTrue(0 < timed.wall_ns < 10**10)
        self.assertEqual(quire.plan_check(*given, timed.offsets), [timed.peak_bytes])
        self.assertEqual(quire.plan(*given, time_limit=float("inf"), step_limit=1000000, seed=BIG - 1).arenas,
                         [1] * 3000)

    def test_progress(self):
        given, seen = hard_problem(), []

        def end_at_third(best):
            seen.append(best)
            return len(seen) < 3
        made = quire.plan(*given, time_limit=60, progress=end_at_third)
        self.assertEqual(len(seen), 3)
        self.assertIs(type(seen[0]), quire.PlanInfo)
        self.assertLessEqual(made.peak_bytes, seen[-1].peak_bytes)
        self.assertLess(made.wall_ns, 30 * 10**9)
        seen.clear()

        def go_on_twice(best):
            seen.append(best)
            return None if len(seen) < 3 else False
        quire.plan(*given, time_limit=60, progress=go_on_twice)
        self.assertEqual(len(seen), 3)

    def test_progress_raises(self):
        class Stop(Exception):
            pass

        def fail(_):
            raise Stop("now")
        with self.assertRaises(Stop):
            quire.plan(*hard_problem(), time_limit=60, progress=fail)
        self.assertEqual(quire.plan(SIZES, FIRSTS, LASTS).peak_bytes, 5120)

    def test_does_not_import_numpy(self):
        self.assertEqual(run_python("import quire, sys; quire.plan([1], [0], [0]); print('numpy' in sys.modules)"),
                         "False\n")

    def test_byte_order(self):
        """The columns of a machine with the other byte order, as far as this one can say."""
        was = _columns._ORDER
        try:
            _columns._ORDER = "<" if was == ">" else ">"
            self.assertEqual(_columns._sign_bytes(bytes([0x80, 1, 2, 3]), 2),
                             bytes([0x80, 2]) if was == "<" else bytes([1, 3]))
            target = bytearray(16)
            _columns._copy(target, _columns._Field(4, 8, 4), bytes(range(16)), _columns._Field(0, 8, 8))
            low = range(4, 8) if was == "<" else range(4)
            self.assertEqual(target[4:8], bytes(low))
        finally:
            _columns._ORDER = was


@needs_numpy
class NumPyPlans(unittest.TestCase):
    def test_arrays(self):
        expected = quire.plan(SIZES, FIRSTS, LASTS)
        made = quire.plan(numpy.array(SIZES), numpy.array(FIRSTS), numpy.array(LASTS))
        self.assertEqual((made.offsets.tolist(), made.arenas.tolist()), (expected.offsets, expected.arenas))
        self.assertEqual((made.offsets.dtype, made.arenas.dtype), (numpy.int64, numpy.uint32))
        made.offsets[0] += 1  # writable
        mixed = quire.plan(SIZES, numpy.array(FIRSTS), LASTS)
        self.assertEqual(mixed.offsets, expected.offsets)
        self.assertEqual(quire.plan([numpy.int64(size) for size in SIZES], FIRSTS, LASTS).offsets, expected.offsets)
        none = quire.plan(numpy.zeros(0, "int64"), numpy.zeros(0, "int64"), [])
        self.assertEqual((none.offsets.shape, none.offsets.dtype), ((0,), numpy.int64))

    def test_types(self):
        given = [100, 50, 120], [0, 1, 3], [2, 3, 4]
        expected = quire.plan(*given, alignments=[1, 4, 1]).offsets
        for name in TYPES:
            columns = [numpy.array(column, name) for column in given]
            made = quire.plan(*columns, alignments=numpy.array([1, 4, 1], name), arenas=numpy.ones(3, name),
                              alias_groups=numpy.zeros(3, name))
            self.assertEqual(made.offsets.tolist(), expected)
            strided = [numpy.array([column, [9] * 3], name).T[:, 0] for column in given]
            self.assertEqual(quire.plan(*strided, alignments=[1, 4, 1]).offsets.tolist(), expected)
            read_only = numpy.array(given[0], name)
            read_only.flags.writeable = False
            self.assertEqual(quire.plan(read_only, *given[1:], alignments=[1, 4, 1]).offsets.tolist(), expected)

    def test_fixed_and_separations(self):
        for name in TYPES:
            fixed = [8, 2] if name.startswith("u") else [-1, 2]
            made = quire.plan([4, 4], [0, 0], [0, 0], fixed_offsets=numpy.array(fixed, name))
            self.assertEqual(made.offsets, [8, 2] if fixed[0] == 8 else [6, 2])
            made = quire.plan([4, 4], [0, 5], [0, 5], separations=numpy.array([[0, 1]], name))
            self.assertEqual(made.peak_bytes, 8)
        self.assertEqual(quire.plan([4], [0], [0], separations=numpy.zeros((0, 2), "int64")).peak_bytes, 4)

    def test_refused(self):
        good, invalid = numpy.array(SIZES), quire.InvalidArgumentError
        for kind, wrong, words in (
                (TypeError, good.astype("float64"), "first_uses must be .* format 'd'"),
                (TypeError, good.astype(bool), "format '?'"), (TypeError, good.astype(object), "format 'O'"),
                (TypeError, good.astype(">i8" if sys.byteorder == "little" else "<i8"), "format"),
                (TypeError, good.astype("datetime64[s]"), "not numpy.ndarray"),
                (invalid, numpy.zeros((3, 1), "int64"), "2 axes"), (invalid, numpy.int64(3), "0 axes"),
                (invalid, good[:2], "first_uses has 2 entries; sizes has 3"),
                (invalid, numpy.array([0, 1, -5]), r"first_uses\[2\] is -5"),
                (invalid, numpy.array([0, -1, 1], "int8"), r"first_uses\[1\] is -1")):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                quire.plan(good, wrong, good)
        for options, words in (({"arenas": numpy.array([1, 1, 1 << 32])}, r"arenas\[2\] is 4294967296"),
                               ({"arenas": numpy.array([1, BIG - 1, 1], "uint64")}, r"arenas\[1\]"),
                               ({"alias_groups": numpy.array([1, -1, 1])}, r"alias_groups\[1\] is -1"),
                               ({"fixed_offsets": numpy.array([1, -2, -1])}, r"fixed_offsets\[1\] is -2"),
                               ({"fixed_offsets": numpy.array([1, BIG - 1, 1], "uint64")}, "exceed"),
                               ({"separations": numpy.zeros((2, 3), "int64")}, r"shape \(2, 3\)"),
                               ({"separations": numpy.array([[0, 1], [0, -1]])}, r"separations\[1\] is -1")):
            with self.subTest(words), self.assertRaisesRegex(invalid, words):
                quire.plan(SIZES, FIRSTS, LASTS, **options)

    def test_time(self):
        """A million items cost the package little."""
        count = 1000000
        firsts = numpy.arange(count)
        sizes, lasts = numpy.full(count, 64), firsts + 2
        fixed = numpy.full(count, -1)
        began = time.process_time()
        made = quire.plan(sizes, firsts, lasts, fixed_offsets=fixed, alignments=sizes, step_limit=0)
        outside = time.process_time() - began - made.wall_ns / 1e9
        self.assertEqual(len(made.offsets), count)
        self.assertLess(outside, 0.5)


class Misuse(unittest.TestCase):
    def refused(self, kind, words, *arguments, **options):
        with self.subTest(words), self.assertRaisesRegex(kind, words):
            quire.plan(*(arguments or (SIZES, FIRSTS, LASTS)), **options)

    def test_entries(self):
        invalid = quire.InvalidArgumentError
        for position, name in enumerate(("sizes", "first_uses", "last_uses")):
            for kind, value, words in ((TypeError, "5", "an integer, not str"), (TypeError, 5.0, "not float"),
                                       (TypeError, None, "not None"), (TypeError, True, "not bool"),
                                       (invalid, -1, "is -1"), (invalid, BIG, f"is {BIG}"),
                                       (invalid, -BIG, f"is -{BIG}"), (invalid, Index(-3), "is -3")):
                columns = [list(SIZES), list(FIRSTS), list(LASTS)]
                columns[position][1] = value
                self.refused(kind, rf"{name}\[1\].*{words}", *columns)
            for wrong, words in (("text", "not str"), (5, "not int"), (None, "not None"), ({1, 2, 3}, "not set"),
                                 (iter(SIZES), "not list_iterator")):
                columns = [SIZES, FIRSTS, LASTS]
                columns[position] = wrong
                self.refused(TypeError, f"{name} must be a sequence or an array of integers, {words}", *columns)

    def test_options(self):
        invalid = quire.InvalidArgumentError
        for options, words in (({"alignments": [1, 1]}, "alignments has 2 entries; sizes has 3"),
                               ({"arenas": [1, 1, 1 << 32]}, r"arenas\[2\] is 4294967296"),
                               ({"arenas": [1, 1, 2]}, "arena 2 of 1"),
                               ({"alias_groups": [0, 0, -1]}, r"alias_groups\[2\] is -1"),
                               ({"fixed_offsets": [None, -2, 0]}, r"fixed_offsets\[1\] is -2"),
                               ({"fixed_offsets": [None, 1 << 63, 0]}, r"fixed_offsets\[1\] is 9223372036854775808"),
                               ({"fixed_offsets": [None]}, "fixed_offsets has 1 entries"),
                               ({"capacities": [-1]}, r"capacities\[0\] is -1"),
                               ({"capacities": [0] * 1025}, "1024 at most"),
                               ({"separations": [(0, 1), (0, 1 << 32)]}, r"separations\[1\] is 4294967296"),
                               ({"separations": [(0, 1, 2)]}, r"separations\[0\] has 3 items"),
                               ({"separations": [(0, 3)]}, "0 and 3"), ({"separations": [(1, 1)]}, "same bytes"),
                               ({"step_limit": -1}, "step_limit is -1"), ({"step_limit": BIG}, "step_limit"),
                               ({"seed": BIG}, "seed"), ({"time_limit": -0.5}, "time_limit is -0.5"),
                               ({"time_limit": float("nan")}, "time_limit is nan")):
            self.refused(invalid, words, **options)
        for options, words in (({"fixed_offsets": [None, 1.5, 0]}, r"fixed_offsets\[1\].*not float"),
                               ({"fixed_offsets": [None, True, 0]}, r"fixed_offsets\[1\].*not bool"),
                               ({"separations": {0: 1}}, "separations must be a list of pairs.*not dict"),
                               ({"separations": [5]}, r"separations\[0\] must be a pair of items, not int"),
                               ({"separations": [(0, "1")]}, r"separations\[0\] must be an integer"),
                               ({"capacities": [None]}, r"capacities\[0\].*not None"),
                               ({"capacities": 5}, "capacities must be"),
                               ({"step_limit": 1.0}, "step_limit"), ({"seed": None}, "seed must be an integer"),
                               ({"time_limit": "1"}, "time_limit must be a number of seconds, or None, not str"),
                               ({"time_limit": True}, "not bool"),
                               ({"progress": 5}, "progress must be a function, or None, not int")):
            self.refused(TypeError, words, **options)

    def test_plans(self):
        self.refused(quire.InvalidArgumentError, "item 1 of the plan has size 0", [1, 0], [0, 0], [0, 0])
        self.refused(quire.InvalidArgumentError, "first used at 6 and last used at 5", [1], [6], [5])
        self.refused(quire.InvalidArgumentError, r"exceed 2\^50", [BIG - 1], [0], [0])
        self.refused(quire.NoSpaceError, "no plan fits", capacities=[5119])
        self.refused(quire.OutOfRangeError, "fixed offset", [8], [0], [0], fixed_offsets=[1], capacities=[8])
        self.refused(quire.OverlapError, "items", [8, 8], [0, 0], [0, 0], fixed_offsets=[0, 4])
        with self.assertRaises(TypeError):
            quire.plan(SIZES, FIRSTS, LASTS, [1, 1, 1])  # the others need their names

    def test_checks(self):
        for kind, words, offsets, *arenas in (
                (quire.OverlapError, "1", [0, 4095, 0]), (quire.InvalidArgumentError, "arena", [0, 4096, 0], [1, 2, 1]),
                (quire.InvalidArgumentError, "offsets has 2 entries; sizes has 3", [0, 1]),
                (quire.InvalidArgumentError, "placed_arenas has 1 entries", [0, 4096, 0], [1]),
                (quire.InvalidArgumentError, r"offsets\[0\] is -1", [-1, 4096, 0]),
                (TypeError, r"offsets\[0\] must be an integer, not None", [None, 4096, 0]),
                (TypeError, "offsets must be a sequence", None),
                (TypeError, "placed_arenas must be a sequence", [0, 4096, 0], 1)):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                quire.plan_check(SIZES, FIRSTS, LASTS, offsets, *arenas)
        with self.assertRaises(quire.OutOfRangeError):
            quire.plan_check(SIZES, FIRSTS, LASTS, [0, 4096, 0], capacities=[5000])
        with self.assertRaises(quire.OverlapError):
            quire.plan_check([4, 4], [0, 5], [0, 5], [0, 0], separations=[(0, 1)])
