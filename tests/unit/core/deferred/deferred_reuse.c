/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_reuse.c - allocation on a stream: it reuses at once, without a backend call, the ranges
 * that were freed on the same stream; those of other streams after their points; a capture stream
 * keeps its own. Each call that allocates takes the stream of its options.
 */
#include "tests/support/deferred_reuse.h"

#define CASE(name) UNIT_ON(deferred_reuse, name, bench, w, begin(w), end)

CASE(on_the_same_stream_happens_at_once_without_a_backend_call)
{
    quire_allocation first = ON(w, w->a, .size = KIB, .user_data = 1);
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    fake_streams before = *streams_state();
    uint64_t calls = fixture_stats(&w->f).backend_calls;
    for (uint64_t i = 0; i < 100; i++) {
        quire_allocation next = ON(w, w->a, .size = KIB, .user_data = i);
        CHECK(next.id != first.id);
        CHECK_EQ(place_at(w, next), place);
        CHECK_EQ(fixture_info(&w->f, next).user_data, i);
        CHECK_OK(quire_free_on_stream(w->f.memory, next, w->a));
        CHECK_FAILS(quire_free(w->f.memory, next), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_free(w->f.memory, first), QUIRE_ERROR_STALE_HANDLE);
    }
    CHECK(!memcmp(&before, streams_state(), sizeof before));
    quire_memory_stats stats = fixture_stats(&w->f);
    CHECK_EQ(stats.backend_calls, calls);
    CHECK_EQ(stats.allocations, 101);
    CHECK_EQ(stats.frees, 100);
    CHECK_EQ(stats.deferred_bytes, KIB);
}

CASE(accepts_ranges_up_to_an_eighth_larger)
{
    quire_allocation large = ON(w, w->a, .size = 8 * KIB);
    uint64_t place = place_at(w, large);
    CHECK_OK(quire_free_on_stream(w->f.memory, large, w->a));
    quire_allocation other = ON(w, w->a, .size = 7 * KIB); /* 8 KiB are more than 9/8 of it */
    CHECK(place_at(w, other) != place);
    quire_allocation close = ON(w, w->a, .size = 7 * KIB + 256);
    CHECK_EQ(place_at(w, close), place);
    quire_allocation_info info = fixture_info(&w->f, close);
    CHECK_EQ(info.requested, 7 * KIB + 256);
    CHECK_EQ(info.size, 8 * KIB);
    CHECK_EQ(fixture_stats(&w->f).requested_bytes, 14 * KIB + 256);
}

UNIT(deferred_reuse, accepts_ranges_that_the_fit_rounded_up_for_the_same_size)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    static const uint64_t sizes[] = {1, 100, 300, 700, 5 * KIB, 40 * KIB + 1, 2 * PAGE + 1};
    for (int i = 0; i < 3 * 7; i++) {
        bench w;
        begin_with(&w, &(quire_memory_options){.fit.algorithm = fits[i % 3], .pages = BENCH_PAGES});
        quire_allocation first = ON(&w, w.a, .size = sizes[i / 3]);
        uint64_t place = place_at(&w, first);
        CHECK_OK(quire_free_on_stream(w.f.memory, first, w.a));
        CHECK_EQ(place_at(&w, ON(&w, w.a, .size = sizes[i / 3])), place);
        end(&w);
    }
}

/* Pages begin 256 bytes after such a multiple: offsets do not show larger alignments. */
UNIT(deferred_reuse, respects_an_alignment_above_that_of_the_page)
{
    enum { STEP = 256, ALIGNMENT = 4 * KIB };
    static const uint64_t sizes[] = {KIB, 2 * PAGE}; /* in a shared page, in a dedicated one */
    for (int i = 0; i < 2; i++) {
        bench w;
        prepare(&w);
        w.f.fake.address_step = STEP;
        w.f.fake.info.limits.page_alignment = STEP;
        open_bench(&w, &(quire_memory_options){.pages = BENCH_PAGES});
        quire_allocation low = ON(&w, w.a, .size = sizes[i]);
        uint64_t place = place_at(&w, low);
        CHECK(!(fixture_info(&w.f, low).offset % ALIGNMENT) &&
              fixture_info(&w.f, low).address % ALIGNMENT);
        CHECK_OK(quire_free_on_stream(w.f.memory, low, w.a));
        quire_allocation high = ON(&w, w.a, .size = sizes[i], .alignment = ALIGNMENT);
        CHECK_EQ(fixture_info(&w.f, high).address % ALIGNMENT, 0);
        CHECK_EQ(place_at(&w, ON(&w, w.a, .size = sizes[i])), place); /* `low` still waits */
        end(&w);
    }
}

CASE(reports_names_and_events_like_any_allocation)
{
    char name[16];
    quire_allocation first = ON(w, w->a, .size = KIB, .name = "first");
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    quire_allocation second = ON(w, w->a, .size = KIB, .name = "second");
    CHECK_EQ(place_at(w, second), place);
    CHECK_OK(quire_allocation_get_name(w->f.memory, second, name, sizeof name));
    CHECK_STR(name, "second");
    CHECK_OK(quire_free_on_stream(w->f.memory, second, w->a));
    quire_allocation third = ON(w, w->a, .size = KIB);
    CHECK_OK(quire_allocation_get_name(w->f.memory, third, name, sizeof name));
    CHECK_STR(name, "");
}

CASE(refused_by_a_limit_of_its_name_makes_the_range_wait_again)
{
    CHECK_OK(quire_memory_set_name_limit(w->f.memory, "x", 100));
    CHECK_OK(quire_free_on_stream(w->f.memory, ON(w, w->a, .size = KIB), w->a));
    quire_allocation none = {77};
    CHECK_FAILS(quire_allocate(
                    w->f.memory,
                    &(quire_allocation_options){.size = KIB, .name = "xy", .stream = w->a}, &none),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
}

CASE(does_not_happen_for_zeroed_allocations)
{
    quire_allocation first = ON(w, w->a, .size = KIB);
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK(place_at(w, ON(w, w->a, .size = KIB, .zero = true)) != place);
}

CASE(does_not_happen_for_imported_memory)
{
    const uint64_t size = 2 * PAGE;
    quire_allocation adopted;
    CHECK_OK(
        quire_page_adopt(w->f.memory, &size, &(quire_allocation_options){.size = size}, &adopted));
    CHECK_OK(quire_free_on_stream(w->f.memory, adopted, w->a));
    ON(w, w->a,
       .size = size); /* the page was created for the first allocation and is destroyed with it */
    CHECK_EQ(w->f.fake.pages, 2);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_EQ(w->f.fake.pages, 1);
}

/* ---- other streams and capture streams ------------------------------------------------------ */

CASE(of_another_streams_range_orders_the_streams_before_a_page_is_created)
{
    quire_allocation whole = ON(w, w->a, .size = PAGE - 256);
    CHECK_OK(quire_free_on_stream(w->f.memory, whole, w->a));
    quire_allocation next = ON(w, w->b, .size = PAGE - 256);
    CHECK_EQ(w->f.fake.pages, 1);
    CHECK_EQ(fixture_info(&w->f, next).page, 0);
    CHECK_EQ(streams_state()->orders, 1);
    uint64_t b = streams_number(w->b), a = streams_number(w->a);
    CHECK(streams_state()->after[b][a] &&
          streams_state()->after[b][a] == streams_state()->marked[a]);
}

CASE(of_another_streams_range_that_cannot_be_ordered_creates_a_page)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ON(w, w->a, .size = PAGE - 256), w->a));
    streams_state()->order_answers = QUIRE_ERROR_UNSUPPORTED;
    ON(w, w->b, .size = PAGE - 256);
    CHECK_EQ(w->f.fake.pages, 2);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
    CHECK_STR(quire_last_error(), "");
}

CASE(of_another_streams_range_loses_nothing_if_the_stream_cannot_be_marked)
{
    quire_point point;
    quire_allocation none = {77};
    const quire_allocation_options options = {.size = PAGE - 256, .name = "xy"};
    CHECK_OK(quire_memory_set_name_limit(w->f.memory, "x", 100));
    quire_allocation whole = ON(w, w->a, .size = PAGE - 256);
    CHECK_OK(quire_stream_mark(w->a, &point));
    CHECK_OK(quire_free_after_point(w->f.memory, whole, &point));
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_FAILS(allocate_on_stream(w->f.memory, &options, w->b, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 1);
}

CASE(of_a_range_of_another_devices_stream_waits)
{
    fake_backend other;
    quire_device *device = NULL;
    quire_stream *far = NULL;
    fake_init(&other);
    other.table = w->f.fake.table;
    CHECK_OK(fake_open(&other, unit_memory(), &device));
    CHECK_OK(quire_stream_create(device, NULL, &far));
    CHECK_OK(quire_free_on_stream(w->f.memory, ON(w, w->a, .size = PAGE - 256), far));
    ON(w, w->a, .size = PAGE - 256);
    CHECK_EQ(w->f.fake.pages, 2);
    CHECK_EQ(streams_state()->orders, 0);
    quire_stream_info info; /* no attempt was made: it would have marked the stream */
    CHECK_OK(quire_stream_get_info(w->a, &info));
    CHECK_EQ(info.marked, 0);
    streams_pass(far);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
    CHECK_OK(quire_stream_destroy(&far));
    CHECK_OK(quire_device_destroy(&device));
}

CASE(of_a_range_used_on_another_stream_waits_for_that_stream)
{
    quire_allocation first = ON(w, w->a, .size = KIB);
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_record_use(w->f.memory, first, w->b));
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK(place_at(w, ON(w, w->a, .size = KIB)) != place);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    streams_pass(w->b);
    CHECK_OK(quire_collect(w->f.memory, NULL)); /* now it waits for its own stream alone */
    CHECK_EQ(place_at(w, ON(w, w->a, .size = KIB)), place);
}

CASE(a_capture_stream_keeps_ranges_freed_on_it_for_itself)
{
    quire_stream *graph = make_capturing(w);
    quire_allocation first = ON(w, graph, .size = KIB), second = ON(w, graph, .size = KIB);
    uint64_t places[2] = {place_at(w, first), place_at(w, second)};
    CHECK_OK(quire_free(w->f.memory, first)); /* any kind of free */
    CHECK_OK(quire_free_on_stream(w->f.memory, second, graph));
    CHECK_OK(quire_collect(w->f.memory, NULL));
    quire_allocation other = ALLOCATE(&w->f, .size = KIB), on_a = ON(w, w->a, .size = KIB);
    for (int i = 0; i < 2; i++)
        CHECK(place_at(w, other) != places[i] && place_at(w, on_a) != places[i]);
    quire_allocation again[2] = {ON(w, graph, .size = KIB), ON(w, graph, .size = KIB)};
    for (int i = 0; i < 2; i++)
        CHECK(place_at(w, again[i]) == places[0] || place_at(w, again[i]) == places[1]);
    CHECK(place_at(w, again[0]) != place_at(w, again[1]));
    CHECK_OK(quire_stream_destroy(&graph));
    fixture_info(&w->f, again[0]); /* live without the stream */
    CHECK_OK(quire_free(w->f.memory, again[0]));
    CHECK_OK(quire_free(w->f.memory, again[1]));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
}

CASE(a_capture_stream_keeps_ranges_freed_on_another_stream_once_that_has_passed)
{
    quire_stream *graph = make_capturing(w);
    quire_allocation first = ON(w, graph, .size = KIB);
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK(place_at(w, ON(w, graph, .size = KIB)) != place); /* the work of the stream continues */
    CHECK_OK(quire_collect(w->f.memory, NULL));
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK(place_at(w, ON(w, w->a, .size = KIB)) != place);
    CHECK_EQ(place_at(w, ON(w, graph, .size = KIB)), place);
    CHECK_OK(quire_stream_destroy(&graph));
}

CASE(a_capture_stream_keeps_pages_until_it_is_destroyed)
{
    quire_stream *graph = make_capturing(w);
    uint64_t released = 1;
    CHECK_OK(quire_free(w->f.memory, ON(w, graph, .size = KIB)));
    quire_allocation recorded = ALLOCATE(&w->f, .size = PAGE - KIB);
    CHECK_OK(quire_record_use(w->f.memory, recorded, graph));
    CHECK_OK(quire_free(w->f.memory, recorded));
    CHECK_OK(quire_memory_trim(w->f.memory, 0, &released));
    CHECK_EQ(released, 0);
    CHECK_FAILS(quire_memory_destroy(&w->f.memory), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_stream_destroy(&graph));
    CHECK_OK(quire_memory_trim(w->f.memory, 0, &released));
    CHECK_EQ(released, PAGE);
}

/* ---- each call that allocates --------------------------------------------------------------- */

CASE(a_reservation_reuses_and_is_committed)
{
    quire_allocation first = ON(w, w->a, .size = KIB), again;
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    const quire_allocation_options options = {.size = KIB, .name = "kept", .stream = w->a};
    CHECK_OK(quire_reserve(w->f.memory, &options, &again));
    CHECK_EQ(place_at(w, again), place);
    CHECK_FAILS(quire_free(w->f.memory, again), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_commit(w->f.memory, again));
    CHECK_OK(quire_free_on_stream(w->f.memory, again, w->a));
    CHECK_OK(quire_reserve(w->f.memory, &options, &again));
    CHECK_EQ(place_at(w, again), place);
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
        sum += place_at(w, made[i]);
        CHECK_OK(quire_free_on_stream(w->f.memory, made[i], w->a));
    }
    CHECK_OK(quire_allocate_batch(w->f.memory, &options, again, COUNT));
    for (int i = 0; i < COUNT; i++)
        sum -= place_at(w, again[i]);
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
    uint64_t place = place_at(w, first);
    uint32_t chosen = 0;
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK_OK(quire_allocate_fallback(
        memories, 2, &(quire_allocation_options){.size = KIB, .stream = w->a}, &chosen, &again));
    CHECK_EQ(chosen, 1);
    CHECK_EQ(place_at(w, again), place);
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
UNIT_ON(deferred_reuse, the_stream_may_be_of_another_device, bench, w, begin(w), end)
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
