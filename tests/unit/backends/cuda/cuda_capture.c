/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_capture.c - the CUDA backend while streams capture graphs, on the fake driver: a graph
 * survives what quire does, in every capture mode, from the thread that captures and from another,
 * and runs again after the memory that it uses has slept.
 */
#include <pthread.h>
#include <string.h>

#include "quire/backend_core.h"
#include "quire/cuda_array.h"
#include "quire/elastic.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/cuda_growing.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"

#define BUSY QUIRE_ERROR_BUSY
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define NOT_PERMITTED QUIRE_ERROR_NOT_PERMITTED
#define PER_THREAD ((qi_cu_stream)(uintptr_t)QI_CU_STREAM_PER_THREAD)
#define MODES 3u

static cuda_bench b;
static qi_cu_stream blocking, unknown; /* the caller's; quire never sees them */

/* Every call of which it is not known whether it is unsafe counts as unsafe. The test's own calls
   need a context, which stays current. */
static void begin_with(fc_options driver, const quire_cuda_settings *settings)
{
    driver.flags |= FC_UNSAFE_CALLS | FC_LATE;
    cuda_bench_begin(&b, &driver);
    CHECK(cuda_bench_open(&b, settings));
    cuda_bench_enter(b.device);
    blocking = cuda_bench_make_stream(QI_CU_STREAM_DEFAULT);
    unknown = cuda_bench_make_stream(QI_CU_STREAM_NON_BLOCKING);
}

static void begin(const quire_cuda_settings *settings)
{
    begin_with(cuda_bench_options(NULL, 0), settings);
}

static void end(void)
{
    cuda_bench_end_stream(blocking);
    cuda_bench_end_stream(unknown);
    cuda_bench_leave();
    CHECK_EQ(b.fc->message_count(), 0);
    cuda_bench_end(&b);
}

static void begin_capture(qi_cu_stream stream, qi_cu_capture_mode mode)
{
    CHECK_EQ(CUDA_BENCH_CALL(&b, StreamBeginCapture, 10010)(stream, mode), 0);
}

/* Returns whether there is a graph, which the driver makes with FC_GRAPHS alone. */
static bool end_capture(qi_cu_stream stream)
{
    qi_cu_graph graph;
    bool is_valid = !CUDA_BENCH_CALL(&b, StreamEndCapture, 10000)(stream, &graph);
    if (is_valid && graph)
        CHECK_EQ(CUDA_BENCH_CALL(&b, GraphDestroy, 10000)(graph), 0);
    return is_valid;
}

static quire_stream *make(void)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    return stream;
}

static qi_cu_stream native_of(quire_stream *stream)
{
    void *native = NULL;
    CHECK_OK(quire_cuda_stream_get(stream, &native));
    return native;
}

static quire_allocation allocate(quire_memory *memory, uint64_t size)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &made));
    return made;
}

static void trim(quire_memory *memory)
{
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

#define CASE(name, begin) UNIT_WITHIN(cuda_capture, name, begin, end())

/* ---- what is done during a capture ---------------------------------------------------------- */

static void *run_steps(void *steps)
{
    ((void (*const *)(void))steps)[0]();
    return NULL;
}

static void run(void (*steps)(void), bool elsewhere)
{
    pthread_t thread;
    if (!elsewhere) {
        steps();
        return;
    }
    CHECK(!pthread_create(&thread, NULL, run_steps, &steps));
    CHECK(!pthread_join(thread, NULL));
}

/* Runs steps during captures of each mode in each of the streams, in this thread and in another. */
static void check_survival(void (*steps)(void), const qi_cu_stream *streams, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (qi_cu_capture_mode mode = 0; mode < MODES; mode++)
            for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
                begin_capture(streams[i], mode);
                run(steps, elsewhere);
                if (!end_capture(streams[i]))
                    check_failed(__FILE__, __LINE__, "stream %u, mode %u, %s thread: no graph", i,
                                 mode, elsewhere ? "another" : "the same");
            }
}

static const quire_cuda_page_kind KINDS[] = {QUIRE_CUDA_DEVICE, QUIRE_CUDA_PLAIN, QUIRE_CUDA_PINNED,
                                             QUIRE_CUDA_MANAGED};
static const quire_cuda_settings ALL_KINDS = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PLAIN) |
                                                       CUDA_KIND(PINNED) | CUDA_KIND(MANAGED)};
static quire_memory *memories[4];

static void come_and_go(void)
{
    for (int i = 0; i < 4; i++) {
        CHECK_OK(quire_free(memories[i], allocate(memories[i], 3 * MIB)));
        trim(memories[i]);
    }
}

CASE(pages_come_and_go, begin(&ALL_KINDS))
{
    quire_stream *own = make();
    const qi_cu_stream streams[] = {unknown, blocking, native_of(own), PER_THREAD};
    for (int i = 0; i < 4; i++)
        memories[i] = cuda_bench_memory(&b, KINDS[i], NULL);
    check_survival(come_and_go, streams, 4);
    CHECK_OK(quire_stream_destroy(&own));
}

static void share(void)
{
    quire_allocation a = allocate(memories[0], 3 * MIB);
    CHECK_OK(quire_free(memories[0], a));
    trim(memories[0]);
}

CASE(exportable_pages_and_registered_host_memory_come_and_go, begin(NULL))
{
    const qi_cu_stream streams[] = {unknown, blocking};
    for (int i = 0; i < 2; i++) {
        const quire_intent intent = QUIRE_INTENT_EXPORT | (i ? QUIRE_INTENT_HOST_WRITE : 0);
        const quire_memory_options exportable = {.kind.intent = intent};
        memories[0] = cuda_bench_memory(&b, i ? QUIRE_CUDA_PINNED : QUIRE_CUDA_DEVICE, &exportable);
        check_survival(share, streams, 2);
    }
    CHECK(b.fc->calls("cuMemHostUnregister") > 0);
}

static growing *page;

static void grow_and_shrink(void)
{
    CHECK_OK(growing_resize(page, 10 * MIB));
    CHECK_OK(growing_resize(page, 4 * MIB));
    CHECK_EQ(page->fc->live(FC_MAPPING), 2);
}

GROWING_UNIT(cuda_capture, pages_grow_and_shrink)
{
    const quire_cuda_settings settings = {.chunk_size = 2 * MIB};
    const fc_options driver = cuda_bench_options(NULL, FC_UNSAFE_CALLS);
    growing_begin_with(g, &driver, &settings, QUIRE_CUDA_DEVICE, 4 * MIB, 16 * MIB);
    b = g->b;
    page = g;
    cuda_bench_enter(b.device);
    const qi_cu_stream streams[] = {cuda_bench_make_stream(QI_CU_STREAM_NON_BLOCKING),
                                    cuda_bench_make_stream(QI_CU_STREAM_DEFAULT)};
    check_survival(grow_and_shrink, streams, 2);
    for (int i = 0; i < 2; i++)
        cuda_bench_end_stream(streams[i]);
    cuda_bench_leave();
}

static void make_arrays(void)
{
    for (int sparse = 0; sparse < 2; sparse++) {
        quire_image image;
        const quire_cuda_array_options options = {.width = 200, .height = 100, .sparse = sparse};
        CHECK_OK(quire_cuda_array_create(memories[0], &options, &image));
        CHECK_OK(quire_free(memories[0], image.allocation));
    }
    trim(memories[0]);
    CHECK_EQ(b.fc->live(FC_ARRAY), 0);
}

CASE(arrays_are_mapped_and_unmapped,
     begin(&(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(TILES)}))
{
    const qi_cu_stream streams[] = {unknown, blocking, PER_THREAD};
    memories[0] = cuda_bench_memory(&b, QUIRE_CUDA_TILES, NULL);
    check_survival(make_arrays, streams, 3);
}

static void use_streams(void)
{
    quire_allocation a = allocate(memories[0], 4096);
    quire_stream *stream = make();
    CHECK_OK(quire_free_on_stream(memories[0], a, stream));
    quire_point point = mark(stream);
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_collect(memories[0], NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(other_streams_are_made_marked_and_destroyed, begin(NULL))
{
    const qi_cu_stream streams[] = {unknown, blocking, PER_THREAD};
    memories[0] = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    check_survival(use_streams, streams, 3);
}

CASE(the_mode_of_the_thread_is_its_own_again, begin(NULL))
{
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    for (qi_cu_capture_mode mode = 0; mode < MODES; mode++) {
        qi_cu_capture_mode now = mode;
        CHECK_EQ(CUDA_BENCH_CALL(&b, ThreadExchangeStreamCaptureMode, 10010)(&now), 0);
        CHECK_OK(quire_free(memory, allocate(memory, 3 * MIB)));
        trim(memory);
        now = QI_CU_STREAM_CAPTURE_MODE_GLOBAL;
        CHECK_EQ(CUDA_BENCH_CALL(&b, ThreadExchangeStreamCaptureMode, 10010)(&now), 0);
        CHECK_EQ(now, mode);
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

static unsigned char bytes[1000];
static quire_allocation target;
static bool is_refused;

static void copy_now(void)
{
    quire_result expected = is_refused ? NOT_PERMITTED : QUIRE_SUCCESS;
    quire_allocation made;
    const quire_allocation_options zeroed = {.size = 1000, .zero = true};
    CHECK_EQ(quire_write(memories[0], target, 0, bytes, sizeof bytes), expected);
    CHECK_EQ(quire_read(memories[0], target, 0, bytes, sizeof bytes), expected);
    if (is_refused)
        CHECK_HAS(quire_last_error(), "the default stream");
    CHECK_EQ(quire_allocate(memories[0], &zeroed, &made), expected);
    if (!is_refused)
        CHECK_OK(quire_free(memories[0], made));
}

CASE(copies_outside_streams_are_refused_where_they_would_break_a_graph, begin(NULL))
{
    const qi_cu_stream waiting[] = {blocking, PER_THREAD};
    memories[0] = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    target = allocate(memories[0], sizeof bytes);
    is_refused = false;
    check_survival(copy_now, &unknown, 1);
    is_refused = true;
    check_survival(copy_now, waiting, 2);
    is_refused = false;
    copy_now();
}

/* The default streams of both contexts are used. */
UNIT(cuda_capture, copies_between_devices_mind_both)
{
    fc_options driver = cuda_bench_options(NULL, 0);
    driver.models[1] = driver.models[0];
    driver.peers[0] = 2, driver.peers[1] = 1;
    begin_with(driver, NULL);
    quire_memory *here = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    quire_memory *there = cuda_bench_open_peer(&b, NULL);
    quire_allocation a = allocate(here, 1000), c = allocate(there, 1000);
    CHECK_OK(quire_write(here, a, 0, bytes, sizeof bytes));
    begin_capture(blocking, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_OK(quire_write(there, c, 0, bytes, sizeof bytes));
    const quire_copy_end first = {.memory = here, .allocation = a},
                         second = {.memory = there, .allocation = c};
    const quire_copy_options out = {.to = second, .from = first, .size = 1000};
    const quire_copy_options back = {.to = first, .from = second, .size = 1000};
    CHECK_FAILS(quire_copy(&out, NULL), NOT_PERMITTED);
    CHECK_FAILS(quire_copy(&back, NULL), NOT_PERMITTED);
    CHECK(end_capture(blocking));
    CHECK_OK(quire_copy(&out, NULL));
    CHECK_OK(quire_free(here, a));
    CHECK_OK(quire_free(there, c));
    end();
}

/* ---- streams that capture -------------------------------------------------------------------- */

CASE(nothing_is_submitted_to_a_stream_that_captures, begin(NULL))
{
    quire_point none;
    quire_stream *stream = make(), *other = make();
    memories[0] = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    target = allocate(memories[0], sizeof bytes);
    quire_point before = mark(stream), beside = mark(other);
    begin_capture(native_of(stream), QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_FAILS(quire_stream_mark(stream, &none), NOT_PERMITTED);
    CHECK_HAS(quire_last_error(), "capture stream");
    CHECK_FAILS(quire_stream_wait(stream, &beside), NOT_PERMITTED);
    CHECK(has_passed(before)); /* earlier points can be queried */
    CHECK_OK(quire_point_await(&before, QUIRE_FOREVER));
    CHECK(has_passed(mark(other)));
    CHECK(end_capture(native_of(stream)));
    CHECK(has_passed(mark(stream)));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&other));
}

/* The first result of a stream must not be taken for a capability of the device. */
CASE(a_stream_that_captures_when_it_is_wrapped_can_be_marked_later, begin(NULL))
{
    quire_point none;
    quire_stream *stream = NULL;
    begin_capture(unknown, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_OK(quire_cuda_stream_wrap(b.device, unknown, NULL, &stream));
    CHECK_FAILS(quire_stream_mark(stream, &none), NOT_PERMITTED);
    CHECK(end_capture(unknown));
    CHECK(has_passed(mark(stream)));
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(the_default_stream_cannot_be_used_while_one_that_it_waits_for_captures, begin(NULL))
{
    quire_stream *stream = NULL;
    quire_point none;
    CHECK_OK(quire_cuda_stream_wrap(b.device, NULL, NULL, &stream));
    begin_capture(blocking, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_FAILS(quire_stream_mark(stream, &none), NOT_PERMITTED);
    CHECK(end_capture(blocking));
    CHECK(has_passed(mark(stream)));
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(quires_own_stream_is_destroyed_when_it_captures_no_more, begin(NULL))
{
    quire_stream *stream = make(), *other = make();
    qi_cu_stream native = native_of(stream);
    begin_capture(native, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(b.fc->live(FC_STREAM), 4);
    CHECK(end_capture(native));
    CHECK_OK(quire_stream_destroy(&other)); /* destroys both */
    CHECK_EQ(b.fc->live(FC_STREAM), 2);
}

/* ---- with wait_before_release ---------------------------------------------------------------- */

static const quire_cuda_settings WAITS = {.wait_before_release = true};

static void put_off_and_finish(void)
{
    CHECK_OK(quire_free(memories[0], allocate(memories[0], 3 * MIB)));
    trim(memories[0]);
    CHECK(b.fc->live(FC_RESERVATION) >= 1);
}

CASE(a_page_that_must_wait_is_put_off, begin(&WAITS))
{
    quire_stream *own = make(), *wrapped = NULL;
    CHECK_OK(quire_cuda_stream_wrap(b.device, unknown, NULL, &wrapped));
    const qi_cu_stream streams[] = {native_of(own), unknown, blocking, PER_THREAD};
    memories[0] = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    b.fc->reset_counters();
    check_survival(put_off_and_finish, streams, 4);
    CHECK_EQ(b.fc->calls("cuCtxSynchronize"), 0);
    quire_allocation a = allocate(memories[0], 3 * MIB);
    CHECK_EQ(b.fc->live(FC_RESERVATION), 1); /* creating a page finished the others */
    CHECK_OK(quire_free(memories[0], a));
    CHECK_OK(quire_stream_destroy(&wrapped));
    CHECK_OK(quire_stream_destroy(&own));
}

UNIT(cuda_capture, arrays_that_must_wait_are_put_off)
{
    quire_image image;
    const quire_cuda_array_options options = {.width = 200, .height = 100};
    begin(&(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(TILES),
                                 .wait_before_release = true});
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_TILES, NULL);
    CHECK_OK(quire_cuda_array_create(memory, &options, &image));
    begin_capture(blocking, QI_CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_EQ(b.fc->live(FC_ARRAY), 1);
    CHECK(end_capture(blocking));
    CHECK_OK(quire_cuda_array_create(memory, &options, &image));
    CHECK_EQ(b.fc->live(FC_ARRAY), 1);
    CHECK_OK(quire_free(memory, image.allocation));
    end();
}

GROWING_UNIT(cuda_capture, a_page_that_cannot_shrink_now_keeps_its_memory)
{
    const quire_cuda_settings settings = {.chunk_size = 2 * MIB, .wait_before_release = true};
    growing_begin(g, &settings, 8 * MIB, 16 * MIB);
    b = g->b;
    cuda_bench_enter(b.device);
    qi_cu_stream stream = cuda_bench_make_stream(QI_CU_STREAM_DEFAULT);
    begin_capture(stream, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_OK(growing_resize(g, 4 * MIB));
    CHECK_EQ(g->fc->live(FC_MAPPING), 4);
    CHECK(end_capture(stream));
    CHECK_OK(growing_resize(g, 2 * MIB));
    growing_check_handles(g, 2 * MIB, 1);
    cuda_bench_end_stream(stream);
    cuda_bench_leave();
}

/* ---- memory that sleeps ---------------------------------------------------------------------- */

/* A graph fills `filled`, whose chunks lie between those of `source` and of `result`, copies
   `source` to the second chunk of `result`, and copies the end of `filled` behind it. */
typedef struct replayed {
    quire_memory *memory;
    quire_allocation source, filled, result; /* the last one is lazy */
    uint64_t addresses[3];
    qi_cu_exec exec;
} replayed;

#define SOURCE_SIZE (2 * MIB)
#define FILLED_SIZE (3 * MIB)

static uint64_t address_of(const replayed *g, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(g->memory, allocation, &info));
    return info.address;
}

static void capture_graph(replayed *g)
{
    qi_cu_graph graph;
    const uint64_t *at = g->addresses;
    begin_capture(unknown, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemsetD8Async, 3020)(at[1], 0x5a, FILLED_SIZE, unknown), 0);
    CHECK_EQ(
        CUDA_BENCH_CALL(&b, MemcpyDtoDAsync, 3020)(at[2] + 2 * MIB, at[0], SOURCE_SIZE, unknown),
        0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemcpyDtoDAsync, 3020)(at[2] + 4 * MIB, at[1] + FILLED_SIZE - MIB,
                                                        MIB, unknown),
             0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, StreamEndCapture, 10000)(unknown, &graph), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GraphInstantiateWithFlags, 11040)(&g->exec, graph, 0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GraphDestroy, 10000)(graph), 0);
    CHECK_EQ(b.fc->pending(), 0);
}

static replayed begin_replayed(const quire_cuda_settings *settings)
{
    begin_with(cuda_bench_options(NULL, FC_GRAPHS), settings);
    replayed g = {.memory =
                      cuda_bench_memory(&b, QUIRE_CUDA_DEVICE,
                                        &(quire_memory_options){.elastic = true,
                                                                .address_space = 64 * MIB,
                                                                .pages = {.page_size = 2 * MIB}})};
    const quire_allocation_options lazy = {.size = 8 * MIB, .lazy = true, .name = "graph/result"};
    CHECK_OK(quire_allocate(
        g.memory, &(quire_allocation_options){.size = SOURCE_SIZE, .name = "graph/source"},
        &g.source));
    CHECK_OK(quire_allocate(
        g.memory, &(quire_allocation_options){.size = FILLED_SIZE, .name = "graph/filled"},
        &g.filled));
    CHECK_OK(quire_allocate(g.memory, &lazy, &g.result));
    CHECK_OK(quire_back_range(g.memory, &(quire_view){g.result, 2 * MIB, 4 * MIB}, 1));
    g.addresses[0] = address_of(&g, g.source);
    g.addresses[1] = address_of(&g, g.filled);
    g.addresses[2] = address_of(&g, g.result);
    capture_graph(&g);
    return g;
}

static void end_replayed(replayed *g)
{
    CHECK_EQ(CUDA_BENCH_CALL(&b, GraphExecDestroy, 10000)(g->exec), 0);
    CHECK_OK(quire_free(g->memory, g->source));
    CHECK_OK(quire_free(g->memory, g->filled));
    CHECK_OK(quire_free(g->memory, g->result));
    end();
}

static void expect_bytes(const replayed *g, quire_allocation allocation, uint64_t offset,
                         uint64_t size, unsigned char value)
{
    static unsigned char found[4 * MIB];
    CHECK_OK(quire_read(g->memory, allocation, offset, found, size));
    for (uint64_t i = 0; i < size; i++)
        if (found[i] != value)
            check_failed(__FILE__, __LINE__, "byte %" PRIu64 " is %u, not %u", offset + i, found[i],
                         value);
}

static void write_bytes(const replayed *g, quire_allocation allocation, uint64_t offset,
                        uint64_t size, unsigned char value)
{
    static unsigned char written[4 * MIB];
    memset(written, value, size);
    CHECK_OK(quire_write(g->memory, allocation, offset, written, size));
}

static void launch(const replayed *g, qi_cu_stream stream)
{
    CHECK_EQ(CUDA_BENCH_CALL(&b, GraphLaunch, 10000)(g->exec, stream), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, StreamSynchronize, 2000)(stream), 0);
}

/* Overwrites what the graph writes, and launches it: all of its bytes are there. */
static void expect_replay(const replayed *g, qi_cu_stream stream, unsigned char value)
{
    write_bytes(g, g->source, 0, SOURCE_SIZE, value);
    write_bytes(g, g->filled, 0, FILLED_SIZE, 1);
    write_bytes(g, g->result, 2 * MIB, 4 * MIB, 2);
    launch(g, stream);
    expect_bytes(g, g->source, 0, SOURCE_SIZE, value);
    expect_bytes(g, g->filled, 0, FILLED_SIZE, 0x5a);
    expect_bytes(g, g->result, 2 * MIB, 2 * MIB, value);
    expect_bytes(g, g->result, 4 * MIB, MIB, 0x5a);
    expect_bytes(g, g->result, 5 * MIB, MIB, 2);
}

static void expect_addresses(const replayed *g)
{
    CHECK_EQ(address_of(g, g->source), g->addresses[0]);
    CHECK_EQ(address_of(g, g->filled), g->addresses[1]);
    CHECK_EQ(address_of(g, g->result), g->addresses[2]);
}

static uint64_t put_to_sleep(const replayed *g, quire_sleep_mode mode)
{
    uint64_t slept = 0;
    CHECK_OK(quire_memory_trim(g->memory, 0, NULL));
    CHECK_OK(quire_memory_sleep(g->memory, "graph/", mode, NULL, &slept));
    return slept;
}

/* Another memory has the bytes meanwhile, and keeps them: the graph does not write there. */
UNIT(cuda_capture, a_graph_runs_again_after_what_it_uses_has_slept)
{
    replayed g = begin_replayed(NULL);
    expect_replay(&g, unknown, 10);
    const uint64_t bytes_awake = b.fc->usage_of(0).bytes;
    for (unsigned char round = 0; round < 3; round++) {
        uint64_t woken = 0;
        CHECK_EQ(put_to_sleep(&g, QUIRE_SLEEP_KEEP), 10 * MIB);
        CHECK_EQ(b.fc->usage_of(0).bytes, bytes_awake - 10 * MIB);
        replayed other = {.memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL)};
        other.source = allocate(other.memory, 4 * MIB);
        write_bytes(&other, other.source, 0, 4 * MIB, 99);
        CHECK_OK(quire_memory_wake(g.memory, "graph/", &woken));
        CHECK_EQ(woken, 10 * MIB);
        expect_addresses(&g);
        expect_bytes(&g, g.source, 0, SOURCE_SIZE, 10 + round);
        expect_bytes(&g, g.filled, 0, FILLED_SIZE, 0x5a);
        expect_bytes(&g, g.result, 2 * MIB, 2 * MIB, 10 + round);
        expect_replay(&g, round % 2 ? unknown : blocking, 11 + round);
        expect_bytes(&other, other.source, 0, 4 * MIB, 99);
        CHECK_OK(quire_free(other.memory, other.source));
        trim(other.memory);
    }
    CHECK_EQ(put_to_sleep(&g, QUIRE_SLEEP_DISCARD), 10 * MIB);
    CHECK_OK(quire_memory_wake(g.memory, NULL, NULL));
    expect_addresses(&g);
    expect_replay(&g, unknown, 20);
    end_replayed(&g);
}

/* A sleep with a point waits for a launch before it, and keeps what that wrote. */
UNIT(cuda_capture, a_sleep_keeps_what_a_launch_before_its_point_writes)
{
    replayed g = begin_replayed(NULL);
    quire_stream *stream = NULL;
    CHECK_OK(quire_cuda_stream_wrap(b.device, unknown, NULL, &stream));
    expect_replay(&g, unknown, 30);
    write_bytes(&g, g.source, 0, SOURCE_SIZE, 31);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GraphLaunch, 10000)(g.exec, unknown), 0);
    CHECK(b.fc->pending() > 0);
    const quire_point after = mark(stream);
    CHECK_OK(quire_memory_sleep(g.memory, NULL, QUIRE_SLEEP_KEEP, &after, NULL));
    CHECK_EQ(b.fc->pending(), 0);
    CHECK_OK(quire_memory_wake(g.memory, NULL, NULL));
    expect_bytes(&g, g.result, 2 * MIB, 2 * MIB, 31);
    CHECK_OK(quire_stream_destroy(&stream));
    end_replayed(&g);
}

/* A use by a capture stream keeps a range from others; it keeps nothing awake, and it lasts. */
UNIT(cuda_capture, a_use_by_a_capture_stream_outlasts_a_sleep_and_a_hold_refuses_it)
{
    uint64_t slept = 1;
    replayed g = begin_replayed(NULL);
    quire_stream *graph = NULL;
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &graph));
    CHECK_OK(quire_record_use(g.memory, g.source, graph));
    CHECK_OK(quire_allocation_hold(g.memory, g.filled));
    CHECK_FAILS(quire_memory_sleep(g.memory, "graph/", QUIRE_SLEEP_KEEP, NULL, &slept), BUSY);
    CHECK_EQ(slept, 0);
    expect_replay(&g, unknown, 40);
    CHECK_OK(quire_allocation_release(g.memory, g.filled));
    CHECK_EQ(put_to_sleep(&g, QUIRE_SLEEP_KEEP), 10 * MIB);
    CHECK_OK(quire_memory_wake(g.memory, "graph/", NULL));
    expect_replay(&g, unknown, 41);
    CHECK_OK(quire_free(g.memory, g.source)); /* its range stays the graph's */
    const quire_allocation next = allocate(g.memory, SOURCE_SIZE);
    CHECK(address_of(&g, next) != g.addresses[0]);
    write_bytes(&g, next, 0, SOURCE_SIZE, 1);
    launch(&g, unknown);
    expect_bytes(&g, next, 0, SOURCE_SIZE, 1);
    expect_bytes(&g, g.result, 2 * MIB, 2 * MIB, 41);
    CHECK_OK(quire_stream_destroy(&graph));
    CHECK_OK(quire_collect(g.memory, NULL));
    g.source = allocate(g.memory, SOURCE_SIZE);
    CHECK_EQ(address_of(&g, g.source), g.addresses[0]);
    CHECK_OK(quire_free(g.memory, next));
    end_replayed(&g);
}

static const replayed *sleeper;

static void sleep_and_wake(void)
{
    CHECK_EQ(put_to_sleep(sleeper, QUIRE_SLEEP_KEEP), 10 * MIB);
    CHECK_OK(quire_memory_wake(sleeper->memory, NULL, NULL));
    expect_addresses(sleeper);
}

/* The contents are copied outside streams, which a stream that waits for the default stream
   forbids. */
static void sleep_is_refused(void)
{
    uint64_t slept = 1;
    CHECK_FAILS(quire_memory_sleep(sleeper->memory, NULL, QUIRE_SLEEP_KEEP, NULL, &slept),
                NOT_PERMITTED);
    CHECK_EQ(slept, 0);
    CHECK_EQ(put_to_sleep(sleeper, QUIRE_SLEEP_DISCARD), 10 * MIB);
    CHECK_OK(quire_memory_wake(sleeper->memory, NULL, NULL));
}

UNIT(cuda_capture, a_capture_survives_the_sleep_of_other_memory)
{
    replayed g = begin_replayed(NULL);
    const qi_cu_stream waiting[] = {blocking, PER_THREAD};
    sleeper = &g;
    expect_replay(&g, unknown, 50);
    check_survival(sleep_and_wake, &unknown, 1);
    expect_replay(&g, unknown, 51);
    check_survival(sleep_is_refused, waiting, 2);
    expect_replay(&g, unknown, 52);
    end_replayed(&g);
}

/* The memory stays with the page until no capture forbids the wait, and serves it again. */
UNIT(cuda_capture, a_sleep_that_must_wait_for_a_capture_is_complete_and_gives_its_memory_later)
{
    replayed g = begin_replayed(&WAITS);
    quire_stream *wrapped = NULL;
    CHECK_OK(quire_cuda_stream_wrap(b.device, unknown, NULL, &wrapped));
    const uint64_t bytes_awake = b.fc->usage_of(0).bytes;
    for (int wakes_meanwhile = 0; wakes_meanwhile < 2; wakes_meanwhile++) {
        expect_replay(&g, unknown, 60);
        begin_capture(unknown, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
        CHECK_EQ(put_to_sleep(&g, QUIRE_SLEEP_KEEP), 10 * MIB);
        CHECK_EQ(b.fc->usage_of(0).bytes, bytes_awake);
        if (wakes_meanwhile)
            CHECK_OK(quire_memory_wake(g.memory, NULL, NULL));
        CHECK(end_capture(unknown));
        if (!wakes_meanwhile)
            CHECK_OK(quire_memory_wake(g.memory, NULL, NULL));
        CHECK_EQ(b.fc->usage_of(0).bytes, bytes_awake);
        expect_addresses(&g);
        expect_bytes(&g, g.source, 0, SOURCE_SIZE, 60);
        expect_replay(&g, unknown, 61);
    }
    CHECK_OK(quire_stream_destroy(&wrapped));
    end_replayed(&g);
}

/* ---- other devices with access --------------------------------------------------------------- */

static fc_options two_devices(void)
{
    fc_options driver = cuda_bench_options(NULL, 0);
    driver.models[1] = driver.models[0];
    driver.peers[0] = 2, driver.peers[1] = 1;
    return driver;
}

/* A stream of device 1, whose primary context quire's device 1 keeps. Its context is current. */
static qi_cu_stream begin_peer(void)
{
    CHECK(cuda_bench_open_peer(&b, NULL));
    cuda_bench_enter(b.peer);
    return cuda_bench_make_stream(QI_CU_STREAM_NON_BLOCKING);
}

static void end_peer(qi_cu_stream stream)
{
    cuda_bench_end_stream(stream);
    cuda_bench_leave();
    end();
}

/* The fake driver adds a message if work uses memory that is unmapped. */
UNIT(cuda_capture, work_of_devices_with_access_is_waited_for)
{
    for (int granted = 0; granted < 2; granted++) {
        const int peers[] = {1};
        quire_cuda_settings settings = {.wait_before_release = true};
        settings.peers = granted ? NULL : peers;
        settings.peer_count = !granted;
        begin_with(two_devices(), &settings);
        quire_cuda_range range;
        quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
        quire_allocation a = allocate(memory, 3 * MIB);
        const quire_cuda_access access = {
            .location = QUIRE_CUDA_AT_DEVICE, .id = 1, .flags = QUIRE_CUDA_READ_WRITE};
        if (granted)
            CHECK_OK(quire_cuda_set_access(memory, a, &access, 1));
        CHECK_OK(quire_cuda_get_range(memory, a, &range));
        qi_cu_stream stream = begin_peer();
        CHECK_EQ(CUDA_BENCH_CALL(&b, MemsetD8Async, 3020)(range.address, 1, 4096, stream), 0);
        CHECK(b.fc->pending() > 0);
        CHECK_OK(quire_free(memory, a));
        trim(memory);
        CHECK_EQ(b.fc->pending(), 0);
        end_peer(stream);
    }
}

UNIT(cuda_capture, a_device_with_access_that_captures_puts_the_page_off)
{
    const int peers[] = {1};
    begin_with(two_devices(), &(quire_cuda_settings){
                                  .peers = peers, .peer_count = 1, .wait_before_release = true});
    quire_stream *wrapped = NULL;
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    quire_allocation a = allocate(memory, 3 * MIB);
    qi_cu_stream stream = begin_peer();
    CHECK_OK(quire_cuda_stream_wrap(b.peer, stream, NULL, &wrapped));
    begin_capture(stream, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_OK(quire_free(memory, a));
    trim(memory);
    CHECK_EQ(b.fc->live(FC_RESERVATION), 1);
    CHECK(end_capture(stream));
    a = allocate(memory, 3 * MIB);
    CHECK_EQ(b.fc->live(FC_RESERVATION), 1);
    CHECK_OK(quire_free(memory, a));
    CHECK_OK(quire_stream_destroy(&wrapped));
    end_peer(stream);
}

UNIT(cuda_capture, devices_without_access_or_work_are_left_alone)
{
    begin_with(two_devices(), &WAITS);
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    quire_memory *pinned = cuda_bench_memory(&b, QUIRE_CUDA_PINNED, NULL);
    b.fc->reset_counters();
    CHECK_OK(quire_free(pinned, allocate(pinned, 3 * MIB))); /* its context is not active */
    trim(pinned);
    CHECK_EQ(b.fc->calls("cuDevicePrimaryCtxRetain"), 0);
    qi_cu_stream stream = begin_peer();
    begin_capture(stream, QI_CU_STREAM_CAPTURE_MODE_GLOBAL);
    b.fc->reset_counters();
    CHECK_OK(quire_free(memory, allocate(memory, 3 * MIB)));
    trim(memory);
    CHECK_EQ(b.fc->calls("cuCtxSynchronize"), 1);
    CHECK(end_capture(stream));
    end_peer(stream);
}
