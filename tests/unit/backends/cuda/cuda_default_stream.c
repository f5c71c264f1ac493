/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_default_stream.c - default streams as streams of the CUDA backend, on the fake driver:
 * CU_STREAM_PER_THREAD is that of the thread that wraps it, also for calls of other threads.
 */
#include <pthread.h>

#include "tests/support/cuda_bench.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"

#define PER_THREAD ((void *)(uintptr_t)QI_CU_STREAM_PER_THREAD)
#define NOT_PERMITTED QUIRE_ERROR_NOT_PERMITTED
#define MIB (UINT64_C(1) << 20)

static cuda_bench b;
static quire_memory *memory;
static quire_stream *stream;

/* Work runs when the test advances the clock. */
static void begin_with(void *native)
{
    fc_options options = cuda_bench_options(NULL, FC_LATE);
    cuda_bench_start(&b, &options);
    memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE,
                               &(quire_memory_options){.pages = {.page_size = 2 * MIB}});
    CHECK_OK(quire_cuda_stream_wrap(b.device, native, "own", &stream));
}

static void begin(void)
{
    begin_with(PER_THREAD);
}

static void end(void)
{
    CHECK_EQ(b.fc->message_count(), 0);
    CHECK_OK(quire_stream_destroy(&stream));
    cuda_bench_end(&b);
}

static quire_allocation allocate(quire_stream *in)
{
    quire_allocation made;
    const quire_allocation_options options = {.size = 64 * 1024, .stream = in};
    CHECK_OK(quire_allocate(memory, &options, &made));
    return made;
}

static void fill(quire_allocation a, uint8_t value)
{
    CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.value = value, .stream = stream}, NULL));
}

static quire_allocation_info info_of(quire_allocation a)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, a, &info));
    return info;
}

/* Runs steps in another thread, which then ends. */
static void elsewhere(void *(*steps)(void *), void *user)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, steps, user));
    CHECK(!pthread_join(thread, NULL));
}

#define CASE(name, begin) UNIT_WITHIN(cuda_default_stream, name, begin, end())

/* ---- in its thread --------------------------------------------------------------------------- */

static void use(void *native)
{
    void *seen = &seen;
    begin_with(native);
    CHECK_OK(quire_cuda_stream_get(stream, &seen));
    CHECK(seen == native);
    quire_allocation a = allocate(stream);
    fill(a, 1);
    quire_point point = mark(stream);
    CHECK_FAILS(quire_point_await(&point, 0), QUIRE_ERROR_BUSY);
    b.fc->advance(1);
    CHECK(has_passed(point));
    fill(a, 2);
    uint64_t offset = info_of(a).offset;
    CHECK_OK(quire_free_on_stream(memory, a, stream));
    a = allocate(stream); /* the same range at once: it is the same stream */
    CHECK_EQ(info_of(a).offset, offset);
    fill(a, 3);
    quire_allocation other = allocate(NULL);
    CHECK(info_of(other).offset != offset);
    CHECK_OK(quire_free(memory, other));
    CHECK_OK(quire_free_on_stream(memory, a, stream));
    quire_stream *second = NULL;
    CHECK_OK(quire_stream_create(b.device, NULL, &second));
    point = mark(stream);
    CHECK_OK(quire_stream_wait(second, &point));
    quire_point later = mark(second);
    CHECK(!has_passed(later));
    CHECK_OK(quire_point_await(&later, QUIRE_FOREVER));
    CHECK(has_passed(point));
    CHECK_OK(quire_stream_wait(stream, &later));
    CHECK_OK(quire_stream_destroy(&second));
    end();
}

UNIT(cuda_default_stream, default_streams_work_like_any_other)
{
    use(PER_THREAD);
    use(NULL);
    use((void *)(uintptr_t)QI_CU_STREAM_LEGACY);
}

CASE(nothing_is_submitted_while_it_captures, begin())
{
    quire_point none;
    qi_cu_graph graph;
    cuda_bench_enter(b.device);
    for (qi_cu_capture_mode mode = 0; mode < 3; mode++) {
        CHECK_EQ(CUDA_BENCH_CALL(&b, StreamBeginCapture, 10010)(PER_THREAD, mode), 0);
        CHECK_FAILS(quire_stream_mark(stream, &none), NOT_PERMITTED);
        CHECK_EQ(CUDA_BENCH_CALL(&b, StreamEndCapture, 10000)(PER_THREAD, &graph), 0);
    }
    cuda_bench_leave();
    CHECK(has_passed(mark(stream)));
}

/* ---- in another thread ----------------------------------------------------------------------- */

static void *query_there(void *user)
{
    CHECK(!has_passed(*(const quire_point *)user));
    return NULL;
}

CASE(its_points_can_be_queried_in_any_thread, begin())
{
    quire_allocation a = allocate(stream);
    fill(a, 1);
    quire_point point = mark(stream);
    elsewhere(query_there, &point);
    b.fc->advance(1);
    CHECK(has_passed(point));
    CHECK_OK(quire_free(memory, a));
}

static void *mark_there(void *user)
{
    *(quire_point *)user = mark(stream);
    return NULL;
}

CASE(a_mark_of_another_thread_comes_after_its_work, begin())
{
    quire_point point;
    quire_allocation a = allocate(stream);
    fill(a, 1);
    elsewhere(mark_there, &point);
    CHECK(!has_passed(point));
    b.fc->advance(1);
    CHECK(has_passed(point));
    fill(a, 2);
    quire_point later = mark(stream);
    CHECK(later.value > point.value && !has_passed(later));
    CHECK_OK(quire_free_after_point(memory, a, &later));
    CHECK_OK(quire_point_await(&later, QUIRE_FOREVER));
}

static void *work_and_mark_there(void *user)
{
    quire_stream *own = NULL;
    quire_allocation a;
    CHECK_OK(quire_cuda_stream_wrap(b.device, PER_THREAD, "other", &own));
    a = allocate(own);
    CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.value = 1, .stream = own}, NULL));
    CHECK_OK(quire_free_on_stream(memory, a, own));
    (void)mark(stream); /* comes after the work of this thread too */
    *(quire_stream **)user = own;
    return NULL;
}

CASE(a_point_is_waited_for_behind_an_earlier_one_that_passes_later, begin())
{
    quire_stream *other = NULL;
    elsewhere(work_and_mark_there, &other);
    quire_point point = mark(stream); /* no work of this thread is before it */
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(&other));
}

static void *collect_there(void *user)
{
    CHECK_OK(quire_collect(memory, user));
    return NULL;
}

/* A free sets its mark at the next query, which may be another thread's. */
CASE(what_is_freed_on_it_is_collected_by_any_thread, begin())
{
    uint64_t released = 1;
    quire_allocation a = allocate(stream);
    fill(a, 1);
    CHECK_OK(quire_free_on_stream(memory, a, stream));
    elsewhere(collect_there, &released);
    CHECK_EQ(released, 0);
    b.fc->advance(1);
    elsewhere(collect_there, &released);
    CHECK_EQ(released, 64 * 1024);
}

static void *fill_there(void *user)
{
    fill(*(const quire_allocation *)user, 2);
    return NULL;
}

CASE(work_of_other_threads_comes_between_its_own, begin())
{
    unsigned char byte = 0;
    quire_allocation a = allocate(stream);
    fill(a, 1);
    elsewhere(fill_there, &a);
    fill(a, 3);
    CHECK_EQ(b.fc->pending(), 3);
    b.fc->advance(2);
    CHECK_EQ(b.fc->pending(), 1);
    CHECK_OK(quire_read(memory, a, 0, &byte, 1));
    CHECK_EQ(byte, 3);
    CHECK_OK(quire_free(memory, a));
}

static void *get_there(void *user)
{
    void *native = user;
    CHECK_FAILS(quire_cuda_stream_get(stream, &native), NOT_PERMITTED);
    CHECK_HAS(quire_last_error(), "another thread");
    CHECK(!native);
    return NULL;
}

CASE(its_name_means_another_stream_elsewhere, begin())
{
    elsewhere(get_there, &b);
}

static void *free_and_end(void *user)
{
    quire_stream **own = user;
    CHECK_OK(quire_cuda_stream_wrap(b.device, PER_THREAD, "short", own));
    quire_allocation a = allocate(*own);
    CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.value = 1, .stream = *own}, NULL));
    CHECK_OK(quire_free_on_stream(memory, a, *own));
    return NULL;
}

CASE(it_may_outlive_its_thread, begin())
{
    uint64_t released = 1;
    quire_stream *own = NULL;
    elsewhere(free_and_end, &own);
    elsewhere(collect_there, &released); /* a new thread does not count as the old one */
    CHECK_EQ(released, 0);
    b.fc->advance(1);
    CHECK_OK(quire_collect(memory, &released));
    CHECK_EQ(released, 64 * 1024);
    CHECK_OK(quire_stream_destroy(&own));
}
