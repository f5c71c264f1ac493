/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_failure.c - deferred frees if the backend fails, if points are later than all submitted
 * work, or if a stream is destroyed while other threads use it.
 */
#include <pthread.h>
#include <time.h>

#include "tests/support/deferred_free.h"
#include "tests/support/on_stream.h"

static void free_one_on(bench *w, quire_stream *stream)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), stream));
}

#define CASE(name) UNIT_ON(deferred_failure, name, bench, w, begin(w), end)

/* ---- a backend that fails ----------------------------------------------------------------- */

CASE(a_free_whose_stream_cannot_be_marked_still_waits)
{
    uint64_t released = 1;
    for (int i = 0; i < 3; i++)
        mark(w->a);
    free_one_on(w, w->a);
    streams_pass(w->a); /* all marks up to here; the free comes after them */
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    for (int i = 0; i < 2; i++) {
        CHECK_FAILS(quire_collect(w->f.memory, &released), QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_EQ(released, 0);
        CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
    }
    streams_state()->mark_answers = QUIRE_SUCCESS;
    CHECK_EQ(collect(w), 0);
    streams_pass(w->a);
    CHECK_EQ(collect(w), KIB);
}

CASE(a_destroyed_memory_awaits_marked_points_if_the_rest_cannot_be_marked)
{
    quire_point point = mark(w->a);
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &point));
    free_one_on(w, w->a);
    streams_state()->mark_answers = QUIRE_ERROR_BACKEND_FAILURE;
    streams_state()->await_passes = true;
    quire_memory_destroy_all(&w->f.memory);
    CHECK_EQ(streams_state()->awaited, 1);
}

CASE(frees_on_a_lost_device_complete)
{
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    streams_state()->mark_answers = QUIRE_ERROR_DEVICE_LOST;
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB),
                                  w->a)); /* never marked until now */
    CHECK_STR(quire_last_error(), "");
    CHECK_OK(quire_record_use(w->f.memory, used, w->a));
    CHECK_OK(quire_free(w->f.memory, used));
    CHECK_EQ(fixture_stats(&w->f).allocation_count, 0);
}

static void announce_only(bench *w, uint64_t value)
{
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_OK(quire_stream_announce(w->a, value));
}

CASE(a_use_on_a_stream_does_not_hide_a_later_point_of_it)
{
    announce_only(w, 5);
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    CHECK_OK(quire_record_use(w->f.memory, used, w->a));
    CHECK_OK(quire_free_after_point(w->f.memory, used, &(quire_point){w->a, 10}));
    streams_pass_to(w->a, 5);
    CHECK_EQ(collect(w), 0);
    streams_pass_to(w->a, 10);
    CHECK_EQ(collect(w), KIB);
}

CASE(a_point_that_was_not_announced_blocks_the_reuse_of_the_range)
{
    const quire_allocation_options options = {.size = KIB};
    quire_allocation early, late;
    announce_only(w, 5);
    CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB),
                                    &(quire_point){w->a, 10}));
    CHECK_OK(allocate_on_stream(w->f.memory, &options, w->a, &early)); /* its work may run first */
    CHECK_EQ(fixture_info(&w->f, early).offset, KIB);
    CHECK_OK(quire_stream_announce(w->a, 10));
    CHECK_OK(allocate_on_stream(w->f.memory, &options, w->a, &late));
    CHECK_EQ(fixture_info(&w->f, late).offset, 0);
}

/* ---- streams that are destroyed ----------------------------------------------------------- */

CASE(a_destroyed_stream_is_awaited_once)
{
    quire_memory *other = NULL;
    quire_allocation there;
    CHECK_OK(quire_memory_create(w->f.device, NULL, &other));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = KIB}, &there));
    free_one_on(w, w->a);
    CHECK_OK(quire_free_on_stream(other, there, w->a));
    CHECK_FAILS(quire_stream_destroy(&w->a), QUIRE_ERROR_BUSY);
    CHECK_EQ(streams_state()->awaited, 1); /* one wait of at most a second for all memories */
    streams_state()->await_passes = true;
    quire_memory_destroy_all(&other);
}

CASE(the_device_stays_while_uses_name_a_destroyed_capture_stream_of_it)
{
    fake_backend other;
    quire_device *device = NULL;
    quire_stream *graph = NULL;
    quire_allocation used = ALLOCATE(&w->f, .size = KIB);
    fake_init(&other);
    other.table = w->f.fake.table;
    CHECK_OK(fake_open(&other, unit_memory(), &device));
    CHECK_OK(quire_stream_create(device, &(quire_stream_options){.capture = true}, &graph));
    CHECK_OK(quire_record_use(w->f.memory, used, graph));
    CHECK_OK(quire_stream_destroy(&graph));
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    CHECK(strstr(quire_last_error(), "capture stream"));
    CHECK_OK(quire_free(w->f.memory, used));
    CHECK_OK(quire_device_destroy(&device));
}

/* A thread destroys a stream while the backend answers a query about it by another thread. */
static struct {
    quire_backend inner; /* the table without the hooks */
    quire_stream **stream;
    pthread_t thread;
    quire_result result;
} ending;

static void *end_stream(void *unused)
{
    (void)unused;
    ending.result = quire_stream_destroy(ending.stream);
    return NULL;
}

static void end_during_call(void)
{
    if (!ending.stream || ending.thread)
        return;
    streams_state()->await_passes = true;
    CHECK_EQ(pthread_create(&ending.thread, NULL, end_stream, NULL), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    CHECK_EQ(streams_state()->destroyed, 0); /* a query is still running */
}

static quire_result passed_and_end(void *state, uint64_t stream, uint64_t *value)
{
    end_during_call();
    return ending.inner.stream_passed(state, stream, value);
}

static quire_result mark_and_end(void *state, uint64_t stream, uint64_t *value)
{
    end_during_call();
    return ending.inner.stream_mark(state, stream, value);
}

static void begin_to_end(bench *w, bool at_mark)
{
    prepare(w);
    memset(&ending, 0, sizeof ending);
    ending.inner = w->f.fake.table;
    if (at_mark)
        w->f.fake.table.stream_mark = mark_and_end;
    else
        w->f.fake.table.stream_passed = passed_and_end;
    open_bench(w, &(quire_memory_options){.pages = {.page_size = PAGE}});
}

static void collect_and_end(bench *w)
{
    ending.stream = &w->a;
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_EQ(pthread_join(ending.thread, NULL), 0);
    CHECK_OK(ending.result);
    CHECK_EQ(streams_state()->destroyed, 1);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
    end(w);
}

UNIT_ON(deferred_failure, a_stream_is_destroyed_after_a_running_query, bench, w,
        begin_to_end(w, false), collect_and_end)
{
    free_one_on(w, w->a);
    CHECK_EQ(collect(w), 0); /* marked, but not passed */
}

UNIT_ON(deferred_failure, a_stream_is_destroyed_after_a_running_mark, bench, w,
        begin_to_end(w, true), collect_and_end)
{
    free_one_on(w, w->a);
}
