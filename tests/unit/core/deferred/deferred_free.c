/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_free.c - frees that wait for points: when the range is free again, what statistics
 * report before, and memories, streams and devices that are destroyed or lost while frees wait.
 */
#include <stdio.h>

#include "tests/support/deferred_free.h"

#define CASE(name) UNIT_ON(deferred_free, name, bench, w, begin(w), end)

CASE(a_range_is_free_again_after_its_point_has_passed)
{
    quire_allocation first = ALLOCATE(&w->f, .size = KIB);
    quire_point point = mark(w->a);
    CHECK_OK(quire_free_after_point(w->f.memory, first, &point));
    quire_memory_stats stats = fixture_stats(&w->f);
    CHECK_EQ(stats.deferred_count, 1);
    CHECK_EQ(stats.deferred_bytes, KIB);
    CHECK_EQ(stats.live_bytes, KIB);
    CHECK_EQ(stats.allocation_count, 1);
    CHECK_EQ(collect(w), 0);
    quire_allocation second = ALLOCATE(&w->f, .size = KIB);
    CHECK_EQ(fixture_info(&w->f, second).offset,
             KIB); /* not in the place of the first, which still waits */
    streams_pass(w->a);
    CHECK_EQ(collect(w), KIB);
    CHECK_EQ(waiting(w), 0);
    CHECK_EQ(fixture_info(&w->f, ALLOCATE(&w->f, .size = KIB)).offset, 0);
}

CASE(a_deferred_free_without_a_pending_point_is_a_free)
{
    quire_point point = mark(w->a);
    bool has_passed = false;
    streams_pass(w->a);
    CHECK_OK(quire_point_has_passed(&point, &has_passed));
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &point));
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &(quire_point){0}));
    CHECK_EQ(waiting(w), 0);
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 0);
}

/* ---- several frees ------------------------------------------------------------------------ */

CASE(many_frees_on_a_stream_take_one_mark)
{
    enum { MANY = 40 };
    for (int i = 0; i < MANY; i++)
        CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    uint64_t marks = streams_state()->marks;
    CHECK(marks <= 1); /* to find out whether it can be marked */
    CHECK_EQ(collect(w), 0);
    CHECK_EQ(streams_state()->marks, marks + 1);
    CHECK_EQ(collect(w), 0);
    CHECK_EQ(streams_state()->marks, marks + 1);
    streams_pass(w->a);
    CHECK_EQ(collect(w), MANY * KIB);
}

CASE(ranges_with_passed_points_are_used_before_a_page_is_created)
{
    quire_allocation whole = ALLOCATE(&w->f, .size = PAGE);
    CHECK_OK(quire_free_on_stream(w->f.memory, whole, w->a));
    CHECK_EQ(w->f.fake.pages, 1);
    collect(w);
    streams_pass(w->a);
    ALLOCATE(&w->f, .size = KIB);
    CHECK_EQ(w->f.fake.pages, 1);
    CHECK_EQ(waiting(w), 0);
}

CASE(a_page_with_waiting_frees_is_not_empty)
{
    uint64_t released = 1;
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    CHECK_OK(quire_memory_trim(w->f.memory, 0, &released));
    CHECK_EQ(released, 0);
    CHECK_EQ(w->f.fake.pages, 1);
    collect(w);
    streams_pass(w->a);
    collect(w);
    CHECK_OK(quire_memory_trim(w->f.memory, 0, &released));
    CHECK_EQ(released, PAGE);
}

/* ---- recorded uses ------------------------------------------------------------------------ */

/* Not for work that a stream gets while another one is awaited. */
CASE(a_free_with_several_uses_marks_every_stream_at_once)
{
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    CHECK_OK(quire_record_use(w->f.memory, used, w->a));
    CHECK_OK(quire_record_use(w->f.memory, used, w->b));
    CHECK_OK(quire_free(w->f.memory, used));
    const uint64_t a = mark(w->a).value - 1, b = mark(w->b).value - 1; /* the marks of the free */
    streams_pass_to(w->a, a);
    streams_pass_to(w->b, b);
    CHECK_EQ(collect(w), KIB);
}

CASE(a_free_on_one_stream_sets_no_mark)
{
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    CHECK_OK(quire_record_use(w->f.memory, used, w->a));
    uint64_t before = streams_state()->marks;
    CHECK_OK(quire_free_on_stream(w->f.memory, used, w->a));
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->b));
    CHECK_EQ(streams_state()->marks, before + 1); /* w->b is marked for the first time */
}

/* A stream that cannot be marked now, such as one that captures a graph, is marked later. */
CASE(a_mark_that_fails_at_the_free_is_set_later)
{
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    CHECK_OK(quire_record_use(w->f.memory, used, w->a));
    CHECK_OK(quire_record_use(w->f.memory, used, w->b));
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    CHECK_FAILS(quire_free(w->f.memory, (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%s", quire_last_error());
    CHECK_OK(quire_free(w->f.memory, used));
    CHECK(!strcmp(sentence, quire_last_error()));
    streams_state()->mark_answers = QUIRE_SUCCESS;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(collect(w), 0);
        streams_pass(w->a);
        streams_pass(w->b);
    }
    CHECK_EQ(collect(w), KIB);
}

CASE(a_recorded_use_stays_when_the_name_is_removed)
{
    quire_allocation used = ALLOCATE(&w->f, .size = KIB, .name = "name");
    CHECK_OK(quire_record_use(w->f.memory, used, w->a));
    CHECK_OK(quire_allocation_set_name(w->f.memory, used, NULL));
    CHECK_OK(quire_allocation_set_name(w->f.memory, used, "other"));
    CHECK_OK(quire_allocation_set_name(w->f.memory, used, NULL));
    CHECK_OK(quire_free(w->f.memory, used));
    CHECK_EQ(waiting(w), 1);
}

CASE(a_memory_is_busy_while_a_free_waits)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    CHECK_FAILS(quire_memory_destroy(&w->f.memory), QUIRE_ERROR_BUSY);
    CHECK(w->f.memory && strstr(quire_last_error(), "wait"));
    streams_pass(w->a);
    CHECK_OK(quire_memory_destroy(&w->f.memory)); /* the call itself checks the point */
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
}

CASE(a_memory_is_destroyed_though_the_backend_answers_nothing)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->asked_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->awaited_answers = QUIRE_ERROR_BACKEND_FAILURE;
    quire_memory_destroy_all(&w->f.memory);
    CHECK_EQ(w->f.fake.pages, 0);
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
