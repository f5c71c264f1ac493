/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.c - see pool.h. Pools as objects: making, attributes, access. Allocations are
 * pool_memory.c.
 */
#include "tests/support/cuda/pool.h"

#define MAX_ATTRIBUTE QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH
#define MAX_SIZE_DRIVER 12020 /* the first with a maximum size */

static uint64_t whole_pieces(const fc_pool *pool, uint64_t size)
{
    uint64_t piece = fc.devices[pool->device].model.granularity;
    return (size + piece - 1) & ~(piece - 1);
}

/* ---- bytes -------------------------------------------------------------------------------- */

static bool reserve(fc_pool *pool, uint64_t size)
{
    if (size <= pool->reserved)
        return true;
    if ((pool->max && size > pool->max) || !fc_take(pool->device, size - pool->reserved))
        return false;
    fc.pooled_bytes += size - pool->reserved;
    pool->reserved = size;
    if (pool->reserved_high < size)
        pool->reserved_high = size;
    return true;
}

bool fc_pool_take(fc_pool *pool, uint64_t size)
{
    if (size > fc.devices[pool->device].model.bytes ||
        !reserve(pool, whole_pieces(pool, pool->used + size)))
        return false;
    pool->used += size;
    if (pool->used_high < pool->used)
        pool->used_high = pool->used;
    return true;
}

void fc_pool_trim(fc_pool *pool, uint64_t keep)
{
    uint64_t least = whole_pieces(pool, pool->used > keep ? pool->used : keep);
    if (pool->reserved <= least)
        return;
    fc_give(pool->device, pool->reserved - least);
    fc.pooled_bytes -= pool->reserved - least;
    pool->reserved = least;
}

static void end_pool(fc_pool *pool)
{
    fc_pool_trim(pool, 0);
    fc.live[FC_POOL]++; /* it was not counted any more */
    fc_object_end(&pool->object);
}

void fc_pool_give(fc_pool *pool, uint64_t size)
{
    pool->used -= size;
    if (pool->is_destroyed && !pool->used)
        end_pool(pool);
}

void fc_pools_settle(void)
{
    uint64_t index = 0;
    if (!fc.pooled_bytes)
        return;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index))
        if (object->kind == FC_POOL)
            fc_pool_trim((fc_pool *)object, ((fc_pool *)object)->threshold);
}

/* ---- making ------------------------------------------------------------------------------- */

static fc_pool *new_pool(int device)
{
    fc_pool *pool = fc_object_new(FC_POOL, sizeof *pool);
    pool->device = device;
    pool->reuses[0] = pool->reuses[1] = pool->reuses[2] = 1;
    pool->reads = pool->writes = UINT32_C(1) << device;
    return pool;
}

fc_pool *fc_pool_default(int device)
{
    fc_pool *pool = fc_object_peek(FC_POOL, fc.devices[device].pool);
    if (pool)
        return pool;
    pool = new_pool(device);
    pool->is_default = true;
    fc.live[FC_POOL]--;
    fc.devices[device].pool = pool->object.handle;
    return pool;
}

fc_pool *fc_pool_find(fc_call call, qi_cu_pool handle, qi_cu_result *result)
{
    fc_pool *pool = *result ? NULL : fc_object_find(call, FC_POOL, FC_NUMBER(handle));
    if (pool && pool->is_destroyed) {
        fc_say("fc-handle", call, "the pool 0x%" PRIx64 " was destroyed", pool->object.handle);
        pool = NULL;
    }
    if (!*result && !pool)
        *result = QI_CUDA_ERROR_INVALID_VALUE;
    return pool;
}

static qi_cu_result check(const qi_cu_pool_props *props)
{
    if (props->allocType != QI_CU_MEM_ALLOCATION_TYPE_PINNED || props->win32SecurityAttributes ||
        props->usage || props->location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE ||
        (props->maxSize && fc.options.version < MAX_SIZE_DRIVER))
        return QI_CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof props->reserved; i++)
        if (props->reserved[i])
            return QI_CUDA_ERROR_INVALID_VALUE;
    if (!fc_is_device(props->location.id))
        return QI_CUDA_ERROR_INVALID_VALUE;
    uint32_t features = fc.devices[props->location.id].model.features;
    bool has_types =
        !props->handleTypes || (props->handleTypes == QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                                features & FC_POSIX_FD);
    return features & FC_POOLS && has_types ? 0 : QI_CUDA_ERROR_NOT_SUPPORTED;
}

qi_cu_result fc_MemPoolCreate(qi_cu_pool *out, const qi_cu_pool_props *props)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolCreate);
    FC_REFUSE_IF(!out || !props, INVALID_VALUE);
    if (!result)
        result = check(props);
    if (!result) {
        fc_pool *pool = new_pool(props->location.id);
        pool->max = props->maxSize;
        pool->types = props->handleTypes;
        *out = FC_HANDLE(qi_cu_pool, &pool->object);
    }
    return fc_leave(result);
}

/* The default pool of a device cannot be destroyed. */
qi_cu_result fc_MemPoolDestroy(qi_cu_pool handle)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolDestroy);
    fc_pool *pool = fc_pool_find(FC_CALL_MemPoolDestroy, handle, &result);
    FC_REFUSE_IF(pool->is_default, INVALID_VALUE);
    if (!result) {
        if (fc.devices[pool->device].current_pool == pool->object.handle)
            fc.devices[pool->device].current_pool = 0;
        pool->is_destroyed = true;
        fc.live[FC_POOL]--;
        if (!pool->used)
            end_pool(pool);
    }
    return fc_leave(result);
}

/* ---- pools of devices ---------------------------------------------------------------------- */

static qi_cu_result enter_device(fc_call call, qi_cu_device device, const void *out)
{
    qi_cu_result result = fc_enter(call);
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    FC_REFUSE_IF(!(fc.devices[device].model.features & FC_POOLS), NOT_SUPPORTED);
    return result;
}

qi_cu_result fc_DeviceGetDefaultMemPool(qi_cu_pool *pool, qi_cu_device device)
{
    qi_cu_result result = enter_device(FC_CALL_DeviceGetDefaultMemPool, device, pool);
    if (!result)
        *pool = FC_HANDLE(qi_cu_pool, &fc_pool_default(device)->object);
    return fc_leave(result);
}

qi_cu_result fc_DeviceGetMemPool(qi_cu_pool *pool, qi_cu_device device)
{
    qi_cu_result result = enter_device(FC_CALL_DeviceGetMemPool, device, pool);
    if (!result) {
        uint64_t current = fc.devices[device].current_pool;
        *pool = (qi_cu_pool)(uintptr_t)(current ? current : fc_pool_default(device)->object.handle);
    }
    return fc_leave(result);
}

qi_cu_result fc_DeviceSetMemPool(qi_cu_device device, qi_cu_pool handle)
{
    qi_cu_result result = enter_device(FC_CALL_DeviceSetMemPool, device, handle);
    const fc_pool *pool = fc_pool_find(FC_CALL_DeviceSetMemPool, handle, &result);
    FC_REFUSE_IF(pool->device != device, INVALID_VALUE);
    if (!result)
        fc.devices[device].current_pool = pool->object.handle;
    return fc_leave(result);
}

/* ---- attributes --------------------------------------------------------------------------- */

/* The marks can only be reset, to what is there now. */
static qi_cu_result set_number(fc_pool *pool, qi_cu_pool_attribute attribute, uint64_t value)
{
    if (attribute == QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = value;
    else if (value)
        return QI_CUDA_ERROR_INVALID_VALUE;
    else if (attribute == QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
        pool->reserved_high = pool->reserved;
    else if (attribute == QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        pool->used_high = pool->used;
    else
        return QI_CUDA_ERROR_INVALID_VALUE;
    return 0;
}

qi_cu_result fc_MemPoolSetAttribute(qi_cu_pool handle, qi_cu_pool_attribute attribute, void *value)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolSetAttribute);
    fc_pool *pool = fc_pool_find(FC_CALL_MemPoolSetAttribute, handle, &result);
    FC_REFUSE_IF(!value || !attribute || attribute > MAX_ATTRIBUTE, INVALID_VALUE);
    if (!result && attribute < QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->reuses[attribute - 1] = *(const int *)value;
    else if (!result)
        result = set_number(pool, attribute, *(const uint64_t *)value);
    return fc_leave(result);
}

static uint64_t number_of(const fc_pool *pool, qi_cu_pool_attribute attribute)
{
    switch (attribute) {
    case QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return pool->threshold;
    case QI_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return pool->reserved;
    case QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return pool->reserved_high;
    case QI_CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return pool->used;
    default:
        return pool->used_high;
    }
}

qi_cu_result fc_MemPoolGetAttribute(qi_cu_pool handle, qi_cu_pool_attribute attribute, void *value)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolGetAttribute);
    const fc_pool *pool = fc_pool_find(FC_CALL_MemPoolGetAttribute, handle, &result);
    FC_REFUSE_IF(!value || !attribute || attribute > MAX_ATTRIBUTE, INVALID_VALUE);
    if (!result && attribute < QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(int *)value = pool->reuses[attribute - 1];
    else if (!result)
        *(uint64_t *)value = number_of(pool, attribute);
    return fc_leave(result);
}

qi_cu_result fc_MemPoolTrimTo(qi_cu_pool handle, size_t keep)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolTrimTo);
    fc_pool *pool = fc_pool_find(FC_CALL_MemPoolTrimTo, handle, &result);
    if (!result)
        fc_pool_trim(pool, keep);
    return fc_leave(result);
}

/* ---- access ------------------------------------------------------------------------------- */

/* A device always has access to its own memory. */
static qi_cu_result check_access(const fc_pool *pool, const qi_cu_access_desc *desc)
{
    int device = desc->location.id;
    if (desc->location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE || !fc_is_device(device))
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (desc->flags != QI_CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        desc->flags != QI_CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc->flags != QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (device == pool->device)
        return desc->flags == QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? 0
                                                                    : QI_CUDA_ERROR_INVALID_VALUE;
    return fc.options.peers[pool->device] >> device & 1 ? 0 : QI_CUDA_ERROR_INVALID_VALUE;
}

static void set_bit(uint32_t *bits, int device, bool value)
{
    *bits = (*bits & ~(UINT32_C(1) << device)) | (uint32_t)value << device;
}

qi_cu_result fc_MemPoolSetAccess(qi_cu_pool handle, const qi_cu_access_desc *list, size_t count)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolSetAccess);
    fc_pool *pool = fc_pool_find(FC_CALL_MemPoolSetAccess, handle, &result);
    FC_REFUSE_IF(!list || !count, INVALID_VALUE);
    for (size_t i = 0; i < count && !result; i++)
        result = check_access(pool, &list[i]);
    FC_REFUSE_IF(fc_is_busy(), NOT_READY);
    for (size_t i = 0; i < count && !result; i++) {
        set_bit(&pool->reads, list[i].location.id, list[i].flags & 1);
        set_bit(&pool->writes, list[i].location.id, list[i].flags >> 1 & 1);
    }
    return fc_leave(result);
}

qi_cu_result fc_MemPoolGetAccess(qi_cu_access_flags *flags, qi_cu_pool handle,
                                 qi_cu_location *location)
{
    qi_cu_result result = fc_enter(FC_CALL_MemPoolGetAccess);
    const fc_pool *pool = fc_pool_find(FC_CALL_MemPoolGetAccess, handle, &result);
    FC_REFUSE_IF(!flags || !location || location->type != QI_CU_MEM_LOCATION_TYPE_DEVICE ||
                     !fc_is_device(location->id),
                 INVALID_VALUE);
    if (!result)
        *flags = (pool->reads >> location->id & 1) | (pool->writes >> location->id & 1) << 1;
    return fc_leave(result);
}
