/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - streams and points by themselves: what the backend is queried for and what is known
 * without, which streams can be ordered, and what each wrong call returns.
 */
#include "tests/support/deferred_free.h"

#define CASE(name) UNIT_ON(stream, name, bench, w, begin(w), end)

CASE(marks_grow_and_pass_in_order)
{
    quire_point first = mark(w->a), second = mark(w->a);
    CHECK(first.value < second.value && first.stream == w->a);
    CHECK(!has_passed(first));
    streams_pass_to(w->a, first.value);
    CHECK(has_passed(first) && !has_passed(second));
    CHECK_FAILS(quire_point_await(&second, 5), QUIRE_ERROR_BUSY);
    CHECK_EQ(streams_state()->last_nanoseconds, 5);
    streams_pass(w->a);
    CHECK_OK(quire_point_await(&second, QUIRE_FOREVER));
    CHECK_OK(quire_stream_destroy(&w->a));
    CHECK(!w->a && streams_state()->destroyed == 1);
}

/* The backend's own function, and the variable that the caller destroys the stream by. */
static struct {
    void (*inner)(void *state, uint64_t native);
    quire_stream *stream;
    bool was_set;
} watched;

static void destroy_watched(void *state, uint64_t native)
{
    watched.was_set = watched.stream != NULL;
    watched.inner(state, native);
}

UNIT_ON(stream, the_variable_is_null_when_the_backend_destroys_the_stream, bench, w, prepare(w),
        end)
{
    watched.inner = w->f.fake.table.stream_destroy;
    watched.was_set = true;
    w->f.fake.table.stream_destroy = destroy_watched;
    open_bench(w, NULL);
    watched.stream = make(w, NULL);
    CHECK_OK(quire_stream_destroy(&watched.stream));
    CHECK(!watched.was_set);
}

CASE(passed_points_are_not_queried_again)
{
    quire_point point = mark(w->a);
    streams_pass(w->a);
    CHECK(has_passed(point));
    uint64_t asked = streams_state()->asked;
    for (int i = 0; i < 10; i++)
        CHECK(has_passed(point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK(has_passed((quire_point){0}));
    CHECK_OK(quire_point_await(&(quire_point){0}, 0));
    CHECK(streams_state()->asked == asked && !streams_state()->awaited);
}

CASE(describes_itself)
{
    quire_stream_info info;
    quire_point point = mark(w->a);
    CHECK_OK(quire_stream_get_info(w->a, &info));
    CHECK(!strcmp(info.name, "a") && info.device == w->f.device && !info.capture);
    CHECK(info.native == quire_stream_native(w->a) && info.native);
    CHECK_EQ(info.marked, point.value);
    CHECK_EQ(info.passed, 0);
    CHECK_EQ(info.deferred, 0);
    CHECK_EQ(quire_stream_native(NULL), 0);
}

CASE(waits_for_another_stream_and_not_for_passed_points)
{
    quire_point point = mark(w->b);
    CHECK_OK(quire_stream_wait(w->a, &point));
    CHECK_EQ(streams_state()->after[streams_number(w->a)][streams_number(w->b)], point.value);
    CHECK_OK(quire_stream_wait(w->b, &point)); /* its own point */
    CHECK_OK(quire_stream_wait(w->a, &(quire_point){0}));
    streams_pass(w->b);
    CHECK(has_passed(point));
    CHECK_OK(quire_stream_wait(w->a, &point));
    CHECK_EQ(streams_state()->orders, 1);
}

CASE(whose_owner_signals_accepts_announced_points)
{
    quire_point point;
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_FAILS(quire_stream_mark(w->a, &point), QUIRE_ERROR_UNSUPPORTED);
    CHECK(!point.stream && !point.value);
    CHECK_OK(quire_stream_announce(w->a, 40));
    CHECK_OK(quire_stream_announce(w->a, 30)); /* lower: no effect */
    uint64_t asked = streams_state()->marks;
    CHECK_EQ(mark(w->a).value, 40);
    CHECK_EQ(streams_state()->marks, asked); /* the owner signals: no query is needed */
}

CASE(that_marks_itself_accepts_no_announcement)
{
    CHECK_FAILS(quire_stream_announce(w->a, 40), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_stream_announce(w->a, 0), QUIRE_ERROR_INVALID_ARGUMENT);
}

CASE(wrapped_belongs_to_the_caller)
{
    quire_stream *stream = NULL;
    const uint64_t description = 100;
    CHECK_OK(quire_stream_wrap(w->f.device, &description, "wrapped", &stream));
    CHECK_EQ(mark(stream).value, 101);
    CHECK_OK(quire_stream_destroy(&stream));
}

/* On a backend without streams. */
UNIT_MEMORY(stream, for_capture_has_no_backend_stream_and_passes_nothing, f, 0)
{
    quire_stream *held = NULL, *other = NULL;
    quire_stream_info info;
    CHECK_FAILS(quire_stream_create(f->device, NULL, &other), QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_stream_create(f->device, &(quire_stream_options){.capture = true}, &held));
    quire_point point = mark(held);
    CHECK(!has_passed(point));
    CHECK_FAILS(quire_point_await(&point, QUIRE_FOREVER), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_stream_create(f->device, &(quire_stream_options){.capture = true}, &other));
    CHECK_FAILS(quire_stream_wait(other, &point), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_stream_get_info(held, &info));
    CHECK(info.capture && !info.native);
    CHECK_OK(quire_stream_destroy(&held));
    CHECK_OK(quire_stream_destroy(&other));
}

CASE(of_a_lost_device_has_passed_every_point)
{
    quire_point point = mark(w->a);
    bool passed = false;
    streams_state()->asked_answers = QUIRE_ERROR_DEVICE_LOST;
    CHECK_FAILS(quire_point_has_passed(&point, &passed), QUIRE_ERROR_DEVICE_LOST);
    CHECK(!passed);
    CHECK(has_passed(point)); /* known from the first answer */
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

CASE(keeps_its_device_open)
{
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->b));
    CHECK_FAILS(quire_device_destroy(&w->f.device), QUIRE_ERROR_BUSY);
    CHECK(w->f.device && strstr(quire_last_error(), "'a'"));
    CHECK_OK(quire_stream_destroy(&w->a));
    CHECK_OK(quire_device_destroy(&w->f.device));
    CHECK(w->f.fake.ended);
}

CASE(fails_as_the_backend_does)
{
    quire_stream *stream = NULL;
    quire_point point = mark(w->b);
    streams_state()->create_answers = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    CHECK_FAILS(quire_stream_create(w->f.device, NULL, &stream), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(!stream);
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->order_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->awaited_answers = QUIRE_ERROR_BACKEND_FAILURE;
    CHECK_FAILS(quire_stream_wait(w->a, &point), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_point_await(&point, 1), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_stream_mark(w->a, &point), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(quire_last_native_code(), -7);
}
