/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_answers_scene.c - see cuda_answers.h.
 */
#include "tests/plain/cuda_answers.h"

#include <unistd.h>

_Alignas(4096) char answer_area[ANSWER_AREA_SIZE];

static bool device_has(qi_cu_attribute attribute)
{
    int value = 0;
    return !cu.DeviceGetAttribute(&value, attribute, 0) && value;
}

static void open_range(answer_scene *s)
{
    qi_cu_access_desc desc = {s->prop.location, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (device_has(QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        s->prop.requestedHandleTypes = QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    MUST(cu.MemGetAllocationGranularity(&s->piece, &s->prop, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cu.MemCreate(&s->handle, 2 * s->piece, &s->prop, 0));
    MUST(cu.MemAddressReserve(&s->range, 2 * s->piece, 0, 0, 0));
    MUST(cu.MemMap(s->range, 2 * s->piece, 0, s->handle, 0));
    MUST(cu.MemSetAccess(s->range, 2 * s->piece, &desc, 1));
}

void answer_scene_open(answer_scene *s)
{
    *s = (answer_scene){.context = cuda_direct_context(),
                        .prop = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}}};
    MUST(cu.MemAlloc(&s->block, ANSWER_BLOCK_SIZE));
    MUST(cu.MemHostAlloc(&s->pinned, ANSWER_BLOCK_SIZE, 0));
    MUST(cu.StreamCreate(&s->stream, QI_CU_STREAM_NON_BLOCKING));
    MUST(cu.StreamCreate(&s->blocking, QI_CU_STREAM_DEFAULT));
    MUST(cu.EventCreate(&s->event, QI_CU_EVENT_DISABLE_TIMING));
    if (device_has(QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED))
        open_range(s);
}

qi_cu_result answer_end_capture(answer_scene *s)
{
    qi_cu_graph graph = NULL;
    qi_cu_result result = cu.StreamEndCapture(s->capturing, &graph);
    s->capturing = NULL;
    cuda_direct_destroy_graph(graph);
    return result;
}

static void release_range(const answer_scene *s)
{
    (void)cu.MemUnmap(s->range, 2 * s->piece);
    if (s->handle)
        (void)cu.MemRelease(s->handle);
    (void)cu.MemAddressFree(s->range, 2 * s->piece);
    if (s->made_handle)
        (void)cu.MemRelease(s->made_handle);
    if (s->reserved)
        (void)cu.MemAddressFree(s->reserved, s->piece);
    if (s->has_shared)
        close(s->shared);
}

void answer_scene_close(answer_scene *s)
{
    if (s->capturing)
        (void)answer_end_capture(s);
    if (s->made_event)
        (void)cu.EventDestroy(s->made_event);
    if (s->second)
        (void)cu.CtxDestroy(s->second);
    if (s->made)
        (void)cu.MemFree(s->made);
    (void)cu.MemHostUnregister(answer_area);
    (void)cu.MemFree(s->block);
    (void)cu.MemFreeHost(s->pinned);
    (void)cu.EventDestroy(s->event);
    (void)cu.StreamDestroy(s->stream);
    (void)cu.StreamDestroy(s->blocking);
    if (s->range)
        release_range(s);
}
