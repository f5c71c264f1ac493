/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_generation.c - a number whose generations are used up is never handed out again, whether
 * its range is split, merged, cleared or trimmed. In the fits whose free ranges have numbers too.
 */
#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/support/space_steps.h"

static void with_each_fit(void (*body)(quire_space *))
{
    for (int i = 0; i < 2; i++) {
        quire_space *space = new_space(
            (quire_space_options){.fit = {.algorithm = FITS[i], .granule = 1}, .size = 4096});
        body(space);
        end_space(space);
    }
}

static quire_range take(quire_space *space, uint64_t size)
{
    quire_range range = take_bytes(space, size).range;
    CHECK_OK(quire_space_check(space));
    return range;
}

static bool same_number(quire_range a, quire_range b)
{
    return qi_handle_slot(a.id) == qi_handle_slot(b.id);
}

/* Nodes of every fit begin with their generation. */
static quire_range set_generation(quire_space *space, quire_range range, uint32_t generation)
{
    uint32_t slot = qi_handle_slot(range.id);
    *(uint32_t *)(void *)((char *)space->pool.items + slot * space->pool.item_size) = generation;
    return (quire_range){qi_handle(space->tag, generation, slot)};
}

/* Gives the number of a live range its last generation. */
static quire_range age(quire_space *space, quire_range range)
{
    return set_generation(space, range, QI_LAST_GENERATION);
}

/* Allocates and frees often enough that the number would be reused if it could be. */
static void expect_retired(quire_space *space, quire_range old)
{
    CHECK_EQ(space->pool.retired, 1);
    for (int round = 0; round < 3; round++) {
        quire_range ranges[100];
        for (int i = 0; i < 100; i++) {
            ranges[i] = take(space, 1);
            CHECK(!same_number(ranges[i], old));
        }
        for (int i = 0; i < 100; i++)
            give(space, ranges[i]);
    }
    CHECK_FAILS(quire_space_free(space, old), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(space->pool.retired, 1);
}

/* Frees a range of 50 between two others, whose number is in its last generation. */
static quire_range free_old_between(quire_space *space)
{
    take(space, 10);
    quire_range old = take(space, 50);
    take(space, 10);
    old = age(space, old);
    give(space, old);
    CHECK_EQ(space->pool.retired, 0); /* it names the free range */
    return old;
}

static void merge(quire_space *space)
{
    quire_range old = age(space, take(space, 100));
    give(space, old);
    expect_retired(space, old);
}

static void merge_into_another(quire_space *space)
{
    quire_range low = take(space, 30), between = take(space, 30), old = age(space, take(space, 50));
    take(space, 1);
    give(space, old);
    give(space, low);
    CHECK_EQ(space->pool.retired, 0);
    give(space, between); /* all three become the lowest */
    expect_retired(space, old);
}

UNIT(space_generation, a_worn_number_is_retired_when_its_range_merges)
{
    with_each_fit(merge);
    with_each_fit(merge_into_another);
}

static void replace(quire_space *space)
{
    quire_range old = free_old_between(space), live = take(space, 50);
    CHECK(!same_number(live, old));
    CHECK_EQ(space->pool.retired, 1);
    give(space, live);
    expect_retired(space, old);
}

UNIT(space_generation, a_worn_number_keeps_its_free_range_and_is_replaced_when_that_is_allocated)
{
    with_each_fit(replace);
}

static void split_and_merge(quire_space *space)
{
    quire_range old = free_old_between(space), part = take(space, 20);
    CHECK(!same_number(part, old));
    give(space, part);
    CHECK_EQ(space->pool.retired, 0);
    give(space, take(space, 50));
    expect_retired(space, old);
}

UNIT(space_generation, a_worn_number_survives_a_split_and_merge_of_its_free_range)
{
    with_each_fit(split_and_merge);
}

static void use_up(quire_space *space)
{
    quire_range range = take(space, 100);
    give(space, range);
    set_generation(space, range, QI_LAST_GENERATION - 3);
    for (uint32_t generation = QI_LAST_GENERATION - 2; generation <= QI_LAST_GENERATION;
         generation += 2) {
        quire_range again = take(space, 100);
        CHECK_EQ(again.id, qi_handle(space->tag, generation, qi_handle_slot(range.id)));
        give(space, again);
    }
    expect_retired(space, range);
}

UNIT(space_generation, the_last_generation_is_handed_out_once)
{
    with_each_fit(use_up);
}

/* Every number of the first array is worn out once. */
static void use_up_all(quire_space *space)
{
    enum { TIMES = 300 };
    quire_range seen[TIMES];
    for (int i = 0; i < TIMES; i++) {
        seen[i] = age(space, take(space, 10));
        for (int j = 0; j < i; j++)
            CHECK(seen[j].id != seen[i].id);
        give(space, seen[i]);
    }
    CHECK_EQ(space->pool.retired, TIMES);
    CHECK_EQ(space->live_count, 0);
}

UNIT(space_generation, no_id_is_handed_out_twice)
{
    with_each_fit(use_up_all);
}

static void clear(quire_space *space)
{
    quire_range old = age(space, take(space, 10));
    take(space, 10);
    CHECK_OK(quire_space_clear(space));
    CHECK_FAILS(quire_space_free(space, old), QUIRE_ERROR_STALE_HANDLE);
    give(space, take(space, 4096)); /* it named the free range up to here */
    expect_retired(space, old);
}

UNIT(space_generation, clearing_makes_a_worn_number_stale_and_retires_it_later)
{
    with_each_fit(clear);
}

static void trim(quire_space *space)
{
    quire_range ranges[1000], old = free_old_between(space);
    take(space, 50);
    for (int i = 0; i < 1000; i++)
        ranges[i] = take(space, 1);
    for (int i = 0; i < 1000; i++)
        give(space, ranges[i]);
    quire_space_trim(space);
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->pool.capacity, 32);
    expect_retired(space, old);
}

UNIT(space_generation, a_retired_number_stays_retired_when_records_are_trimmed)
{
    with_each_fit(trim);
}
