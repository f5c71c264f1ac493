/*
 * stream_options.c - the stream of the options in each call that allocates: reservations, batches,
 * fallbacks, adopted memory, and streams of another device.
 */
#include "tests/support/deferred_reuse.h"

#define CASE(name) UNIT_ON(stream_options, name, bench, w, begin(w), end)

CASE(a_reservation_reuses_and_is_committed)
{
    quire_allocation first = ON(w, w->a, .size = KIB), again;
    uint64_t place = place_of(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    const quire_allocation_options options = {.size = KIB, .name = "kept", .stream = w->a};
    CHECK_OK(quire_reserve(w->f.memory, &options, &again));
    CHECK_EQ(place_of(w, again), place);
    CHECK_FAILS(quire_free(w->f.memory, again), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_commit(w->f.memory, again));
    CHECK_OK(quire_free_on_stream(w->f.memory, again, w->a));
    CHECK_OK(quire_reserve(w->f.memory, &options, &again));
    CHECK_EQ(place_of(w, again), place);
    CHECK_OK(quire_abort(w->f.memory, again));
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 0);
}

CASE(a_batch_reuses)
{
    enum { COUNT = 5 };
    const quire_allocation_options options = {.size = KIB, .stream = w->a};
    quire_allocation made[COUNT], again[COUNT];
    CHECK_OK(quire_allocate_batch(w->f.memory, &options, made, COUNT));
    uint64_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += place_of(w, made[i]);
        CHECK_OK(quire_free_on_stream(w->f.memory, made[i], w->a));
    }
    CHECK_OK(quire_allocate_batch(w->f.memory, &options, again, COUNT));
    for (int i = 0; i < COUNT; i++)
        sum -= place_of(w, again[i]);
    CHECK_EQ(sum, 0);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
}

CASE(a_refused_batch_returns_its_ranges_in_the_order_of_the_stream)
{
    enum { COUNT = 100 };
    quire_allocation first = ON(w, w->a, .size = KIB), made[COUNT];
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK_OK(quire_memory_set_limit(w->f.memory, PAGE));
    CHECK_FAILS(quire_allocate_batch(w->f.memory,
                                     &(quire_allocation_options){.size = KIB, .stream = w->a}, made,
                                     COUNT),
                QUIRE_ERROR_OVER_BUDGET);
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(made[i].id, 0);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, PAGE / KIB);
    CHECK_OK(quire_memory_check(w->f.memory));
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL)); /* marks */
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 0);
}

CASE(a_fallback_reuses_in_the_memory_that_has_room)
{
    quire_memory *full = NULL;
    CHECK_OK(quire_memory_create(w->f.device, &(quire_memory_options){.limit = 1}, &full));
    quire_memory *const memories[] = {full, w->f.memory};
    quire_allocation first = ON(w, w->a, .size = KIB), again;
    uint64_t place = place_of(w, first);
    uint32_t chosen = 0;
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK_OK(quire_allocate_fallback(
        memories, 2, &(quire_allocation_options){.size = KIB, .stream = w->a}, &chosen, &again));
    CHECK_EQ(chosen, 1);
    CHECK_EQ(place_of(w, again), place);
    CHECK_OK(quire_memory_destroy(&full));
}

CASE(adopted_memory_has_no_stream)
{
    const uint64_t size = 2 * PAGE;
    quire_allocation adopted = {77};
    CHECK_FAILS(quire_page_adopt(w->f.memory, &size,
                                 &(quire_allocation_options){.size = size, .stream = w->a},
                                 &adopted),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(adopted.id, 0);
    CHECK_EQ(w->f.fake.pages, 0);
}

/* Work on a stream may use memory of any device. The ranges that the stream frees are its own. */
UNIT_ON(stream_options, the_stream_may_be_of_another_device, bench, w, begin(w), end)
{
    fixture other;
    fixture_make(&other, &(quire_memory_options){0});
    const quire_allocation_options options = {.size = KIB, .stream = w->a};
    quire_allocation made;
    CHECK_OK(quire_allocate(other.memory, &options, &made));
    quire_allocation_info before, after;
    CHECK_OK(quire_allocation_get_info(other.memory, made, &before));
    CHECK_OK(quire_free_on_stream(other.memory, made, w->a));
    CHECK_OK(quire_allocate(other.memory, &options, &made));
    CHECK_OK(quire_allocation_get_info(other.memory, made, &after));
    CHECK_EQ(before.offset, after.offset);
    CHECK_OK(quire_free(other.memory, made));
    fixture_end(&other);
}

CASE(a_refused_request_counts_once_and_describes_nothing)
{
    CHECK_OK(quire_memory_set_limit(w->f.memory, PAGE));
    quire_allocation made;
    quire_allocation_info info;
    const quire_allocation_options options = {.size = 2 * PAGE, .stream = w->a, .info = &info};
    CHECK_FAILS(quire_allocate(w->f.memory, &options, &made), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(info.size, 0);
    CHECK_EQ(fixture_stats(&w->f).failures, 1);
}
