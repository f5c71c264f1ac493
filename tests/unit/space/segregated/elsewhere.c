/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elsewhere.c - ranges outside some regions: the search passes over what is free in them, which
 * serves requests as before afterwards.
 */
#include "src/space/segregated/segregated.h"

#include "tests/support/space_steps.h"

enum { SIZE = 1 << 16, GAP = 64, MANY = 400 };

/* Region 0 has `count` gaps between live ranges, and no other free range; region 1 has one live
   range, and SIZE bytes are free. */
static quire_space *make_gaps(uint32_t count)
{
    quire_range gaps[MANY];
    quire_space *space = new_space((quire_space_options){.fit = {.granule = 16}});
    add_region(space, count * (GAP + 16), 0);
    for (uint32_t i = 0; i < count; i++) {
        gaps[i] = take_bytes(space, GAP).range;
        take_bytes(space, 16);
    }
    for (uint32_t i = 0; i < count; i++)
        CHECK_OK(quire_space_free(space, gaps[i]));
    add_region(space, SIZE + 2 * GAP, 0);
    take_bytes(space, 2 * GAP); /* more than a gap holds */
    return space;
}

static bool is_same(const void *user, uint32_t region, uint64_t offset)
{
    (void)offset;
    return *(const uint32_t *)user == region;
}

static quire_placement take_elsewhere(quire_space *space, uint32_t region, uint64_t size,
                                      uint64_t alignment)
{
    quire_placement at;
    const qi_avoided outside = {is_same, &region};
    CHECK_OK(qi_space_allocate_elsewhere(space, &outside, size, alignment, 7, 0, &at));
    CHECK_OK(quire_space_check(space));
    CHECK(at.region != region);
    CHECK_EQ(at.offset % alignment, 0);
    CHECK_EQ(at.user, 7);
    return at;
}

static void expect_refusal(quire_space *space, uint32_t region, uint64_t size)
{
    quire_placement at;
    const qi_avoided outside = {is_same, &region};
    CHECK_EQ(qi_space_allocate_elsewhere(space, &outside, size, 1, 0, 0, &at),
             QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(at.range.id, 0);
    CHECK_OK(quire_space_check(space));
}

UNIT(elsewhere, a_range_lies_in_another_region_though_this_one_has_tighter_places)
{
    quire_space *space = make_gaps(9);
    CHECK_EQ(take_bytes(space, GAP).region, 0);
    CHECK_EQ(take_elsewhere(space, 0, GAP, 1).region, 1);
    CHECK_EQ(take_elsewhere(space, 0, 48, 32).region, 1);
    CHECK_EQ(take_elsewhere(space, 1, GAP, 1).region, 0);
    for (int i = 0; i < 7; i++) /* the gaps serve requests again */
        CHECK_EQ(take_bytes(space, GAP).region, 0);
    CHECK_EQ(take_bytes(space, GAP).region, 1);
    end_space(space);
}

/* One that nothing lives in is no place, and hides none that a longer search finds. */
UNIT(elsewhere, empty_regions_are_passed_over)
{
    quire_space *space = make_gaps(9);
    add_region(space, 4 * GAP, 0);
    CHECK_EQ(take_elsewhere(space, 1, GAP, 1).region, 0);
    expect_refusal(space, 1, 2 * GAP);
    add_region(space, 2 * SIZE, 0);
    CHECK_EQ(take_elsewhere(space, 0, SIZE, 1).region, 1);
    end_space(space);
}

static bool is_below(const void *user, uint32_t region, uint64_t offset)
{
    (void)offset;
    return region < *(const uint32_t *)user;
}

UNIT(elsewhere, several_regions_are_avoided)
{
    quire_placement at;
    uint32_t below = 2;
    const qi_avoided outside = {is_below, &below};
    quire_space *space = make_gaps(9);
    add_region(space, 4 * SIZE, 0);
    take_bytes(space, 2 * SIZE);
    CHECK_OK(qi_space_allocate_elsewhere(space, &outside, GAP, 1, 7, 0, &at));
    CHECK_EQ(at.region, 2);
    below = 3;
    CHECK_EQ(qi_space_allocate_elsewhere(space, &outside, GAP, 1, 7, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_OK(quire_space_check(space));
    end_space(space);
}

UNIT(elsewhere, a_refusal_changes_and_remembers_nothing)
{
    quire_space *space = make_gaps(9);
    take_bytes(space, SIZE);
    expect_refusal(space, 0, GAP);
    expect_refusal(space, 1, GAP + 16);
    expect_refusal(space, 0, 2 * SIZE);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(take_bytes(space, GAP).region, 0);
    end_space(space);
}

UNIT(elsewhere, a_call_passes_over_a_bounded_number_of_ranges)
{
    quire_space *space = make_gaps(256);
    CHECK_EQ(take_elsewhere(space, 0, GAP, 1).region, 1);
    end_space(space);
    space = make_gaps(257);
    expect_refusal(space, 0, GAP);
    for (int i = 0; i < 257; i++)
        CHECK_EQ(take_bytes(space, GAP).region, 0);
    end_space(space);
}

UNIT(elsewhere, deferred_frees_are_places)
{
    quire_space *space = make_gaps(1);
    qi_segregated *s = qi_segregated_of(space);
    const quire_range whole = take_bytes(space, SIZE).range;
    s->defer_from = 0;
    qi_segregated_choose_free(s);
    CHECK_OK(space->free_range(space, whole));
    CHECK_EQ(take_elsewhere(space, 0, SIZE, 1).region, 1);
    end_space(space);
}

/* The same region, outside a stretch of it. */
static bool is_low(const void *user, uint32_t region, uint64_t offset)
{
    return region == 0 && offset < *(const uint64_t *)user;
}

UNIT(elsewhere, a_part_of_a_region_is_avoided)
{
    quire_space *space = make_gaps(9);
    quire_placement at;
    const uint64_t end = 4 * (GAP + 16);
    const qi_avoided low = {is_low, &end};
    for (int i = 0; i < 5; i++) {
        CHECK_OK(qi_space_allocate_elsewhere(space, &low, GAP, 1, 7, 0, &at));
        CHECK_EQ(at.region, 0);
        CHECK(at.offset >= end);
    }
    CHECK_OK(qi_space_allocate_elsewhere(space, &low, GAP, 1, 7, 0, &at));
    CHECK_EQ(at.region, 1);
    CHECK_OK(quire_space_check(space));
    end_space(space);
}
