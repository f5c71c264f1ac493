/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* host_stream.c - streams of the host backend: workers, manual streams that the test runs, order
   between streams, destruction, and the loss of the device. */
#include <pthread.h>
#include <time.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/system.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"

#define BUSY QUIRE_ERROR_BUSY
#define LOST QUIRE_ERROR_DEVICE_LOST
#define KIB UINT64_C(1024)
#define SECOND UINT64_C(1000000000)

static quire_device *device;
static quire_memory *memory;

static void begin(void)
{
    const quire_host_options options = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&options, &device));
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.kind.mask = 1}, &memory));
}

static void end(void)
{
    CHECK_OK(quire_memory_check(memory));
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}

#define CASE(name, begin) UNIT_WITHIN(host_stream, name, begin, end())

static quire_stream *make(bool manual)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_host_stream_create(
        device, &(quire_host_stream_options){.name = "test", .manual = manual}, &stream));
    return stream;
}

static uint64_t run(quire_stream *stream, uint64_t most)
{
    uint64_t done = 0;
    CHECK_OK(quire_host_stream_run(stream, most, &done));
    return done;
}

/* A live allocation that `stream` fills. */
static quire_allocation filled_on(quire_stream *stream)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 64}, &made));
    CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.value = 7, .stream = stream}, NULL));
    return made;
}

/* Work of quire on a live allocation keeps no manual stream, whether it was run or not. */
UNIT(host_stream, a_manual_stream_ends_with_the_work_of_quire)
{
    for (int is_run = 0; is_run < 2; is_run++) {
        unsigned char byte = 0;
        begin();
        quire_stream *stream = make(true), *behind = make(false);
        quire_point point;
        quire_allocation first = filled_on(stream);
        CHECK_OK(quire_stream_mark(stream, &point));
        if (is_run)
            CHECK_EQ(run(stream, UINT64_MAX), 2);
        CHECK_OK(quire_stream_wait(behind, &point));
        quire_allocation second = filled_on(behind);
        CHECK_OK(quire_stream_destroy(&behind));
        CHECK_OK(quire_stream_destroy(&stream));
        CHECK_OK(quire_read(memory, first, 0, &byte, 1));
        CHECK_EQ(byte, 7);
        CHECK_OK(quire_read(memory, second, 63, &byte, 1));
        CHECK_EQ(byte, 7);
        end();
    }
}

CASE(a_free_that_waits_keeps_a_manual_stream, begin())
{
    uint64_t done = 0;
    quire_stream *stream = make(true);
    quire_allocation live = filled_on(stream);
    CHECK_OK(quire_free(memory, filled_on(stream)));
    CHECK_FAILS(quire_stream_destroy(&stream), BUSY);
    CHECK_FAILS(quire_stream_destroy(&stream), BUSY);
    CHECK_EQ(run(stream, UINT64_MAX), 3); /* two fills and the mark of the free */
    CHECK_OK(quire_collect(memory, &done));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_free(memory, live));
}

/* ---- manual streams ------------------------------------------------------------------------- */

static void count(void *user)
{
    ++*(int *)user;
}

CASE(points_of_a_manual_stream_pass_when_it_is_run, begin())
{
    int calls = 0;
    quire_stream *stream = make(true);
    quire_point first = mark(stream);
    CHECK_OK(quire_host_stream_submit(stream, count, &calls));
    quire_point second = mark(stream), third = mark(stream);
    CHECK(first.value < second.value && second.value < third.value);
    CHECK(!has_passed(first));
    CHECK_EQ(run(stream, 1), 1);
    CHECK(has_passed(first) && !has_passed(second));
    CHECK_EQ(calls, 0);
    CHECK_EQ(run(stream, 0), 0);
    CHECK_EQ(run(stream, 2), 2);
    CHECK_EQ(calls, 1);
    CHECK(has_passed(second) && !has_passed(third));
    CHECK_EQ(run(stream, UINT64_MAX), 1);
    CHECK(has_passed(third));
    CHECK_EQ(run(stream, UINT64_MAX), 0);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(nobody_sleeps_for_what_the_caller_has_to_run, begin())
{
    quire_stream *manual = make(true), *worker = make(false), *behind = make(false);
    quire_point never = mark(manual);
    CHECK_FAILS(quire_point_await(&never, QUIRE_FOREVER), BUSY);
    CHECK_OK(quire_stream_wait(worker, &never));
    quire_point waits = mark(worker);
    CHECK_FAILS(quire_point_await(&waits, QUIRE_FOREVER), BUSY);
    CHECK_OK(quire_stream_wait(behind, &waits));
    quire_point last = mark(behind);
    CHECK_FAILS(quire_point_await(&last, QUIRE_FOREVER), BUSY);
    CHECK_EQ(run(manual, 1), 1);
    CHECK_OK(quire_point_await(&last, QUIRE_FOREVER)); /* now the workers continue */
    CHECK(has_passed(waits));
    CHECK_OK(quire_stream_destroy(&manual));
    CHECK_OK(quire_stream_destroy(&worker));
    CHECK_OK(quire_stream_destroy(&behind));
}

CASE(a_run_ends_where_another_stream_is_waited_for, begin())
{
    int calls = 0;
    quire_stream *first = make(true), *second = make(true);
    CHECK_OK(quire_host_stream_submit(first, count, &calls));
    quire_point point = mark(first);
    CHECK_OK(quire_host_stream_submit(second, count, &calls));
    CHECK_OK(quire_stream_wait(second, &point));
    CHECK_OK(quire_host_stream_submit(second, count, &calls));
    CHECK_EQ(run(second, UINT64_MAX), 1);
    CHECK_EQ(run(first, 1), 1);
    CHECK_EQ(run(second, UINT64_MAX), 0); /* the mark after it has not run yet */
    CHECK_EQ(run(first, 1), 1);
    CHECK_EQ(run(second, UINT64_MAX), 2);
    CHECK_EQ(calls, 3);
    CHECK_OK(quire_stream_wait(second, &point)); /* which has passed */
    CHECK_EQ(run(second, UINT64_MAX), 0);
    CHECK_OK(quire_stream_destroy(&first));
    CHECK_OK(quire_stream_destroy(&second));
}

/* ---- waiting -------------------------------------------------------------------------------- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_open;
} gate;

static gate door = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

static void pass(void *user)
{
    gate *g = user;
    pthread_mutex_lock(&g->mutex);
    while (!g->is_open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void set(gate *g, bool is_open)
{
    pthread_mutex_lock(&g->mutex);
    g->is_open = is_open;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

CASE(waiting_ends_in_time_or_with_the_work, begin())
{
    quire_stream *stream = make(false);
    set(&door, false);
    CHECK_OK(quire_host_stream_submit(stream, pass, &door));
    quire_point point = mark(stream);
    CHECK_FAILS(quire_point_await(&point, 0), BUSY);
    uint64_t before = qi_clock();
    CHECK_FAILS(quire_point_await(&point, SECOND / 50), BUSY);
    CHECK(qi_clock() - before >= SECOND / 50);
    CHECK(!has_passed(point));
    set(&door, true);
    CHECK_OK(quire_point_await(&point, 60 * SECOND));
    CHECK_OK(quire_stream_destroy(&stream));
}

static void *open_later(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    set(user, true);
    return NULL;
}

static uint64_t processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* While work runs, neither the worker nor a waiting thread spins. */
CASE(waiting_takes_no_processor, begin())
{
    pthread_t opener;
    quire_stream *stream = make(false), *behind = make(false);
    set(&door, false);
    CHECK_OK(quire_host_stream_submit(stream, pass, &door));
    quire_point point = mark(stream);
    CHECK_OK(quire_stream_wait(behind, &point));
    uint64_t before = processor_time();
    CHECK(!pthread_create(&opener, NULL, open_later, &door));
    finish(behind);
    CHECK(processor_time() - before < SECOND / 10); /* of the 200 ms of the wait */
    CHECK(!pthread_join(opener, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&behind));
}

/* ---- ends ----------------------------------------------------------------------------------- */

CASE(what_is_left_is_done_at_the_end, begin())
{
    int calls = 0;
    for (int manual = 0; manual < 2; manual++) {
        quire_stream *stream = make(manual);
        for (int i = 0; i < 100; i++)
            CHECK_OK(quire_host_stream_submit(stream, count, &calls));
        CHECK_OK(quire_stream_destroy(&stream));
        CHECK_EQ(calls, 100 * (manual + 1));
    }
}

/* In both orders of destruction, with every waiting thread. */
CASE(an_end_does_not_wait_for_what_is_never_run, begin())
{
    int calls = 0;
    for (int i = 0; i < 4; i++) {
        quire_stream *manual = make(true), *waits = make(i & 1);
        quire_point point = mark(manual);
        CHECK_OK(quire_stream_wait(waits, &point));
        CHECK_OK(quire_host_stream_submit(waits, count, &calls));
        CHECK_OK(quire_stream_destroy(i & 2 ? &manual : &waits));
        CHECK_OK(quire_stream_destroy(i & 2 ? &waits : &manual));
        CHECK_EQ(calls, i + 1);
    }
}

/* ---- loss ----------------------------------------------------------------------------------- */

static void *lose_later(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CHECK_OK(quire_host_lose(user));
    return NULL;
}

CASE(a_lost_device_answers_so_and_can_be_destroyed, begin())
{
    pthread_t loser;
    quire_allocation live, refused;
    quire_stream *none = NULL;
    int calls = 0;
    char byte = 0;
    quire_stream *manual = make(true), *worker = make(false), *busy = make(false);
    quire_native page = range_of(memory, 16);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 16}, &live));
    set(&door, false);
    CHECK_OK(quire_host_stream_submit(busy, pass, &door));
    CHECK_OK(quire_host_stream_submit(manual, count, &calls));
    quire_point point = mark(busy);
    CHECK_OK(quire_stream_wait(worker, &point));
    CHECK(!pthread_create(&loser, NULL, lose_later, device));
    CHECK_FAILS(quire_point_await(&point, QUIRE_FOREVER), LOST); /* it is woken */
    CHECK(!pthread_join(loser, NULL));
    set(&door, true);
    CHECK_FAILS(quire_stream_mark(worker, &point), LOST);
    CHECK_FAILS(quire_host_stream_run(manual, 1, NULL), LOST);
    CHECK_FAILS(quire_host_stream_submit(worker, count, &calls), LOST);
    CHECK_EQ(fill_range(device, worker, &page, 16, 1), LOST);
    CHECK_FAILS(quire_stream_create(device, NULL, &none), LOST);
    CHECK_FAILS(quire_write(memory, live, 0, &byte, 1), LOST);
    CHECK_FAILS(quire_read(memory, live, 0, &byte, 1), LOST);
    CHECK_FAILS(quire_allocate(memory,
                               &(quire_allocation_options){.size = 64 * KIB, .dedicated = true},
                               &refused),
                LOST);
    CHECK_OK(quire_stream_destroy(&manual));
    CHECK_OK(quire_stream_destroy(&worker));
    CHECK_OK(quire_stream_destroy(&busy));
    CHECK_EQ(calls, 0);
}

/* ---- out of memory -------------------------------------------------------------------------- */

/* Each allocation of host memory fails in turn; nothing leaks. */
CASE(without_host_memory_nothing_changes, begin())
{
    quire_native page = range_of(memory, 16);
    for (int manual = 0; manual < 2; manual++)
        for (uint64_t failing = 1;; failing++) {
            quire_stream *stream = NULL;
            int calls = 0;
            const quire_host_stream_options options = {.manual = manual};
            test_memory_fail(unit_memory_state(), failing, false);
            quire_result result = quire_host_stream_create(device, &options, &stream);
            if (!result)
                result = quire_host_stream_submit(stream, count, &calls);
            if (!result)
                result = fill_range(device, stream, &page, 16, 1);
            test_memory_fail(unit_memory_state(), 0, false);
            CHECK_OK(quire_stream_destroy(&stream));
            if (!result)
                break;
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(failing < 20);
        }
}
