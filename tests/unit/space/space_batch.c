/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_batch.c - freeing many ranges at once: all or none, with the same result as freeing one by
 * one.
 */
#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/support/random.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"

enum { RANGES = 200, BATCH = 60 };

typedef struct world {
    int number; /* in SPACES */
    quire_space *space, *other;
    quire_range ranges[RANGES];
    quire_range stale, foreign;
} world;

static quire_range take(quire_space *space, test_random *random, uint64_t user)
{
    quire_placement at;
    uint64_t alignment = UINT64_C(1) << random_below(random, 12);
    CHECK_OK(quire_space_allocate(space, random_size(random, 2000), alignment, user, &at));
    return at.range;
}

/* The same ranges in every world of one fit and seed, with free ranges between some of them. */
static void begin(world *w, int number)
{
    test_random random = {7};
    w->number = number;
    w->space = space_number(number, 1 << 20);
    w->other = space_number(number, 1 << 20);
    for (uint64_t i = 0; i < RANGES; i++)
        w->ranges[i] = take(w->space, &random, i);
    w->stale = take(w->space, &random, 1);
    w->foreign = take(w->other, &random, 1);
    CHECK_OK(quire_space_free(w->space, w->stale));
    for (uint64_t i = BATCH; i < RANGES; i += 3)
        CHECK_OK(quire_space_free(w->space, w->ranges[i]));
    for (uint64_t i = BATCH - 1; i > 0; i--) { /* in no order of address */
        uint64_t j = random_below(&random, i + 1);
        quire_range range = w->ranges[i];
        w->ranges[i] = w->ranges[j];
        w->ranges[j] = range;
    }
}

static void end(world *w)
{
    end_space(w->space);
    end_space(w->other);
}

static void in_every_space(void (*body)(world *))
{
    static world w;
    for (int i = 0; i < SPACE_COUNT; i++) {
        begin(&w, i);
        body(&w);
        end(&w);
    }
}

/* ---- all of them --------------------------------------------------------------------------- */

static void free_in_one(world *w)
{
    static world single;
    begin(&single, w->number);
    shape_expect_alike(w->space, single.space);
    CHECK_OK(quire_space_free_batch(w->space, w->ranges, BATCH));
    for (int i = 0; i < BATCH; i++)
        CHECK_OK(quire_space_free(single.space, single.ranges[i]));
    shape_expect_alike(w->space, single.space);
    const quire_space_stats stats = stats_of(w->space), wanted = stats_of(single.space);
    CHECK(!memcmp(&stats, &wanted, sizeof stats));
    end(&single);
}

UNIT(space_batch, a_batch_equals_freeing_one_by_one)
{
    in_every_space(free_in_one);
}

static void free_none(world *w)
{
    shape before = shape_of(w->space);
    CHECK_OK(quire_space_free_batch(w->space, w->ranges, 0));
    CHECK_OK(quire_space_free_batch(w->space, NULL, 0));
    shape after = shape_of(w->space);
    shape_compare(&before, &after, true);
    CHECK_FAILS(quire_space_free_batch(NULL, NULL, 0), QUIRE_ERROR_INVALID_ARGUMENT);
    shape_end(&before);
    shape_end(&after);
}

UNIT(space_batch, an_empty_batch_succeeds)
{
    in_every_space(free_none);
}

/* ---- none of them -------------------------------------------------------------------------- */

/* Puts a range that cannot be freed at one index of the batch. */
static void expect_none_freed(world *w, uint64_t place, quire_range bad, quire_result code)
{
    quire_range batch[BATCH];
    memcpy(batch, w->ranges, sizeof batch);
    batch[place] = bad;
    shape before = shape_of(w->space);
    const quire_space_stats before_stats = stats_of(w->space);
    CHECK_FAILS(quire_space_free_batch(w->space, batch, BATCH), code);
    shape after = shape_of(w->space);
    const quire_space_stats after_stats = stats_of(w->space);
    shape_compare(&before, &after, true);
    CHECK(!memcmp(&before_stats, &after_stats, sizeof before_stats));
    shape_end(&before);
    shape_end(&after);
}

static void refuse_each(world *w)
{
    const uint64_t places[] = {0, BATCH / 2, BATCH - 1};
    for (int i = 0; i < 3; i++) {
        uint64_t place = places[i];
        quire_range twice = w->ranges[place ? 0 : BATCH - 1];
        quire_range beside = w->ranges[place ? place - 1 : 1];
        quire_range forged = {w->ranges[1].id | ((UINT64_C(1) << 26) - 1)};
        expect_none_freed(w, place, w->stale, QUIRE_ERROR_STALE_HANDLE);
        CHECK_HAS(quire_last_error(), "was freed before");
        expect_none_freed(w, place, twice, QUIRE_ERROR_STALE_HANDLE);
        CHECK_HAS(quire_last_error(), "occurs twice in the list");
        expect_none_freed(w, place, beside, QUIRE_ERROR_STALE_HANDLE);
        expect_none_freed(w, place, forged, QUIRE_ERROR_STALE_HANDLE);
        expect_none_freed(w, place, w->foreign, QUIRE_ERROR_FOREIGN_HANDLE);
        expect_none_freed(w, place, (quire_range){0}, QUIRE_ERROR_INVALID_ARGUMENT);
    }
    CHECK_OK(quire_space_free_batch(w->space, w->ranges, BATCH)); /* now the batch frees them */
}

UNIT(space_batch, one_invalid_range_keeps_the_whole_batch)
{
    in_every_space(refuse_each);
}

/* A free uses up a number in its last generation; a failed batch must not use it up. */
UNIT(space_batch, a_number_in_its_last_generation_survives_a_failed_batch)
{
    static world w;
    begin(&w, 0);
    qi_pool *pool = &w.space->pool;
    uint32_t slot = qi_handle_slot(w.ranges[0].id);
    qi_pool_item *item = (void *)((char *)pool->items + (size_t)slot * pool->item_size);
    item->generation = QI_LAST_GENERATION;
    w.ranges[0].id = qi_handle(w.space->tag, QI_LAST_GENERATION, slot);
    expect_none_freed(&w, BATCH - 1, w.stale, QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_space_free_batch(w.space, w.ranges, BATCH));
    CHECK_FAILS(quire_space_free(w.space, w.ranges[0]), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(pool->retired, 1);
    end(&w);
}
