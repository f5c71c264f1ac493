/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * line.c - sections of lines, where a range may begin, and the lower bound.
 */
#include "src/plan/line.h"

#include "tests/support/host_memory.h"
#include "tests/support/unit.h"

static qi_plan_range range(uint64_t size, uint64_t first, uint64_t last)
{
    return (qi_plan_range){
        .size = size, .alignment = 1, .high = QI_PLAN_LIMIT, .first = first, .last = last};
}

UNIT(line, sections_are_the_largest_sets_that_live_together)
{
    qi_host host;
    CHECK_OK(qi_host_init(&host, unit_memory()));
    const uint64_t base = 0;
    qi_plan_range ranges[] = {range(1, 0, 3), range(2, 2, 5), range(4, 4, 7), range(8, 9, 9)};
    qi_plan_line line = {.ranges = ranges, .count = 4, .arena_count = 1, .bases = &base};
    CHECK_OK(qi_plan_line_prepare(&line, &host)); /* {0, 1}, {1, 2}, {3} */
    const uint32_t begins[] = {0, 0, 1, 2}, ends[] = {1, 2, 2, 3};
    const uint64_t loads[] = {3, 6, 8};
    CHECK_EQ(line.section_count, 3);
    for (int i = 0; i < 4; i++)
        CHECK(ranges[i].begin == begins[i] && ranges[i].end == ends[i]);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(line.loads[i], loads[i]);
    CHECK_EQ(line.bound, 8);
    qi_plan_line_release(&line, &host);
    for (uint64_t at = 1; at <= 2; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        CHECK_FAILS(qi_plan_line_prepare(&line, &host), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        qi_plan_line_release(&line, &host);
    }
    test_memory_fail(unit_memory_state(), 0, false);
    line.count = 0;
    CHECK_OK(qi_plan_line_prepare(&line, &host));
    CHECK_EQ(line.bound, 0);
    qi_plan_line_release(&line, &host);
    CHECK_EQ(qi_atomic_load_u64(&host.bytes), 0);
}

/* With alignments of 8 each range takes a multiple of 8, but for the highest. */
UNIT(line, ranges_take_their_rooms)
{
    qi_host host;
    CHECK_OK(qi_host_init(&host, unit_memory()));
    const uint64_t base = 0;
    qi_plan_range ranges[] = {range(9, 0, 1), range(16, 0, 1), range(5, 1, 2)};
    ranges[0].alignment = 8;
    ranges[1].alignment = 16;
    ranges[2].alignment = 24;
    qi_plan_line line = {.ranges = ranges, .count = 3, .arena_count = 1, .bases = &base};
    CHECK_OK(qi_plan_line_prepare(&line, &host));
    CHECK_EQ(line.grain, 8);
    CHECK(ranges[0].room == 16 && ranges[1].room == 16 && ranges[2].room == 8);
    CHECK_EQ(line.bound, 40 - 7);
    qi_plan_line_release(&line, &host);
    ranges[2].low = 12;
    CHECK_OK(qi_plan_line_prepare(&line, &host));
    CHECK_EQ(line.grain, 4);
    CHECK_EQ(ranges[0].room, 12);
    qi_plan_line_release(&line, &host);
}

UNIT(line, no_range_lies_across_the_border_of_two_arenas)
{
    const uint64_t bases[] = {0, 10, 25};
    const qi_plan_line line = {.arena_count = 3, .bases = bases};
    qi_plan_range r = range(6, 0, 1);
    r.alignment = 4;
    static const uint64_t cases[][2] = {{0, 0},   {1, 4},   {4, 4},   {5, 10},  {10, 10},
                                        {11, 14}, {15, 18}, {19, 25}, {25, 25}, {26, 29}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQ(qi_plan_lift(&line, &r, cases[i][0]), cases[i][1]);
    r.low = 11;
    CHECK_EQ(qi_plan_lift(&line, &r, 0), 14);
    r.size = 16;
    CHECK_EQ(qi_plan_lift(&line, &r, 0), 25);
}
