/*
 * deferred_reuse_streams.c - ranges that one stream freed and another one allocates: they are
 * reused after their points. A capture stream keeps its own ranges.
 */
#include "tests/support/deferred_reuse.h"

#define CASE(name) UNIT_ON(deferred_reuse_streams, name, bench, w, begin(w), end)

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
    uint64_t place = place_of(w, first);
    CHECK_OK(quire_record_use(w->f.memory, first, w->b));
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK(place_of(w, ON(w, w->a, .size = KIB)) != place);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    streams_pass(w->b);
    CHECK_OK(quire_collect(w->f.memory, NULL)); /* now it waits for its own stream alone */
    CHECK_EQ(place_of(w, ON(w, w->a, .size = KIB)), place);
}

CASE(a_capture_stream_keeps_ranges_freed_on_it_for_itself)
{
    quire_stream *graph = make(w, true);
    quire_allocation first = ON(w, graph, .size = KIB), second = ON(w, graph, .size = KIB);
    uint64_t places[2] = {place_of(w, first), place_of(w, second)};
    CHECK_OK(quire_free(w->f.memory, first)); /* any kind of free */
    CHECK_OK(quire_free_on_stream(w->f.memory, second, graph));
    CHECK_OK(quire_collect(w->f.memory, NULL));
    quire_allocation other = ALLOCATE(&w->f, .size = KIB), on_a = ON(w, w->a, .size = KIB);
    for (int i = 0; i < 2; i++)
        CHECK(place_of(w, other) != places[i] && place_of(w, on_a) != places[i]);
    quire_allocation again[2] = {ON(w, graph, .size = KIB), ON(w, graph, .size = KIB)};
    for (int i = 0; i < 2; i++)
        CHECK(place_of(w, again[i]) == places[0] || place_of(w, again[i]) == places[1]);
    CHECK(place_of(w, again[0]) != place_of(w, again[1]));
    CHECK_OK(quire_stream_destroy(&graph));
    fixture_info(&w->f, again[0]); /* live without the stream */
    CHECK_OK(quire_free(w->f.memory, again[0]));
    CHECK_OK(quire_free(w->f.memory, again[1]));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
}

CASE(a_capture_stream_keeps_ranges_freed_on_another_stream_once_that_has_passed)
{
    quire_stream *graph = make(w, true);
    quire_allocation first = ON(w, graph, .size = KIB);
    uint64_t place = place_of(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK(place_of(w, ON(w, graph, .size = KIB)) != place); /* the work of the stream continues */
    CHECK_OK(quire_collect(w->f.memory, NULL));
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK(place_of(w, ON(w, w->a, .size = KIB)) != place);
    CHECK_EQ(place_of(w, ON(w, graph, .size = KIB)), place);
    CHECK_OK(quire_stream_destroy(&graph));
}

CASE(a_capture_stream_keeps_pages_until_it_is_destroyed)
{
    quire_stream *graph = make(w, true);
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
