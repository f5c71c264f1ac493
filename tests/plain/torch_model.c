/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_model.c - random calls as torch makes them, on the fake driver, against an oracle: streams,
 * work, uses on other streams, captures of graphs in private pools, replays, resets, memory that is
 * exhausted.
 *
 * Every range that is given out has a value, and all work on it writes this value. Work that runs
 * after the range was given to another owner would leave the wrong value there: whenever the device
 * is idle, the test reads what it wrote. Of every range, also freed ones, the test knows the graphs
 * that use it, by pool and stream. Nothing but an allocation in that pool and stream may get it as
 * long as the pool has users. The driver reports work on memory that is not mapped any more.
 *
 *     torch_model [--steps N] [--seed N]
 */
#include "tests/support/plain.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/random.h"
#include "tests/support/torch_client.h"

#define KIB INT64_C(1024)
#define MIB (INT64_C(1) << 20)

enum { RANGES = 64, OLD = 512, POOLS = 3, STEPS_A_WORLD = 500 };

/* Memory that was given out. */
typedef struct test_range {
    char *begin;
    uint64_t size;
    int stream;          /* of the allocation */
    uint32_t graphs;     /* bit TORCH_STREAMS * pool + stream: a graph uses it */
    unsigned char value; /* what work on it writes */
    bool is_written;
} test_range;

/* Graphs of a pool: torch counts them as its users. */
typedef struct test_pool {
    torch_pool_id id;
    uint32_t users;
    int capturing; /* the stream that captures for it; -1: none */
} test_pool;

static test_random rng;
static uint64_t total_steps, next_id;
static torch_client c;
static test_range live[RANGES], old[OLD]; /* freed ones that graphs use */
static int live_count, old_count;
static test_pool pools[POOLS];
static uint64_t graphs, reused, refused, verified;

static int below(uint64_t n)
{
    return (int)random_below(&rng, n);
}

static void ok(quire_result result)
{
    if (result)
        check_failed(__FILE__, __LINE__, "%s: %s", quire_result_name(result), torch_message());
}

/* The pool whose graph the stream captures; -1: none. */
static int pool_of(int stream)
{
    for (int i = 0; i < POOLS; i++)
        if (pools[i].capturing == stream)
            return i;
    return -1;
}

static bool is_any_begun(void)
{
    for (int i = 0; i < POOLS; i++)
        if (pools[i].capturing >= 0)
            return true;
    return false;
}

static uint32_t bit_of(int pool, int stream)
{
    return pool < 0 ? 0 : UINT32_C(1) << (TORCH_STREAMS * pool + stream);
}

/* The uses by graphs of a pool. */
static uint32_t bits_of(int pool)
{
    return ((UINT32_C(1) << TORCH_STREAMS) - 1) << TORCH_STREAMS * pool;
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Calls for places of a range: both ends, and every multiple of 256 KiB, which ranges that overlap
   have in common. */
static void visit_places(const test_range *r, int stream,
                         void (*visit)(const test_range *r, uintptr_t place, uint64_t size,
                                       int stream))
{
    uintptr_t begin = (uintptr_t)r->begin, end = begin + r->size;
    uint64_t size = r->size < 64 ? r->size : 64, step = (uint64_t)(256 * KIB);
    visit(r, begin, size, stream);
    visit(r, end - size, size, stream);
    for (uintptr_t at = (begin / step + 1) * step; at + 64 <= end; at += step)
        visit(r, at, 64, stream);
}

static void write_place(const test_range *r, uintptr_t place, uint64_t size, int stream)
{
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, MemsetD8Async, 3020)(place, r->value, size, c.streams[stream]),
             0);
}

static void verify_place(const test_range *r, uintptr_t place, uint64_t size, int stream)
{
    unsigned char bytes[64];
    (void)stream;
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, MemcpyDtoH, 3020)(bytes, place, size), 0);
    for (uint64_t i = 0; i < size; i++)
        if (bytes[i] != r->value)
            check_failed(__FILE__, __LINE__, "work on an earlier owner wrote %u into a range of %u",
                         bytes[i], r->value);
    verified++;
}

/* Copies are forbidden while streams capture. */
static void verify_if_idle(void)
{
    if (is_any_begun() || c.b.fc->pending())
        return;
    for (int i = 0; i < live_count; i++)
        if (live[i].is_written && !live[i].graphs)
            visit_places(&live[i], 0, verify_place);
}

/* ---- the oracle ----------------------------------------------------------------------------- */

static bool overlap(const test_range *a, const test_range *b)
{
    return a->begin < b->begin + b->size && b->begin < a->begin + a->size;
}

static void check_new(const test_range *made)
{
    for (int i = 0; i < live_count; i++)
        if (overlap(made, &live[i]))
            check_failed(__FILE__, __LINE__, "%p of %" PRIu64 " bytes is live twice",
                         (void *)made->begin, made->size);
    for (int i = 0; i < old_count; i++) {
        if (!overlap(made, &old[i]))
            continue;
        if (old[i].graphs & ~made->graphs)
            check_failed(__FILE__, __LINE__,
                         "memory of the graphs 0x%x goes to stream %d, with graphs 0x%x",
                         old[i].graphs, made->stream, made->graphs);
        reused++;
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void allocate(void)
{
    int stream = below(TORCH_STREAMS), pool = pool_of(stream);
    test_range made = {.size = random_size(&rng, (uint64_t)(6 * MIB)),
                       .stream = stream,
                       .graphs = bit_of(pool, stream),
                       .value = (unsigned char)(1 + below(255)),
                       .is_written = pool < 0};
    void *pointer = NULL;
    if (live_count == RANGES)
        return;
    quire_result result = torch_allocate((int64_t)made.size, 0, c.streams[stream], &pointer);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        refused++;
        return;
    }
    made.begin = pointer;
    check_new(&made);
    live[live_count++] = made;
    if (pool < 0)
        visit_places(&made, stream, write_place);
}

/* Work on a stream; one that captures adds it to its graph. What a graph uses on the stream of the
   allocation is unknown to torch, which asks its callers to keep it. */
static void use(void)
{
    if (!live_count)
        return;
    test_range *r = &live[below((uint64_t)live_count)];
    int stream = below(2) ? r->stream : below(TORCH_STREAMS), pool = pool_of(stream);
    if (stream != r->stream) {
        ok(torch_record_stream(r->begin, c.streams[stream]));
        r->graphs |= bit_of(pool, stream);
    }
    if (pool < 0)
        visit_places(r, stream, write_place);
}

static void free_one(void)
{
    if (!live_count)
        return;
    int at = below((uint64_t)live_count);
    test_range *r = &live[at];
    r->graphs |= bit_of(pool_of(r->stream), r->stream);
    ok(below(64) ? torch_free(r->begin, 0, c.streams[r->stream])
                 : torch_free_segment(r->begin, 0, c.streams[r->stream]));
    if (r->graphs && old_count < OLD)
        old[old_count++] = *r;
    live[at] = live[--live_count];
}

static void change_capture(void)
{
    int i = below(POOLS), stream = below(TORCH_STREAMS);
    test_pool *p = &pools[i];
    if (p->capturing >= 0) {
        torch_client_end_graph(&c, p->id, c.streams[p->capturing]);
        p->capturing = -1;
        graphs++;
        return;
    }
    if (pool_of(stream) >= 0 || below(3))
        return;
    if (!p->users)
        p->id = (torch_pool_id){0, ++next_id};
    torch_client_begin_graph(&c, p->id, c.streams[stream]);
    p->capturing = stream;
    p->users++;
}

/* The graphs of a pool write what they use, on the stream of the replay. */
static void replay(void)
{
    int pool = below(POOLS), stream = below(TORCH_STREAMS);
    if (pool_of(stream) >= 0)
        return;
    for (int i = 0; i < old_count; i++)
        if (old[i].graphs & bits_of(pool))
            visit_places(&old[i], stream, write_place);
}

/* The device may still replay the graph that is destroyed. */
static void release(void)
{
    int pool = below(POOLS);
    test_pool *p = &pools[pool];
    if (!p->users || (p->capturing >= 0 && p->users == 1))
        return;
    ok(torch_release_pool(0, p->id));
    if (--p->users)
        return;
    for (int i = 0; i < live_count; i++)
        live[i].graphs &= ~bits_of(pool);
    for (int i = old_count; i--;) {
        old[i].graphs &= ~bits_of(pool);
        if (!old[i].graphs)
            old[i] = old[--old_count];
    }
}

static void reset(void)
{
    ok(torch_reset());
    if (!is_any_begun())
        CHECK_EQ(c.b.fc->pending(), 0);
    verify_if_idle();
}

static void describe(void)
{
    char *text = below(2) ? torch_statistics() : torch_snapshot();
    CHECK(text);
    free(text);
}

static void advance(void)
{
    c.b.fc->advance(below(4) ? (uint64_t)below(40) : 100000);
    verify_if_idle();
}

static void find_base(void)
{
    size_t size = 0;
    if (!live_count)
        return;
    const test_range *r = &live[below((uint64_t)live_count)];
    const char *base = torch_get_base(r->begin + random_below(&rng, r->size), &size);
    CHECK(base <= r->begin && r->begin + r->size <= base + size);
}

static void step(void)
{
    int n = below(100);
    if (n < 36)
        allocate();
    else if (n < 56)
        use();
    else if (n < 86)
        free_one();
    else if (n < 92)
        change_capture();
    else if (n < 93)
        replay();
    else if (n < 94)
        release();
    else if (n < 95)
        reset();
    else if (n < 98)
        advance();
    else if (n < 99)
        find_base();
    else if (!below(10))
        describe();
}

/* ---- worlds --------------------------------------------------------------------------------- */

static void begin_world(bool is_small)
{
    torch_client_begin(&c, 1);
    live_count = old_count = 0;
    for (int i = 0; i < POOLS; i++)
        pools[i] = (test_pool){.capturing = -1};
    if (is_small)
        c.b.fc->set_capacity(0, (uint64_t)((32 + below(64)) * MIB));
    ok(torch_record_history(below(2) ? 100 : 0));
}

static void end_world(void)
{
    for (int i = 0; i < POOLS; i++) {
        if (pools[i].capturing >= 0)
            torch_client_end_graph(&c, pools[i].id, c.streams[pools[i].capturing]);
        while (pools[i].users) {
            pools[i].users--;
            ok(torch_release_pool(0, pools[i].id));
        }
        pools[i].capturing = -1;
    }
    while (live_count) {
        live_count--;
        ok(torch_free(live[live_count].begin, 0, c.streams[live[live_count].stream]));
    }
    ok(torch_reset());
    CHECK_EQ(torch_client_bytes(&c), 0);
    torch_client_end(&c);
}

static void run(void)
{
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world(below(2));
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step();
        end_world();
    }
    printf("# %" PRIu64 " graphs, %" PRIu64 " times memory of a graph reused by it, %" PRIu64
           " requests refused, %" PRIu64 " places verified\n",
           graphs, reused, refused, verified);
    CHECK(total_steps < 1000 ||
          (graphs > total_steps / 200 && reused > 0 && refused > 0 && verified > total_steps / 4));
}

/* ---- threads at the same time --------------------------------------------------------------- */

static atomic_bool is_over;

/* What any thread may do while others capture: on a stream of its own, and for all streams. */
static void *work_until_over(void *stream)
{
    void *held = torch_client_allocate(MIB, stream);
    for (int i = 0; !atomic_load(&is_over); i++) {
        void *made = torch_client_allocate((i % 5 + 1) * MIB, stream);
        ok(torch_record_stream(held, c.streams[i % TORCH_STREAMS]));
        ok(i % 4 ? torch_free(held, 0, stream) : torch_free_segment(held, 0, stream));
        held = made;
        if (i % 8 == 0)
            ok(torch_reset());
        if (i % 32 == 0)
            free(i % 64 ? torch_statistics() : torch_snapshot());
    }
    torch_client_free(held, stream);
    return NULL;
}

/* One thread captures, with a pool for each graph. The others reset all the time, which waits for
   the device: it must not while the stream captures. */
static void with_threads_at_work(void)
{
    pthread_t threads[TORCH_STREAMS - 1];
    begin_world(false);
    c.b.fc->slow("cuStreamIsCapturing", 100); /* captures begin between a check and the wait */
    atomic_store(&is_over, false);
    for (int i = 0; i < TORCH_STREAMS - 1; i++)
        CHECK(!pthread_create(&threads[i], NULL, work_until_over, c.streams[i + 1]));
    for (uint64_t i = 0; i < total_steps / 10 && i < 2000; i++) {
        const torch_pool_id id = {1, i};
        torch_client_begin_graph(&c, id, c.streams[0]);
        void *made = torch_client_allocate(2 * MIB, c.streams[0]);
        torch_client_free(made, c.streams[0]);
        torch_client_end_graph(&c, id, c.streams[0]);
        ok(torch_release_pool(0, id));
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < TORCH_STREAMS - 1; i++)
        CHECK(!pthread_join(threads[i], NULL));
    end_world();
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 2000);
    rng.state = plain_option(argc, argv, "seed", 1);
    plain_case("what torch gets is free of earlier work, and of graphs of other pools", run);
    plain_case("graphs while threads allocate and reset", with_threads_at_work);
    return plain_end();
}
