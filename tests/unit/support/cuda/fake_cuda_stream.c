/*
 * fake_cuda_stream.c - the fake CUDA driver: streams, events and the logical clock.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <pthread.h>

#define PER_THREAD ((qi_cu_stream)(uintptr_t)QI_CU_STREAM_PER_THREAD)

typedef struct late {
    qi_cu_stream first, second; /* created streams do not wait for the default stream */
    qi_cu_ptr memory;
    uint64_t *pinned;
} late;

static late open_late(void)
{
    late l;
    void *pinned;
    (void)fc_fixture_open(&(fc_options){.flags = FC_LATE});
    CHECK_CU(cu.StreamCreate(&l.first, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.StreamCreate(&l.second, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.MemAlloc(&l.memory, 4096));
    CHECK_CU(cu.MemHostAlloc(&pinned, 4096, 0));
    l.pinned = pinned;
    return l;
}

static void close_late(const late *l)
{
    CHECK_CU(cu.StreamDestroy(l->first));
    CHECK_CU(cu.StreamDestroy(l->second));
    CHECK_CU(cu.MemFree(l->memory));
    CHECK_CU(cu.MemFreeHost(l->pinned));
    fc_fixture_close();
}

UNIT(fake_cuda_stream, work_waits_for_the_clock)
{
    late l = open_late();
    l.pinned[0] = 1;
    CHECK_CU(cu.MemcpyHtoDAsync(l.memory, l.pinned, 8, l.first));
    CHECK_CODE(cu.StreamQuery(l.first), NOT_READY);
    CHECK_CU(cu.StreamQuery(l.second));
    CHECK_EQ(fc_pending(), 1);
    l.pinned[0] = 2; /* read when the work is done, not when it is queued */
    fc_advance(1);
    CHECK_CU(cu.StreamQuery(l.first));
    CHECK_EQ(fc_read(l.memory), 2);
    close_late(&l);
}

UNIT(fake_cuda_stream, pageable_memory_was_read_and_written_when_the_call_returns)
{
    late l = open_late();
    uint64_t value = 3;
    CHECK_CU(cu.MemcpyHtoDAsync(l.memory, &value, 8, l.first));
    CHECK_EQ(fc_pending(), 1);
    value = 4;
    CHECK_CU(cu.MemcpyDtoHAsync(&value, l.memory, 8, l.first));
    CHECK_EQ(fc_pending(), 0);
    CHECK_EQ(value, 3);
    close_late(&l);
}

UNIT(fake_cuda_stream, synchronizing_does_what_is_queued_and_not_more)
{
    late l = open_late();
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, l.first));
    CHECK_CU(cu.MemsetD8Async(l.memory, 2, 8, l.second));
    CHECK_CU(cu.MemsetD8Async(l.memory, 3, 8, l.second));
    CHECK_CU(cu.StreamSynchronize(l.first)); /* streams run concurrently */
    CHECK_EQ(fc_pending(), 1);
    CHECK_CU(cu.CtxSynchronize());
    CHECK_EQ(fc_pending(), 0);
    CHECK_EQ(fc_read(l.memory), 0x0303030303030303);
    close_late(&l);
}

UNIT(fake_cuda_stream, an_event_orders_two_streams)
{
    late l = open_late();
    qi_cu_event event;
    CHECK_CU(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    CHECK_CU(cu.EventQuery(event)); /* never recorded */
    for (unsigned char i = 1; i <= 5; i++)
        CHECK_CU(cu.MemsetD8Async(l.memory, i, 8, l.first));
    CHECK_CU(cu.EventRecord(event, l.first));
    CHECK_CU(cu.StreamWaitEvent(l.second, event, 0));
    CHECK_CU(cu.MemcpyDtoHAsync(l.pinned, l.memory, 8, l.second));
    CHECK_CODE(cu.EventQuery(event), NOT_READY);
    fc_advance(4);
    CHECK_CODE(cu.EventQuery(event), NOT_READY);
    fc_advance(1);
    CHECK_CU(cu.EventQuery(event));
    CHECK_CODE(cu.StreamQuery(l.second), NOT_READY);
    CHECK_CU(cu.StreamSynchronize(l.second));
    CHECK_EQ(l.pinned[0], 0x0505050505050505);
    CHECK_CU(cu.EventDestroy(event));
    close_late(&l);
}

UNIT(fake_cuda_stream, without_the_event_the_order_is_another)
{
    late l = open_late();
    for (unsigned char i = 1; i <= 5; i++)
        CHECK_CU(cu.MemsetD8Async(l.memory, i, 8, l.first));
    CHECK_CU(cu.MemcpyDtoHAsync(l.pinned, l.memory, 8, l.second));
    CHECK_CU(cu.CtxSynchronize());
    CHECK_EQ(l.pinned[0], 0x0101010101010101); /* at its own time */
    close_late(&l);
}

UNIT(fake_cuda_stream, events_wait_and_measure)
{
    late l = open_late();
    qi_cu_event start, end;
    float milliseconds;
    CHECK_CU(cu.EventCreate(&start, 0));
    CHECK_CU(cu.EventCreate(&end, QI_CU_EVENT_BLOCKING_SYNC));
    CHECK_CODE(cu.EventElapsedTime(&milliseconds, start, end), INVALID_HANDLE);
    fc_advance(1);
    CHECK_CU(cu.EventRecord(start, l.first));
    for (int i = 0; i < 500; i++)
        CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, l.first));
    CHECK_CU(cu.EventRecord(end, l.first));
    CHECK_CODE(cu.EventElapsedTime(&milliseconds, start, end), NOT_READY);
    CHECK_CU(cu.EventSynchronize(end));
    CHECK_EQ(fc_pending(), 0);
    CHECK_CU(cu.EventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds > 0.49F && milliseconds < 0.51F);
    CHECK_CU(cu.EventDestroy(start));
    CHECK_CU(cu.EventDestroy(end));
    close_late(&l);
}

UNIT(fake_cuda_stream, the_default_stream_waits_for_blocking_ones_and_they_for_it)
{
    late l = open_late();
    qi_cu_stream blocking;
    CHECK_CU(cu.StreamCreate(&blocking, QI_CU_STREAM_DEFAULT));
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, blocking));
    CHECK_CU(cu.MemsetD8Async(l.memory, 2, 8, NULL));
    CHECK_CU(cu.MemsetD8Async(l.memory, 3, 8, blocking));
    CHECK_CU(cu.MemsetD8Async(l.memory + 8, 4, 8, l.first));
    fc_advance(1);
    CHECK_EQ(fc_pending(), 2); /* the first piece and the one without a wait are done */
    fc_advance(1);
    CHECK_EQ(fc_pending(), 1);
    CHECK_CU(cu.StreamSynchronize(blocking));
    CHECK_EQ(fc_read(l.memory), 0x0303030303030303);
    CHECK_CU(cu.StreamDestroy(blocking));
    close_late(&l);
}

UNIT(fake_cuda_stream, polling_may_bring_time_forward)
{
    qi_cu_stream stream;
    qi_cu_ptr pointer;
    int polls = 0;
    (void)fc_fixture_open(&(fc_options){.flags = FC_LATE, .poll_ticks = 1, .work_ticks = 3});
    CHECK_CU(cu.StreamCreate(&stream, 0));
    CHECK_CU(cu.MemAlloc(&pointer, 8));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 8, stream));
    while (cu.StreamQuery(stream) == QI_CUDA_ERROR_NOT_READY)
        polls++;
    CHECK_EQ(polls, 2);
    CHECK_CU(cu.MemFree(pointer));
    CHECK_CU(cu.StreamDestroy(stream));
    fc_fixture_close();
}

/* ---- host functions ----------------------------------------------------------------------- */

static void note(void *user)
{
    int *calls = user;
    qi_cu_ptr pointer;
    ++*calls;
    if (*calls == 2) /* forbidden during the capture */
        CHECK_CODE(cu.MemAlloc(&pointer, 8), NOT_PERMITTED);
}

UNIT(fake_cuda_stream, host_functions_run_in_order_and_may_not_call_back)
{
    late l = open_late();
    int calls = 0;
    CHECK_CU(cu.LaunchHostFunc(l.first, note, &calls));
    CHECK_EQ(calls, 0);
    CHECK_CU(cu.StreamSynchronize(l.first));
    CHECK_EQ(calls, 1);
    CHECK_CODE(cu.LaunchHostFunc(l.first, NULL, NULL), INVALID_VALUE);
    CHECK_CU(cu.LaunchHostFunc(l.first, note, &calls));
    CHECK_CU(cu.StreamSynchronize(l.first));
    CHECK_EQ(calls, 2);
    fc_fixture_expect("fc-callback: cuMemAlloc_v2");
    close_late(&l);
}

UNIT(fake_cuda_stream, an_event_of_the_default_stream_comes_after_blocking_streams)
{
    late l = open_late();
    qi_cu_event event;
    CHECK_CU(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, l.first));
    CHECK_CU(cu.EventRecord(event, NULL));
    CHECK_CU(cu.EventQuery(event)); /* the stream is non-blocking */
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, PER_THREAD));
    CHECK_CU(cu.EventRecord(event, NULL));
    CHECK_CODE(cu.EventQuery(event), NOT_READY);
    fc_advance(1);
    CHECK_CU(cu.EventQuery(event));
    CHECK_CU(cu.EventDestroy(event));
    close_late(&l);
}

/* ---- the default streams of threads -------------------------------------------------------- */

static void *fill_own(void *user)
{
    const late *l = user;
    qi_cu_context context;
    CHECK_CU(cu.DevicePrimaryCtxRetain(&context, 0));
    CHECK_CU(cu.CtxPushCurrent(context));
    CHECK_CU(cu.StreamQuery(PER_THREAD));
    CHECK_CU(cu.MemsetD8Async(l->memory, 2, 8, PER_THREAD));
    CHECK_CODE(cu.StreamQuery(PER_THREAD), NOT_READY);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    return NULL;
}

UNIT(fake_cuda_stream, each_thread_has_a_default_stream_that_the_legacy_one_waits_for)
{
    late l = open_late();
    pthread_t thread;
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, PER_THREAD));
    CHECK(!pthread_create(&thread, NULL, fill_own, &l));
    CHECK(!pthread_join(thread, NULL));
    CHECK_EQ(fc_pending(), 2);
    CHECK_CU(cu.StreamSynchronize(PER_THREAD)); /* both end at the same time */
    CHECK_CU(cu.StreamQuery(PER_THREAD));
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, PER_THREAD));
    CHECK_CU(cu.MemsetD8Async(l.memory, 3, 8, NULL));
    CHECK_CU(cu.MemsetD8Async(l.memory + 8, 4, 8, PER_THREAD));
    fc_advance(2);
    CHECK_EQ(fc_pending(), 1);
    CHECK_EQ(fc_live(FC_STREAM), 2); /* default streams do not count */
    CHECK_CODE(cu.StreamDestroy(PER_THREAD), INVALID_HANDLE);
    fc_fixture_expect("fc-handle");
    CHECK_CU(cu.CtxSynchronize());
    close_late(&l);
}

UNIT(fake_cuda_stream, a_stream_tells_its_context)
{
    late l = open_late();
    qi_cu_context current, context;
    CHECK_CU(cu.CtxGetCurrent(&current));
    CHECK_CU(cu.StreamGetCtx(l.first, &context));
    CHECK(context == current);
    CHECK_CU(cu.StreamGetCtx(NULL, &context));
    CHECK(context == current);
    CHECK_CODE(cu.StreamGetCtx(l.first, NULL), INVALID_VALUE);
    close_late(&l);
}

/* ---- wrong use ---------------------------------------------------------------------------- */

UNIT(fake_cuda_stream, wrong_handles_are_refused)
{
    late l = open_late();
    qi_cu_context other;
    qi_cu_event event;
    qi_cu_stream foreign, gone;
    CHECK_CODE(cu.StreamCreate(NULL, 0), INVALID_VALUE);
    CHECK_CODE(cu.StreamCreate(&gone, 2), INVALID_VALUE);
    CHECK_CODE(cu.EventCreate(&event, 4), INVALID_VALUE); /* interprocess, and measuring */
    CHECK_CODE(cu.EventQuery(NULL), INVALID_HANDLE);
    CHECK_CU(cu.CtxCreate(&other, 0, 0));
    CHECK_CU(cu.StreamCreate(&foreign, 0));
    CHECK_CU(cu.EventCreate(&event, 0));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CODE(cu.StreamSynchronize(foreign), INVALID_HANDLE);
    CHECK_CODE(cu.MemsetD8Async(l.memory, 1, 8, foreign), INVALID_HANDLE);
    CHECK_CODE(cu.EventRecord(event, l.first), INVALID_HANDLE);
    CHECK_CU(cu.StreamWaitEvent(l.first, event, 0)); /* permitted */
    CHECK_CU(cu.EventDestroy(event));
    CHECK_CU(cu.StreamDestroy(foreign));
    CHECK_CU(cu.CtxDestroy(other));
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.StreamCreate(&gone, 0));
    CHECK_CU(cu.StreamDestroy(gone));
    CHECK_CODE(cu.StreamSynchronize(gone), INVALID_HANDLE);
    fc_fixture_expect("fc-handle: cuStreamSynchronize");
    CHECK_CODE(cu.EventSynchronize(event), INVALID_HANDLE);
    fc_fixture_expect("fc-handle: cuEventSynchronize");
    close_late(&l);
}

UNIT(fake_cuda_stream, unmapping_does_not_wait_and_is_noticed)
{
    late l = open_late();
    qi_cu_handle handle;
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 8, l.first));
    CHECK_CU(cu.MemUnmap(pointer, FC_PIECE));
    fc_fixture_expect("fc-in-use: cuMemUnmap");
    CHECK_CODE(cu.StreamSynchronize(l.first), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuMemsetD8Async");
    /* the device stays lost until its last context is gone */
    CHECK_CODE(cu.CtxSynchronize(), ILLEGAL_ADDRESS);
    CHECK_CODE(cu.StreamDestroy(l.second), ILLEGAL_ADDRESS); /* it still runs */
    CHECK_CODE(cu.StreamQuery(l.first), ILLEGAL_ADDRESS);
    /* these belong to no context */
    CHECK_CU(cu.MemRelease(handle));
    CHECK_EQ(fc_live(FC_MEMORY), 0);
    CHECK_CU(cu.MemAddressFree(pointer, FC_PIECE));
    CHECK_EQ(fc_live(FC_RESERVATION), 0);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    CHECK_EQ(fc_leaks(), 0);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&(qi_cu_context){0}, 0));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    CHECK_EQ(fc_message_count(), 0);
}

UNIT(fake_cuda_stream, the_context_waits_for_streams_that_were_destroyed)
{
    late l = open_late();
    qi_cu_stream gone;
    CHECK_CU(cu.StreamCreate(&gone, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.MemsetD8Async(l.memory, 1, 8, gone));
    CHECK_CU(cu.StreamDestroy(gone));
    CHECK_EQ(fc_pending(), 1);
    CHECK_CU(cu.CtxSynchronize());
    CHECK_EQ(fc_pending(), 0);
    close_late(&l);
}

UNIT(fake_cuda_stream, freeing_may_not_wait_and_is_noticed)
{
    late l = open_late();
    qi_cu_ptr pointer;
    void *pinned;
    CHECK_CU(cu.MemHostAlloc(&pinned, 64, 0));
    CHECK_CU(cu.MemsetD8Async((uintptr_t)pinned, 1, 64, l.first));
    CHECK_CU(cu.MemFreeHost(pinned));
    fc_fixture_expect("fc-in-use: cuMemFreeHost");
    CHECK_CU(cu.MemAlloc(&pointer, 64));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 64, l.first));
    CHECK_CU(cu.MemFree(pointer));
    fc_fixture_expect("fc-in-use: cuMemFree_v2");
    CHECK_EQ(fc_pending(), 1);
    fc_lose(0, QI_CUDA_ERROR_ILLEGAL_ADDRESS); /* otherwise its work would do so */
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
}
