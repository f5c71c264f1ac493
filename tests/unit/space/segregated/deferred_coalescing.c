/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_coalescing.c - deferred coalescing: which frees are deferred, for how long, and that no
 * caller can observe it.
 */
#include "src/base/handle.h"
#include "src/space/segregated/segregated.h"
#include "tests/support/defer.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"

enum { FEWEST = 16000, RANGES = 17000, SIZE = 256 };

static quire_placement ranges[RANGES];

static quire_space *make_space(uint64_t size, bool deferred)
{
    quire_space *space = new_space((quire_space_options){.fit.granule = SIZE, .size = size});
    defer_frees(space, deferred ? FEWEST : UINT32_MAX);
    return space;
}

/* A full space with enough ranges that frees are deferred; no free range follows the last. */
static quire_space *make_full(bool deferred)
{
    quire_space *space = make_space((uint64_t)RANGES * SIZE, deferred);
    for (int i = 0; i < RANGES; i++) {
        ranges[i] = take_bytes(space, SIZE);
        CHECK_EQ(ranges[i].offset, (uint64_t)i * SIZE);
    }
    return space;
}

static void release(quire_space *space, int index)
{
    CHECK_OK(quire_space_free(space, ranges[index].range));
}

static uint32_t waiting_in(const quire_space *space)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t count = 0;
    for (uint32_t i = 0; i < QI_DEFERRED_FREES; i++)
        count += s->deferred[i] != 0;
    return count;
}

static bool is_merged(const quire_space *space, int index)
{
    return qi_node_is_free(qi_segregated_of_const(space), qi_handle_slot(ranges[index].range.id));
}

/* ---- how long ------------------------------------------------------------------------------ */

UNIT(deferred_coalescing, no_free_is_deferred_below_the_number_of_records)
{
    quire_space *space = make_space(RANGES * SIZE, true);
    int count = 0;
    while (qi_pool_used(&space->pool) < FEWEST - 1)
        ranges[count++] = take_bytes(space, SIZE);
    release(space, 0);
    CHECK_EQ(waiting_in(space), 0);
    CHECK(is_merged(space, 0));
    while (qi_pool_used(&space->pool) < FEWEST)
        take_bytes(space, SIZE);
    release(space, 2);
    CHECK_EQ(waiting_in(space), 1);
    CHECK(!is_merged(space, 2));
    end_space(space);
}

UNIT(deferred_coalescing, a_range_merges_thirty_two_frees_later)
{
    quire_space *space = make_full(true);
    for (int i = 0; i < 200; i++) { /* no two of them touch */
        release(space, 2 * i);
        CHECK_EQ(waiting_in(space), i < 32 ? i + 1 : 32);
        CHECK(i < 32 || is_merged(space, 2 * (i - 32)));
        CHECK(i < 31 || !is_merged(space, 2 * (i - 31)));
        CHECK(!is_merged(space, 2 * i));
    }
    end_space(space);
}

UNIT(deferred_coalescing, a_deferred_range_is_stale_immediately)
{
    quire_space *space = make_full(true);
    release(space, 5);
    CHECK_EQ(waiting_in(space), 1);
    expect_rejected(space, ranges[5].range, QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(waiting_in(space), 1);
    quire_range forged = {qi_handle(space->tag, qi_handle_generation(ranges[5].range.id) + 1,
                                    qi_handle_slot(ranges[5].range.id))};
    CHECK_FAILS(quire_space_free(space, forged), QUIRE_ERROR_STALE_HANDLE);
    end_space(space);
}

UNIT(deferred_coalescing, ranges_of_a_batch_are_deferred_too)
{
    quire_space *space = make_full(true), *other = make_full(false);
    quire_range batch[2][100];
    CHECK_OK(quire_space_clear(space));
    for (int i = 0; i < RANGES; i++) {
        batch[0][i % 100] = take_bytes(space, SIZE).range;
        batch[1][i % 100] = ranges[i].range;
    }
    CHECK_OK(quire_space_free_batch(space, batch[0], 100));
    CHECK_OK(quire_space_free_batch(other, batch[1], 100));
    CHECK_EQ(waiting_in(space), 32);
    shape_expect_alike(space, other);
    end_space(space);
    end_space(other);
}

/* ---- invisible to callers ------------------------------------------------------------------ */

UNIT(deferred_coalescing, a_request_finds_a_deferred_range_that_it_needs)
{
    quire_space *space = make_full(true);
    release(space, 7);
    CHECK_EQ(take_bytes(space, SIZE).offset, 7 * SIZE);
    release(space, 10); /* merged with both sides it is large enough */
    release(space, 9);
    release(space, 11);
    CHECK_EQ(waiting_in(space), 3);
    CHECK_EQ(take_bytes(space, 3 * SIZE).offset, 9 * SIZE);
    CHECK_EQ(waiting_in(space), 0);
    expect_no_space(space, (quire_range_options){.size = 1, .bounded = true});
    CHECK_EQ(space->full_passes, 0);
    end_space(space);
}

UNIT(deferred_coalescing, a_refused_request_makes_one_full_pass)
{
    quire_space *space = make_full(true);
    const quire_range_options two = {.size = 2 * SIZE};
    release(space, 7);
    expect_no_space(space, two);
    CHECK_EQ(space->full_passes, 1);
    expect_no_space(space, two);
    CHECK_EQ(space->full_passes, 1); /* the space remembers the refusal */
    release(space, 9);
    expect_no_space(space, two);
    CHECK_EQ(space->full_passes, 2);
    CHECK_EQ(space->full_pass_hits, 0);
    end_space(space);
}

static void get_stats(quire_space *space)
{
    CHECK_EQ(stats_of(space).free_count, 1);
    CHECK_EQ(stats_of(space).largest_free, 3 * SIZE);
    CHECK_EQ(stats_of(space).free_bytes, 3 * SIZE);
    CHECK_EQ(stats_of(space).live_count, RANGES - 3);
}

static bool count_free(void *user, const quire_space_item *item)
{
    *(uint64_t *)user += item->is_free ? 1000000 + item->size : 0;
    return true;
}

static void walk(quire_space *space)
{
    uint64_t seen = 0;
    CHECK_OK(quire_space_walk(space, count_free, &seen));
    CHECK_EQ(seen, 1000000 + 3 * SIZE);
}

static void check(quire_space *space)
{
    CHECK_OK(quire_space_check(space));
}

static void clear(quire_space *space)
{
    CHECK_OK(quire_space_clear(space));
    CHECK_EQ(largest_free_of(space), RANGES * SIZE);
}

UNIT(deferred_coalescing, whoever_sees_free_ranges_sees_them_merged)
{
    static void (*const steps[])(quire_space *) = {get_stats, walk, check, quire_space_trim, clear};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        quire_space *space = make_full(true);
        for (int j = 20; j < 23; j++)
            release(space, j);
        CHECK_EQ(waiting_in(space), 3);
        steps[i](space);
        CHECK_EQ(waiting_in(space), 0);
        end_space(space);
    }
}

UNIT(deferred_coalescing, a_region_with_deferred_ranges_can_be_removed)
{
    quire_space *space = make_full(true);
    quire_placement in_new[3];
    uint32_t region = 0;
    CHECK_OK(quire_space_add_region(space, 3 * SIZE, 0, &region));
    for (int i = 0; i < 3; i++)
        in_new[i] = take_bytes(space, SIZE);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(in_new[i].region, region);
        CHECK_FAILS(quire_space_remove_region(space, region), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_space_free(space, in_new[i].range));
    }
    CHECK_EQ(waiting_in(space), 1); /* each failed request merged the deferred ranges */
    CHECK_OK(quire_space_remove_region(space, region));
    end_space(space);
}

UNIT(deferred_coalescing, a_trim_releases_records)
{
    quire_space *space = make_full(true);
    uint64_t before = unit_memory_state()->bytes;
    for (int i = RANGES - 1; i > 10; i--)
        release(space, i);
    quire_space_trim(space);
    CHECK_EQ(waiting_in(space), 0);
    CHECK(unit_memory_state()->bytes < before / 8);
    release(space, 0);
    CHECK(is_merged(space, 0)); /* few records again: merged immediately */
    end_space(space);
}

/* ---- the switch ------------------------------------------------------------------------------ */

UNIT(deferred_coalescing, spaces_defer_from_the_size_of_the_caches_on)
{
    quire_space *space = space_of(QUIRE_FIT_SEGREGATED, 0);
    CHECK_EQ(qi_segregated_of(space)->defer_from, QI_PREFETCH_MIN_NODES);
    end_space(space);
}

UNIT(deferred_coalescing, a_space_changes_the_function_that_frees_when_its_pool_does)
{
    quire_space *space = make_space((uint64_t)RANGES * SIZE, true);
    int count = 0;
    while (space->pool.capacity <= FEWEST) {
        CHECK(space->free_range == qi_segregated_fast_free);
        ranges[count++] = take_bytes(space, SIZE);
    }
    CHECK(space->free_range != qi_segregated_fast_free);
    while (count-- > 0)
        release(space, count);
    CHECK(space->free_range != qi_segregated_fast_free);
    quire_space_trim(space);
    CHECK(space->free_range == qi_segregated_fast_free);
    end_space(space);
}

UNIT(deferred_coalescing, a_refused_request_keeps_the_function_that_frees)
{
    quire_space *space = make_full(true);
    quire_result (*deferring)(quire_space *, quire_range) = space->free_range;
    expect_no_space(space, (quire_range_options){.size = SIZE});
    CHECK(space->free_range != deferring);
    release(space, 1);
    CHECK(space->free_range == deferring);
    CHECK_EQ(waiting_in(space), 1);
    end_space(space);
}

/* The pool stays large without a trim. */
UNIT(deferred_coalescing, nothing_waits_when_few_records_are_left)
{
    quire_space *space = make_full(true);
    for (int i = 0; i < RANGES - 2; i++)
        release(space, i);
    CHECK(qi_pool_used(&space->pool) < FEWEST);
    CHECK_EQ(waiting_in(space), 0);
    CHECK(is_merged(space, 0)); /* all free ranges merged into the first */
    end_space(space);
}
