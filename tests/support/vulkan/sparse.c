/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sparse.c - sparse resources: the bound parts of one are pieces ordered by offset.
 * vkQueueBindSparse cuts what it replaces out of them.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/queue.h"
#include "tests/support/vulkan/table.h"
#include "tests/support/vulkan/tile.h"

/* ---- the pieces of a resource, ordered and apart ------------------------------------------ */

static void push(fv_resource *resource, fv_piece piece)
{
    resource->pieces =
        realloc(resource->pieces, (resource->piece_count + (size_t)1) * sizeof *resource->pieces);
    if (!resource->pieces)
        abort();
    resource->pieces[resource->piece_count++] = piece;
}

static int by_offset(const void *a, const void *b)
{
    const fv_piece *one = a, *other = b;
    return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Removes [offset, offset + size) from all pieces. The rest of a piece stays. */
static void cut(fv_resource *resource, uint64_t offset, uint64_t size)
{
    fv_piece *old = resource->pieces;
    uint32_t count = resource->piece_count;
    uint64_t end = offset + size;
    resource->pieces = NULL;
    resource->piece_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        fv_piece below = old[i], above = old[i];
        uint64_t piece_end = old[i].offset + old[i].size;
        below.size =
            old[i].offset < offset ? (piece_end < offset ? piece_end : offset) - below.offset : 0;
        above.offset = old[i].offset > end ? old[i].offset : end;
        above.size = piece_end > above.offset ? piece_end - above.offset : 0;
        above.memory_offset += above.offset - old[i].offset;
        if (below.size)
            push(resource, below);
        if (above.size)
            push(resource, above);
    }
    free(old);
}

void fv_sparse_bind(fv_device *device, const fv_sparse_change *change)
{
    fv_driver *driver = fv_driver_of(device);
    fv_object *object = fv_object_peek(driver, FV_BUFFER, change->resource);
    object = object ? object : fv_object_peek(driver, FV_IMAGE, change->resource);
    if (!object)
        return;
    fv_resource *resource = (fv_resource *)object;
    cut(resource, change->piece.offset, change->piece.size);
    if (change->piece.memory)
        push(resource, change->piece);
    if (resource->piece_count > 1)
        qsort(resource->pieces, resource->piece_count, sizeof *resource->pieces, by_offset);
}

/* ---- the call ----------------------------------------------------------------------------- */

#define WRONG(device, id, ...) FV_WRONG(fv_driver_of(device), id, vkQueueBindSparse, __VA_ARGS__)

/* Checks that the memory of a binding exists, is large enough and has a suitable type. */
static bool check_memory(fv_device *device, const fv_resource *resource,
                         const VkSparseMemoryBind *bind)
{
    if (!bind->memory)
        return true;
    const fv_memory *memory = FV_FIND(device, vkQueueBindSparse, FV_MEMORY, bind->memory);
    if (!memory)
        return false;
    const char *name = resource->object.name;
    if (!(resource->needs.memoryTypeBits >> memory->type & 1))
        WRONG(device, "VUID-VkSparseMemoryBind-memory-01096", "memory type %u cannot hold '%s'",
              memory->type, name);
    if (memory->exportable && !(resource->external & memory->exportable))
        WRONG(device, "VUID-VkSparseMemoryBind-memory-02730",
              "'%s' was made for the handle types 0x%x, its exportable memory for 0x%x", name,
              resource->external, memory->exportable);
    if (memory->imported_as && !(resource->external & memory->imported_as))
        WRONG(device, "VUID-VkSparseMemoryBind-memory-02731",
              "'%s' was made for the handle types 0x%x, its memory was imported as 0x%x", name,
              resource->external, memory->imported_as);
    if (memory->dedicated)
        WRONG(device, "fv-dedicated", "memory that is dedicated to another holds part of '%s'",
              name);
    if (bind->memoryOffset > memory->size || bind->size > memory->size - bind->memoryOffset) {
        WRONG(device, "VUID-VkSparseMemoryBind-size-01102", "'%s' goes beyond its memory", name);
        return false;
    }
    return true;
}

static bool check_bind(fv_device *device, const fv_resource *resource,
                       const VkSparseMemoryBind *bind)
{
    uint64_t block = resource->needs.alignment, end = bind->resourceOffset + bind->size;
    const char *name = resource->object.name;
    if (!resource->sparse)
        WRONG(device, "fv-sparse", "'%s' is not sparse", name);
    else if (!bind->size || bind->size > resource->needs.size ||
             bind->resourceOffset > resource->needs.size - bind->size)
        WRONG(device, "VUID-VkSparseMemoryBind-resourceOffset-01099", "the range is not in '%s'",
              name);
    else if (bind->resourceOffset % block || bind->memoryOffset % block ||
             (bind->size % block && end != resource->needs.size))
        WRONG(device, "fv-sparse-alignment", "'%s' is bound in blocks of %" PRIu64, name, block);
    else
        return check_memory(device, resource, bind);
    return false;
}

static void add_bind(fv_device *device, fv_submission *work, const fv_resource *resource,
                     const VkSparseMemoryBind *bind)
{
    if (!check_bind(device, resource, bind))
        return;
    work->changes =
        realloc(work->changes, (work->change_count + (size_t)1) * sizeof *work->changes);
    if (!work->changes)
        abort();
    work->changes[work->change_count++] = (fv_sparse_change){
        resource->object.handle,
        {bind->resourceOffset, bind->size, (uint64_t)bind->memory, bind->memoryOffset}};
}

/* Checks that metadata, and nothing else, is bound with the flag for metadata. */
static void check_metadata(fv_device *device, const fv_resource *resource, fv_kind kind,
                           const VkSparseMemoryBind *bind)
{
    bool is =
        kind == FV_IMAGE && fv_tiles_is_metadata((const fv_image *)resource, bind->resourceOffset);
    if (is != !!(bind->flags & VK_SPARSE_MEMORY_BIND_METADATA_BIT))
        WRONG(device, "VUID-VkSparseImageOpaqueMemoryBindInfo-pBinds-01103",
              "the flag METADATA at byte %" PRIu64 " of '%s'", bind->resourceOffset,
              resource->object.name);
}

static void add_binds(fv_device *device, fv_submission *work, fv_kind kind, uint64_t handle,
                      uint32_t count, const VkSparseMemoryBind *binds)
{
    fv_resource *resource = fv_object_find(device, FV_CALL_vkQueueBindSparse, kind, handle);
    for (uint32_t i = 0; resource && i < count; i++) {
        check_metadata(device, resource, kind, &binds[i]);
        add_bind(device, work, resource, &binds[i]);
    }
    if (resource)
        fv_submission_use(work, &resource->object);
}

/* Checks one direction of a box of texels: it has whole tiles, or reaches the end of the level. */
static bool is_of_tiles(int32_t offset, uint32_t size, uint32_t whole, uint32_t tile)
{
    uint32_t begin = (uint32_t)offset;
    return offset >= 0 && size && begin % tile == 0 && begin < whole && size <= whole - begin &&
           (size % tile == 0 || begin + size == whole);
}

static bool check_tiles(fv_device *device, const fv_image *image,
                        const VkSparseImageMemoryBind *bind)
{
    const VkImageSubresource *part = &bind->subresource;
    const char *name = image->resource.object.name;
    const fv_aspect *aspect = fv_tiles_aspect(image, part->aspectMask);
    if (!image->aspect_count)
        WRONG(device, "VUID-VkSparseImageMemoryBindInfo-image-02901", "'%s' has no tiles", name);
    else if (!aspect || part->mipLevel >= aspect->tiled_levels ||
             part->arrayLayer >= image->info.arrayLayers)
        WRONG(device, "VUID-VkSparseImageMemoryBindInfo-subresource-01722",
              "'%s' has no tiles in level %u of layer %u, aspect 0x%x", name, part->mipLevel,
              part->arrayLayer, part->aspectMask);
    else {
        const VkExtent3D *whole = &image->levels[part->mipLevel].extent, *tile = &aspect->tile;
        if (is_of_tiles(bind->offset.x, bind->extent.width, whole->width, tile->width) &&
            is_of_tiles(bind->offset.y, bind->extent.height, whole->height, tile->height) &&
            is_of_tiles(bind->offset.z, bind->extent.depth, whole->depth, tile->depth))
            return true;
        WRONG(device, "VUID-VkSparseImageMemoryBind-offset-01107",
              "not whole tiles of '%s', or outside of it", name);
    }
    return false;
}

/* The tiles are consecutive in the memory, ordered by z, y and x. */
static void add_box(fv_device *device, fv_submission *work, const fv_image *image,
                    const VkSparseImageMemoryBind *bind)
{
    const VkImageSubresource *part = &bind->subresource;
    const fv_aspect *aspect = fv_tiles_aspect(image, part->aspectMask);
    const VkExtent3D *tile = &aspect->tile, *size = &bind->extent;
    uint64_t done = 0;
    for (uint32_t z = 0; z < size->depth; z += tile->depth)
        for (uint32_t y = 0; y < size->height; y += tile->height)
            for (uint32_t x = 0; x < size->width; x += tile->width, done += FV_TILE) {
                const VkSparseMemoryBind one = {
                    .resourceOffset =
                        fv_tile_offset(image, aspect, part->mipLevel, part->arrayLayer,
                                       ((uint32_t)bind->offset.x + x) / tile->width,
                                       ((uint32_t)bind->offset.y + y) / tile->height,
                                       ((uint32_t)bind->offset.z + z) / tile->depth),
                    .size = FV_TILE,
                    .memory = bind->memory,
                    .memoryOffset = bind->memoryOffset + (bind->memory ? done : 0),
                };
                add_bind(device, work, &image->resource, &one);
            }
}

static void add_tiles(fv_device *device, fv_submission *work,
                      const VkSparseImageMemoryBindInfo *info)
{
    fv_image *image = FV_FIND(device, vkQueueBindSparse, FV_IMAGE, info->image);
    for (uint32_t i = 0; image && i < info->bindCount; i++)
        if (check_tiles(device, image, &info->pBinds[i]))
            add_box(device, work, image, &info->pBinds[i]);
    if (image)
        fv_submission_use(work, &image->resource.object);
}

static fv_submission *submission_of(fv_device *device, const VkBindSparseInfo *info)
{
    const VkTimelineSemaphoreSubmitInfo *values =
        fv_chained(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    fv_submission *work = fv_submission_new(FV_CALL_vkQueueBindSparse);
    for (uint32_t i = 0; i < info->waitSemaphoreCount; i++)
        fv_submission_wait(
            device, work, info->pWaitSemaphores[i],
            values && i < values->waitSemaphoreValueCount ? values->pWaitSemaphoreValues[i] : 0);
    for (uint32_t i = 0; i < info->bufferBindCount; i++)
        add_binds(device, work, FV_BUFFER, (uint64_t)info->pBufferBinds[i].buffer,
                  info->pBufferBinds[i].bindCount, info->pBufferBinds[i].pBinds);
    for (uint32_t i = 0; i < info->imageOpaqueBindCount; i++)
        add_binds(device, work, FV_IMAGE, (uint64_t)info->pImageOpaqueBinds[i].image,
                  info->pImageOpaqueBinds[i].bindCount, info->pImageOpaqueBinds[i].pBinds);
    for (uint32_t i = 0; i < info->imageBindCount; i++)
        add_tiles(device, work, &info->pImageBinds[i]);
    for (uint32_t i = 0; i < info->signalSemaphoreCount; i++)
        fv_submission_signal(device, work, info->pSignalSemaphores[i],
                             values && i < values->signalSemaphoreValueCount
                                 ? values->pSignalSemaphoreValues[i]
                                 : 0);
    return work;
}

VkResult fv_vkQueueBindSparse(VkQueue handle, uint32_t count, const VkBindSparseInfo *infos,
                              VkFence fence)
{
    fv_queue *queue = (fv_queue *)handle;
    fv_device *device = queue->object.device;
    fv_driver *driver = queue->object.driver;
    fv_claim_handle(driver, FV_CALL_vkQueueBindSparse, queue->object.handle);
    VkResult result = fv_enter(driver, FV_CALL_vkQueueBindSparse);
    fv_submission *work = NULL;
    if (!(device->features & FV_SPARSE_BINDING))
        WRONG(device, "fv-feature", "without the feature sparseBinding");
    if (!(fv_family_flags(device->physical, queue->family) & VK_QUEUE_SPARSE_BINDING_BIT))
        WRONG(device, "VUID-vkQueueBindSparse-queuetype", "family %u does not bind sparse objects",
              queue->family);
    for (uint32_t i = 0; !result && i < count; i++) {
        work = submission_of(device, &infos[i]);
        fv_queue_append(queue, work);
    }
    if (!result) {
        fv_queue_fence(queue, FV_CALL_vkQueueBindSparse, work, fence);
        fv_go_on(device);
    }
    fv_leave(driver);
    fv_release_handle(driver, queue->object.handle);
    return result;
}
