/*
 * segregated_generation.c - a number of the segregated fit whose generations are used up is never
 * handed out again, whether its range is split, merged, cleared or trimmed.
 */
#include "src/base/handle.h"
#include "src/space/segregated/segregated.h"
#include "tests/support/unit.h"

typedef struct bench {
    quire_space *space;
    qi_segregated *s;
} bench;

static bench make_bench(void)
{
    bench b = {0};
    quire_space_options options = {.size = 4096, .fit.granule = 1, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &b.space));
    b.s = qi_segregated_of(b.space);
    return b;
}

static void end_bench(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

static quire_range take(bench *b, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(b->space, size, 1, 0, &at));
    CHECK_OK(quire_space_check(b->space));
    return at.range;
}

static void give(bench *b, quire_range range)
{
    CHECK_OK(quire_space_free(b->space, range));
    CHECK_OK(quire_space_check(b->space));
}

static bool same_number(quire_range a, quire_range b)
{
    return qi_handle_slot(a.id) == qi_handle_slot(b.id);
}

/* Gives the number of a live range its last generation. */
static quire_range age(bench *b, quire_range range)
{
    uint32_t slot = qi_handle_slot(range.id);
    b->s->nodes[slot].generation = QI_LAST_GENERATION;
    return (quire_range){qi_handle(b->space->tag, QI_LAST_GENERATION, slot)};
}

/* Allocates and frees often enough that the number would be reused if it could be. */
static void expect_never_again(bench *b, quire_range old)
{
    for (int round = 0; round < 3; round++) {
        quire_range ranges[100];
        for (int i = 0; i < 100; i++) {
            ranges[i] = take(b, 1);
            CHECK(!same_number(ranges[i], old));
        }
        for (int i = 0; i < 100; i++)
            give(b, ranges[i]);
    }
    CHECK_FAILS(quire_space_free(b->space, old), QUIRE_ERROR_STALE_HANDLE);
}

/* A live range of 50 between two others; its number is in its last generation. */
static quire_range take_old_between(bench *b)
{
    take(b, 10);
    quire_range between = take(b, 50);
    take(b, 10);
    return age(b, between);
}

UNIT(segregated_generation, a_worn_number_is_retired_when_its_range_merges)
{
    bench b = make_bench();
    quire_range old = age(&b, take(&b, 100));
    give(&b, old);
    CHECK_EQ(b.space->pool.retired, 1);
    expect_never_again(&b, old);
    CHECK_EQ(b.space->pool.retired, 1);
    end_bench(&b);
}

UNIT(segregated_generation,
     a_worn_number_keeps_its_free_range_and_is_replaced_when_that_is_allocated)
{
    bench b = make_bench();
    quire_range old = take_old_between(&b);
    give(&b, old);
    CHECK_EQ(b.space->pool.retired, 0);
    quire_range live = take(&b, 50);
    CHECK(!same_number(live, old));
    CHECK_EQ(b.space->pool.retired, 1);
    give(&b, live);
    expect_never_again(&b, old);
    end_bench(&b);
}

UNIT(segregated_generation, a_worn_number_survives_a_split_and_merge_of_its_free_range)
{
    bench b = make_bench();
    quire_range old = take_old_between(&b);
    give(&b, old);
    quire_range part = take(&b, 20);
    CHECK(!same_number(part, old));
    give(&b, part);
    CHECK_EQ(b.space->pool.retired, 0);
    give(&b, take(&b, 50));
    CHECK_EQ(b.space->pool.retired, 1);
    expect_never_again(&b, old);
    end_bench(&b);
}

UNIT(segregated_generation, a_free_range_that_merges_into_another_retires_its_worn_number)
{
    bench b = make_bench();
    quire_range low = take(&b, 30), between = take(&b, 30), old = age(&b, take(&b, 50));
    take(&b, 1);
    give(&b, old);
    give(&b, low);
    CHECK_EQ(b.space->pool.retired, 0);
    give(&b, between); /* all three become the lowest */
    CHECK_EQ(b.space->pool.retired, 1);
    expect_never_again(&b, old);
    end_bench(&b);
}

UNIT(segregated_generation, the_last_generation_is_handed_out_once)
{
    bench b = make_bench();
    quire_range range = take(&b, 100);
    uint32_t slot = qi_handle_slot(range.id);
    give(&b, range);
    b.s->nodes[slot].generation = QI_LAST_GENERATION - 3;
    for (uint32_t generation = QI_LAST_GENERATION - 2; generation <= QI_LAST_GENERATION;
         generation += 2) {
        quire_range again = take(&b, 100);
        CHECK_EQ(again.id, qi_handle(b.space->tag, generation, slot));
        give(&b, again);
    }
    CHECK(!same_number(take(&b, 100), range));
    CHECK_EQ(b.space->pool.retired, 1);
    end_bench(&b);
}

/* Every number of the first array is worn out once. */
UNIT(segregated_generation, no_id_is_handed_out_twice)
{
    enum { TIMES = 300 };
    bench b = make_bench();
    quire_range seen[TIMES];
    for (int i = 0; i < TIMES; i++) {
        seen[i] = age(&b, take(&b, 10));
        for (int j = 0; j < i; j++)
            CHECK(seen[j].id != seen[i].id);
        give(&b, seen[i]);
    }
    CHECK_EQ(b.space->pool.retired, TIMES);
    CHECK_EQ(b.space->live_count, 0);
    end_bench(&b);
}

UNIT(segregated_generation, clearing_makes_a_worn_number_stale_and_retires_it_later)
{
    bench b = make_bench();
    quire_range old = age(&b, take(&b, 10));
    take(&b, 10);
    CHECK_OK(quire_space_clear(b.space));
    CHECK_FAILS(quire_space_free(b.space, old), QUIRE_ERROR_STALE_HANDLE);
    give(&b, take(&b, 4096)); /* it named the free range up to here */
    CHECK_EQ(b.space->pool.retired, 1);
    expect_never_again(&b, old);
    end_bench(&b);
}

UNIT(segregated_generation, a_retired_number_stays_retired_when_records_are_trimmed)
{
    bench b = make_bench();
    quire_range ranges[1000], old = take_old_between(&b);
    give(&b, old);
    take(&b, 50);
    for (int i = 0; i < 1000; i++)
        ranges[i] = take(&b, 1);
    for (int i = 0; i < 1000; i++)
        give(&b, ranges[i]);
    quire_space_trim(b.space);
    CHECK_OK(quire_space_check(b.space));
    CHECK_EQ(b.space->pool.capacity, 32);
    CHECK_EQ(b.space->pool.retired, 1);
    expect_never_again(&b, old);
    end_bench(&b);
}
