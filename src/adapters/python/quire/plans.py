# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: offsets for ranges whose lifetimes are known before the first is used.

>>> import quire
>>> made = quire.plan([4096, 1024, 4096], first_uses=[0, 1, 3], last_uses=[2, 3, 4])
>>> made.peak_bytes, made.offsets[0] == made.offsets[2]
(5120, True)
>>> quire.plan_check([4096, 1024, 4096], [0, 1, 3], [2, 3, 4], made.offsets)
[5120]
"""

import ctypes
import dataclasses
import numbers
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from . import _tables as tables
from ._arguments import must_be, number
from ._columns import Column, column, get, numpy_of, optional_column, put, result_of
from ._native import lib
from ._records import read
from .errors import InvalidArgumentError, check, guarded

#: a list, a tuple, an array of NumPy, or anything else with the buffer protocol
Integers = Union[Sequence[int], Any]


@dataclasses.dataclass(frozen=True)
class PlanInfo:
    """Facts about a plan; see ``quire_plan_info`` in ``quire/plan.h``."""

    peak_bytes: int  #: the sum over the arenas of the largest end of an item
    lower_bound_bytes: int  #: no plan has less
    proven_optimal: bool  #: whether the two are equal
    steps: int  #: the work that was done
    wall_ns: int  #: nanoseconds that it took


@dataclasses.dataclass(frozen=True, eq=False)
class Plan(PlanInfo):
    """What :func:`plan` returns: where each item is. The two are lists, or arrays of NumPy if the sizes are one."""

    offsets: Any = dataclasses.field(repr=False)  #: in the arena; int64 in NumPy
    arenas: Any = dataclasses.field(repr=False)  #: 1 is the first; uint32 in NumPy


class _Problem:
    """A problem in C, and what keeps its arrays."""

    def __init__(self, sizes: Integers, first_uses: Integers, last_uses: Integers, alignments: Optional[Integers],
                 fixed_offsets: Optional[Integers], arenas: Optional[Integers], alias_groups: Optional[Integers],
                 separations: Any, capacities: Optional[Integers]) -> None:
        self.native = tables.quire_plan_problem()
        self.numpy = numpy_of(sizes)
        item = tables.quire_plan_item
        columns = [("sizes", "size", column("sizes", sizes)),
                   ("first_uses", "first_use", column("first_uses", first_uses)),
                   ("last_uses", "last_use", column("last_uses", last_uses))]
        for name, values, field, bits in (("alignments", alignments, "alignment", 64),
                                          ("arenas", arenas, "arena", 32),
                                          ("alias_groups", alias_groups, "alias_group", 32)):
            if values is not None:
                columns.append((name, field, column(name, values, bits)))
        if fixed_offsets is not None:
            offsets, present = optional_column("fixed_offsets", fixed_offsets)
            columns += [("fixed_offsets", "fixed_offset", offsets), ("fixed_offsets", "is_fixed", present)]
        self.count = number("the number of sizes", columns[0][2].length, 32)
        for name, _, values in columns:
            self.check_length(name, values)
        self._set("items", "item_count", item, [(field, values) for _, field, values in columns])
        if separations is not None:
            first, second = _pairs(separations)
            self._set("separations", "separation_count", tables.quire_plan_separation,
                      [("first", first), ("second", second)])
        if capacities is not None:
            self._set("arenas", "arena_count", tables.quire_plan_arena,
                      [("capacity", column("capacities", capacities))])

    def check_length(self, name: str, values: Column) -> None:
        """Raise InvalidArgumentError unless there is an integer for each item."""
        if values.length != self.count:
            raise InvalidArgumentError(f"{name} has {values.length} entries; sizes has {self.count}")

    def _set(self, name: str, count: str, struct: Any, columns: List[Tuple[str, Column]]) -> None:
        length = number(f"the number of {name}", columns[0][1].length, 32)
        records = bytearray(length * ctypes.sizeof(struct))
        for field, values in columns:
            put(records, struct, field, values)
        setattr(self.native, count, length)
        if length:
            setattr(self.native, name, (struct * length).from_buffer(records))


def _pairs(separations: Any) -> Tuple[Column, Column]:
    """The first and the second item of each pair."""
    if numpy_of(separations) is not None:
        if separations.ndim != 2 or separations.shape[1] != 2:
            raise InvalidArgumentError(f"separations has the shape {separations.shape}; it must be (n, 2)")
        return column("separations", separations[:, 0], 32), column("separations", separations[:, 1], 32)
    if not isinstance(separations, (list, tuple)):
        raise must_be("separations", "a list of pairs, or an array of NumPy", separations)
    for i, pair in enumerate(separations):
        if not isinstance(pair, (list, tuple)):
            raise must_be(f"separations[{i}]", "a pair of items", pair)
        if len(pair) != 2:
            raise InvalidArgumentError(f"separations[{i}] has {len(pair)} items; it must have 2")
    return (column("separations", [first for first, _ in separations], 32),
            column("separations", [second for _, second in separations], 32))


def _options(step_limit: Optional[int], time_limit: Optional[float], seed: int,
             progress: Optional[Callable[[PlanInfo], Optional[bool]]]) -> tables.quire_plan_options:
    if time_limit is not None and (isinstance(time_limit, bool) or not isinstance(time_limit, numbers.Real)):
        raise must_be("time_limit", "a number of seconds, or None", time_limit)
    if time_limit is not None and not time_limit >= 0:
        raise InvalidArgumentError(f"time_limit is {time_limit}; it must be at least 0")
    if progress is not None and not callable(progress):
        raise must_be("progress", "a function, or None", progress)
    options = tables.quire_plan_options(seed=number("seed", seed))
    if step_limit is not None:  # 0 in C is no limit
        options.step_limit = max(1, number("step_limit", step_limit))
    if time_limit is not None:
        options.time_limit_ns = max(1, int(min(float(time_limit) * 1e9, 2.0**63)))
    if progress is not None:
        watcher = progress

        def watch(_: object, best: Any) -> bool:
            answer = watcher(read(PlanInfo, best.contents))
            return answer is None or bool(answer)
        options.progress = tables.quire_plan_options_progress(guarded(watch, False))
    return options


def plan(sizes: Integers, first_uses: Integers, last_uses: Integers, *, alignments: Optional[Integers] = None,
         fixed_offsets: Optional[Integers] = None, arenas: Optional[Integers] = None,
         alias_groups: Optional[Integers] = None, separations: Any = None, capacities: Optional[Integers] = None,
         step_limit: Optional[int] = None, time_limit: Optional[float] = None, seed: int = 0,
         progress: Optional[Callable[[PlanInfo], Optional[bool]]] = None) -> Plan:
    """Give each item an offset, so that items in use at one time share no byte and the whole needs few bytes.

    An item has a size in bytes and is in use at each time from its first use to its last, both included. For each
    item: `alignments`, of which the offset is a multiple, 0: 1; `fixed_offsets`, None or -1: not fixed; `arenas`, 1 is
    the first, 0: any; `alias_groups`, where items of one number are the same bytes, 0: no alias. `separations` are
    pairs of items, by number from 0, that must not share a byte. `capacities` are the bytes of each arena, 0: as many
    as needed; None: one arena without a capacity.

    `step_limit` and `time_limit`, in seconds, bound the work; 0: the first plan. Without a time limit, equal problems,
    step limits and seeds give equal plans. `progress` is called from time to time with the best plan so far; False
    ends the work with that plan.

    Raises InvalidArgumentError, OutOfRangeError, OverlapError and NoSpaceError as ``quire_plan`` in ``quire/plan.h``.
    """
    problem = _Problem(sizes, first_uses, last_uses, alignments, fixed_offsets, arenas, alias_groups, separations,
                       capacities)
    options = _options(step_limit, time_limit, seed, progress)
    place, info = tables.quire_plan_place, tables.quire_plan_info()
    places = bytearray(problem.count * ctypes.sizeof(place))
    native = (place * problem.count).from_buffer(places) if problem.count else None
    check(lib.quire_plan(ctypes.byref(problem.native), ctypes.byref(options), native, ctypes.byref(info)))
    return Plan(info.peak_bytes, info.lower_bound_bytes, info.proven_optimal, info.steps, info.wall_ns,
                result_of(problem.numpy, get(places, place, "offset"), 8, "int64"),
                result_of(problem.numpy, get(places, place, "arena"), 4, "uint32"))


def plan_check(sizes: Integers, first_uses: Integers, last_uses: Integers, offsets: Integers,
               placed_arenas: Optional[Integers] = None, *, alignments: Optional[Integers] = None,
               fixed_offsets: Optional[Integers] = None, arenas: Optional[Integers] = None,
               alias_groups: Optional[Integers] = None, separations: Any = None,
               capacities: Optional[Integers] = None) -> List[int]:
    """Check a plan of any origin. Return the largest end of an item in each arena, as a list.

    `offsets` and `placed_arenas` are where each item is: :attr:`Plan.offsets` and :attr:`Plan.arenas`. Without
    `placed_arenas` all are in the first arena. The other arguments are those of :func:`plan`.

    Raises InvalidArgumentError, OutOfRangeError and OverlapError with the numbers of the items.
    """
    problem = _Problem(sizes, first_uses, last_uses, alignments, fixed_offsets, arenas, alias_groups, separations,
                       capacities)
    place = tables.quire_plan_place
    where = column("offsets", offsets)
    there = Column(b"\1" * problem.count, 1, problem.count) if placed_arenas is None else column(
        "placed_arenas", placed_arenas, 32)
    problem.check_length("offsets", where)
    problem.check_length("placed_arenas", there)
    places = bytearray(problem.count * ctypes.sizeof(place))
    put(places, place, "offset", where)
    put(places, place, "arena", there)
    native = (place * problem.count).from_buffer(places) if problem.count else None
    peaks = (ctypes.c_uint64 * max(1, problem.native.arena_count))()
    check(lib.quire_plan_check(ctypes.byref(problem.native), native, peaks, None))
    return list(peaks)
