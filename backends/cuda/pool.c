/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.c - pages that the driver allocates and frees in the order of a stream, from a memory pool
 * that other libraries may use as well; and the public calls on the pool.
 *
 * The stream is quire's own, and no capture contains it. It is synchronised after each allocation,
 * so that every stream can use the page, and after each free, so that the pool has the bytes back.
 */
#include "backends/cuda/pool.h"

#include "backends/cuda/access.h"
#include "backends/cuda/device.h"
#include "backends/cuda/virtual.h"
#include "quire/cuda_pool.h"
#include "src/base/log.h"
#include "src/base/result.h"

enum { MAX_BYTES_DRIVER = 12020 }; /* the first driver that limits a pool */

/* ---- options ------------------------------------------------------------------------------ */

quire_result qi_cuda_check_pool_options(const quire_cuda_settings *s)
{
    const quire_cuda_pool_options *o = s->pool;
    if (!o)
        return QUIRE_SUCCESS;
    if (!(s->kinds & QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_POOL)))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "pool is set and kinds lacks pool pages");
    if ((uint32_t)o->source > QUIRE_CUDA_POOL_DEFAULT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown pool source %u",
                            (uint64_t)o->source);
    if ((o->source == QUIRE_CUDA_POOL_OF_CALLER) != (o->pool != NULL))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a pool is named if and only if the source is a pool of the caller");
    if (o->source != QUIRE_CUDA_POOL_OWN && (o->max_bytes || o->release_threshold))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "max_bytes and release_threshold are of pools that quire creates");
    return qi_check_unused(o, "quire_cuda_pool_options");
}

/* ---- the pool ----------------------------------------------------------------------------- */

/* cuMemPoolSetAccess, repeated for about a second while the driver is not ready. In the context,
   without a lock. */
static qi_cu_result set_pool_access(const qi_cuda *cuda, const qi_cu_access_desc *list,
                                    uint32_t count)
{
    qi_cu_result code = QI_CUDA_SUCCESS;
    uint32_t pauses = 0;
    do
        code = cuda->f.MemPoolSetAccess(cuda->pool.handle, list, count);
    while (qi_cuda_retry_access(code, &pauses, NULL));
    return code;
}

static quire_result share_with_peers(qi_cuda *cuda)
{
    qi_cu_access_desc list[QI_CUDA_MAX_PEERS];
    for (uint32_t i = 0; i < cuda->peer_count; i++)
        list[i] = (qi_cu_access_desc){
            .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]},
            .flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
    qi_cu_result code =
        cuda->peer_count ? set_pool_access(cuda, list, cuda->peer_count) : QI_CUDA_SUCCESS;
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemPoolSetAccess for %u peers", cuda->peer_count)
                : QUIRE_SUCCESS;
}

static quire_result create_own(qi_cuda *cuda)
{
    qi_cuda_pool *pool = &cuda->pool;
    uint64_t threshold = pool->options.release_threshold;
    const qi_cu_pool_props props = {
        .allocType = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device},
        .maxSize = pool->options.max_bytes,
    };
    if (props.maxSize && cuda->driver_version < MAX_BYTES_DRIVER)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the driver limits no pool: that needs CUDA 12.2 (max_bytes)");
    qi_cu_result code = cuda->f.MemPoolCreate(&pool->handle, &props);
    if (code) {
        pool->handle = NULL;
        return qi_cuda_fail(&cuda->f, code, "cuMemPoolCreate");
    }
    if (threshold)
        code = cuda->f.MemPoolSetAttribute(pool->handle, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                           &threshold);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemPoolSetAttribute of the release threshold")
                : share_with_peers(cuda);
}

/* The pool of others must be usable by the device. */
static quire_result check_foreign(qi_cuda *cuda)
{
    qi_cu_location here = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device};
    qi_cu_access_flags flags = 0;
    qi_cu_result code = cuda->f.MemPoolGetAccess(&flags, cuda->pool.handle, &here);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemPoolGetAccess");
    return flags == QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' cannot access the pool", cuda->name);
}

static quire_result find_pool(qi_cuda *cuda)
{
    qi_cuda_pool *pool = &cuda->pool;
    qi_cu_result code = QI_CUDA_SUCCESS;
    switch (pool->options.source) {
    case QUIRE_CUDA_POOL_OWN:
        return create_own(cuda);
    case QUIRE_CUDA_POOL_OF_CALLER:
        pool->handle = pool->options.pool;
        break;
    case QUIRE_CUDA_POOL_CURRENT:
        code = cuda->f.DeviceGetMemPool(&pool->handle, cuda->device);
        break;
    case QUIRE_CUDA_POOL_DEFAULT:
        code = cuda->f.DeviceGetDefaultMemPool(&pool->handle, cuda->device);
        break;
    }
    if (!code)
        return check_foreign(cuda);
    pool->handle = NULL;
    return qi_cuda_fail(&cuda->f, code, "querying the pool of device %d", cuda->device);
}

quire_result qi_cuda_pool_open(qi_cuda *cuda)
{
    if (!qi_cuda_has_kind(cuda, QUIRE_CUDA_POOL))
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamCreate(&cuda->pool.stream, QI_CU_STREAM_NON_BLOCKING);
    if (!code)
        return find_pool(cuda);
    cuda->pool.stream = NULL;
    return qi_cuda_fail(&cuda->f, code, "cuStreamCreate");
}

/* A pool that still has allocations ends with the last of them. */
void qi_cuda_pool_close(qi_cuda *cuda)
{
    qi_cuda_pool *pool = &cuda->pool;
    if (!pool->stream || qi_cuda_has_forked(cuda))
        return;
    bool is_entered = !qi_cuda_push(cuda);
    qi_cu_result code = cuda->f.StreamDestroy(pool->stream);
    if (pool->handle && pool->options.source == QUIRE_CUDA_POOL_OWN) {
        qi_cu_result ended = cuda->f.MemPoolDestroy(pool->handle);
        code = code ? code : ended;
    }
    if (code && !qi_cuda_is_lost(code))
        qi_log(&cuda->log, QUIRE_LOG_ERROR, "device '%s': the driver refused to destroy a pool",
               cuda->name);
    if (is_entered)
        qi_cuda_leave(cuda);
    pool->stream = NULL;
    pool->handle = NULL;
}

/* ---- pages -------------------------------------------------------------------------------- */

/* Waits for quire's own stream, which captures nothing. In the context. */
static quire_result synchronize(const qi_cuda *cuda)
{
    qi_cu_result code = cuda->f.StreamSynchronize(cuda->pool.stream);
    return code ? qi_cuda_fail(&cuda->f, code, "cuStreamSynchronize") : QUIRE_SUCCESS;
}

/* No query tells where a pool of the caller has its memory: its first address does. */
static quire_result check_place(const qi_cuda *cuda, qi_cu_ptr address)
{
    uint32_t type = QI_CU_MEMORYTYPE_DEVICE;
    int ordinal = cuda->device;
    if (!cuda->f.PointerGetAttribute)
        return QUIRE_SUCCESS;
    qi_cu_result code =
        cuda->f.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (!code)
        code =
            cuda->f.PointerGetAttribute(&ordinal, QI_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuPointerGetAttribute");
    if (type != QI_CU_MEMORYTYPE_DEVICE || ordinal != cuda->device)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "the pool has no memory of device %d: it has memory of %s %d", cuda->device,
            type == QI_CU_MEMORYTYPE_DEVICE ? "device" : "the host near", ordinal);
    return QUIRE_SUCCESS;
}

static qi_cu_result allocate(qi_cuda *cuda, qi_cuda_page *page)
{
    return cuda->f.MemAllocFromPoolAsync(&page->block, page->padded, cuda->pool.handle,
                                         cuda->pool.stream);
}

quire_result qi_cuda_pool_page_create(qi_cuda *cuda, const quire_page_request *request,
                                      qi_cuda_page *page)
{
    page->type = QI_CUDA_PAGE_POOLED;
    if (request->exportable)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "pages of a pool are not exported");
    qi_cu_result code = allocate(cuda, page);
    if (qi_cuda_make_room(cuda, code))
        code = allocate(cuda, page);
    if (code) {
        page->block = 0;
        return qi_cuda_fail(&cuda->f, code, "cuMemAllocFromPoolAsync of %s",
                            qi_bytes(page->padded).text);
    }
    quire_result result = synchronize(cuda);
    if (!result && cuda->pool.options.source == QUIRE_CUDA_POOL_OF_CALLER)
        result = check_place(cuda, page->block);
    page->address = page->block;
    return result;
}

/* The free is done when the stream reaches it, so a refusal to wait loses nothing. */
bool qi_cuda_pool_page_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!page->block)
        return true;
    qi_cu_result code = cuda->f.MemFreeAsync(page->block, cuda->pool.stream);
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->block = 0;
    qi_error before;
    qi_error_save(&before);
    if (!code && synchronize(cuda))
        qi_error_restore(&before);
    return true;
}

/* ---- public calls: bytes ------------------------------------------------------------------ */

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

/* ---- public calls: access ----------------------------------------------------------------- */

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
    qi_cu_result code = set_pool_access(cuda, all, count);
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
