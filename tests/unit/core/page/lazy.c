/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lazy.c - lazy allocations: addresses without memory, chunks that get and lose it, what counts,
 * and what a refusal leaves.
 */
#include "src/core/page/lazy.h"

#include <stddef.h>

#include "quire/elastic.h"
#include "src/core/find/addresses.h"
#include "tests/support/elastic_page.h"

#define CASE(name) UNIT_ON(lazy, name, fixture, f, make(f), fixture_end)
#define CASE_WITH(name, ...) UNIT_ON(lazy, name, fixture, f, make_with(f, __VA_ARGS__), fixture_end)

/* The page of a memory is made with the first chunk, which is free until a request takes it. */
static void begin(fixture *f, quire_allocation *lazy, uint64_t chunks)
{
    *lazy = ALLOCATE(f, .size = chunks * CHUNK, .lazy = true, .name = "lazy");
    expect_chunks(f, 1);
}

static quire_result back(fixture *f, quire_allocation allocation, uint64_t offset, uint64_t size)
{
    return quire_back_range(f->memory, &(quire_view){allocation, offset, size}, 1);
}

static quire_result unback(fixture *f, quire_allocation allocation, uint64_t offset, uint64_t size)
{
    return quire_unback_range(f->memory, &(quire_view){allocation, offset, size}, 1, NULL);
}

/* ---- addresses and memory ------------------------------------------------------------------- */

CASE(a_lazy_allocation_has_addresses_alone)
{
    quire_allocation lazy;
    begin(f, &lazy, 10);
    const quire_allocation_info info = fixture_info(f, lazy);
    CHECK_EQ(info.size, 10 * CHUNK);
    CHECK_EQ(info.requested, 10 * CHUNK);
    CHECK_EQ(info.backed, 0);
    CHECK_EQ(info.offset % CHUNK, 0);
    CHECK_EQ(info.address % CHUNK, 0);
    const quire_memory_stats stats = stats_of(f);
    CHECK_EQ(stats.live_bytes, 0);
    CHECK_EQ(stats.requested_bytes, 0);
    CHECK_EQ(stats.allocation_count, 1);
    CHECK_EQ(stats.free_bytes, CHUNK);
    CHECK_OK(quire_free(f->memory, lazy));
    CHECK_EQ(stats_of(f).allocation_count, 0);
}

CASE(chunks_that_a_range_touches_get_memory_once)
{
    quire_allocation lazy;
    begin(f, &lazy, 10);
    CHECK_OK(back(f, lazy, 3 * CHUNK + 1, CHUNK)); /* the free chunk serves, and a new one */
    expect_chunks(f, 2);
    CHECK_EQ(fixture_info(f, lazy).backed, 2 * CHUNK);
    CHECK_EQ(stats_of(f).live_bytes, 2 * CHUNK);
    CHECK_OK(back(f, lazy, 2 * CHUNK, 4 * CHUNK));
    CHECK_OK(back(f, lazy, 2 * CHUNK, 4 * CHUNK));
    expect_chunks(f, 4);
    CHECK_OK(back(f, lazy, 0, 0)); /* to the end */
    expect_chunks(f, 10);
    CHECK_EQ(fixture_info(f, lazy).backed, 10 * CHUNK);
    CHECK_EQ(stats_of(f).requested_bytes, 10 * CHUNK);
    CHECK_OK(quire_free(f->memory, lazy)); /* its chunks are free */
    expect_chunks(f, 10);
    ALLOCATE(f, .size = 10 * CHUNK);
    expect_chunks(f, 10);
}

/* A range that is taken covers a chunk as a whole, or leaves it. */
CASE(chunks_inside_a_range_lose_their_memory)
{
    quire_allocation lazy;
    begin(f, &lazy, 8);
    CHECK_OK(back(f, lazy, 0, 0));
    CHECK_OK(unback(f, lazy, CHUNK + 1, 3 * CHUNK)); /* chunks 2 and 3 */
    expect_chunks(f, 6);
    CHECK_EQ(fixture_info(f, lazy).backed, 6 * CHUNK);
    CHECK_OK(unback(f, lazy, 2 * CHUNK, 100));
    expect_chunks(f, 6);
    CHECK_OK(unback(f, lazy, 0, 0));
    CHECK_OK(unback(f, lazy, 0, 0));
    expect_chunks(f, 0);
    CHECK_OK(back(f, lazy, 7 * CHUNK, CHUNK));
    expect_chunks(f, 1);
    CHECK_EQ(stats_of(f).peak_live_bytes, 8 * CHUNK);
    CHECK_OK(quire_free(f->memory, lazy));
}

/* The last chunk belongs to the allocation as a whole. */
CASE(the_end_of_an_allocation_is_that_of_its_last_chunk)
{
    quire_allocation lazy = ALLOCATE(f, .size = 2 * CHUNK + 10, .lazy = true);
    CHECK_EQ(fixture_info(f, lazy).size, 3 * CHUNK);
    CHECK_EQ(fixture_info(f, lazy).requested, 2 * CHUNK + 10);
    CHECK_OK(back(f, lazy, 2 * CHUNK + 5, 5));
    CHECK_EQ(fixture_info(f, lazy).backed, CHUNK);
    CHECK_OK(unback(f, lazy, 2 * CHUNK, 10));
    CHECK_EQ(fixture_info(f, lazy).backed, 0);
    CHECK_FAILS(back(f, lazy, 2 * CHUNK + 10, 0), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(back(f, lazy, 2 * CHUNK, 11), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(unback(f, lazy, UINT64_MAX, 2), QUIRE_ERROR_OUT_OF_RANGE);
}

/* Other allocations are placed, and chunks are stolen, around lazy ones. */
CASE(lazy_and_other_allocations_share_the_page)
{
    quire_allocation lazy, made[8];
    begin(f, &lazy, 20);
    for (int i = 0; i < 8; i++)
        made[i] = ALLOCATE(f, .size = CHUNK);
    expect_chunks(f, 8);
    for (int i = 0; i < 8; i += 2)
        CHECK_OK(quire_free(f->memory, made[i]));
    CHECK_OK(back(f, lazy, 5 * CHUNK, 4 * CHUNK)); /* the four free chunks serve */
    expect_chunks(f, 8);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 7 + 1);
    CHECK_OK(back(f, lazy, 9 * CHUNK, CHUNK));
    expect_chunks(f, 9);
    const quire_allocation_info info = fixture_info(f, lazy);
    for (int i = 1; i < 8; i += 2) {
        const uint64_t offset = fixture_info(f, made[i]).offset;
        CHECK(offset + CHUNK <= info.offset || offset >= info.offset + info.size);
    }
    CHECK_OK(quire_free(f->memory, lazy));
    expect_chunks(f, 9);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* One call backs adjacent chunks of one range, whichever of the others has them already. */
CASE(a_list_of_ranges_is_one_change)
{
    quire_allocation a, b;
    begin(f, &a, 10);
    b = ALLOCATE(f, .size = 10 * CHUNK, .lazy = true);
    const quire_view ranges[] = {
        {a, 0, 2 * CHUNK}, {b, CHUNK, CHUNK}, {a, CHUNK, 3 * CHUNK}, {a, 3 * CHUNK, 1}};
    CHECK_OK(quire_back_range(f->memory, ranges, 4));
    expect_chunks(f, 5);
    CHECK_EQ(fixture_info(f, a).backed, 4 * CHUNK);
    CHECK_EQ(fixture_info(f, b).backed, CHUNK);
    CHECK_OK(quire_unback_range(f->memory, ranges, 4, NULL));
    expect_chunks(f, 0);
    CHECK_OK(quire_back_range(f->memory, NULL, 0));
    CHECK_OK(quire_unback_range(f->memory, NULL, 0, NULL));
}

CASE(a_refused_list_changes_nothing)
{
    quire_allocation a, b, plain = ALLOCATE(f, .size = CHUNK);
    a = ALLOCATE(f, .size = 10 * CHUNK, .lazy = true);
    b = ALLOCATE(f, .size = 10 * CHUNK, .lazy = true);
    CHECK_OK(back(f, a, 4 * CHUNK, CHUNK));
    const quire_view ranges[] = {{a, 0, 3 * CHUNK}, {a, 2 * CHUNK, 4 * CHUNK}, {b, 0, 5 * CHUNK}};
    f->fake.page_budget = f->fake.page_bytes + 8 * CHUNK;
    CHECK_FAILS(quire_back_range(f->memory, ranges, 3), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    expect_chunks(f, 2);
    CHECK_EQ(fixture_info(f, a).backed, CHUNK);
    f->fake.page_budget = 0;
    CHECK_OK(quire_back_range(f->memory, ranges, 3));
    expect_chunks(f, 1 + 6 + 5);
    const quire_view wrong[] = {{a, 0, 3 * CHUNK}, {plain, 0, 1}, {b, 0, 0}};
    CHECK_FAILS(quire_unback_range(f->memory, wrong, 3, NULL), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "is not lazy");
    const quire_view held[] = {{b, 0, 0}, {a, 0, CHUNK}};
    CHECK_OK(quire_unback_range(f->memory, held, 2, NULL));
    expect_chunks(f, 1 + 5);
    CHECK_OK(quire_free(f->memory, b));
    CHECK_FAILS(quire_back_range(f->memory, held, 2), QUIRE_ERROR_STALE_HANDLE);
    expect_chunks(f, 1 + 5);
}

/* A call that works on the allocation, and an object of the backend in it. */
CASE(memory_in_use_is_not_taken)
{
    quire_allocation lazy;
    uint32_t slot = 0;
    begin(f, &lazy, 4);
    CHECK_OK(back(f, lazy, 0, 0));
    CHECK_OK(qi_slot_begin_use(&f->memory->slots, lazy, QI_ACCEPT_LIVE, &slot));
    CHECK_FAILS(unback(f, lazy, 0, CHUNK), QUIRE_ERROR_BUSY);
    CHECK_OK(back(f, lazy, 0, CHUNK));
    qi_slot_end_use(&f->memory->slots, slot);
    CHECK_OK(unback(f, lazy, 0, CHUNK));
    expect_chunks(f, 3);
}

/* ---- limits --------------------------------------------------------------------------------- */

CASE(one_limit_serves_many_of_them)
{
    quire_allocation made[4];
    for (int i = 0; i < 4; i++)
        made[i] = ALLOCATE(f, .size = 10 * CHUNK, .lazy = true);
    CHECK_OK(quire_memory_set_limit(f->memory, 12 * CHUNK));
    CHECK_OK(back(f, made[0], 0, 0));
    CHECK_FAILS(back(f, made[1], 0, 3 * CHUNK), QUIRE_ERROR_OVER_BUDGET);
    expect_chunks(f, 10);
    CHECK_OK(back(f, made[1], 0, 2 * CHUNK));
    CHECK_OK(unback(f, made[0], 4 * CHUNK, 0));
    CHECK_OK(back(f, made[2], 0, 6 * CHUNK));
    expect_chunks(f, 12);
}

CASE(limits_of_names_count_what_has_memory)
{
    quire_allocation a = ALLOCATE(f, .size = 10 * CHUNK, .lazy = true, .name = "kv/1");
    quire_allocation b = ALLOCATE(f, .size = 10 * CHUNK, .lazy = true, .name = "kv/2");
    quire_name_usage of;
    CHECK_OK(quire_memory_set_name_limit(f->memory, "kv/", 5 * CHUNK));
    CHECK_OK(back(f, a, 0, 3 * CHUNK));
    CHECK_FAILS(back(f, b, 0, 3 * CHUNK), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(fixture_info(f, b).backed, 0);
    CHECK_OK(back(f, b, 0, 2 * CHUNK));
    CHECK_OK(quire_memory_get_name_usage(f->memory, "kv/", &of));
    CHECK_EQ(of.held_bytes, 5 * CHUNK);
    CHECK_OK(unback(f, a, 0, 2 * CHUNK));
    CHECK_OK(back(f, b, 0, 4 * CHUNK));
    CHECK_OK(quire_allocation_set_name(f->memory, b, NULL));
    CHECK_OK(back(f, a, 0, 5 * CHUNK));
    CHECK_OK(quire_free(f->memory, a));
    CHECK_OK(quire_memory_get_name_usage(f->memory, "kv/", &of));
    CHECK_EQ(of.held_bytes, 0);
    stats_of(f);
}

/* ---- access --------------------------------------------------------------------------------- */

CASE(bytes_without_memory_cannot_be_read_or_written)
{
    static char bytes[2 * CHUNK];
    quire_allocation lazy;
    begin(f, &lazy, 4);
    CHECK_FAILS(quire_write(f->memory, lazy, 0, bytes, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "offset 0 of a lazy allocation");
    CHECK_OK(back(f, lazy, CHUNK, 2 * CHUNK));
    CHECK_OK(quire_write(f->memory, lazy, CHUNK, bytes, 2 * CHUNK));
    CHECK_OK(quire_read(f->memory, lazy, CHUNK, bytes, 2 * CHUNK));
    CHECK_FAILS(quire_read(f->memory, lazy, 2 * CHUNK, bytes, CHUNK + 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "offset 49152");
    quire_fill_options fill = {.value = 1};
    CHECK_FAILS(quire_fill(f->memory, lazy, &fill, NULL), QUIRE_ERROR_WRONG_STATE);
    fill = (quire_fill_options){.offset = CHUNK, .size = CHUNK, .value = 1};
    CHECK_OK(quire_fill(f->memory, lazy, &fill, NULL));
    CHECK_OK(quire_write(f->memory, lazy, 0, bytes, 0));
    CHECK_FAILS(quire_write(f->memory, lazy, 4 * CHUNK, bytes, 1), QUIRE_ERROR_OUT_OF_RANGE);
    const quire_copy_options copy = {
        .from = {.memory = f->memory, .allocation = lazy}, .host_to = bytes, .size = CHUNK};
    CHECK_FAILS(quire_copy(&copy, NULL), QUIRE_ERROR_WRONG_STATE);
}

/* ---- requests ------------------------------------------------------------------------------- */

static quire_result request(fixture *f, const quire_allocation_options *options)
{
    quire_allocation made;
    quire_result result = quire_allocate(f->memory, options, &made);
    CHECK_EQ(made.id == 0, result != QUIRE_SUCCESS);
    return result;
}

CASE(what_needs_memory_at_once_is_refused)
{
    const struct {
        quire_allocation_options options;
        const char *word;
    } rows[] = {
        {{.zero = true}, "zero"},
        {{.dedicated = true}, "dedicated"},
        {{.mapped = true}, "mapped"},
        {{.existing_pages = true}, "existing_pages"},
        {{.within_budget = true}, "within_budget"},
        {{.offset_alignment = 48}, "offset_alignment"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        quire_allocation_options options = rows[i].options;
        options.size = CHUNK;
        options.lazy = true;
        CHECK_FAILS(request(f, &options), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), rows[i].word);
    }
    CHECK_EQ(stats_of(f).page_count, 0);
}

CASE(addresses_run_out)
{
    quire_allocation lazy;
    lazy = ALLOCATE(f, .size = CHUNKS * CHUNK, .lazy = true);
    CHECK_FAILS(request(f, &(quire_allocation_options){.size = 1, .lazy = true}),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "addresses has room");
    CHECK_FAILS(request(f, &(quire_allocation_options){.size = UINT64_MAX, .lazy = true}),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_OK(quire_free(f->memory, lazy));
    CHECK_OK(request(
        f, &(quire_allocation_options){.size = 32 * CHUNK, .alignment = 8 * CHUNK, .lazy = true}));
    stats_of(f);
}

/* The chunks of one that was freed have memory, and give their addresses to the next one. */
CASE(free_chunks_give_their_addresses)
{
    quire_allocation lazy = ALLOCATE(f, .size = CHUNKS * CHUNK / 2, .lazy = true);
    CHECK_OK(back(f, lazy, 0, 0));
    CHECK_OK(quire_free(f->memory, lazy));
    expect_chunks(f, CHUNKS / 2);
    lazy = ALLOCATE(f, .size = CHUNKS * CHUNK, .lazy = true);
    expect_chunks(f, 0);
    CHECK_OK(back(f, lazy, 0, 0));
    expect_chunks(f, CHUNKS);
    CHECK_OK(quire_free(f->memory, lazy));
}

CASE(a_batch_of_lazy_allocations)
{
    quire_allocation made[5];
    const quire_allocation_options options = {.size = 3 * CHUNK, .lazy = true};
    CHECK_OK(quire_allocate_batch(f->memory, &options, made, 5));
    expect_chunks(f, 1);
    for (int i = 0; i < 5; i++)
        CHECK_OK(back(f, made[i], 0, CHUNK));
    expect_chunks(f, 5);
    CHECK_OK(quire_free_batch(f->memory, made, 5));
    expect_chunks(f, 5);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    expect_chunks(f, 0);
}

static void make_ordinary(fixture *f)
{
    fixture_prepare(f);
    fixture_open(f, &(quire_memory_options){.name = "ordinary"});
}

UNIT_ON(lazy, other_memories_have_none, fixture, f, make_ordinary(f), fixture_end)
{
    CHECK_FAILS(request(f, &(quire_allocation_options){.size = 1, .lazy = true}),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_back_range(f->memory, NULL, 0), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_unback_range(f->memory, NULL, 0, NULL), QUIRE_ERROR_UNSUPPORTED);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* Every second chunk, so that each range becomes nodes of its own. */
static void make_ranges(fixture *f, quire_view *ranges, uint64_t count)
{
    quire_allocation made[2];
    begin(f, &made[0], count + 1);
    made[1] = ALLOCATE(f, .size = (count + 1) * CHUNK, .lazy = true);
    for (uint64_t i = 0; i < count; i++)
        ranges[i] = (quire_view){made[i % 2], i / 2 * 2 * CHUNK, CHUNK};
}

typedef quire_result (*change)(quire_memory *, const quire_view *, uint64_t);

static quire_result unback_now(quire_memory *memory, const quire_view *ranges, uint64_t count)
{
    return quire_unback_range(memory, ranges, count, NULL);
}

/* Fails the n-th call for host memory, until none is left that fails. */
static void fail_each(fixture *f, change apply, uint64_t before, uint64_t after)
{
    enum { COUNT = 16 };
    quire_view ranges[COUNT];
    make_ranges(f, ranges, COUNT);
    if (before)
        CHECK_OK(quire_back_range(f->memory, ranges, COUNT));
    for (uint64_t at = 1; at < 100; at++) {
        test_memory_fail(unit_memory_state(), at, true);
        quire_result result = apply(f->memory, ranges, COUNT);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(stats_of(f).live_bytes, (result ? before : after) * CHUNK);
        CHECK_EQ(f->fake.page_bytes, stats_of(f).reserved_bytes);
        if (!result)
            return;
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
    CHECK(false);
}

CASE(without_host_memory_all_or_nothing_gets_memory)
{
    fail_each(f, quire_back_range, 0, 16);
}

CASE(without_host_memory_all_or_nothing_loses_memory)
{
    fail_each(f, unback_now, 16, 0);
}

/* ---- during a change ------------------------------------------------------------------------- */

static void (*real_unback)(void *, const quire_native_page *, const quire_span *, uint32_t, bool);
static uint32_t unbacks;

/* Looks at the records as another thread can, while the lock is not held. */
static void checking_unback(void *state, const quire_native_page *page, const quire_span *spans,
                            uint32_t count, bool moves)
{
    const fixture *f = (const void *)((const char *)state - offsetof(fixture, fake));
    CHECK_OK(quire_memory_check(f->memory));
    unbacks++;
    real_unback(state, page, spans, count, moves);
}

static void make_checking(fixture *f)
{
    fixture_prepare(f);
    fake_offer_growth(&f->fake);
    unbacks = 0;
    real_unback = f->fake.table.page_unback;
    f->fake.table.page_unback = checking_unback;
    fixture_open(f, &(quire_memory_options){.name = "checking",
                                            .elastic = true,
                                            .pages.page_size = CHUNK,
                                            .address_space = CHUNKS * CHUNK});
}

UNIT_ON(lazy, records_agree_while_a_list_loses_memory, fixture, f, make_checking(f), fixture_end)
{
    quire_view ranges[16];
    make_ranges(f, ranges, 16);
    CHECK_OK(quire_back_range(f->memory, ranges, 16));
    CHECK_OK(quire_unback_range(f->memory, ranges, 16, NULL));
    CHECK(unbacks > 1);
    expect_chunks(f, 0);
}

UNIT_ON(lazy, records_agree_while_a_refused_list_loses_memory, fixture, f, make_checking(f),
        fixture_end)
{
    quire_view ranges[16];
    make_ranges(f, ranges, 16);
    f->fake.page_budget = f->fake.page_bytes + 12 * CHUNK;
    CHECK_FAILS(quire_back_range(f->memory, ranges, 16), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(unbacks > 1);
    CHECK_EQ(stats_of(f).live_bytes, 0);
}

/* ---- finding and walking -------------------------------------------------------------------- */

CASE_WITH(it_is_found_by_any_of_its_addresses,
          &(quire_memory_options){.name = "found", .find_by_address = true})
{
    quire_allocation lazy, found;
    begin(f, &lazy, 8);
    CHECK_OK(back(f, lazy, 5 * CHUNK, CHUNK));
    const uint64_t address = fixture_info(f, lazy).address;
    for (uint64_t offset = 0; offset < 8 * CHUNK; offset += 2000) {
        CHECK_OK(quire_memory_find(f->memory, address + offset, &found));
        CHECK_EQ(found.id, lazy.id);
    }
    CHECK_OK(quire_free(f->memory, lazy));
    CHECK_FAILS(quire_memory_find(f->memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    quire_allocation plain = ALLOCATE(f, .size = 8 * CHUNK);
    CHECK_OK(quire_memory_find(f->memory, fixture_info(f, plain).address + 7, &found));
    CHECK_EQ(found.id, plain.id);
}

static bool count_item(void *user, const quire_item *item)
{
    quire_item *sum = user;
    if (item->is_free)
        return true;
    sum->size += item->size;
    sum->backed += item->backed;
    sum->requested++;
    return true;
}

CASE(a_walk_shows_it_once)
{
    quire_allocation lazy;
    quire_item sum = {.page = 0};
    begin(f, &lazy, 8);
    CHECK_OK(back(f, lazy, 2 * CHUNK, CHUNK));
    CHECK_OK(back(f, lazy, 5 * CHUNK, CHUNK));
    ALLOCATE(f, .size = 100);
    CHECK_OK(quire_memory_walk(f->memory, count_item, &sum));
    CHECK_EQ(sum.requested, 2);
    CHECK_EQ(sum.backed, 2 * CHUNK + 256);
    CHECK_EQ(sum.size, 8 * CHUNK + 256);
}
