/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream_point.c - which points a caller may use: if quire marks a stream, those up to its last
 * mark; if the stream's owner signals its values, later ones too.
 */
#include "quire/host.h"
#include "tests/support/deferred_free.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

static uint64_t marked(quire_stream *stream)
{
    quire_stream_info info;
    CHECK_OK(quire_stream_get_info(stream, &info));
    return info.marked;
}

#define CASE(name) UNIT_ON(stream_point, name, bench, w, begin(w), end)

/* Every call with a point refuses this one, makes no backend call and changes nothing. */
static void expect_refused(bench *w, quire_point point)
{
    bool has_passed = true;
    quire_allocation live = ALLOCATE(&w->f, .size = KIB);
    CHECK_FAILS(quire_free_after_point(w->f.memory, live, &point), INVALID);
    CHECK_HAS(quire_last_error(), "was never marked");
    CHECK_FAILS(quire_stream_wait(w->b, &point), INVALID);
    CHECK_FAILS(quire_point_has_passed(&point, &has_passed), INVALID);
    CHECK(!has_passed);
    CHECK_FAILS(quire_point_await(&point, 0), INVALID);
    CHECK_FAILS(quire_point_await(&point, QUIRE_FOREVER), INVALID);
    CHECK_EQ(streams_state()->orders + streams_state()->awaited + streams_state()->asked, 0);
    CHECK_EQ(fixture_info(&w->f, live).size, KIB); /* it is live */
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
    CHECK_OK(quire_free(w->f.memory, live));
}

CASE(beyond_the_last_mark_is_refused_by_every_call)
{
    mark(w->a);
    quire_point last = mark(w->a), beyond = {w->a, last.value + 1};
    expect_refused(w, beyond);
    expect_refused(w, (quire_point){w->a, UINT64_MAX});
    CHECK_EQ(marked(w->a), last.value); /* the refusals did not mark the stream */
    CHECK_OK(quire_stream_wait(w->b, &last));
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &last));
    CHECK_EQ(mark(w->a).value, beyond.value);
    CHECK_OK(quire_stream_wait(w->b, &beyond)); /* a valid point now */
}

/* The first query about a stream that was never marked is who marks it, which needs a mark. */
CASE(of_a_stream_that_was_never_marked_is_refused)
{
    expect_refused(w, (quire_point){w->a, 1});
}

CASE(that_cannot_be_checked_fails_as_the_backend_does)
{
    quire_point point = {w->a, 1};
    quire_allocation live = ALLOCATE(&w->f, .size = KIB);
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    CHECK_FAILS(quire_free_after_point(w->f.memory, live, &point), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_point_await(&point, 0), QUIRE_ERROR_BACKEND_FAILURE);
    streams_state()->mark_answers = QUIRE_ERROR_DEVICE_LOST; /* every point has passed */
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_free_after_point(w->f.memory, live, &point));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
}

CASE(of_a_signalling_owner_may_be_later_than_any_announced)
{
    quire_point later = {w->a, 40};
    bool has_passed = true;
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    for (int announces = 0; announces < 2; announces++) {
        CHECK_OK(quire_point_has_passed(&later, &has_passed));
        CHECK(!has_passed);
        CHECK_FAILS(quire_point_await(&later, 5), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_stream_wait(w->b, &later));
        CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &later));
        CHECK_OK(quire_stream_announce(w->a, 30));
    }
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 2);
    streams_pass_to(w->a, 40);
    CHECK_OK(quire_point_await(&later, 0));
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
}

CASE(of_a_capture_stream_is_its_only_point)
{
    quire_stream *held = NULL;
    CHECK_OK(quire_stream_create(w->f.device, &(quire_stream_options){.capture = true}, &held));
    quire_point point = mark(held);
    expect_refused(w, (quire_point){held, point.value + 1});
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &point));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
    CHECK_OK(quire_stream_destroy(&held));
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
}

/* Calls of the backend's table without the core. */
UNIT(stream_point, beyond_all_submitted_work_is_refused_by_the_host_backend_too)
{
    quire_device *device = NULL;
    quire_stream *a = NULL, *b = NULL;
    bool has_passed = true;
    const quire_host_options options = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&options, &device));
    CHECK_OK(quire_stream_create(device, NULL, &a));
    CHECK_OK(quire_stream_create(device, NULL, &b));
    const quire_backend *table = quire_device_backend(device);
    void *state = quire_device_state(device);
    CHECK_EQ(table->stream_order(state, quire_stream_native(a), quire_stream_native(b), 1000),
             INVALID);
    CHECK_EQ(table->stream_await(state, quire_stream_native(b), 1000, QUIRE_FOREVER, &has_passed),
             INVALID);
    CHECK(!has_passed);
    CHECK_OK(quire_stream_destroy(&a));
    CHECK_OK(quire_stream_destroy(&b));
    CHECK_OK(quire_device_destroy(&device));
}
