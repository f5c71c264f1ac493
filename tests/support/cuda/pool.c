/*
 * pool.c - the pools that devices of the fake CUDA driver have, and memory that comes and goes in
 * the order of a stream.
 *
 * A pool keeps nothing: what is freed is the device's again when its work is done.
 */
#include "tests/support/cuda/linear.h"
#include "tests/support/cuda/queue.h"

#define MAX_ATTRIBUTE QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH

typedef struct fc_pool {
    fc_object object;
    int device;
    uint64_t high, threshold;
    int reuses[3]; /* may it follow events, take opportunities, add dependencies */
} fc_pool;

static fc_pool *pool_of(int device)
{
    fc_pool *pool = fc_object_peek(FC_POOL, fc.devices[device].pool);
    if (pool)
        return pool;
    pool = fc_object_new(FC_POOL, sizeof *pool);
    fc.live[FC_POOL]--; /* it is the device's */
    pool->device = device;
    pool->reuses[0] = pool->reuses[1] = pool->reuses[2] = 1;
    fc.devices[device].pool = pool->object.handle;
    return pool;
}

qi_cu_result fc_DeviceGetDefaultMemPool(qi_cu_pool *pool, qi_cu_device device)
{
    qi_cu_result result = fc_enter(FC_CALL_DeviceGetDefaultMemPool);
    if (!result && !fc_is_device(device))
        result = QI_CUDA_ERROR_INVALID_DEVICE;
    if (!result && !pool)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result && !(fc.devices[device].model.features & FC_POOLS))
        result = QI_CUDA_ERROR_NOT_SUPPORTED;
    if (!result)
        *pool = FC_HANDLE(qi_cu_pool, &pool_of(device)->object);
    return fc_leave(result);
}

static uint64_t used_of(const fc_pool *pool)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < fc.span_count; i++)
        if (fc.spans[i]->kind == FC_POOLED && fc.spans[i]->device == pool->device)
            used += fc.spans[i]->size;
    return used;
}

/* ---- memory ------------------------------------------------------------------------------- */

static qi_cu_result enter_pool(fc_call call, fc_context **context)
{
    qi_cu_result result;
    *context = fc_enter_context(call, &result);
    if (!result && !(fc.devices[(*context)->device].model.features & FC_POOLS))
        result = QI_CUDA_ERROR_NOT_SUPPORTED;
    return result;
}

qi_cu_result fc_MemAllocAsync(qi_cu_ptr *pointer, size_t size, qi_cu_stream stream)
{
    fc_context *context;
    qi_cu_result result = enter_pool(FC_CALL_MemAllocAsync, &context);
    if (!result && (!pointer || !size || !fc_line_of(FC_CALL_MemAllocAsync, context, stream)))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    fc_span *span = result ? NULL : fc_linear_new(context, FC_POOLED, size);
    if (!result && !span)
        result = QI_CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        fc_pool *pool = pool_of(context->device);
        span->context = 0; /* the pool's */
        uint64_t used = used_of(pool);
        pool->high = used > pool->high ? used : pool->high;
        *pointer = span->base;
    }
    return fc_leave(result);
}

static bool run_free(fc_work *work)
{
    fc_span *span = fc_span_at(work->address);
    if (!span || span->kind != FC_POOLED)
        return false;
    fc_span_end(span);
    return true;
}

qi_cu_result fc_MemFreeAsync(qi_cu_ptr pointer, qi_cu_stream stream)
{
    fc_context *context;
    qi_cu_result result = enter_pool(FC_CALL_MemFreeAsync, &context);
    fc_span *span = result ? NULL : fc_span_at(pointer);
    if (!result && (!span || span->kind != FC_POOLED || span->base != pointer || span->flags))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        span->flags = 1; /* freed already, as far as the program is concerned */
        result =
            fc_queue(context, stream,
                     &(fc_work){.call = FC_CALL_MemFreeAsync, .run = run_free, .address = pointer});
        if (result)
            span->flags = 0;
    }
    return fc_leave(result);
}

/* ---- attributes --------------------------------------------------------------------------- */

static fc_pool *find_pool(fc_call call, qi_cu_pool handle, qi_cu_result *result)
{
    fc_pool *pool = *result ? NULL : fc_object_find(call, FC_POOL, FC_NUMBER(handle));
    if (!*result && !pool)
        *result = QI_CUDA_ERROR_INVALID_VALUE;
    return pool;
}

qi_cu_result fc_MemPoolSetAttribute(qi_cu_pool handle, qi_cu_pool_attribute attribute, void *value)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolSetAttribute);
    fc_pool *pool = find_pool(FC_CALL_MemPoolSetAttribute, handle, &result);
    if (!result && (!value || !attribute || attribute > MAX_ATTRIBUTE))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (result)
        return fc_leave(result);
    if (attribute < QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->reuses[attribute - 1] = *(const int *)value;
    else if (attribute == QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(const uint64_t *)value;
    else if (attribute != QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH &&
             attribute != QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    else if (*(const uint64_t *)value)
        result = QI_CUDA_ERROR_INVALID_VALUE; /* it can only be set back */
    else
        pool->high = used_of(pool);
    return fc_leave(result);
}

qi_cu_result fc_MemPoolGetAttribute(qi_cu_pool handle, qi_cu_pool_attribute attribute, void *value)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolGetAttribute);
    fc_pool *pool = find_pool(FC_CALL_MemPoolGetAttribute, handle, &result);
    if (!result && (!value || !attribute || attribute > MAX_ATTRIBUTE))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (result)
        return fc_leave(result);
    bool is_high = attribute == QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
                   attribute == QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    if (attribute < QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(int *)value = pool->reuses[attribute - 1];
    else if (attribute == QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(uint64_t *)value = pool->threshold;
    else
        *(uint64_t *)value = is_high ? pool->high : used_of(pool);
    return fc_leave(0);
}

qi_cu_result fc_MemPoolTrimTo(qi_cu_pool handle, size_t keep)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolTrimTo);
    (void)keep; /* there is nothing that is not used */
    (void)find_pool(FC_CALL_MemPoolTrimTo, handle, &result);
    return fc_leave(result);
}
