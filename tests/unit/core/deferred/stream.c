/*
 * stream.c - streams and points by themselves: what the backend is queried for and what is known
 * without, which streams can be ordered, and what each wrong call returns.
 */
#include "tests/support/fixture.h"
#include "tests/support/stream_steps.h"
#include "tests/support/streams.h"

static void begin(fixture *f)
{
    fixture_prepare(f);
    streams_offer(&f->fake.table);
    fixture_open(f, &(quire_memory_options){0});
}

static quire_stream *make(fixture *f, const char *name)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(f->device, &(quire_stream_options){.name = name}, &stream));
    return stream;
}

#define CASE(name) UNIT_ON(stream, name, fixture, f, begin(f), fixture_end)

CASE(marks_grow_and_pass_in_order)
{
    quire_stream *stream = make(f, "compute");
    quire_point first = mark(stream), second = mark(stream);
    CHECK(first.value < second.value && first.stream == stream);
    bool has_passed = true;
    CHECK_OK(quire_point_has_passed(&first, &has_passed));
    CHECK(!has_passed);
    streams_pass_to(stream, first.value);
    CHECK_OK(quire_point_has_passed(&first, &has_passed));
    CHECK(has_passed);
    CHECK_OK(quire_point_has_passed(&second, &has_passed));
    CHECK(!has_passed);
    CHECK_FAILS(quire_point_await(&second, 5), QUIRE_ERROR_BUSY);
    CHECK_EQ(streams_state()->last_nanoseconds, 5);
    streams_pass(stream);
    CHECK_OK(quire_point_await(&second, QUIRE_FOREVER));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK(!stream && streams_state()->destroyed == 1);
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

UNIT_PREPARED(stream, the_variable_is_null_when_the_backend_destroys_the_stream, f)
{
    streams_offer(&f->fake.table);
    watched.inner = f->fake.table.stream_destroy;
    watched.was_set = true;
    f->fake.table.stream_destroy = destroy_watched;
    fixture_open(f, &(quire_memory_options){0});
    watched.stream = make(f, NULL);
    CHECK_OK(quire_stream_destroy(&watched.stream));
    CHECK(!watched.was_set);
}

CASE(passed_points_are_not_queried_again)
{
    quire_stream *stream = make(f, NULL);
    quire_point point = mark(stream);
    bool has_passed = false;
    streams_pass(stream);
    CHECK_OK(quire_point_has_passed(&point, &has_passed));
    uint64_t asked = streams_state()->asked;
    for (int i = 0; i < 10; i++)
        CHECK_OK(quire_point_has_passed(&point, &has_passed));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK(has_passed && streams_state()->asked == asked && !streams_state()->awaited);
    CHECK_OK(quire_stream_destroy(&stream));
}

UNIT(stream, the_null_point_has_passed)
{
    const quire_point none = {0};
    bool has_passed = false;
    CHECK_OK(quire_point_has_passed(&none, &has_passed));
    CHECK(has_passed);
    CHECK_OK(quire_point_await(&none, 0));
}

CASE(describes_itself)
{
    quire_stream *stream = make(f, "copies");
    quire_stream_info info;
    quire_point point = mark(stream);
    CHECK_OK(quire_stream_get_info(stream, &info));
    CHECK(!strcmp(info.name, "copies") && info.device == f->device && !info.capture);
    CHECK(info.native == quire_stream_native(stream) && info.native);
    CHECK_EQ(info.marked, point.value);
    CHECK_EQ(info.passed, 0);
    CHECK_EQ(info.deferred, 0);
    CHECK_EQ(quire_stream_native(NULL), 0);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(waits_for_another_stream_and_not_for_passed_points)
{
    quire_stream *a = make(f, "a"), *b = make(f, "b");
    quire_point point = mark(b);
    CHECK_OK(quire_stream_wait(a, &point));
    CHECK_EQ(streams_state()->after[streams_number(a)][streams_number(b)], point.value);
    CHECK_OK(quire_stream_wait(b, &point)); /* its own point */
    CHECK_OK(quire_stream_wait(a, &(quire_point){0}));
    CHECK_EQ(streams_state()->orders, 1);
    bool has_passed = false;
    streams_pass(b);
    CHECK_OK(quire_point_has_passed(&point, &has_passed));
    CHECK_OK(quire_stream_wait(a, &point));
    CHECK_EQ(streams_state()->orders, 1);
    CHECK_OK(quire_stream_destroy(&a));
    CHECK_OK(quire_stream_destroy(&b));
}

CASE(whose_owner_signals_accepts_announced_points)
{
    quire_stream *stream = make(f, "timeline");
    quire_point point;
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_FAILS(quire_stream_mark(stream, &point), QUIRE_ERROR_UNSUPPORTED);
    CHECK(!point.stream && !point.value);
    CHECK_OK(quire_stream_announce(stream, 40));
    CHECK_OK(quire_stream_announce(stream, 30)); /* lower: no effect */
    uint64_t asked = streams_state()->marks;
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_EQ(point.value, 40);
    CHECK_EQ(streams_state()->marks, asked); /* the owner signals: no query is needed */
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(that_marks_itself_accepts_no_announcement)
{
    quire_stream *stream = make(f, NULL);
    CHECK_FAILS(quire_stream_announce(stream, 40), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_stream_announce(stream, 0), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(wrapped_belongs_to_the_caller)
{
    quire_stream *stream = NULL;
    const uint64_t description = 100;
    CHECK_OK(quire_stream_wrap(f->device, &description, "wrapped", &stream));
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
    bool has_passed = true;
    CHECK_OK(quire_point_has_passed(&point, &has_passed));
    CHECK(!has_passed);
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
    quire_stream *stream = make(f, NULL);
    quire_point point = mark(stream);
    bool has_passed = false;
    streams_state()->asked_answers = QUIRE_ERROR_DEVICE_LOST;
    CHECK_FAILS(quire_point_has_passed(&point, &has_passed), QUIRE_ERROR_DEVICE_LOST);
    CHECK(!has_passed);
    CHECK_OK(quire_point_has_passed(&point, &has_passed)); /* known from the first answer */
    CHECK(has_passed);
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_stream_destroy(&stream));
}

UNIT(stream, keeps_its_device_open)
{
    fixture f;
    begin(&f);
    quire_stream *stream = make(&f, "keeper");
    quire_memory_destroy_all(&f.memory);
    quire_device *device = f.device;
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    CHECK(device && strstr(quire_last_error(), "keeper"));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_device_destroy(&device));
    CHECK(f.fake.ended);
}

CASE(fails_as_the_backend_does)
{
    quire_stream *stream = NULL, *other = NULL;
    quire_point point;
    streams_state()->create_answers = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    CHECK_FAILS(quire_stream_create(f->device, NULL, &stream), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(!stream);
    streams_state()->create_answers = QUIRE_SUCCESS;
    stream = make(f, NULL);
    other = make(f, NULL);
    point = mark(other);
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->order_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->awaited_answers = QUIRE_ERROR_BACKEND_FAILURE;
    CHECK_FAILS(quire_stream_wait(stream, &point), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_point_await(&point, 1), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_stream_mark(stream, &point), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(quire_last_native_code(), -7);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&other));
}
