/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access_batch.c - flush and invalidate of many parts at once: which parts are merged, how they
 * reach the backend, and what is refused before any work is done.
 */
#include "tests/support/fixture.h"

enum { ATOM = 64, DEVICE = 0, COHERENT = 1, CACHED = 2, MAX_COUNT = 200 }; /* kinds of the fake */

/* Whether the backend accepts lists. */
static void make(fixture *b, uint32_t kind, bool lists)
{
    const quire_memory_options options = {.name = "frames",
                                          .kind.mask = UINT32_C(1) << kind,
                                          .fit.algorithm = QUIRE_FIT_FIRST,
                                          .pages = {.page_size = 4096}};
    fixture_prepare(b);
    if (lists)
        fake_offer_flush_many(&b->fake);
    fixture_open(b, &options);
}

typedef quire_result (*batch_call)(quire_memory *, const quire_view *, uint64_t);

static const struct {
    batch_call call;
    fake_call one, many;
} SYNCS[] = {{quire_flush_batch, FAKE_FLUSH, FAKE_FLUSH_MANY},
             {quire_invalidate_batch, FAKE_INVALIDATE, FAKE_INVALIDATE_MANY}};

/*
 * Allocations of two atoms each. A view names the first bytes, so that no two views are adjacent.
 */
static void make_views(fixture *b, quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        views[i] = (quire_view){ALLOCATE(b, .size = (uint64_t)2 * ATOM), 3, 5};
}

UNIT_EACH(access_batch, parts_go_to_the_backend_in_lists_of_64, fixture, b, s, 0, 2,
          make(b, CACHED, true), fixture_end)
{
    static const uint64_t counts[] = {1, 2, 63, 64, 65, 128, 200};
    quire_view views[MAX_COUNT];
    make_views(b, views, MAX_COUNT); /* some pages */
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t before = b->fake.calls[SYNCS[s].many], ranges = b->fake.synced_ranges;
        CHECK_OK(SYNCS[s].call(b->memory, views, counts[i]));
        CHECK_EQ(b->fake.calls[SYNCS[s].many] - before, (counts[i] + 63) / 64);
        CHECK_EQ(b->fake.synced_ranges - ranges, counts[i]);
    }
    CHECK_EQ(b->fake.calls[SYNCS[s].one], 0);
    CHECK_EQ(b->fake.calls[SYNCS[!s].many], 0);
    CHECK_EQ(b->fake.synced_bytes, ATOM * b->fake.synced_ranges);
}

UNIT_EACH(access_batch, a_backend_without_lists_receives_one_range_per_call, fixture, b, s, 0, 2,
          make(b, CACHED, false), fixture_end)
{
    quire_view views[MAX_COUNT];
    make_views(b, views, MAX_COUNT);
    CHECK_OK(SYNCS[s].call(b->memory, views, MAX_COUNT));
    CHECK_EQ(b->fake.calls[SYNCS[s].one], MAX_COUNT);
    CHECK_EQ(b->fake.synced_bytes, MAX_COUNT * ATOM);
}

UNIT(access_batch, adjacent_parts_are_one_range)
{
    static const struct {
        uint64_t one, one_size, other, other_size, ranges, bytes;
    } cases[] = {
        {0, 64, 64, 64, 1, 128},   {64, 64, 0, 64, 1, 128}, {0, 1, 1, 1, 1, 64},
        {0, 320, 64, 64, 1, 320},  {64, 64, 0, 0, 1, 320},  {0, 64, 128, 64, 2, 128},
        {128, 64, 0, 64, 2, 128},  {0, 65, 128, 1, 1, 192}, {10, 100, 10, 100, 1, 128},
        {256, 64, 0, 193, 1, 320}, {0, 0, 319, 1, 1, 320},  {1, 1, 255, 2, 2, 192},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture b;
        make(&b, CACHED, true);
        quire_allocation made = ALLOCATE(&b, .size = 320);
        const quire_view views[] = {{made, cases[i].one, cases[i].one_size},
                                    {made, cases[i].other, cases[i].other_size}};
        CHECK_OK(quire_flush_batch(b.memory, views, 2));
        CHECK_EQ(b.fake.synced_ranges, cases[i].ranges);
        CHECK_EQ(b.fake.synced_bytes, cases[i].bytes);
        fixture_end(&b);
    }
}

UNIT_ON(access_batch, adjacent_allocations_merge_and_pages_do_not, fixture, b,
        make(b, CACHED, true), fixture_end)
{
    quire_view views[3] = {{ALLOCATE(b, .size = 2048), 0, 0},
                           {ALLOCATE(b, .size = 2048), 0, 0},
                           {ALLOCATE(b, .size = 4096), 0, 0}};
    CHECK(fixture_info(b, views[2].allocation).page != fixture_info(b, views[1].allocation).page);
    CHECK_OK(quire_flush_batch(b->memory, views, 3));
    CHECK_EQ(b->fake.synced_ranges, 2);
    CHECK_EQ(b->fake.synced_bytes, 8192);
    CHECK_EQ(b->fake.last_sync_offset, 0);
}

UNIT_ON(access_batch, coherent_kinds_are_checked_without_a_backend_call, fixture, b,
        make(b, COHERENT, true), fixture_end)
{
    quire_view views[3];
    make_views(b, views, 3);
    uint64_t calls = b->fake.fallible_calls;
    CHECK_OK(quire_flush_batch(b->memory, views, 3));
    views[2].offset = 1000;
    CHECK_FAILS(quire_invalidate_batch(b->memory, views, 3), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(b->fake.fallible_calls, calls);
}

/* One invalid part at any place: no work is done, and no allocation stays in use. */
UNIT_EACH(access_batch, all_parts_are_checked_before_the_first_is_processed, fixture, b, s, 0, 2,
          make(b, CACHED, true), fixture_end)
{
    static const int places[] = {0, 99, MAX_COUNT - 1};
    quire_view views[MAX_COUNT];
    make_views(b, views, MAX_COUNT);
    for (int i = 0; i < 3; i++) {
        quire_view *bad = &views[places[i]], good = *bad;
        bad->size = 1000;
        CHECK_FAILS(SYNCS[s].call(b->memory, views, MAX_COUNT), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_EQ(b->fake.calls[SYNCS[s].many], 0);
        *bad = good;
    }
    for (int i = 0; i < MAX_COUNT; i++)
        CHECK_OK(quire_free(b->memory, views[i].allocation));
}

UNIT_EACH(access_batch, empty_batches_have_no_effect, fixture, b, s, 0, 2, make(b, CACHED, true),
          fixture_end)
{
    quire_view view;
    make_views(b, &view, 1);
    CHECK_OK(SYNCS[s].call(b->memory, NULL, 0));
    CHECK_OK(SYNCS[s].call(b->memory, &view, 0));
    CHECK_EQ(b->fake.synced_ranges, 0);
}
