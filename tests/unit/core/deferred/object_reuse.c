/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object_reuse.c - buffers and images in the order of a stream: which freed ranges they reuse, when
 * the old native object is destroyed, and what a failure leaves behind.
 */
#include "quire/backend.h"
#include "tests/support/deferred_reuse.h"

static quire_allocation buffer_on(bench *w, quire_stream *stream,
                                  const quire_buffer_options *options)
{
    quire_buffer buffer;
    quire_buffer_options on = *options;
    on.stream = stream;
    CHECK_OK(quire_buffer_create(w->f.memory, &on, &buffer));
    CHECK_OK(quire_memory_check(w->f.memory));
    return buffer.allocation;
}

#define BUFFER_ON(w, stream, ...) buffer_on((w), (stream), &(quire_buffer_options){__VA_ARGS__})

/* Frees on stream `a`, and returns where the allocation lay. */
static uint64_t free_on_a(bench *w, quire_allocation allocation)
{
    uint64_t place = place_at(w, allocation);
    CHECK_OK(quire_free_on_stream(w->f.memory, allocation, w->a));
    CHECK_OK(quire_memory_check(w->f.memory));
    return place;
}

/* Everything freed so far passes on stream `a` and is released. */
static void pass_a(bench *w)
{
    CHECK_OK(quire_collect(w->f.memory, NULL)); /* sets the mark */
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_OK(quire_memory_check(w->f.memory));
}

UNIT(object_reuse, a_buffer_takes_the_range_of_a_buffer_whose_object_is_destroyed_later)
{
    bench w;
    begin(&w);
    uint64_t place = free_on_a(&w, BUFFER_ON(&w, NULL, .size = KIB, .name = "old"));
    quire_allocation again =
        BUFFER_ON(&w, w.a, .size = KIB, .usage = QUIRE_USAGE_VERTEX, .user_data = 5);
    CHECK_EQ(place_at(&w, again), place);
    quire_buffer_info info;
    char name[8];
    CHECK_OK(quire_buffer_get_info(w.f.memory, (quire_buffer){again}, &info));
    CHECK_EQ(info.usage, QUIRE_USAGE_VERTEX);
    CHECK_EQ(info.place.user_data, 5);
    CHECK_OK(quire_allocation_get_name(w.f.memory, again, name, sizeof name));
    CHECK_STR(name, "");
    quire_memory_stats stats = fixture_stats(&w.f);
    CHECK_EQ(stats.allocation_count, 1);
    CHECK_EQ(stats.deferred_count, 0); /* the old object is no allocation */
    quire_stream_info of_a;
    CHECK_OK(quire_stream_get_info(w.a, &of_a));
    CHECK_EQ(of_a.deferred, 1);
    CHECK_EQ(stats.deferred_bytes, 0);
    CHECK_EQ(w.f.fake.objects, 2);
    pass_a(&w);
    CHECK_EQ(w.f.fake.objects, 1);
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 0);
    end(&w);
    CHECK_EQ(w.f.fake.objects, 0);
}

#define CASE(name) UNIT_ON(object_reuse, name, bench, w, begin(w), end)

CASE(raw_ranges_and_objects_take_each_others_ranges)
{
    uint64_t place = free_on_a(w, BUFFER_ON(w, NULL, .size = KIB, .name = "old"));
    quire_allocation raw = ON(w, w->a, .size = KIB, .user_data = 9);
    CHECK_EQ(place_at(w, raw), place);
    CHECK_EQ(fixture_info(&w->f, raw).object, QUIRE_OBJECT_NONE);
    CHECK_EQ(fixture_info(&w->f, raw).user_data, 9);
    CHECK_EQ(fixture_info(&w->f, raw).native, 0);
    CHECK_EQ(free_on_a(w, raw), place);
    quire_allocation named = ON(w, w->a, .size = KIB, .name = "raw"); /* not on the short way */
    CHECK_EQ(free_on_a(w, named), place);
    CHECK_EQ(free_on_a(w, BUFFER_ON(w, w->a, .size = KIB, .name = "new")), place);
    named = ON(w, w->a, .size = KIB, .name = "raw");
    CHECK_EQ(place_at(w, named), place);
    CHECK_EQ(w->f.fake.objects, 2);
    pass_a(w);
    CHECK_EQ(w->f.fake.objects, 0);
}

CASE(another_stream_takes_over_after_the_point)
{
    CHECK_OK(quire_memory_set_limit(w->f.memory, PAGE));
    quire_allocation whole = BUFFER_ON(w, NULL, .size = PAGE - KIB);
    uint64_t place = free_on_a(w, whole);
    CHECK_EQ(place_at(w, BUFFER_ON(w, w->b, .size = PAGE - KIB)), place);
    CHECK_EQ(streams_state()->orders, 1);
    CHECK_EQ(w->f.fake.objects, 2);
    pass_a(w);
    CHECK_EQ(w->f.fake.objects, 1);
}

CASE(the_requirements_of_the_backend_hold)
{
    ON(w, NULL, .size = KIB); /* the next range begins at 1 KiB of the page */
    uint64_t place = free_on_a(w, BUFFER_ON(w, NULL, .size = KIB));
    const quire_requirements usual = w->f.fake.object_needs;
    w->f.fake.object_needs.alignment = 2 * KIB;
    CHECK(place_at(w, BUFFER_ON(w, w->a, .size = KIB)) != place);
    w->f.fake.object_needs = usual;
    w->f.fake.object_needs.size = 2 * KIB;
    CHECK(place_at(w, BUFFER_ON(w, w->a, .size = KIB)) != place);
    w->f.fake.object_needs = usual;
    CHECK(place_at(w, BUFFER_ON(w, w->a, .size = KIB / 2)) != place); /* too large a range */
    CHECK(place_at(w, BUFFER_ON(w, w->a, .size = KIB, .zero = true)) != place);
    CHECK_EQ(place_at(w, BUFFER_ON(w, w->a, .size = KIB)), place);
}

CASE(tied_pages_are_not_reused_and_dedicated_ones_are)
{
    w->f.fake.object_needs.dedicated = true;
    quire_allocation tied = BUFFER_ON(w, NULL, .size = KIB);
    free_on_a(w, tied);
    free_on_a(w, BUFFER_ON(w, w->a, .size = KIB)); /* a page of its own */
    CHECK_EQ(w->f.fake.pages, 2);
    w->f.fake.object_needs.dedicated = false;
    quire_allocation shared = BUFFER_ON(w, w->a, .size = KIB, .dedicated = true);
    CHECK_EQ(w->f.fake.pages, 3);
    uint64_t place = free_on_a(w, shared);
    CHECK_EQ(place_at(w, BUFFER_ON(w, w->a, .size = KIB, .dedicated = true)), place);
    CHECK_EQ(w->f.fake.pages, 3);
}

CASE(an_object_of_the_caller_is_not_destroyed)
{
    const uint64_t size = KIB;
    quire_allocation made;
    CHECK_OK(quire_object_create(w->f.memory,
                                 &(quire_object_options){.object = QUIRE_OBJECT_BUFFER,
                                                         .description = &size,
                                                         .borrowed = true},
                                 &made));
    uint64_t native = fixture_info(&w->f, made).native, place = free_on_a(w, made);
    CHECK_EQ(place_at(w, ON(w, w->a, .size = KIB)), place);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
    pass_a(w);
    CHECK_EQ(w->f.fake.objects, 1);
    w->f.fake.table.object_destroy(&w->f.fake, QUIRE_OBJECT_BUFFER, native);
}

/* An object of the backend's own description reuses a range and describes itself. */
UNIT(object_reuse, described_objects_take_ranges_of_their_stream)
{
    for (int image = 0; image < 2; image++) {
        bench w;
        const uint64_t size = KIB;
        quire_allocation made;
        quire_allocation_info first, again;
        char name[8];
        begin(&w);
        quire_object_options options = {.object = image ? QUIRE_OBJECT_IMAGE : QUIRE_OBJECT_BUFFER,
                                        .description = &size,
                                        .name = "own",
                                        .stream = w.a,
                                        .info = &first};
        CHECK_OK(quire_object_create(w.f.memory, &options, &made));
        CHECK_EQ(first.offset, fixture_info(&w.f, made).offset);
        CHECK_EQ(first.native, fixture_info(&w.f, made).native);
        CHECK(first.native != 0);
        free_on_a(&w, made);
        options.info = &again;
        CHECK_OK(quire_object_create(w.f.memory, &options, &made));
        CHECK_EQ(again.offset, first.offset);
        CHECK_EQ(again.page, first.page);
        CHECK(again.native != first.native);
        CHECK_OK(quire_allocation_get_name(w.f.memory, made, name, sizeof name));
        CHECK_STR(name, "own");
        CHECK_OK(quire_memory_check(w.f.memory));
        free_on_a(&w, made);
        options.stream = NULL;
        options.info = &first;
        CHECK_OK(quire_object_create(w.f.memory, &options, &made));
        CHECK(first.offset != again.offset); /* not on the stream */
        options.alignment = 3;
        CHECK_FAILS(quire_object_create(w.f.memory, &options, &made), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(first.native, 0);
        CHECK_EQ(first.size, 0);
        pass_a(&w);
        CHECK_EQ(w.f.fake.objects, 1);
        end(&w);
        CHECK_EQ(w.f.fake.objects, 0);
    }
}

static bool count_allocations(void *user, const quire_item *item)
{
    *(uint64_t *)user += !item->is_free;
    return true;
}

/* The range is free before the old object is destroyed. */
UNIT_EACH(object_reuse, the_page_stays_until_the_object_is_destroyed, bench, w, dedicated, 0, 2,
          begin(w), end)
{
    free_on_a(w, BUFFER_ON(w, NULL, .size = KIB, .dedicated = dedicated));
    CHECK_OK(quire_free(w->f.memory, ON(w, w->a, .size = KIB, .dedicated = dedicated)));
    uint64_t trimmed = 0;
    quire_page_info page;
    CHECK_OK(quire_memory_trim(w->f.memory, 0, &trimmed));
    CHECK_EQ(trimmed, 0);
    CHECK_EQ(w->f.fake.pages, 1);
    CHECK_OK(quire_page_get_info(w->f.memory, 0, &page));
    CHECK_EQ(page.allocation_count, 0);
    CHECK_EQ(page.live_bytes, 0);
    uint64_t items = 0;
    CHECK_OK(quire_memory_check(w->f.memory));
    CHECK_OK(quire_memory_walk(w->f.memory, count_allocations, &items));
    CHECK_EQ(items, 0);
    CHECK_FAILS(quire_memory_destroy(&w->f.memory), QUIRE_ERROR_BUSY);
    pass_a(w);
    CHECK_EQ(w->f.fake.objects, 0);
    CHECK_OK(quire_memory_trim(w->f.memory, 0, NULL));
    CHECK_EQ(w->f.fake.pages, 0);
}

CASE(the_stream_is_not_destroyed_before_the_object)
{
    free_on_a(w, BUFFER_ON(w, NULL, .size = KIB));
    BUFFER_ON(w, w->a, .size = KIB);
    quire_stream *stream = w->a;
    CHECK_FAILS(quire_stream_destroy(&w->a), QUIRE_ERROR_BUSY);
    CHECK(w->a == stream);
    CHECK_EQ(w->f.fake.objects, 2);
    streams_pass(w->a);
    CHECK_OK(quire_stream_destroy(&w->a));
    CHECK_EQ(w->f.fake.objects, 1);
    w->a = make(w, NULL);
}

CASE(a_capture_stream_keeps_objects_for_its_graph)
{
    quire_stream *graph = make_capturing(w);
    quire_allocation first = BUFFER_ON(w, graph, .size = KIB, .name = "graph");
    uint64_t place = place_at(w, first);
    CHECK_OK(quire_free(w->f.memory, first)); /* the recorded use keeps it for the graph */
    CHECK(place_at(w, BUFFER_ON(w, w->a, .size = KIB)) != place);
    quire_allocation second = BUFFER_ON(w, graph, .size = KIB);
    CHECK_EQ(place_at(w, second), place);
    CHECK_EQ(w->f.fake.objects, 3);
    CHECK_OK(quire_free(w->f.memory, second));
    CHECK_OK(quire_stream_destroy(&graph));
    CHECK_EQ(w->f.fake.objects, 1);
    CHECK_OK(quire_memory_check(w->f.memory));
}

CASE(a_failed_binding_leaves_the_free_waiting)
{
    CHECK_OK(quire_memory_set_name_limit(w->f.memory, "o", 100 * KIB));
    quire_allocation old = BUFFER_ON(w, NULL, .size = KIB, .name = "old", .user_data = 3);
    uint64_t place = free_on_a(w, old);
    quire_memory_stats before = fixture_stats(&w->f);
    quire_buffer none = {{77}};
    w->f.fake.fail_at = w->f.fake.fallible_calls + 2; /* after the creation */
    w->f.fake.fail_with = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    CHECK_FAILS(quire_buffer_create(w->f.memory,
                                    &(quire_buffer_options){.size = KIB, .stream = w->a}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(w->f.fake.failed_call, FAKE_OBJECT_BIND);
    CHECK_EQ(none.allocation.id, 0);
    CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_stats after = fixture_stats(&w->f);
    CHECK_EQ(after.deferred_count, before.deferred_count);
    CHECK_EQ(after.deferred_bytes, before.deferred_bytes);
    CHECK_EQ(after.allocations, before.allocations);
    CHECK_EQ(after.requested_bytes, before.requested_bytes);
    CHECK_EQ(w->f.fake.objects, 1);
    CHECK_FAILS(quire_free(w->f.memory, old), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(place_at(w, BUFFER_ON(w, w->a, .size = KIB)), place);
}

CASE(a_refused_name_leaves_the_free_waiting)
{
    CHECK_OK(quire_memory_set_name_limit(w->f.memory, "x", 100));
    uint64_t place = free_on_a(w, BUFFER_ON(w, NULL, .size = KIB, .name = "old"));
    quire_buffer none;
    CHECK_FAILS(
        quire_buffer_create(
            w->f.memory, &(quire_buffer_options){.size = KIB, .name = "xy", .stream = w->a}, &none),
        QUIRE_ERROR_OVER_BUDGET);
    CHECK_OK(quire_memory_check(w->f.memory));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
    CHECK_EQ(w->f.fake.objects, 1);
    CHECK_EQ(place_at(w, BUFFER_ON(w, w->a, .size = KIB)), place);
}
