/*
 * deferred_free_end.c - deferred frees and destruction: memories, streams and devices that are
 * destroyed or lost while frees wait, and misuse.
 */
#include "tests/support/deferred_free.h"

#define CASE(name) UNIT_ON(deferred_free_end, name, bench, w, begin(w), end)

CASE(a_memory_is_busy_while_a_free_waits)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    CHECK_FAILS(quire_memory_destroy(&w->f.memory), QUIRE_ERROR_BUSY);
    CHECK(w->f.memory && strstr(quire_last_error(), "wait"));
    streams_pass(w->a);
    CHECK_OK(quire_memory_destroy(&w->f.memory)); /* the call itself checks the point */
    CHECK_OK(quire_memory_create(w->f.device, NULL, &w->f.memory));
}

CASE(destroying_a_memory_with_its_allocations_awaits_the_streams)
{
    quire_allocation live = ALLOCATE(&w->f, .size = KIB);
    CHECK_OK(quire_record_use(w->f.memory, live, w->b));
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    streams_state()->await_passes = true;
    quire_memory_destroy_all(&w->f.memory);
    CHECK(streams_state()->awaited >= 2);
    CHECK(streams_state()->last_nanoseconds > UINT64_C(50000000000)); /* out of a minute */
    CHECK_EQ(w->f.fake.pages, 0);
    CHECK_OK(quire_memory_create(w->f.device, NULL, &w->f.memory));
}

CASE(a_memory_is_destroyed_though_the_backend_answers_nothing)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->asked_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->awaited_answers = QUIRE_ERROR_BACKEND_FAILURE;
    quire_memory_destroy_all(&w->f.memory);
    CHECK_EQ(w->f.fake.pages, 0);
    CHECK_OK(quire_memory_create(w->f.device, NULL, &w->f.memory));
}

CASE(a_stream_is_busy_while_a_free_waits_for_it)
{
    quire_stream *c = make(w, &(quire_stream_options){.name = "c"});
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    quire_stream_info info;
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), c));
    CHECK_OK(quire_record_use(w->f.memory, used, c));
    CHECK_OK(quire_stream_get_info(c, &info));
    CHECK_EQ(info.deferred, 2);
    CHECK_FAILS(quire_stream_destroy(&c), QUIRE_ERROR_BUSY);
    CHECK(c && strstr(quire_last_error(), "'c'"));
    streams_state()->await_passes = true;
    CHECK_FAILS(quire_stream_destroy(&c),
                QUIRE_ERROR_BUSY); /* the live allocation was used on it */
    CHECK_EQ(waiting(w), 0);
    CHECK_OK(quire_free(w->f.memory, used));
    CHECK_OK(quire_stream_destroy(&c));
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 0);
}

CASE(a_lost_device_delays_no_free)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->b));
    streams_state()->asked_answers = QUIRE_ERROR_DEVICE_LOST;
    uint64_t released = 0;
    CHECK_FAILS(quire_collect(w->f.memory, &released), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(released, 2 * KIB);
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    CHECK_EQ(waiting(w), 0);
}

CASE(a_failing_stream_does_not_delay_the_others)
{
    quire_point point = mark(w->b);
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &point));
    streams_pass(w->b);
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    uint64_t released = 0;
    CHECK_FAILS(quire_collect(w->f.memory, &released), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(released, KIB);
    CHECK_EQ(waiting(w), 1);
    streams_state()->mark_answers = QUIRE_SUCCESS;
    CHECK_EQ(collect(w), 0);
    streams_pass(w->a);
    CHECK_EQ(collect(w), KIB);
}

CASE(a_stream_that_cannot_be_marked_accepts_no_frees)
{
    quire_allocation live = ALLOCATE(&w->f, .size = KIB);
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_FAILS(quire_free_on_stream(w->f.memory, live, w->a), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_record_use(w->f.memory, live, w->a), QUIRE_ERROR_UNSUPPORTED);
    fixture_info(&w->f, live);
    CHECK_OK(quire_stream_announce(w->a, 9));
    CHECK_OK(quire_free_on_stream(w->f.memory, live, w->a));
    streams_pass_to(w->a, 8);
    CHECK_EQ(collect(w), 0);
    streams_pass_to(w->a, 9);
    CHECK_EQ(collect(w), KIB);
}
