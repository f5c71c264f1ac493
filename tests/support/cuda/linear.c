/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear.c - see linear.h.
 */
#include "tests/support/cuda/linear.h"

#include "tests/support/cuda/queue.h"

/* Exactly what the driver guarantees, so that callers who expect more fail. */
#define ALIGNMENT UINT64_C(512)

#define MAX_ALLOC_FLAGS 7u
#define MAX_REGISTER_FLAGS 15u

/* ---- of devices --------------------------------------------------------------------------- */

fc_span *fc_linear_place(fc_context *context, fc_kind kind, uint64_t size)
{
    fc_bytes bytes;
    uint64_t room = fc_whole_pages(size + ALIGNMENT);
    uint64_t base = fc_addresses_take(room, fc_page(), 0);
    if (!base || !fc_bytes_make(&bytes, room, false, 0)) {
        if (base)
            fc_addresses_give(base, room);
        return NULL;
    }
    if (!fc_bytes_map(&bytes, 0, room, base)) {
        fc_bytes_end(&bytes);
        fc_addresses_give(base, room);
        return NULL;
    }
    fc_span *span = fc_span_add(kind, base + ALIGNMENT, size);
    span->owned = bytes;
    span->bytes = &span->owned;
    span->offset = span->front = ALIGNMENT;
    span->device = context->device;
    span->context = context->object.handle;
    if (fc.options.flags & FC_DIRTY)
        fc_bytes_dirty(&span->owned);
    return span;
}

fc_span *fc_linear_new(fc_context *context, fc_kind kind, uint64_t size)
{
    if (!fc_take(context->device, size))
        return NULL;
    fc_span *span = fc_linear_place(context, kind, size);
    if (!span)
        fc_give(context->device, size);
    return span;
}

void fc_linear_end(fc_call call, fc_span *span)
{
    if (fc_work_touches(span->base, span->size))
        fc_say("fc-in-use", call, "work that is not done uses 0x%" PRIx64, span->base);
    fc_span_end(span);
}

qi_cu_result fc_MemAlloc_v2(qi_cu_ptr *pointer, size_t size)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_MemAlloc_v2, &result);
    FC_REFUSE_IF(!pointer || !size, INVALID_VALUE);
    fc_span *span = result ? NULL : fc_linear_new(context, FC_ALLOCATION, size);
    FC_REFUSE_IF(!span, OUT_OF_MEMORY);
    if (!result)
        *pointer = span->base;
    return fc_leave(result);
}

/* Does not wait for work: the driver may, so a caller cannot rely on it. Ignores a NULL pointer. */
qi_cu_result fc_MemFree_v2(qi_cu_ptr pointer)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_MemFree_v2, &result);
    fc_span *span = result ? NULL : fc_span_at(pointer);
    FC_REFUSE_IF(pointer && (!span || span->base != pointer ||
                             (span->kind != FC_ALLOCATION && span->kind != FC_POOLED &&
                              span->kind != FC_MANAGED && span->kind != FC_BUFFER)),
                 INVALID_VALUE);
    if (!result && pointer)
        fc_linear_end(FC_CALL_MemFree_v2, span);
    return fc_leave(result);
}

qi_cu_result fc_MemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_MemGetInfo_v2, &result);
    FC_REFUSE_IF(!free_bytes || !total, INVALID_VALUE);
    if (!result) {
        uint64_t capacity = fc_capacity_of(context->device);
        uint64_t used = fc_usage_at(context->device)->bytes;
        *free_bytes = (size_t)(used < capacity ? capacity - used : 0);
        *total = (size_t)fc.devices[context->device].model.bytes;
    }
    return fc_leave(result);
}

/* ---- of the host -------------------------------------------------------------------------- */

/* The processor and all devices reach the memory at one address. */
static fc_span *take_host(fc_context *context, fc_kind kind, uint64_t size)
{
    if (!fc_take(FC_HOST, size))
        return NULL;
    uint64_t base = fc_addresses_take(fc_whole_pages(size), fc_page(), 0);
    if (!base) {
        fc_give(FC_HOST, size);
        return NULL;
    }
    fc_addresses_allow(base, fc_whole_pages(size), true, true);
    fc_span *span = fc_span_add(kind, base, size);
    span->device = FC_HOST;
    span->context = context->object.handle;
    return span;
}

qi_cu_result fc_MemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_MemHostAlloc, &result);
    FC_REFUSE_IF(!pointer || !size || flags > MAX_ALLOC_FLAGS, INVALID_VALUE);
    fc_span *span = result ? NULL : take_host(context, FC_PINNED, size);
    FC_REFUSE_IF(!span, OUT_OF_MEMORY);
    if (!result) {
        span->flags = flags;
        *pointer = (void *)(uintptr_t)span->base;
    }
    return fc_leave(result);
}

qi_cu_result fc_MemFreeHost(void *pointer)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_MemFreeHost, &result);
    fc_span *span = result ? NULL : fc_span_at((uintptr_t)pointer);
    FC_REFUSE_IF(!span || span->kind != FC_PINNED || span->base != (uintptr_t)pointer,
                 INVALID_VALUE);
    if (!result && fc_work_touches(span->base, span->size))
        fc_say("fc-in-use", FC_CALL_MemFreeHost, "work that is not done uses %p", pointer);
    if (!result) {
        fc_finish_device(FC_HOST); /* work may still copy from the bytes */
        fc_span_end(span);
    }
    return fc_leave(result);
}

static qi_cu_result check_register(const fc_context *context, const void *pointer, size_t size,
                                   unsigned flags)
{
    if (!(fc.devices[context->device].model.features & FC_REGISTER))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (!pointer || !size || size > UINT64_MAX - (uintptr_t)pointer || flags > MAX_REGISTER_FLAGS)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (flags & QI_CU_MEMHOSTREGISTER_IOMEMORY)
        return QI_CUDA_ERROR_NOT_PERMITTED;
    return fc_span_in((uintptr_t)pointer, size) ? QI_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : 0;
}

qi_cu_result fc_MemHostRegister_v2(void *pointer, size_t size, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_MemHostRegister_v2, &result);
    if (!result)
        result = check_register(context, pointer, size, flags);
    if (!result) {
        fc_span *span = fc_span_add(FC_REGISTERED, (uintptr_t)pointer, size);
        span->device = FC_HOST;
        span->context = context->object.handle;
        span->flags = flags;
    }
    return fc_leave(result);
}

qi_cu_result fc_MemHostUnregister(void *pointer)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_MemHostUnregister, &result);
    fc_span *span = result ? NULL : fc_span_at((uintptr_t)pointer);
    if (!result && !pointer)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    else if (!result && (!span || span->kind != FC_REGISTERED || span->base != (uintptr_t)pointer))
        result = QI_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (!result)
        fc_linear_end(FC_CALL_MemHostUnregister, span);
    return fc_leave(result);
}

/* Returns the same address: all devices have unified addressing. */
qi_cu_result fc_MemHostGetDevicePointer_v2(qi_cu_ptr *device, void *pointer, unsigned int flags)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_MemHostGetDevicePointer_v2, &result);
    const fc_span *span = result ? NULL : fc_span_at((uintptr_t)pointer);
    if (!result &&
        (!device || flags || !span || (span->kind != FC_PINNED && span->kind != FC_REGISTERED)))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *device = (uintptr_t)pointer;
    return fc_leave(result);
}

qi_cu_result fc_MemAllocManaged(qi_cu_ptr *pointer, size_t size, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_MemAllocManaged, &result);
    FC_REFUSE_IF(!(fc.devices[context->device].model.features & FC_MANAGED_MEMORY), NOT_SUPPORTED);
    if (!result &&
        (!pointer || !size || (flags != QI_CU_MEM_ATTACH_GLOBAL && flags != QI_CU_MEM_ATTACH_HOST)))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    fc_span *span = result ? NULL : take_host(context, FC_MANAGED, size);
    FC_REFUSE_IF(!span, OUT_OF_MEMORY);
    if (!result)
        *pointer = span->base;
    return fc_leave(result);
}
