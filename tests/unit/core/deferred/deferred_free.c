/*
 * deferred_free.c - frees that wait for points: when the range is free again, and what statistics
 * and events report before. Destruction is in deferred_free_end.c.
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
