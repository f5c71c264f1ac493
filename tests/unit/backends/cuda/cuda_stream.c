/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_stream.c - streams of the CUDA backend on the fake driver, whose clock the tests advance:
   points, waits, order, work, streams of the caller, lost devices and forks. */
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/system.h"
#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define BUSY QUIRE_ERROR_BUSY
#define NOT_PERMITTED QUIRE_ERROR_NOT_PERMITTED
#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

static cuda_bench b;
static quire_memory *memory;
static unsigned char in[1000], out[1000];

static void begin_with(const fc_options *options)
{
    cuda_bench_start(&b, options);
    memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE,
                               &(quire_memory_options){.pages = {.page_size = 2 * MIB}});
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 7 + 3);
    memset(out, 0, sizeof out);
}

/* Work runs when the test advances the clock. */
static void begin(void)
{
    fc_options options = cuda_bench_options(NULL, FC_LATE);
    begin_with(&options);
}

#define CASE(name, begin) UNIT_WITHIN(cuda_stream, name, begin, cuda_bench_end(&b))

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

static quire_copy_job job_of(const quire_native *to, const quire_native *from, uint64_t size)
{
    return (quire_copy_job){
        .to = to ? &to->page : NULL,
        .to_offset = to ? to->offset : 0,
        .host_to = to ? NULL : out,
        .from = from ? &from->page : NULL,
        .from_offset = from ? from->offset : 0,
        .host_from = from ? NULL : in,
        .size = size,
    };
}

static void await(quire_point point)
{
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

CASE(copies_and_fills_are_done_in_order, begin())
{
    quire_stream *stream = make();
    quire_native first = range_of(memory, 1000), second = range_of(memory, 1000);
    CHECK_OK(copy_job(b.device, stream, job_of(&first, NULL, 1000)));
    CHECK_OK(copy_job(b.device, stream, job_of(&second, &first, 1000)));
    CHECK_OK(fill_range(b.device, stream, &first, 1000, 0x5a));
    CHECK_OK(fill_range(b.device, stream, &second, 10, 0xff));
    quire_point point = mark(stream);
    CHECK_EQ(b.fc->pending(), 4);
    CHECK(!has_passed(point));
    b.fc->advance(3);
    CHECK(!has_passed(point));
    b.fc->advance(1);
    CHECK(has_passed(point));
    CHECK_OK(copy_job(b.device, stream, job_of(NULL, &second, 1000)));
    await(mark(stream));
    memset(in, 0xff, 10);
    CHECK(!memcmp(in, out, 1000));
    CHECK_OK(quire_stream_destroy(&stream));
}

/* Copies as planes, and row by row if the driver has no plane copies or rows overlap. */
static void copy_rows(bool has_planes, uint64_t from_row)
{
    fc_options options = cuda_bench_options(NULL, FC_LATE);
    cuda_bench_begin(&b, &options);
    if (!has_planes)
        CHECK(b.fc->hide("cuMemcpy2DAsync"));
    CHECK(cuda_bench_open(&b, NULL));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE,
                               &(quire_memory_options){.pages = {.page_size = 2 * MIB}});
    quire_stream *stream = make();
    quire_native page = range_of(memory, 1000);
    CHECK_OK(fill_range(b.device, stream, &page, 1000, 0));
    quire_copy_job job = job_of(&page, NULL, 30);
    job.rows = 3, job.slices = 2;
    job.to_row = 100, job.to_slice = 400;
    job.from_row = from_row, job.from_slice = 200;
    CHECK_OK(copy_job(b.device, stream, job));
    CHECK_OK(copy_job(b.device, stream, job_of(NULL, &page, 1000)));
    await(mark(stream));
    for (uint64_t slice = 0; slice < 2; slice++)
        for (uint64_t row = 0; row < 3; row++) {
            const unsigned char *got = out + slice * 400 + row * 100;
            CHECK(!memcmp(got, in + slice * 200 + row * from_row, 30));
            CHECK_EQ(got[30], 0);
        }
    CHECK_EQ(b.fc->calls("cuMemcpy2DAsync"), has_planes && from_row >= 30 ? 2 : 0);
    CHECK_OK(quire_stream_destroy(&stream));
    cuda_bench_end(&b);
}

UNIT(cuda_stream, rows_and_slices_are_copied_with_their_strides)
{
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 7 + 3);
    copy_rows(true, 50);
    copy_rows(false, 50);
    copy_rows(true, 10);
}

UNIT(cuda_stream, copies_between_devices_or_unsupported)
{
    for (int hidden = 0; hidden < 2; hidden++) {
        fc_options options = cuda_bench_options(NULL, FC_LATE);
        options.models[1] = options.models[0];
        options.peers[0] = 2;
        options.peers[1] = 1;
        cuda_bench_begin(&b, &options);
        if (hidden)
            CHECK(b.fc->hide("cuMemcpyPeerAsync"));
        CHECK(cuda_bench_open(&b, NULL));
        memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
        quire_device *other = NULL;
        quire_memory *there = NULL;
        quire_allocation made;
        quire_native source;
        const quire_cuda_options second = {.device = "1", .library = FAKE_CUDA_LIBRARY};
        CHECK_OK(quire_cuda_open(&second, &other));
        CHECK_OK(quire_memory_create(other, &(quire_memory_options){.kind.mask = 1}, &there));
        CHECK_OK(quire_allocate(there, &(quire_allocation_options){.size = 1000}, &made));
        CHECK_OK(quire_write(there, made, 0, in, 1000));
        CHECK_OK(quire_allocation_get_native(there, made, &source));
        quire_native target = range_of(memory, 1000);
        quire_stream *stream = make();
        quire_copy_job job = job_of(&target, &source, 1000);
        job.to_state = quire_device_state(b.device);
        job.from_state = quire_device_state(other);
        CHECK_EQ(copy_job(b.device, stream, job), hidden ? UNSUPPORTED : QUIRE_SUCCESS);
        if (!hidden) {
            CHECK_OK(copy_job(b.device, stream, job_of(NULL, &target, 1000)));
            await(mark(stream));
            CHECK(!memcmp(in, out, 1000));
        }
        CHECK_OK(quire_stream_destroy(&stream));
        quire_memory_destroy_all(&there);
        CHECK_OK(quire_device_destroy(&other));
        cuda_bench_end(&b);
    }
}

/* ---- points --------------------------------------------------------------------------------- */

CASE(points_pass_in_order_and_their_events_are_used_again, begin())
{
    quire_stream *stream = make();
    quire_native page = range_of(memory, 1000);
    for (int round = 0; round < 50; round++) {
        quire_point points[4];
        for (int i = 0; i < 4; i++) {
            CHECK_OK(fill_range(b.device, stream, &page, 1000, (uint8_t)i));
            points[i] = mark(stream);
            if (i)
                CHECK(points[i].value > points[i - 1].value);
        }
        for (int i = 0; i < 4; i++) {
            b.fc->advance(1);
            CHECK(has_passed(points[i]));
            if (i < 3)
                CHECK(!has_passed(points[i + 1]));
        }
    }
    CHECK_EQ(b.fc->live(FC_EVENT), 4);
    for (int i = 0; i < 20; i++)
        (void)mark(stream); /* no query is needed: a mark reuses events that have passed */
    CHECK_EQ(b.fc->live(FC_EVENT), 4);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(b.fc->live(FC_EVENT), 0);
}

CASE(waiting_has_a_limit_or_the_driver_sleeps, begin())
{
    quire_stream *stream = make();
    quire_native page = range_of(memory, 1000);
    CHECK_OK(fill_range(b.device, stream, &page, 1000, 1));
    quire_point point = mark(stream);
    CHECK_FAILS(quire_point_await(&point, 0), BUSY);
    uint64_t before = qi_clock();
    CHECK_FAILS(quire_point_await(&point, SECOND / 50), BUSY);
    CHECK(qi_clock() - before >= SECOND / 50);
    CHECK(b.fc->calls("cuEventQuery") < 40); /* it sleeps between queries */
    CHECK_EQ(b.fc->calls("cuEventSynchronize"), 0);
    await(point);
    CHECK_EQ(b.fc->calls("cuEventSynchronize"), 1);
    CHECK_EQ(b.fc->pending(), 0);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(a_stream_comes_after_the_point_of_another, begin())
{
    quire_stream *first = make(), *second = make();
    quire_native page = range_of(memory, 1000);
    CHECK_OK(copy_job(b.device, first, job_of(&page, NULL, 1000)));
    CHECK_OK(fill_range(b.device, first, &page, 500, 9));
    quire_point point = mark(first);
    CHECK_OK(quire_stream_wait(second, &point));
    CHECK_OK(fill_range(b.device, second, &page, 1000, 7));
    quire_point last = mark(second);
    b.fc->advance(1);
    CHECK(!has_passed(point) && !has_passed(last));
    await(last);
    CHECK(has_passed(point));
    CHECK_OK(copy_job(b.device, second, job_of(NULL, &page, 1000)));
    await(mark(second));
    CHECK_EQ(out[0], 7);
    uint64_t waits = b.fc->calls("cuStreamWaitEvent");
    CHECK_OK(quire_stream_wait(second, &point)); /* it has passed */
    CHECK_EQ(b.fc->calls("cuStreamWaitEvent"), waits);
    CHECK_OK(quire_stream_destroy(&first));
    CHECK_OK(quire_stream_destroy(&second));
}

/* ---- the caller's streams ------------------------------------------------------------------- */

CASE(a_stream_of_the_callers_is_used_and_stays, begin())
{
    cuda_bench_make_context(&b); /* a second context with a stream that is foreign to the device */
    quire_stream *stream = NULL;
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxPushCurrent, 4000)(b.context), 0);
    qi_cu_stream foreign = cuda_bench_make_stream(0);
    cuda_bench_leave();
    cuda_bench_enter(b.device);
    qi_cu_stream theirs = cuda_bench_make_stream(0);
    cuda_bench_leave();
    CHECK_FAILS(quire_cuda_stream_wrap(b.device, foreign, NULL, &stream), INVALID);
    CHECK_HAS(quire_last_error(), "another context");
    CHECK(!stream);
    CHECK_OK(quire_cuda_stream_wrap(b.device, theirs, "theirs", &stream));
    CHECK(native_of(stream) == theirs);
    quire_native page = range_of(memory, 1000);
    CHECK_OK(fill_range(b.device, stream, &page, 1000, 1));
    await(mark(stream));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(b.fc->live(FC_STREAM), 2);
    cuda_bench_end_stream(theirs);
    cuda_bench_end_stream(foreign);
}

/* A green context has streams of the device, but its own context. */
typedef struct green {
    qi_cu_green context;
    qi_cu_stream stream;
} green;

static green begin_green(const char *hidden, qi_cu_device device)
{
    static char part;
    green made;
    fc_options options = cuda_bench_options(NULL, FC_LATE);
    options.models[1] = options.models[0];
    cuda_bench_begin(&b, &options);
    if (hidden)
        CHECK(b.fc->hide(hidden));
    CHECK(cuda_bench_open(&b, NULL));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, NULL);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GreenCtxCreate, 12040)(&made.context,
                                                        (qi_cu_resources)(void *)&part, device, 1),
             0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GreenCtxStreamCreate, 12050)(&made.stream, made.context,
                                                              QI_CU_STREAM_NON_BLOCKING, 0),
             0);
    return made;
}

static void end_green(const green *made)
{
    cuda_bench_end_stream(made->stream);
    CHECK_EQ(CUDA_BENCH_CALL(&b, GreenCtxDestroy, 12040)(made->context), 0);
    cuda_bench_end(&b);
}

UNIT(cuda_stream, a_stream_of_a_green_context_works_on_its_device)
{
    static const char *const hidden[] = {NULL, "cuStreamGetDevice"};
    for (int i = 0; i < 2; i++) {
        quire_stream *stream = NULL;
        green made = begin_green(hidden[i], 0);
        CHECK_OK(quire_cuda_stream_wrap(b.device, made.stream, NULL, &stream));
        quire_native page = range_of(memory, 1000);
        CHECK_OK(fill_range(b.device, stream, &page, 1000, 1));
        quire_point point = mark(stream);
        CHECK(!has_passed(point));
        await(point);
        CHECK_OK(quire_stream_destroy(&stream));
        end_green(&made);
    }
}

UNIT(cuda_stream, a_stream_of_another_devices_green_context_is_refused)
{
    static const char *const hidden[] = {NULL, "cuStreamGetDevice", "cuStreamGetGreenCtx"};
    for (int i = 0; i < 3; i++) {
        quire_stream *stream = NULL;
        green made = begin_green(hidden[i], 1);
        CHECK_FAILS(quire_cuda_stream_wrap(b.device, made.stream, NULL, &stream), INVALID);
        CHECK_HAS(quire_last_error(), i < 2 ? "device 1, not to device 0" : "another context");
        end_green(&made);
    }
}

UNIT(cuda_stream, questions_about_a_green_context_may_fail)
{
    static const struct {
        const char *hidden, *function;
        uint64_t call;
    } steps[] = {{NULL, "cuStreamGetCtx", 1},
                 {NULL, "cuStreamGetGreenCtx", 1},
                 {NULL, "cuStreamGetDevice", 1},
                 {"cuStreamGetDevice", "cuCtxPushCurrent", 2},
                 {"cuStreamGetDevice", "cuCtxGetDevice", 1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        quire_stream *stream = NULL;
        green made = begin_green(steps[i].hidden, 0);
        CHECK(b.fc->fail(&(fc_fault){.function = steps[i].function,
                                     .call = steps[i].call,
                                     .result = QI_CUDA_ERROR_NOT_INITIALIZED}));
        CHECK(quire_cuda_stream_wrap(b.device, made.stream, NULL, &stream));
        CHECK(!stream && b.fc->failed().times == 1);
        b.fc->heal();
        end_green(&made);
    }
}

/* ---- loss and forks ------------------------------------------------------------------------- */

CASE(a_lost_device_answers_so_and_gives_everything_back, begin())
{
    bool passed = false;
    quire_stream *stream = make();
    quire_native page = range_of(memory, 1000);
    CHECK_OK(fill_range(b.device, stream, &page, 1000, 1));
    quire_point point = mark(stream);
    b.fc->lose(0, QI_CUDA_ERROR_ECC_UNCORRECTABLE);
    quire_result result = quire_point_has_passed(&point, &passed);
    CHECK(result == QUIRE_ERROR_DEVICE_LOST || (!result && passed)); /* the device is lost */
    CHECK_FAILS(quire_stream_mark(stream, &point), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(fill_range(b.device, stream, &page, 1000, 1), QUIRE_ERROR_DEVICE_LOST);
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(a_child_gives_back_the_records_alone, begin())
{
    quire_stream *stream = make();
    (void)mark(stream);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        quire_point point;
        bool refused = quire_stream_mark(stream, &point) == NOT_PERMITTED;
        child_end(refused && !quire_stream_destroy(&stream));
    }
    CHECK(child_was_well(child));
    await(mark(stream));
    CHECK_OK(quire_stream_destroy(&stream));
}
