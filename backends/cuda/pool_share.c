/*
 * pool_share.c - the public calls on the memory pool of a device, which other libraries may use as
 * well.
 */
#include "backends/cuda/page.h"
#include "quire/cuda_pool.h"
#include "src/base/result.h"

/* Finds the state of a device with a pool. NULL after reporting why there is none. */
static qi_cuda *find_pooled(const quire_device *device)
{
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda || cuda->pool.handle)
        return cuda;
    qi_ignore(
        qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device '%s' has no pages of a pool", cuda->name));
    return NULL;
}

/* ---- bytes ------------------------------------------------------------------------------ */

/* In the context. */
static quire_result query_numbers(qi_cuda *cuda, quire_cuda_pool_info *info)
{
    const struct {
        qi_cu_pool_attribute attribute;
        uint64_t *target;
    } table[] = {
        {QI_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &info->reserved},
        {QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &info->reserved_high},
        {QI_CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &info->used},
        {QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH, &info->used_high},
        {QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &info->release_threshold},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        qi_cu_result code =
            cuda->f.MemPoolGetAttribute(cuda->pool.handle, table[i].attribute, table[i].target);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuMemPoolGetAttribute of attribute %u",
                                table[i].attribute);
    }
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_pool_get_info(const quire_device *device, quire_cuda_pool_info *info)
{
    if (!info)
        return qi_fail_null("quire_cuda_pool_get_info", "info");
    *info = (quire_cuda_pool_info){.pool = NULL};
    qi_cuda *cuda = find_pooled(device);
    if (!cuda)
        return quire_last_result();
    quire_cuda_pool_info found = {.pool = cuda->pool.handle, .source = cuda->pool.options.source};
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = query_numbers(cuda, &found);
    qi_cuda_leave(cuda);
    if (!result)
        *info = found;
    return result;
}

quire_result quire_cuda_pool_trim(quire_device *device, uint64_t keep)
{
    qi_cuda *cuda = find_pooled(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemPoolTrimTo(cuda->pool.handle, keep);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemPoolTrimTo of %s", qi_bytes(keep).text)
                : QUIRE_SUCCESS;
}

/* ---- access ----------------------------------------------------------------------------- */

/* In the context. */
static quire_result check_access(const qi_cuda *cuda, const quire_cuda_access *access)
{
    if (access->location != QUIRE_CUDA_AT_DEVICE)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the host cannot reach memory of the pool");
    if (access->id != cuda->device)
        return qi_cuda_check_peer(cuda, access->id);
    return access->flags == QUIRE_CUDA_READ_WRITE
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                              "'%s' keeps reading and writing its own pool", cuda->name);
}

/* In the context. */
static quire_result set_access(qi_cuda *cuda, const quire_cuda_access *list, uint32_t count)
{
    qi_cu_access_desc all[QUIRE_CUDA_MAX_ACCESSES];
    for (uint32_t i = 0; i < count; i++) {
        quire_result result = check_access(cuda, &list[i]);
        if (result)
            return result;
        all[i] = (qi_cu_access_desc){
            .location = {.type = list[i].location, .id = list[i].id},
            .flags = list[i].flags,
        };
    }
    qi_cu_result code = qi_cuda_pool_set_access(cuda, all, count);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemPoolSetAccess for %u locations", count)
                : QUIRE_SUCCESS;
}

quire_result quire_cuda_pool_set_access(quire_device *device, const quire_cuda_access *accesses,
                                        uint32_t count)
{
    if (!accesses)
        return qi_fail_null("quire_cuda_pool_set_access", "accesses");
    qi_cuda *cuda = find_pooled(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = qi_cuda_check_accesses(accesses, count);
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = set_access(cuda, accesses, count);
    qi_cuda_leave(cuda);
    return result;
}

quire_result quire_cuda_pool_get_access(const quire_device *device, quire_cuda_access *access)
{
    if (!access)
        return qi_fail_null("quire_cuda_pool_get_access", "access");
    access->flags = QUIRE_CUDA_NO_ACCESS;
    qi_cuda *cuda = find_pooled(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = qi_cuda_check_location(access);
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_location location = {.type = access->location, .id = access->id};
    qi_cu_access_flags flags = 0;
    qi_cu_result code = cuda->f.MemPoolGetAccess(&flags, cuda->pool.handle, &location);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemPoolGetAccess");
    access->flags = (quire_cuda_access_flags)flags;
    return QUIRE_SUCCESS;
}
