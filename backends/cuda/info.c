/*
 * info.c - public calls that report what a device and its kinds are, and where an allocation lies
 * in CUDA's terms.
 */
#include <string.h>

#include "backends/cuda/page.h"
#include "src/base/result.h"

quire_result quire_cuda_get_info(const quire_device *device, quire_cuda_info *info)
{
    if (!info)
        return qi_fail_null("quire_cuda_get_info", "info");
    *info = (quire_cuda_info){.context = NULL};
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    const qi_cuda_capabilities *o = &cuda->capabilities;
    pthread_mutex_lock(&cuda->mutex); /* of kept_bytes */
    uint64_t kept = cuda->kept_bytes;
    pthread_mutex_unlock(&cuda->mutex);
    *info = (quire_cuda_info){
        .context = cuda->context,
        .ordinal = cuda->device,
        .driver_version = (uint32_t)cuda->driver_version,
        .is_primary = cuda->is_primary,
        .has_virtual_memory = o->virtual_memory,
        .has_fd = o->fd,
        .has_dma_buf = o->dma_buf,
        .has_rdma = o->rdma,
        .has_compression = o->compression,
        .has_multicast = o->multicast,
        .has_host_numa = o->host_numa,
        .has_host = o->host,
        .has_deferred_arrays = o->deferred_mapping_arrays,
        .has_sparse_arrays = o->sparse_arrays,
        .has_pools = o->pools,
        .numa_node = o->numa_node,
        .fabric = (quire_cuda_fabric)qi_atomic_load_acquire_u32(&cuda->fabric),
        .fabric_code = (int32_t)qi_atomic_load_u32(&cuda->fabric_code),
        .kept_bytes = kept,
    };
    memcpy(info->uuid, cuda->uuid, sizeof info->uuid);
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_get_kind_info(const quire_device *device, uint32_t kind,
                                      quire_cuda_kind_info *info)
{
    if (!info)
        return qi_fail_null("quire_cuda_get_kind_info", "info");
    *info = (quire_cuda_kind_info){.node = 0};
    const qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (kind >= cuda->kind_count)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "there is no memory kind %u: the device has %u", kind,
                            cuda->kind_count);
    const qi_cuda_kind *found = &cuda->kinds[kind];
    *info = (quire_cuda_kind_info){
        .page_kind = found->page_kind,
        .node = found->node,
        .is_virtual_memory = found->is_virtual,
        .granularity = found->granularity,
        .recommended = found->recommended,
        .is_rdma_capable = found->is_rdma,
        .export_types = found->types,
    };
    return QUIRE_SUCCESS;
}

/* A node of -1 matches every node. */
quire_result quire_cuda_find_kind(const quire_device *device, quire_cuda_page_kind page_kind,
                                  int32_t node, uint32_t *kind)
{
    if (kind)
        *kind = 0;
    if (!kind)
        return qi_fail_null("quire_cuda_find_kind", "kind");
    const qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if ((uint32_t)page_kind >= QUIRE_CUDA_PAGE_KINDS || node < -1)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "unknown page kind %d, or unknown node %d", (int)page_kind, node);
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].page_kind == page_kind && (node < 0 || cuda->kinds[i].node == node)) {
            *kind = i;
            return QUIRE_SUCCESS;
        }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device '%s' has no pages of kind %d, node %d",
                        cuda->name, (int)page_kind, node);
}

quire_result quire_cuda_release_kept(quire_device *device)
{
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    bool all = qi_cuda_release_kept_chunks(cuda);
    qi_cuda_leave(cuda);
    return all ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                    "the driver did not release all handles: the others stay kept");
}

/* The page lives as long as the allocation, so its record is read without a lock. */
quire_result quire_cuda_get_range(const quire_memory *memory, quire_allocation allocation,
                                  quire_cuda_range *range)
{
    if (range)
        *range = (quire_cuda_range){.size = 0};
    if (!memory || !range)
        return qi_fail_null("quire_cuda_get_range", !memory ? "memory" : "range");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    const qi_cuda_chunk *first = page->chunks;
    if (page->elastic) /* another thread may resize it; its first chunk stays */
        pthread_mutex_lock(&cuda->mutex);
    *range = (quire_cuda_range){
        .address = page->address ? page->address + native.offset : 0,
        .size = native.size,
        .host = page->host ? (char *)page->host + native.offset : NULL,
        .page_address = page->address,
        .page_offset = native.offset,
        .page_size = page->requested,
        .padded_size = page->padded,
        .handle = first ? first->handle : 0,
        .chunk_size = first ? first->size : 0,
        .handle_count = page->chunk_count,
        .is_compressed = first && first->is_compressed,
        .is_rdma_capable = first && first->is_rdma_capable,
        .is_decompressible = first && first->is_decompressible,
        .is_borrowed = page->type == QI_CUDA_PAGE_BORROWED || page->type == QI_CUDA_PAGE_OPENED,
        .export_types = page->types,
    };
    if (page->elastic)
        pthread_mutex_unlock(&cuda->mutex);
    return QUIRE_SUCCESS;
}
