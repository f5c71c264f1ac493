/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_cuda_capture.c - the fake CUDA driver: what captures of streams forbid, by their mode, to
 * which threads, and what invalidates them; and the graphs that they end with.
 * tests/plain/cuda_capture.c has what they permit, and tests/plain/cuda_answers.c how they begin
 * and end.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <pthread.h>

#define GLOBAL QI_CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_LOCAL QI_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED QI_CU_STREAM_CAPTURE_MODE_RELAXED
#define MODES 3u

static qi_cu_stream capturing, blocking, other; /* the first and the last are non-blocking */
static qi_cu_event event;
static qi_cu_ptr memory;
static qi_cu_context context;

static void begin(uint32_t flags)
{
    context = fc_fixture_open(&(fc_options){.flags = flags});
    CHECK_CU(cu.StreamCreate(&capturing, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.StreamCreate(&blocking, QI_CU_STREAM_DEFAULT));
    CHECK_CU(cu.StreamCreate(&other, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    CHECK_CU(cu.EventRecord(event, other));
    CHECK_CU(cu.MemAlloc(&memory, 4096));
}

static void end(void)
{
    CHECK_CU(cu.MemFree(memory));
    CHECK_CU(cu.EventDestroy(event));
    CHECK_CU(cu.StreamDestroy(other));
    CHECK_CU(cu.StreamDestroy(blocking));
    CHECK_CU(cu.StreamDestroy(capturing));
    fc_fixture_close();
}

#define CASE(name) UNIT_WITHIN(fake_cuda_capture, name, begin(0), end())

static void end_capture(qi_cu_stream stream, qi_cu_result expected)
{
    qi_cu_graph graph;
    CHECK_EQ(cu.StreamEndCapture(stream, &graph), expected);
}

static void exchange(qi_cu_capture_mode mode, qi_cu_capture_mode before)
{
    CHECK_CU(cu.ThreadExchangeStreamCaptureMode(&mode));
    CHECK_EQ(mode, before);
}

/* ---- a thread that makes one call ---------------------------------------------------------- */

typedef struct caller {
    qi_cu_context context;
    qi_cu_capture_mode mode; /* of the thread */
    qi_cu_result (*call)(void);
    qi_cu_result result;
} caller;

static void *run(void *user)
{
    caller *c = user;
    qi_cu_capture_mode mode = c->mode;
    CHECK_CU(cu.CtxPushCurrent(c->context));
    exchange(mode, GLOBAL);
    c->result = c->call();
    exchange(GLOBAL, mode);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    return NULL;
}

/* The result of a call in a thread of this mode: another one, or this one. */
static qi_cu_result result_in(bool elsewhere, caller c)
{
    pthread_t thread;
    if (elsewhere) {
        CHECK(!pthread_create(&thread, NULL, run, &c));
        CHECK(!pthread_join(thread, NULL));
    } else {
        run(&c);
    }
    return c.result;
}

/* ---- unsafe calls -------------------------------------------------------------------------- */

static qi_cu_result allocate(void)
{
    qi_cu_ptr pointer = 0;
    qi_cu_result result = cu.MemAlloc(&pointer, 64);
    if (!result)
        CHECK_CU(cu.MemFree(pointer));
    return result;
}

/* As the documentation of the modes has it. */
static bool is_permitted(qi_cu_capture_mode capture, bool elsewhere, qi_cu_capture_mode thread)
{
    if (thread == RELAXED || capture == RELAXED)
        return true;
    return elsewhere && (capture == THREAD_LOCAL || thread == THREAD_LOCAL);
}

CASE(modes_decide_who_may_make_unsafe_calls)
{
    for (qi_cu_capture_mode capture = 0; capture < MODES; capture++)
        for (qi_cu_capture_mode thread = 0; thread < MODES; thread++)
            for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
                bool permitted = is_permitted(capture, elsewhere, thread);
                CHECK_CU(cu.StreamBeginCapture(capturing, capture));
                CHECK_EQ(result_in(elsewhere, (caller){context, thread, allocate, 0}),
                         permitted ? QI_CUDA_SUCCESS : QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
                end_capture(capturing, permitted ? 0 : QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }
    CHECK_EQ(fc_message_count(), 0);
}

static qi_cu_result query_event(void)
{
    return cu.EventQuery(event);
}

/* Each call alone must invalidate a capture, before it looks at its arguments. */
#define CHECK_UNSAFE(call)                                                                         \
    do {                                                                                           \
        CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));                                        \
        CHECK_CODE(call, STREAM_CAPTURE_UNSUPPORTED);                                              \
        end_capture(capturing, QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);                          \
    } while (0)

CASE(calls_that_allocate_free_or_wait_are_unsafe)
{
    qi_cu_ptr pointer, pooled;
    CHECK_CU(cu.MemAllocAsync(&pooled, 64, other));
    CHECK_UNSAFE(allocate());
    CHECK_UNSAFE(cu.MemAllocManaged(NULL, 0, 0));
    CHECK_UNSAFE(cu.MemFree(memory));
    CHECK_UNSAFE(cu.MemHostAlloc(NULL, 0, 0));
    CHECK_UNSAFE(cu.MemFreeHost(NULL));
    CHECK_UNSAFE(cu.MemHostRegister(NULL, 0, 0));
    CHECK_UNSAFE(cu.MemHostUnregister(NULL));
    CHECK_UNSAFE(cu.Array3DCreate(NULL, NULL));
    CHECK_UNSAFE(cu.ArrayDestroy(NULL));
    CHECK_UNSAFE(cu.MipmappedArrayCreate(NULL, NULL, 0));
    CHECK_UNSAFE(cu.MipmappedArrayDestroy(NULL));
    CHECK_UNSAFE(cu.MemPoolTrimTo(NULL, 0));
    CHECK_UNSAFE(cu.MemAllocAsync(&pointer, 64, other));
    CHECK_UNSAFE(cu.MemFreeAsync(pooled, other));
    CHECK_UNSAFE(cu.StreamQuery(other));
    CHECK_UNSAFE(cu.StreamSynchronize(other));
    CHECK_UNSAFE(query_event());
    CHECK_UNSAFE(cu.EventSynchronize(event));
    CHECK_CU(cu.MemFreeAsync(pooled, other));
    CHECK_CU(cu.StreamSynchronize(other));
}

static qi_cu_result make_page(void)
{
    qi_cu_handle handle;
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_unmapped(pointer, FC_PIECE, handle);
    return 0;
}

UNIT(fake_cuda_capture, virtual_memory_is_unsafe_if_the_test_asks_for_it)
{
    begin(0);
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(make_page());
    end_capture(capturing, 0);
    end();
    begin(FC_UNSAFE_CALLS);
    CHECK_UNSAFE(cu.MemCreate(NULL, 0, NULL, 0));
    CHECK_UNSAFE(cu.MemRelease(0));
    CHECK_UNSAFE(cu.MemAddressReserve(NULL, 0, 0, 0, 0));
    CHECK_UNSAFE(cu.MemAddressFree(0, 0));
    CHECK_UNSAFE(cu.MemMap(0, 0, 0, 0, 0));
    CHECK_UNSAFE(cu.MemUnmap(0, 0));
    CHECK_UNSAFE(cu.MemSetAccess(0, 0, NULL, 0));
    CHECK_UNSAFE(cu.MemMapArrayAsync(NULL, 0, other));
    CHECK_UNSAFE(cu.EventDestroy(event));
    CHECK_UNSAFE(cu.StreamCreate(NULL, 0));
    CHECK_UNSAFE(cu.StreamDestroy(other));
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    exchange(RELAXED, GLOBAL);
    CHECK_CU(make_page());
    exchange(GLOBAL, RELAXED);
    end_capture(capturing, 0);
    end();
}

/* ---- conflicts, whatever the modes --------------------------------------------------------- */

static qi_cu_result synchronize_context(void)
{
    return cu.CtxSynchronize();
}

static qi_cu_result synchronize_capturing(void)
{
    return cu.StreamSynchronize(capturing);
}

static qi_cu_result query_capturing(void)
{
    return cu.StreamQuery(capturing);
}

CASE(waiting_for_a_capture_or_its_context_breaks_it_in_every_mode)
{
    static qi_cu_result (*const calls[])(void) = {synchronize_context, synchronize_capturing,
                                                  query_capturing};
    for (qi_cu_capture_mode mode = 0; mode < MODES; mode++)
        for (int elsewhere = 0; elsewhere < 2; elsewhere++)
            for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
                CHECK_CU(cu.StreamBeginCapture(capturing, mode));
                CHECK_EQ(result_in(elsewhere, (caller){context, RELAXED, calls[i], 0}),
                         QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
                end_capture(capturing, QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }
    CHECK_CU(cu.CtxSynchronize());
}

static qi_cu_result fill_legacy(void)
{
    return cu.MemsetD8Async(memory, 1, 8, NULL);
}

static qi_cu_result copy_now(void)
{
    uint64_t value = 0;
    return cu.MemcpyHtoD(memory, &value, sizeof value);
}

static qi_cu_result query_legacy(void)
{
    return cu.StreamQuery(NULL);
}

static qi_cu_result record_legacy(void)
{
    return cu.EventRecord(event, NULL);
}

CASE(the_legacy_stream_breaks_captures_of_blocking_streams)
{
    static qi_cu_result (*const calls[])(void) = {fill_legacy, copy_now, query_legacy,
                                                  record_legacy};
    for (int elsewhere = 0; elsewhere < 2; elsewhere++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            caller c = {context, RELAXED, calls[i], 0};
            CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL)); /* non-blocking: not concerned */
            CHECK_EQ(result_in(elsewhere, c), QI_CUDA_SUCCESS);
            end_capture(capturing, 0);
            CHECK_CU(cu.StreamBeginCapture(blocking, RELAXED));
            CHECK_EQ(result_in(elsewhere, c), QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            end_capture(blocking, QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
    CHECK_EQ(fc_message_count(), 0);
}

CASE(what_is_submitted_to_a_stream_that_captures_does_not_run)
{
    qi_cu_stream gone;
    fc_write(memory, 0);
    CHECK_CU(cu.StreamBeginCapture(capturing, RELAXED));
    CHECK_CU(cu.MemsetD8Async(memory, 1, 8, capturing));
    fc_fixture_expect("fc-capture: cuMemsetD8Async");
    CHECK_CU(cu.EventRecord(event, capturing));
    fc_fixture_expect("fc-capture: cuEventRecord");
    CHECK_CODE(query_event(), CAPTURED_EVENT);
    CHECK_CODE(cu.EventSynchronize(event), CAPTURED_EVENT);
    CHECK_CODE(cu.StreamWaitEvent(other, event, 0), STREAM_CAPTURE_ISOLATION);
    fc_fixture_expect("fc-capture: cuStreamWaitEvent");
    end_capture(capturing, 0);
    CHECK_EQ(fc_read(memory), 0);
    CHECK_CU(cu.EventRecord(event, other));
    CHECK_CU(cu.EventSynchronize(event));
    CHECK_CU(cu.MemsetD8Async(memory, 1, 8, capturing));
    CHECK_CU(cu.StreamCreate(&gone, 0));
    CHECK_CU(cu.StreamBeginCapture(gone, RELAXED));
    CHECK_CU(cu.StreamDestroy(gone));
    fc_fixture_expect("fc-capture: cuStreamDestroy_v2");
}

/* ---- graphs --------------------------------------------------------------------------------- */

#define GRAPH_CASE(name, flags)                                                                    \
    UNIT_WITHIN(fake_cuda_capture, name, begin(FC_GRAPHS | (flags)), end())

/* Ends the capture, and makes its graph executable. */
static qi_cu_exec finish_graph(qi_cu_stream stream)
{
    qi_cu_graph graph;
    qi_cu_exec exec;
    CHECK_CU(cu.StreamEndCapture(stream, &graph));
    CHECK_CU(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_CU(cu.GraphDestroy(graph));
    return exec;
}

static void add_one(void *count)
{
    ++*(int *)count;
}

GRAPH_CASE(a_launch_does_what_was_captured_with_the_bytes_of_that_moment, 0)
{
    static uint64_t from, to;
    int count = 0;
    from = 1;
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(cu.MemcpyHtoDAsync(memory, &from, sizeof from, capturing));
    CHECK_CU(cu.MemsetD8Async(memory + 8, 7, 8, capturing));
    CHECK_CU(cu.MemcpyDtoDAsync(memory + 16, memory, 16, capturing));
    CHECK_CU(cu.MemcpyDtoHAsync(&to, memory + 16, sizeof to, capturing));
    CHECK_CU(cu.LaunchHostFunc(capturing, add_one, &count));
    qi_cu_exec exec = finish_graph(capturing);
    CHECK_EQ(count, 0);
    for (int i = 1; i < 4; i++) {
        from = (uint64_t)i * 100;
        CHECK_CU(cu.MemsetD8(memory, 0, 4096));
        CHECK_CU(cu.GraphLaunch(exec, i % 2 ? other : capturing));
        CHECK_CU(cu.CtxSynchronize());
        CHECK_EQ(to, from);
        CHECK_EQ(fc_read(memory + 24), UINT64_C(0x0707070707070707));
        CHECK_EQ(count, i);
    }
    CHECK_CU(cu.GraphExecDestroy(exec));
}

/* Both orders are documented: after the work of the stream, and after the launch before. */
GRAPH_CASE(a_launch_waits_for_its_stream_and_for_earlier_launches, FC_LATE)
{
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(cu.MemsetD8Async(memory, 1, 8, capturing));
    CHECK_CU(cu.MemcpyDtoDAsync(memory + 8, memory, 8, capturing));
    qi_cu_exec exec = finish_graph(capturing);
    CHECK_EQ(fc_pending(), 0);
    CHECK_CU(cu.MemsetD8Async(memory, 2, 8, other));
    CHECK_CU(cu.GraphLaunch(exec, other));
    CHECK_CU(cu.GraphLaunch(exec, capturing));
    CHECK_CU(cu.MemsetD8Async(memory, 3, 8, capturing));
    CHECK_CU(cu.GraphExecDestroy(exec)); /* what was launched runs */
    CHECK_EQ(fc_pending(), 6);
    CHECK_CU(cu.StreamSynchronize(capturing)); /* whose work is behind that of the other */
    CHECK_EQ(fc_pending(), 0);
    CHECK_EQ(fc_read(memory), UINT64_C(0x0303030303030303));
    CHECK_EQ(fc_read(memory + 8), UINT64_C(0x0101010101010101));
}

GRAPH_CASE(a_launch_in_a_capture_becomes_part_of_that_graph, 0)
{
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(cu.MemsetD8Async(memory, 1, 8, capturing));
    qi_cu_exec inner = finish_graph(capturing);
    CHECK_CU(cu.StreamBeginCapture(other, GLOBAL));
    CHECK_CU(cu.GraphLaunch(inner, other));
    CHECK_CU(cu.MemsetD8Async(memory + 1, 2, 1, other));
    qi_cu_exec outer = finish_graph(other);
    CHECK_CU(cu.GraphExecDestroy(inner));
    fc_write(memory, 0);
    CHECK_CU(cu.GraphLaunch(outer, capturing));
    CHECK_CU(cu.CtxSynchronize());
    CHECK_EQ(fc_read(memory), UINT64_C(0x0101010101010201));
    CHECK_CU(cu.GraphExecDestroy(outer));
}

GRAPH_CASE(graphs_that_are_wrong_or_broken_are_refused, 0)
{
    qi_cu_graph graph;
    qi_cu_exec exec;
    qi_cu_ptr pointer;
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(cu.MemsetD8Async(memory, 1, 8, capturing));
    CHECK_CODE(cu.StreamQuery(capturing), STREAM_CAPTURE_UNSUPPORTED);
    CHECK_CODE(cu.StreamEndCapture(capturing, &graph), STREAM_CAPTURE_INVALIDATED);
    CHECK_CODE(cu.GraphInstantiateWithFlags(&exec, graph, 0), INVALID_VALUE);
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(cu.MemAllocAsync(&pointer, 64, capturing));
    fc_fixture_expect("no such nodes");
    CHECK_CU(cu.StreamEndCapture(capturing, &graph));
    CHECK_CODE(cu.GraphInstantiateWithFlags(NULL, graph, 0), INVALID_VALUE);
    CHECK_CODE(cu.GraphInstantiateWithFlags(&exec, graph, 1), INVALID_VALUE);
    CHECK_CODE(cu.GraphLaunch((qi_cu_exec)(void *)graph, other), INVALID_VALUE);
    fc_fixture_expect("is no executable graph");
    CHECK_CU(cu.GraphDestroy(graph));
    CHECK_CODE(cu.GraphDestroy(graph), INVALID_VALUE);
    fc_fixture_expect("is no graph");
    CHECK_CU(cu.MemFreeAsync(pointer, other));
    CHECK_CU(cu.StreamSynchronize(other));
}

/* The addresses are looked up in the launch. */
UNIT(fake_cuda_capture, a_launch_after_its_memory_is_gone_loses_the_device)
{
    qi_cu_handle handle;
    begin(FC_GRAPHS);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK_CU(cu.StreamBeginCapture(capturing, GLOBAL));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 8, capturing));
    qi_cu_exec exec = finish_graph(capturing);
    CHECK_CU(cu.GraphLaunch(exec, other));
    CHECK_EQ(fc_read(pointer), UINT64_C(0x0101010101010101));
    fc_unmapped(pointer, FC_PIECE, handle);
    CHECK_CU(cu.GraphLaunch(exec, other));
    CHECK_CODE(cu.StreamSynchronize(other), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuMemsetD8Async");
    fc_reset(NULL);
}
