/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_capture.c - random operations on memories of the CUDA backend, on the fake driver, while
 * streams capture graphs: of every kind, in every mode, begun by one thread or another. No graph
 * may be invalidated, and no operation may fail that a capture does not forbid.
 *
 *     cuda_capture [--steps N] [--seed N]
 */
#include "tests/support/plain.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "quire/cuda_array.h"
#include "src/base/atomic.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/random.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define PER_THREAD ((qi_cu_stream)(uintptr_t)QI_CU_STREAM_PER_THREAD)
#define NOT_PERMITTED QUIRE_ERROR_NOT_PERMITTED

enum { MEMORIES = 5, ALLOCATIONS = 12, STEPS_A_WORLD = 500 };

/* The streams of a world. Those that quire knows have a record. */
enum { BLOCKING, UNKNOWN, WRAPPED, GREEN, QUIRES, FIRST_OWN, SECOND_OWN, LEGACY, STREAMS };

typedef struct test_stream {
    qi_cu_stream native;
    quire_stream *known;
    bool is_blocking; /* the legacy default stream waits for it */
    int thread;       /* whose default stream it is; -1: of none */
    bool is_capturing;
    qi_cu_capture_mode mode;
    int beginner; /* the thread that began the capture */
} test_stream;

typedef struct test_allocation {
    quire_allocation handle;
    int memory;
    int stream; /* the last one that used it; -1: none */
} test_allocation;

static test_random rng;
static uint64_t total_steps;
static bool waits;
static cuda_bench b;
static qi_cu_context context;
static qi_cu_green green;
static quire_memory *memories[MEMORIES]; /* the last one has tile pools */
static test_stream streams[STREAMS];
static test_allocation allocations[ALLOCATIONS];
static int count;
static uint64_t graphs, refused, released;

static int below(uint64_t n)
{
    return (int)random_below(&rng, n);
}

/* ---- the second thread, which does what the first one tells ---------------------------------- */

static sem_t begins, ends;
static void (*task)(void);
static int current; /* the thread that runs */

static void *serve(void *user)
{
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxPushCurrent, 4000)(context), 0);
    for (;;) {
        sem_wait(&begins);
        if (!task)
            break;
        task();
        sem_post(&ends);
    }
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxPopCurrent, 4000)(NULL), 0);
    return user;
}

static void in_thread(int thread, void (*steps)(void))
{
    current = thread;
    if (thread == 0) {
        steps();
        return;
    }
    task = steps;
    sem_post(&begins);
    sem_wait(&ends);
}

/* ---- captures -------------------------------------------------------------------------------- */

/* Whether the driver would refuse work: the stream captures, or another that the legacy default
   stream waits for, which other threads use instead of a thread's default stream. */
static bool is_unusable(int number)
{
    const test_stream *s = &streams[number];
    bool is_legacy = number == LEGACY || (s->thread >= 0 && s->thread != current);
    if (!is_legacy)
        return s->is_capturing;
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].is_blocking && streams[i].is_capturing)
            return true;
    return false;
}

static int chosen; /* the stream of the step */

static void begin_capture(void)
{
    test_stream *s = &streams[chosen];
    s->mode = (qi_cu_capture_mode)below(3);
    s->is_capturing = true;
    s->beginner = current;
    CHECK_EQ(CUDA_BENCH_CALL(&b, StreamBeginCapture, 10010)(s->native, s->mode), 0);
}

static void end_capture(void)
{
    qi_cu_graph graph;
    test_stream *s = &streams[chosen];
    s->is_capturing = false;
    graphs++;
    if (CUDA_BENCH_CALL(&b, StreamEndCapture, 10000)(s->native, &graph))
        check_failed(__FILE__, __LINE__, "the graph of stream %d, mode %u, is invalid", chosen,
                     s->mode);
}

/* Only the thread itself reaches its default stream, and only the thread that began a capture ends
   it, unless it is relaxed. */
static void change_capture(int number)
{
    const test_stream *s = &streams[number];
    int thread = s->thread >= 0                                                    ? s->thread
                 : s->is_capturing && s->mode != QI_CU_STREAM_CAPTURE_MODE_RELAXED ? s->beginner
                                                                                   : below(2);
    chosen = number;
    if (number == LEGACY || (number == UNKNOWN && waits))
        return; /* the one never captures; the other breaks if quire waits, as documented */
    in_thread(thread, s->is_capturing ? end_capture : begin_capture);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The result of an operation that a capture may forbid. */
static void expect(quire_result result, bool is_forbidden)
{
    refused += result == NOT_PERMITTED;
    if (result != (is_forbidden ? NOT_PERMITTED : QUIRE_SUCCESS))
        check_failed(__FILE__, __LINE__, "%d, %s: %s", (int)result,
                     is_forbidden ? "forbidden" : "permitted", quire_last_error());
}

/* A stream that quire knows and on which this thread may allocate. */
static int usable_stream(void)
{
    int number = WRAPPED + below(STREAMS - WRAPPED);
    const test_stream *s = &streams[number];
    return s->thread >= 0 && s->thread != current ? QUIRES : number;
}

static void add(quire_allocation handle, int memory, int stream)
{
    allocations[count++] = (test_allocation){handle, memory, stream};
}

static void allocate(void)
{
    quire_allocation made;
    int memory = below(MEMORIES - 1), stream = below(4) ? -1 : usable_stream();
    const quire_allocation_options options = {
        .size = 1 + random_below(&rng, 4 * MIB),
        .stream = stream < 0 ? NULL : streams[stream].known,
    };
    if (count == ALLOCATIONS)
        return;
    expect(quire_allocate(memories[memory], &options, &made), false);
    add(made, memory, stream);
}

static void make_array(void)
{
    quire_image image;
    const quire_cuda_array_options options = {.width = (uint32_t)(2 + below(300)),
                                              .height = (uint32_t)(2 + below(300)),
                                              .levels = (uint32_t)below(3),
                                              .sparse = below(2)};
    if (count == ALLOCATIONS)
        return;
    expect(quire_cuda_array_create(memories[MEMORIES - 1], &options, &image), false);
    add(image.allocation, MEMORIES - 1, -1);
}

/* Frees in the order of the stream that used it. The first mark of a stream cannot be put off. */
static void free_one(void)
{
    if (!count)
        return;
    int at = below((uint64_t)count);
    test_allocation a = allocations[at];
    quire_result result =
        a.stream < 0 ? quire_free(memories[a.memory], a.handle)
                     : quire_free_on_stream(memories[a.memory], a.handle, streams[a.stream].known);
    if (result)
        expect(result, a.stream >= 0 && is_unusable(a.stream));
    else
        allocations[at] = allocations[--count];
}

/* Work on an allocation that no other stream uses. */
static void fill_on_stream(void)
{
    if (!count)
        return;
    test_allocation *a = &allocations[below((uint64_t)count)];
    int stream = a->stream < 0 ? usable_stream() : a->stream;
    const quire_fill_options options = {.value = 1, .stream = streams[stream].known};
    if (a->memory == MEMORIES - 1)
        return;
    a->stream = stream;
    expect(quire_fill(memories[a->memory], a->handle, &options, NULL), is_unusable(stream));
}

/* Memory that the host does not reach is copied in the default stream. */
static void copy_now(void)
{
    unsigned char byte = 3;
    if (!count)
        return;
    const test_allocation *a = &allocations[below((uint64_t)count)];
    if (a->memory == MEMORIES - 1 || a->stream >= 0)
        return;
    bool by_host = a->memory == 2; /* page-locked */
    expect(quire_write(memories[a->memory], a->handle, 0, &byte, 1),
           !by_host && is_unusable(LEGACY));
    expect(quire_read(memories[a->memory], a->handle, 0, &byte, 1),
           !by_host && is_unusable(LEGACY));
}

static void mark_stream(void)
{
    quire_point point;
    bool passed = false;
    int stream = WRAPPED + below(STREAMS - WRAPPED);
    quire_result result = quire_stream_mark(streams[stream].known, &point);
    expect(result, is_unusable(stream));
    if (result)
        return;
    CHECK_OK(quire_point_has_passed(&point, &passed));
    if (below(2))
        CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

static void order_streams(void)
{
    quire_point point;
    int earlier = WRAPPED + below(STREAMS - WRAPPED), later = WRAPPED + below(STREAMS - WRAPPED);
    if (is_unusable(earlier) || earlier == later)
        return;
    CHECK_OK(quire_stream_mark(streams[earlier].known, &point));
    expect(quire_stream_wait(streams[later].known, &point), is_unusable(later));
}

/* Reports marks that a capture forbids, which are set later. */
static void collect(void)
{
    bool any = false;
    for (int i = WRAPPED; i < STREAMS; i++)
        any |= is_unusable(i);
    for (int i = 0; i < MEMORIES; i++) {
        quire_result result = quire_collect(memories[i], NULL);
        if (result)
            expect(result, any);
    }
}

static void trim(void)
{
    for (int i = 0; i < MEMORIES; i++)
        CHECK_OK(quire_memory_trim(memories[i], 0, NULL));
}

static void make_stream(void)
{
    quire_stream *made = NULL;
    CHECK_OK(quire_stream_create(b.device, NULL, &made));
    CHECK_OK(quire_stream_destroy(&made));
}

static void set_access(void)
{
    const quire_cuda_access access = {
        .location = QUIRE_CUDA_AT_DEVICE, .id = 1, .flags = QUIRE_CUDA_READ_WRITE};
    if (count && allocations[0].memory == 0)
        CHECK_OK(quire_cuda_set_access(memories[0], allocations[0].handle, &access, 1));
}

static void advance(void)
{
    b.fc->advance((uint64_t)below(4));
}

static void (*const OPERATIONS[])(void) = {
    allocate, allocate, allocate,       allocate,    make_array,    free_one, free_one,
    free_one, free_one, copy_now,       mark_stream, order_streams, collect,  trim,
    trim,     trim,     fill_on_stream, set_access,  make_stream,   advance,
};

static void step(void)
{
    if (!below(6))
        change_capture(below(STREAMS));
    in_thread(below(2), OPERATIONS[below(sizeof OPERATIONS / sizeof *OPERATIONS)]);
}

/* ---- worlds ---------------------------------------------------------------------------------- */

static void wrap_own(void)
{
    CHECK_OK(quire_cuda_stream_wrap(b.device, PER_THREAD, NULL, &streams[chosen].known));
}

static qi_cu_stream create(unsigned flags)
{
    qi_cu_stream made = NULL;
    CHECK_EQ(CUDA_BENCH_CALL(&b, StreamCreate, 2000)(&made, flags), 0);
    return made;
}

static void begin_streams(void)
{
    static char part;
    void *native = NULL;
    for (int i = 0; i < STREAMS; i++)
        streams[i] = (test_stream){.thread = -1};
    streams[BLOCKING] = (test_stream){.native = create(0), .is_blocking = true, .thread = -1};
    streams[UNKNOWN].native = create(QI_CU_STREAM_NON_BLOCKING);
    streams[WRAPPED].native = create(QI_CU_STREAM_NON_BLOCKING);
    CHECK_EQ(
        CUDA_BENCH_CALL(&b, GreenCtxCreate, 12040)(&green, (qi_cu_resources)(void *)&part, 0, 1),
        0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GreenCtxStreamCreate, 12050)(&streams[GREEN].native, green,
                                                              QI_CU_STREAM_NON_BLOCKING, 0),
             0);
    for (int i = WRAPPED; i <= GREEN; i++)
        CHECK_OK(quire_cuda_stream_wrap(b.device, streams[i].native, NULL, &streams[i].known));
    CHECK_OK(quire_cuda_stream_wrap(b.device, NULL, NULL, &streams[LEGACY].known));
    CHECK_OK(quire_stream_create(b.device, NULL, &streams[QUIRES].known));
    CHECK_OK(quire_cuda_stream_get(streams[QUIRES].known, &native));
    streams[QUIRES].native = native;
    for (chosen = FIRST_OWN; chosen <= SECOND_OWN; chosen++) {
        streams[chosen] =
            (test_stream){.native = PER_THREAD, .is_blocking = true, .thread = chosen - FIRST_OWN};
        in_thread(chosen - FIRST_OWN, wrap_own);
    }
}

static void begin_memories(void)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_DEVICE, QUIRE_CUDA_PLAIN,
                                                 QUIRE_CUDA_PINNED, QUIRE_CUDA_DEVICE,
                                                 QUIRE_CUDA_TILES};
    for (int i = 0; i < MEMORIES; i++) {
        quire_memory_options options = {.pages = {.page_size = 2 * MIB}};
        if (i == 3) /* one page whose chunks come and go */
            options = (quire_memory_options){.elastic = true, .address_space = 256 * MIB};
        memories[i] = cuda_bench_memory(&b, kinds[i], &options);
        CHECK(memories[i]);
    }
}

static pthread_t begin_world(void)
{
    pthread_t thread;
    quire_cuda_info info;
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PLAIN) | CUDA_KIND(PINNED) | CUDA_KIND(TILES),
        .chunk_size = below(2) ? 2 * MIB : 0,
        .kept_bytes = below(2) ? 8 * MIB : 0,
        .wait_before_release = waits,
    };
    fc_options driver = cuda_bench_options(NULL, FC_UNSAFE_CALLS | FC_LATE);
    driver.models[1] = driver.models[0];
    driver.peers[0] = 2, driver.peers[1] = 1;
    cuda_bench_begin(&b, &driver);
    CHECK(cuda_bench_open(&b, &settings));
    CHECK_OK(quire_cuda_get_info(b.device, &info));
    context = info.context;
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxPushCurrent, 4000)(context), 0);
    CHECK(!sem_init(&begins, 0, 0) && !sem_init(&ends, 0, 0));
    CHECK(!pthread_create(&thread, NULL, serve, NULL));
    begin_memories();
    begin_streams();
    return thread;
}

static const char *const RELEASES[] = {"cuMemUnmap", "cuMemFree", "cuMemFreeHost", "cuArrayDestroy",
                                       "cuMipmappedArrayDestroy"};

static void end_world(pthread_t thread)
{
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].is_capturing)
            change_capture(i);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxSynchronize, 2000)(), 0); /* no free is followed by work */
    current = 0;
    count = 0;
    for (int i = 0; i < MEMORIES; i++)
        quire_memory_destroy_all(&b.memories[i]);
    b.memory_count = 0;
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].known)
            CHECK_OK(quire_stream_destroy(&streams[i].known));
    for (int i = 0; i <= GREEN; i++)
        CHECK_EQ(CUDA_BENCH_CALL(&b, StreamDestroy, 4000)(streams[i].native), 0);
    task = NULL;
    sem_post(&begins);
    CHECK(!pthread_join(thread, NULL));
    CHECK_EQ(CUDA_BENCH_CALL(&b, GreenCtxDestroy, 12040)(green), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxPopCurrent, 4000)(NULL), 0);
    for (size_t i = 0; i < sizeof RELEASES / sizeof *RELEASES; i++)
        released += b.fc->calls(RELEASES[i]);
    if (b.fc->message_count())
        check_failed(__FILE__, __LINE__, "%s", b.fc->message(0));
    cuda_bench_end(&b);
}

static void run(void)
{
    graphs = refused = released = 0;
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        pthread_t thread = begin_world();
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step();
        end_world(thread);
    }
    printf("# %" PRIu64 " graphs, %" PRIu64 " operations refused, %" PRIu64
           " pages and arrays released\n",
           graphs, refused, released);
    CHECK(total_steps < 1000 || (graphs > total_steps / 50 && refused > total_steps / 100 &&
                                 released > total_steps / (waits ? 50 : 10)));
}

static void without_waits(void)
{
    waits = false;
    run();
}

static void with_waits(void)
{
    waits = true;
    run();
}

/* ---- threads at the same time ---------------------------------------------------------------- */

/* A checked build writes red zones into the pages with copies outside streams. A capture of another
   thread that begins during such a copy is invalid. */
#ifndef QUIRE_CHECKED
static qi_atomic_u32 is_over;

static void *work_until_over(void *memory)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    while (!qi_atomic_load_acquire_u32(&is_over)) {
        quire_allocation made;
        const quire_allocation_options options = {.size = 3 * MIB};
        CHECK_OK(quire_allocate(memory, &options, &made));
        CHECK_OK(quire_free_on_stream(memory, made, stream));
        CHECK_OK(quire_collect(memory, NULL));
        CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    CHECK_OK(quire_stream_destroy(&stream));
    return NULL;
}

static void with_threads_at_work(void)
{
    static const int numbers[] = {UNKNOWN, BLOCKING, FIRST_OWN, GREEN};
    pthread_t second, threads[3];
    waits = false;
    second = begin_world();
    qi_atomic_store_release_u32(&is_over, 0);
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_create(&threads[i], NULL, work_until_over, memories[i]));
    for (uint64_t i = 0; i < total_steps / 10 && i < 500; i++) {
        current = 0;
        chosen = numbers[i % 4];
        begin_capture();
        sched_yield();
        end_capture();
    }
    qi_atomic_store_release_u32(&is_over, 1);
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_join(threads[i], NULL));
    end_world(second);
}
#endif

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 2000);
    rng.state = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " of each kind\n", rng.state, total_steps);
    plain_case("captures while nothing waits", without_waits);
    plain_case("captures while releases wait for work", with_waits);
#ifdef QUIRE_CHECKED
    plain_skip("captures while threads work all the time", "red zones are copied outside streams");
#else
    plain_case("captures while threads work all the time", with_threads_at_work);
#endif
    return plain_end();
}
