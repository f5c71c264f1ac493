/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_capture.c - the CUDA backend while streams capture graphs, on the fake driver: a graph
 * survives what quire does, in every capture mode, from the thread that captures and from another.
 */
#include <pthread.h>

#include "quire/cuda_array.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/cuda_growing.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"

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

static bool end_capture(qi_cu_stream stream)
{
    qi_cu_graph graph;
    return !CUDA_BENCH_CALL(&b, StreamEndCapture, 10000)(stream, &graph);
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
