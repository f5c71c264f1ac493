/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_order.c - frees whose points come in any order, and on many streams: they pass in the
 * order of their points, and a free on one of many streams costs what one on few does.
 */
#include <stdlib.h>
#include <time.h>

#include "src/core/deferred/stream_queue.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/streams.h"

enum { KIB = 1024, MANY = 32000, STREAMS = 2000, TRIES = 5 };

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

typedef struct bench {
    fixture f;
    quire_stream *stream;
    quire_allocation made[MANY];
} bench;

static bench w;

static void begin(void)
{
    fixture_prepare(&w.f);
    streams_offer(&w.f.fake.table);
    fixture_open(&w.f, &(quire_memory_options){.pages = {.page_size = MANY * KIB}});
    CHECK_OK(quire_stream_create(w.f.device, NULL, &w.stream));
}

static void end(void)
{
    CHECK_OK(quire_stream_destroy(&w.stream));
    fixture_end(&w.f);
}

static void allocate(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK_OK(quire_allocate(w.f.memory, &(quire_allocation_options){.size = KIB}, &w.made[i]));
}

/* Returns the thread's nanoseconds for the frees alone. Free number i waits for point order(i). */
static uint64_t time_frees(uint64_t first_value, uint64_t (*order)(uint64_t i))
{
    allocate(MANY);
    uint64_t begun = now();
    for (uint64_t i = 0; i < MANY; i++)
        CHECK_OK(quire_free_after_point(w.f.memory, w.made[i],
                                        &(quire_point){w.stream, first_value + order(i)}));
    uint64_t taken = now() - begun;
    CHECK_EQ(fixture_stats(&w.f).deferred_count, MANY);
    streams_pass(w.stream);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 0);
    return taken;
}

static uint64_t rising(uint64_t i)
{
    return i;
}

/* Each seventh free is late, by one point. */
static uint64_t late(uint64_t i)
{
    return i % 7 == 5 ? i + 1 : i % 7 == 6 ? i - 1 : i;
}

static uint64_t mark_many(void)
{
    quire_point first, last;
    CHECK_OK(quire_stream_mark(w.stream, &first));
    for (int i = 1; i < MANY; i++)
        CHECK_OK(quire_stream_mark(w.stream, &last));
    CHECK_EQ(last.value, first.value + MANY - 1);
    return first.value;
}

/* The best of several tries counts because other programs may use the machine. */
UNIT(deferred_order, late_frees_cost_about_as_much_as_those_in_the_order_of_their_points)
{
    begin();
    bool is_close = false;
    for (int i = 0; i < TRIES && !is_close; i++) {
        uint64_t straight = time_frees(mark_many(), rising);
        is_close = time_frees(mark_many(), late) < 4 * straight;
    }
    CHECK(is_close);
    end();
}

UNIT(deferred_order, frees_in_any_order_pass_in_the_order_of_their_points)
{
    enum { COUNT = 500 };
    begin();
    test_random rng = {.state = 3};
    quire_point points[COUNT];
    uint64_t left = COUNT;
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_stream_mark(w.stream, &points[i]));
    allocate(COUNT);
    uint64_t per_value[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) {
        uint64_t point = random_below(&rng, COUNT);
        per_value[point]++;
        CHECK_OK(quire_free_after_point(w.f.memory, w.made[i], &points[point]));
        if (i % 16 == 0)
            CHECK_OK(quire_memory_check(w.f.memory));
    }
    for (int i = 0; i < COUNT; i++) {
        uint64_t released = 0;
        streams_pass_to(w.stream, points[i].value);
        CHECK_OK(quire_collect(w.f.memory, &released));
        CHECK_EQ(released, per_value[i] * KIB);
        left -= per_value[i];
        CHECK_EQ(fixture_stats(&w.f).deferred_count, left);
    }
    end();
}

/* A memory that is destroyed waits for the latest of them, at any place in the order. */
UNIT(deferred_order, destroying_a_memory_waits_for_the_last_point_of_a_stream)
{
    begin();
    quire_point points[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_stream_mark(w.stream, &points[i]));
    quire_allocation last = ALLOCATE(&w.f, .size = 4 * KIB), middle = ALLOCATE(&w.f, .size = KIB);
    CHECK_OK(quire_free_after_point(w.f.memory, last, &points[2]));
    CHECK_OK(quire_free_after_point(w.f.memory, middle, &points[1])); /* out of order */
    last = ALLOCATE(&w.f, .size = 4 * KIB, .stream = w.stream);
    qi_stream_queue *stream_queue = qi_stream_queue_find(w.f.memory->shards[0], w.stream);
    CHECK(stream_queue);
    CHECK_EQ(qi_stream_queue_highest(stream_queue), points[1].value);
    CHECK_OK(quire_free_after_point(w.f.memory, last, &points[0]));
    CHECK(qi_stream_queue_highest(stream_queue) >= points[1].value);
    streams_pass(w.stream);
    end();
}

static uint64_t time_frees_on(quire_stream **streams, uint64_t count)
{
    allocate(STREAMS);
    uint64_t begun = now();
    for (uint64_t i = 0; i < STREAMS; i++)
        CHECK_OK(quire_free_on_stream(w.f.memory, w.made[i], streams[i % count]));
    return now() - begun;
}

/* The most stream queues that a lookup of one visits. */
static uint32_t max_chain(const qi_shard *shard)
{
    uint32_t max_length = 0;
    for (uint32_t i = 0; i < UINT32_C(1) << shard->queue_bits; i++) {
        uint32_t length = 0;
        for (const qi_stream_queue *stream_queue = shard->queue_buckets[i]; stream_queue;
             stream_queue = stream_queue->next_in_bucket)
            length++;
        max_length = length > max_length ? length : max_length;
    }
    return max_length;
}

/* Capture streams, whose number is unlimited. */
UNIT(deferred_order, frees_on_many_streams_cost_about_as_much_as_on_few)
{
    enum { FEW = 8 };
    static quire_stream *streams[STREAMS];
    bool is_close = false;
    begin();
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(
            quire_stream_create(w.f.device, &(quire_stream_options){.capture = true}, &streams[i]));
    time_frees_on(streams, STREAMS); /* creates the queue of each stream in the memory */
    for (int i = 0; i < TRIES && !is_close; i++)
        is_close =
            time_frees_on(streams, STREAMS) < 8 * time_frees_on(streams + STREAMS - FEW, FEW);
    CHECK(is_close);
    CHECK(max_chain(w.f.memory->shards[0]) <= 16);
    CHECK_OK(quire_memory_check(w.f.memory));
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_destroy(&streams[i * 7 % STREAMS]));
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 0);
    end();
}

/* Calls that allocate host memory fail in turn: a table that cannot grow stays in use. */
UNIT(deferred_order, the_table_of_streams_works_without_host_memory)
{
    enum { FEW = 40 };
    for (uint64_t call = 1; call < 120; call += 7) {
        quire_stream *streams[FEW];
        begin();
        allocate(FEW);
        for (int i = 0; i < FEW; i++)
            CHECK_OK(quire_stream_create(w.f.device, &(quire_stream_options){.capture = true},
                                         &streams[i]));
        test_memory_fail(unit_memory_state(), call, false);
        uint64_t waits = 0;
        for (int i = 0; i < FEW; i++) {
            quire_result result = quire_free_on_stream(w.f.memory, w.made[i], streams[i]);
            CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            waits += !result;
        }
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(waits >= FEW - 1);
        CHECK_EQ(fixture_stats(&w.f).deferred_count, waits);
        CHECK_OK(quire_memory_check(w.f.memory));
        for (int i = 0; i < FEW; i++)
            CHECK_OK(quire_stream_destroy(&streams[i]));
        end();
    }
}
