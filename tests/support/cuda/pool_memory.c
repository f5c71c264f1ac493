/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool_memory.c - memory of the fake CUDA driver that comes and goes in the order of a stream; see
 * pool.h.
 */
#include "tests/support/cuda/capture.h"
#include "tests/support/cuda/copy.h"
#include "tests/support/cuda/linear.h"
#include "tests/support/cuda/multicast.h"
#include "tests/support/cuda/pool.h"

fc_pool *fc_pool_of(const fc_span *span)
{
    return fc_object_peek(FC_POOL, span->pool);
}

void fc_pool_check(const fc_work *work, uint64_t start)
{
    for (uint32_t i = 0; fc.live[FC_POOLED] && i < fc.span_count; i++) {
        const fc_span *span = fc.spans[i];
        if (span->kind != FC_POOLED || !fc_copy_touches(work, span->base, span->size))
            continue;
        if (span->flags)
            fc_say("fc-freed", work->call, "it uses 0x%" PRIx64 ", which was freed", span->base);
        else if (start < span->ready)
            fc_say("fc-early", work->call,
                   "it uses 0x%" PRIx64 ", and nothing orders it after the allocation", span->base);
    }
}

/* ---- allocating --------------------------------------------------------------------------- */

static bool run_nothing(fc_work *work)
{
    (void)work;
    return true;
}

/* Memory of the pool, placed and counted. NULL without memory. */
static fc_span *take(fc_context *context, fc_pool *pool, uint64_t size)
{
    fc_span *span = NULL;
    if (!fc_pool_take(pool, size))
        return NULL;
    span = fc_linear_place(context, FC_POOLED, size);
    if (!span) {
        fc_pool_give(pool, size);
        return NULL;
    }
    span->device = pool->device;
    span->context = 0; /* it outlives the context */
    span->pool = pool->object.handle;
    return span;
}

/* Memory that a capturing stream allocates or frees belongs to its graph. */
static bool may_be_called(fc_call call, const fc_context *context, qi_cu_stream stream)
{
    return fc_is_capturing(call, context, stream) || fc_capture_permits_unsafe();
}

static qi_cu_result allocate(fc_call call, fc_context *context, fc_pool *pool, uint64_t size,
                             qi_cu_stream stream, qi_cu_ptr *pointer)
{
    uint64_t *line = fc_line_of(call, context, stream);
    if (!pointer || !line)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (!size) { /* the documentation has INVALID_VALUE; an H100 succeeds */
        *pointer = 0;
        return 0;
    }
    if (!may_be_called(call, context, stream))
        return QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fc_span *span = take(context, pool, size);
    if (!span)
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    qi_cu_result result = fc_queue(context, stream, &(fc_work){.call = call, .run = run_nothing});
    if (result) {
        fc_span_end(span);
        return result;
    }
    span->ready = *line;
    *pointer = span->base;
    return 0;
}

static qi_cu_result enter_pool(fc_call call, fc_context **context)
{
    qi_cu_result result;
    *context = fc_enter_context(call, &result);
    FC_REFUSE_IF(!(fc.devices[(*context)->device].model.features & FC_POOLS), NOT_SUPPORTED);
    return result;
}

qi_cu_result fc_MemAllocAsync(qi_cu_ptr *pointer, size_t size, qi_cu_stream stream)
{
    fc_context *context;
    qi_cu_result result = enter_pool(FC_CALL_MemAllocAsync, &context);
    if (!result) {
        fc_pool *pool = fc_object_peek(FC_POOL, fc.devices[context->device].current_pool);
        result = allocate(FC_CALL_MemAllocAsync, context,
                          pool ? pool : fc_pool_default(context->device), size, stream, pointer);
    }
    return fc_leave(result);
}

qi_cu_result fc_MemAllocFromPoolAsync(qi_cu_ptr *pointer, size_t size, qi_cu_pool handle,
                                      qi_cu_stream stream)
{
    fc_context *context;
    qi_cu_result result = enter_pool(FC_CALL_MemAllocFromPoolAsync, &context);
    fc_pool *pool = fc_pool_find(FC_CALL_MemAllocFromPoolAsync, handle, &result);
    if (!result)
        result = allocate(FC_CALL_MemAllocFromPoolAsync, context, pool, size, stream, pointer);
    return fc_leave(result);
}

/* ---- freeing ------------------------------------------------------------------------------ */

static bool run_free(fc_work *work)
{
    fc_span *span = fc_span_at(work->address);
    if (!span || span->kind != FC_POOLED)
        return false;
    fc_span_end(span);
    return true;
}

/* A message if queued work that the free does not wait for uses the memory. */
static void check_users(const fc_span *span, uint64_t start)
{
    for (const fc_work *work = fc.work; work; work = work->next)
        if (work->finish > start && fc_copy_touches(work, span->base, span->size))
            fc_say("fc-in-use", FC_CALL_MemFreeAsync,
                   "nothing orders it after work that uses 0x%" PRIx64, span->base);
}

qi_cu_result fc_MemFreeAsync(qi_cu_ptr pointer, qi_cu_stream stream)
{
    fc_context *context;
    qi_cu_result result = enter_pool(FC_CALL_MemFreeAsync, &context);
    fc_span *span = result ? NULL : fc_span_at(pointer);
    if (!result && !pointer)
        return fc_leave(0);
    FC_REFUSE_IF(!span || span->kind != FC_POOLED || span->base != pointer || span->flags,
                 INVALID_VALUE);
    FC_REFUSE_IF(!may_be_called(FC_CALL_MemFreeAsync, context, stream), STREAM_CAPTURE_UNSUPPORTED);
    if (!result) {
        uint64_t start = fc_start_of(FC_CALL_MemFreeAsync, context, stream);
        check_users(span, start);
        if (fc_multicast_uses(span->number))
            fc_say("fc-bound", FC_CALL_MemFreeAsync, "a multicast object is bound to 0x%" PRIx64,
                   span->base);
        span->flags = 1; /* the program has freed it already */
        result =
            fc_queue(context, stream,
                     &(fc_work){.call = FC_CALL_MemFreeAsync, .run = run_free, .address = pointer});
        if (result && fc_span_at(pointer) == span)
            span->flags = 0;
    }
    return fc_leave(result);
}
