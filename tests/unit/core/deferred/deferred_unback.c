/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_unback.c - chunks of lazy allocations that lose their memory once a point has passed:
 * what they are until then, and what else happens to them.
 */
#include "src/core/deferred/deferred_unback.h"

#include "quire/elastic.h"
#include "tests/support/deferred_free.h"

enum { CHUNK = 16 * KIB, CHUNKS = 64, WHOLE = 8 };

static void begin_elastic(bench *w)
{
    prepare(w);
    fake_offer_growth(&w->f.fake);
    open_bench(w, &(quire_memory_options){.name = "one",
                                          .elastic = true,
                                          .address_space = CHUNKS * CHUNK,
                                          .pages.page_size = CHUNK});
}

#define CASE(name) UNIT_ON(deferred_unback, name, bench, w, begin_elastic(w), end)

static quire_allocation make_backed(bench *w)
{
    quire_allocation lazy = ALLOCATE(&w->f, .size = WHOLE * CHUNK, .lazy = true);
    CHECK_OK(quire_back_range(w->f.memory, &(quire_view){lazy, 0, 0}, 1));
    return lazy;
}

static quire_result unback(bench *w, quire_allocation lazy, uint64_t first, uint64_t count,
                           const quire_point *after)
{
    const quire_view range = {lazy, first * CHUNK, count * CHUNK};
    return quire_unback_range(w->f.memory, &range, 1, after);
}

/* The chunks that the page has, and those that the allocation counts. */
static void expect(bench *w, quire_allocation lazy, uint64_t reserved, uint64_t backed)
{
    CHECK_OK(quire_memory_check(w->f.memory));
    CHECK_EQ(fixture_stats(&w->f).reserved_bytes, reserved * CHUNK);
    CHECK_EQ(w->f.fake.page_bytes, reserved * CHUNK);
    if (lazy.id)
        CHECK_EQ(fixture_info(&w->f, lazy).backed, backed * CHUNK);
}

CASE(memory_stays_until_the_point)
{
    char byte = 1;
    quire_allocation lazy = make_backed(w);
    const quire_point point = mark(w->a);
    CHECK_OK(unback(w, lazy, 2, 3, &point));
    expect(w, lazy, 8, 8);
    CHECK_EQ(collect(w), 0);
    CHECK_FAILS(quire_write(w->f.memory, lazy, 2 * CHUNK, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_write(w->f.memory, lazy, 5 * CHUNK, &byte, 1));
    streams_pass_to(w->a, point.value);
    CHECK_EQ(collect(w), 3 * CHUNK);
    expect(w, lazy, 5, 5);
    CHECK_EQ(collect(w), 0);
}

CASE(a_point_that_has_passed_takes_memory_at_once)
{
    quire_allocation lazy = make_backed(w);
    const quire_point point = mark(w->a);
    streams_pass_to(w->a, point.value);
    CHECK_OK(quire_point_await(&point, 0));
    CHECK_OK(unback(w, lazy, 0, 1, &point));
    expect(w, lazy, 7, 7);
    CHECK_OK(unback(w, lazy, 1, 1, &(quire_point){NULL, 0}));
    expect(w, lazy, 6, 6);
}

/* Chunks that get memory again before the point keep it, until another point. */
CASE(memory_that_is_wanted_again_stays)
{
    quire_allocation lazy = make_backed(w);
    const quire_point first = mark(w->a), second = mark(w->a);
    CHECK_OK(unback(w, lazy, 0, 4, &first));
    CHECK_OK(quire_back_range(w->f.memory, &(quire_view){lazy, CHUNK, 2 * CHUNK}, 1));
    CHECK_EQ(w->f.fake.calls[FAKE_PAGE_BACK], 1);
    CHECK_OK(unback(w, lazy, 1, 1, &second));
    streams_pass_to(w->a, first.value);
    CHECK_EQ(collect(w), 2 * CHUNK); /* 0 and 3 */
    expect(w, lazy, 6, 6);
    streams_pass_to(w->a, second.value);
    CHECK_EQ(collect(w), CHUNK);
    expect(w, lazy, 5, 5);
}

CASE(each_range_waits_for_its_own_point)
{
    quire_allocation lazy = make_backed(w);
    const quire_point first = mark(w->a), second = mark(w->b);
    CHECK_OK(unback(w, lazy, 0, 4, &first));
    CHECK_OK(unback(w, lazy, 2, 4, &second)); /* 2 and 3 wait for the first one */
    streams_pass_to(w->b, second.value);
    CHECK_EQ(collect(w), 2 * CHUNK);
    expect(w, lazy, 6, 6);
    CHECK_OK(unback(w, lazy, 0, 8, NULL)); /* not those that wait */
    expect(w, lazy, 4, 4);
    streams_pass_to(w->a, first.value);
    CHECK_EQ(collect(w), 4 * CHUNK);
    expect(w, lazy, 0, 0);
}

CASE(a_free_waits_for_the_point_too)
{
    quire_allocation lazy = make_backed(w);
    const quire_point point = mark(w->a);
    CHECK_OK(unback(w, lazy, 0, 4, &point));
    CHECK_OK(quire_free(w->f.memory, lazy));
    CHECK_EQ(waiting(w), 1);
    expect(w, (quire_allocation){0}, 8, 0);
    CHECK_OK(quire_memory_trim(w->f.memory, 0, NULL));
    expect(w, (quire_allocation){0}, 8, 0);
    streams_pass_to(w->a, point.value);
    CHECK_EQ(collect(w), 8 * CHUNK);
    CHECK_OK(quire_memory_trim(w->f.memory, 0, NULL));
    expect(w, (quire_allocation){0}, 0, 0);
}

/* A request that finds no memory collects what has passed. */
CASE(a_request_takes_memory_whose_point_has_passed)
{
    quire_allocation lazy = make_backed(w);
    const quire_point point = mark(w->a);
    CHECK_OK(quire_memory_set_limit(w->f.memory, 8 * CHUNK));
    CHECK_OK(unback(w, lazy, 0, 6, &point));
    ALLOCATE_FAILS(&w->f, QUIRE_ERROR_OVER_BUDGET, .size = 4 * CHUNK);
    streams_pass_to(w->a, point.value);
    quire_allocation other = ALLOCATE(&w->f, .size = 4 * CHUNK);
    expect(w, lazy, 6, 2);
    CHECK_OK(quire_free(w->f.memory, other));
}

CASE(another_lazy_allocation_takes_it_too)
{
    quire_allocation lazy = make_backed(w), other;
    const quire_point point = mark(w->a);
    CHECK_OK(quire_memory_set_limit(w->f.memory, 8 * CHUNK));
    other = ALLOCATE(&w->f, .size = WHOLE * CHUNK, .lazy = true);
    const quire_view wanted = {other, 0, 5 * CHUNK};
    CHECK_OK(unback(w, lazy, 0, 6, &point));
    CHECK_FAILS(quire_back_range(w->f.memory, &wanted, 1), QUIRE_ERROR_OVER_BUDGET);
    streams_pass(w->a);
    CHECK_OK(quire_back_range(w->f.memory, &wanted, 1));
    expect(w, lazy, 7, 2);
}

CASE(a_refused_list_waits_for_nothing)
{
    quire_allocation lazy = make_backed(w), plain = ALLOCATE(&w->f, .size = CHUNK);
    const quire_point point = mark(w->a);
    const quire_view ranges[] = {{lazy, 0, 3 * CHUNK}, {plain, 0, 1}};
    CHECK_FAILS(quire_unback_range(w->f.memory, ranges, 2, &point), QUIRE_ERROR_UNSUPPORTED);
    const quire_point later = {w->a, point.value + 7};
    CHECK_FAILS(quire_unback_range(w->f.memory, ranges, 1, &later), QUIRE_ERROR_INVALID_ARGUMENT);
    for (uint64_t at = 1; at < 20; at++) {
        test_memory_fail(unit_memory_state(), at, true);
        quire_result result = quire_unback_range(w->f.memory, ranges, 1, &point);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_OK(quire_memory_check(w->f.memory));
        if (!result)
            break;
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_OK(quire_write(w->f.memory, lazy, 0, "a", 1));
    }
    streams_pass_to(w->a, point.value);
    CHECK_EQ(collect(w), 3 * CHUNK);
    expect(w, lazy, 6, 5);
}

/* The memory ends with chunks that wait, and the stream before the memory. */
CASE(memory_and_stream_may_end_before_the_point)
{
    quire_allocation lazy = make_backed(w);
    const quire_point point = mark(w->a), other = mark(w->b);
    CHECK_OK(unback(w, lazy, 0, 2, &point));
    CHECK_OK(unback(w, lazy, 2, 2, &other));
    streams_state()->await_passes = true;
    CHECK_OK(quire_stream_destroy(&w->b));
    CHECK_OK(quire_memory_check(w->f.memory));
    w->b = make(w, NULL);
    CHECK_EQ(fixture_info(&w->f, lazy).backed, 6 * CHUNK);
}
