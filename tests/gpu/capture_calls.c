/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * capture_calls.c - see captures.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/captures.h"
#include "tests/support/check.h"

#define GRANULE UINT64_C(65536) /* bytes, of blocks and of host memory */

/* ---- the scene ------------------------------------------------------------------------------ */

static void open_ranges(capture_scene *s)
{
    size_t size;
    s->prop = (qi_cu_allocation_prop){.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    s->desc = (qi_cu_access_desc){s->prop.location, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (cu.MemGetAllocationGranularity(&size, &s->prop, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM))
        return; /* no virtual memory management */
    s->size = size;
    MUST(cu.MemCreate(&s->handle, size, &s->prop, 0));
    MUST(cu.MemCreate(&s->mapped_handle, size, &s->prop, 0));
    MUST(cu.MemAddressReserve(&s->range, size, 0, 0, 0));
    MUST(cu.MemAddressReserve(&s->mapped, size, 0, 0, 0));
    MUST(cu.MemMap(s->mapped, size, 0, s->mapped_handle, 0));
    MUST(cu.MemSetAccess(s->mapped, size, &s->desc, 1));
    s->has_mapping = true;
}

static void open_host(capture_scene *s)
{
    MUST(cu.MemHostAlloc(&s->pinned, GRANULE, 0));
    s->host = aligned_alloc(GRANULE, 2 * GRANULE);
    CHECK(s->host);
    memset(s->host, 0, 2 * GRANULE);
    if (cu.MemHostRegister && !cu.MemHostRegister(s->host, GRANULE, 0))
        s->registered = s->host;
}

void capture_scene_open(capture_scene *s)
{
    *s = (capture_scene){.size = 0};
    MUST(cu.StreamCreate(&s->captured, QI_CU_STREAM_NON_BLOCKING));
    MUST(cu.StreamCreate(&s->other, QI_CU_STREAM_NON_BLOCKING));
    MUST(cu.EventCreate(&s->event, QI_CU_EVENT_DISABLE_TIMING));
    MUST(cu.EventRecord(s->event, s->other));
    MUST(cu.MemAlloc(&s->block, GRANULE));
    if (cu.MemAllocAsync && cu.MemAllocAsync(&s->pooled, GRANULE, s->other))
        s->pooled = 0; /* the device has no pool */
    open_host(s);
    open_ranges(s);
    MUST(cu.StreamSynchronize(s->other));
}

static void close_ranges(capture_scene *s)
{
    if (s->has_mapping)
        (void)cu.MemUnmap(s->mapped, s->size);
    if (s->has_range_mapping)
        (void)cu.MemUnmap(s->range, s->size);
    const qi_cu_handle handles[] = {s->handle, s->made_handle, s->mapped_handle};
    const qi_cu_ptr ranges[] = {s->range, s->made_range, s->mapped};
    for (int i = 0; i < 3; i++) {
        if (handles[i])
            (void)cu.MemRelease(handles[i]);
        if (ranges[i])
            (void)cu.MemAddressFree(ranges[i], s->size);
    }
}

static void close_blocks(const capture_scene *s)
{
    const qi_cu_ptr blocks[] = {s->block, s->made_block, s->managed};
    const qi_cu_ptr pooled[] = {s->pooled, s->made_pooled};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i])
            (void)cu.MemFree(blocks[i]);
    for (size_t i = 0; i < sizeof pooled / sizeof *pooled; i++)
        if (pooled[i])
            (void)cu.MemFreeAsync(pooled[i], s->other);
    if (s->pinned)
        (void)cu.MemFreeHost(s->pinned);
    if (s->made_pinned)
        (void)cu.MemFreeHost(s->made_pinned);
    if (s->registered && cu.MemHostUnregister)
        (void)cu.MemHostUnregister(s->registered);
    if (s->made_registered)
        (void)cu.MemHostUnregister(s->made_registered);
    free(s->host);
}

void capture_scene_close(capture_scene *s)
{
    close_ranges(s);
    close_blocks(s);
    if (s->event)
        (void)cu.EventDestroy(s->event);
    if (s->made_event)
        (void)cu.EventDestroy(s->made_event);
    if (s->made_stream)
        (void)cu.StreamDestroy(s->made_stream);
    if (s->other)
        (void)cu.StreamDestroy(s->other);
    (void)cu.StreamDestroy(s->captured);
}

/* ---- what the calls share ------------------------------------------------------------------- */

/* Releases an object of the scene and clears its member if the driver has taken it back. */
#define RELEASE(member, call) release_result((call), &(member), sizeof(member))

static qi_cu_result release_result(qi_cu_result result, void *member, size_t size)
{
    if (!result)
        memset(member, 0, size);
    return result;
}

static qi_cu_result map(capture_scene *s)
{
    qi_cu_result result = cu.MemMap(s->range, s->size, 0, s->handle, 0);
    s->has_range_mapping = !result;
    return result;
}

static qi_cu_result push_and_pop(void)
{
    qi_cu_result result = cu.CtxPushCurrent(cuda_direct_context());
    return result ? result : cu.CtxPopCurrent(NULL);
}

static qi_cu_result exchange_twice(void)
{
    qi_cu_capture_mode mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED;
    qi_cu_result result = cu.ThreadExchangeStreamCaptureMode(&mode);
    return result ? result : cu.ThreadExchangeStreamCaptureMode(&mode);
}

static void nothing(void *user)
{
    (void)user;
}

/* A graph owns what a captured call allocates. */
static qi_cu_result allocate_captured(capture_scene *s)
{
    return cu.MemAllocAsync(&s->captured_pooled, GRANULE, s->captured);
}

static qi_cu_result trim_pool(void)
{
    qi_cu_pool pool;
    qi_cu_result result = cu.DeviceGetDefaultMemPool(&pool, 0);
    return result ? result : cu.MemPoolTrimTo(pool, 0);
}

static qi_cu_result get_attribute(qi_cu_ptr pointer)
{
    unsigned type;
    return cu.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
}

/* ---- the calls ------------------------------------------------------------------------------ */

/* X(row, function that must exist, text, call) with the scene at `s`, and a word at `w`. */
#define MEMORY_CALLS(X)                                                                            \
    X(alloc, MemAlloc, "cuMemAlloc", cu.MemAlloc(&s->made_block, GRANULE))                         \
    X(free, MemFree, "cuMemFree", RELEASE(s->block, cu.MemFree(s->block)))                         \
    X(managed, MemAllocManaged, "cuMemAllocManaged", cu.MemAllocManaged(&s->managed, GRANULE, 1))  \
    X(host, MemHostAlloc, "cuMemHostAlloc", cu.MemHostAlloc(&s->made_pinned, GRANULE, 0))          \
    X(free_host, MemFreeHost, "cuMemFreeHost", RELEASE(s->pinned, cu.MemFreeHost(s->pinned)))      \
    X(enroll, MemHostRegister, "cuMemHostRegister", enroll(s))                                     \
    X(dismiss, MemHostUnregister, "cuMemHostUnregister",                                           \
      RELEASE(s->registered, cu.MemHostUnregister(s->registered)))                                 \
    X(create, MemCreate, "cuMemCreate", cu.MemCreate(&s->made_handle, s->size, &s->prop, 0))       \
    X(release, MemRelease, "cuMemRelease", RELEASE(s->handle, cu.MemRelease(s->handle)))           \
    X(reserve, MemAddressReserve, "cuMemAddressReserve",                                           \
      cu.MemAddressReserve(&s->made_range, s->size, 0, 0, 0))                                      \
    X(unreserve, MemAddressFree, "cuMemAddressFree",                                               \
      RELEASE(s->range, cu.MemAddressFree(s->range, s->size)))                                     \
    X(map, MemMap, "cuMemMap", map(s))                                                             \
    X(unmap, MemUnmap, "cuMemUnmap", RELEASE(s->has_mapping, cu.MemUnmap(s->mapped, s->size)))     \
    X(access, MemSetAccess, "cuMemSetAccess", cu.MemSetAccess(s->mapped, s->size, &s->desc, 1))    \
    X(info, MemGetInfo, "cuMemGetInfo", cu.MemGetInfo(&w[0], &w[1]))                               \
    X(attribute, PointerGetAttribute, "cuPointerGetAttribute", get_attribute(s->block))            \
    X(address, MemGetAddressRange, "cuMemGetAddressRange",                                         \
      cu.MemGetAddressRange(NULL, &w[0], s->block))                                                \
    X(trim, MemPoolTrimTo, "cuMemPoolTrimTo", trim_pool())

#define STREAM_CALLS(X)                                                                            \
    X(synchronize, CtxSynchronize, "cuCtxSynchronize", cu.CtxSynchronize())                        \
    X(push, CtxPushCurrent, "cuCtxPushCurrent, cuCtxPopCurrent", push_and_pop())                   \
    X(exchange, ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode, twice",       \
      exchange_twice())                                                                            \
    X(capturing, StreamIsCapturing, "cuStreamIsCapturing of the capturing stream",                 \
      cu.StreamIsCapturing(s->captured, (qi_cu_capture_status *)(void *)w))                        \
    X(other_capturing, StreamIsCapturing, "cuStreamIsCapturing of another stream",                 \
      cu.StreamIsCapturing(s->other, (qi_cu_capture_status *)(void *)w))                           \
    X(null_capturing, StreamIsCapturing, "cuStreamIsCapturing of NULL",                            \
      cu.StreamIsCapturing(NULL, (qi_cu_capture_status *)(void *)w))                               \
    X(context, StreamGetCtx, "cuStreamGetCtx of the capturing stream",                             \
      cu.StreamGetCtx(s->captured, (qi_cu_context *)(void *)w))                                    \
    X(make_stream, StreamCreate, "cuStreamCreate",                                                 \
      cu.StreamCreate(&s->made_stream, QI_CU_STREAM_NON_BLOCKING))                                 \
    X(end_stream, StreamDestroy, "cuStreamDestroy of another stream",                              \
      RELEASE(s->other, cu.StreamDestroy(s->other)))                                               \
    X(query, StreamQuery, "cuStreamQuery of another stream", cu.StreamQuery(s->other))             \
    X(query_captured, StreamQuery, "cuStreamQuery of the capturing stream",                        \
      cu.StreamQuery(s->captured))                                                                 \
    X(wait, StreamSynchronize, "cuStreamSynchronize of another stream",                            \
      cu.StreamSynchronize(s->other))                                                              \
    X(make_event, EventCreate, "cuEventCreate",                                                    \
      cu.EventCreate(&s->made_event, QI_CU_EVENT_DISABLE_TIMING))                                  \
    X(end_event, EventDestroy, "cuEventDestroy", RELEASE(s->event, cu.EventDestroy(s->event)))     \
    X(record, EventRecord, "cuEventRecord in another stream", cu.EventRecord(s->event, s->other))  \
    X(query_event, EventQuery, "cuEventQuery of an event of before", cu.EventQuery(s->event))      \
    X(wait_event, EventSynchronize, "cuEventSynchronize of an event of before",                    \
      cu.EventSynchronize(s->event))                                                               \
    X(launch, LaunchHostFunc, "cuLaunchHostFunc in another stream",                                \
      cu.LaunchHostFunc(s->other, nothing, NULL))

#define COPY_CALLS(X)                                                                              \
    X(copy_in, MemcpyHtoD, "cuMemcpyHtoD", cu.MemcpyHtoD(s->block, s->host, 256))                  \
    X(copy_out, MemcpyDtoH, "cuMemcpyDtoH", cu.MemcpyDtoH(s->host, s->block, 256))                 \
    X(fill, MemsetD8, "cuMemsetD8", cu.MemsetD8(s->block, 1, 256))                                 \
    X(copy_other, MemcpyHtoDAsync, "cuMemcpyHtoDAsync in another stream",                          \
      cu.MemcpyHtoDAsync(s->block, s->pinned, 256, s->other))                                      \
    X(copy_captured, MemcpyHtoDAsync, "cuMemcpyHtoDAsync in the capturing stream",                 \
      cu.MemcpyHtoDAsync(s->block, s->pinned, 256, s->captured))                                   \
    X(async_other, MemAllocAsync, "cuMemAllocAsync in another stream",                             \
      cu.MemAllocAsync(&s->made_pooled, GRANULE, s->other))                                        \
    X(async_captured, MemAllocAsync, "cuMemAllocAsync in the capturing stream",                    \
      allocate_captured(s))                                                                        \
    X(free_other, MemFreeAsync, "cuMemFreeAsync in another stream",                                \
      RELEASE(s->pooled, cu.MemFreeAsync(s->pooled, s->other)))

#define ALL_CALLS(X) MEMORY_CALLS(X) STREAM_CALLS(X) COPY_CALLS(X)

static qi_cu_result enroll(capture_scene *s)
{
    qi_cu_result result = cu.MemHostRegister(s->host + GRANULE, GRANULE, 0);
    s->made_registered = result ? NULL : s->host + GRANULE;
    return result;
}

#define X(row, function, text, call)                                                               \
    static qi_cu_result call_##row(capture_scene *s)                                               \
    {                                                                                              \
        uint64_t w[2] = {0};                                                                       \
        (void)s;                                                                                   \
        (void)w;                                                                                   \
        return cu.function ? (call) : CAPTURE_ABSENT;                                              \
    }
ALL_CALLS(X)
#undef X

const capture_call CAPTURE_CALLS[] = {
#define X(row, function, text, call) {text, call_##row},
    ALL_CALLS(X)
#undef X
        {.name = NULL},
};
