/*
 * sparse_change.c - one change of an object's bindings: translation, submission, and the update of
 * the object's parts.
 */
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/sparse.h"
#include "src/base/result.h"

/* ---- the arrays ------------------------------------------------------------------------------ */

void qi_vulkan_change_release(qi_vulkan_change *c)
{
    qi_host *host = &c->sparse->vulkan->host;
    qi_host_release(host, c->parts, c->capacity, sizeof *c->parts);
    qi_host_release(host, c->allocations, c->capacity, sizeof *c->allocations);
    qi_host_release(host, c->ranges, c->capacity, sizeof *c->ranges);
    qi_host_release(host, c->tiles, c->capacity, sizeof *c->tiles);
}

quire_result qi_vulkan_change_init(qi_vulkan_change *c, quire_vulkan_sparse *sparse,
                                   bool is_binding, uint32_t capacity)
{
    qi_host *host = &sparse->vulkan->host;
    *c = (qi_vulkan_change){.sparse = sparse, .is_binding = is_binding, .capacity = capacity};
    c->parts = qi_host_allocate(host, capacity, sizeof *c->parts);
    c->allocations = qi_host_allocate(host, capacity, sizeof *c->allocations);
    c->ranges = qi_host_allocate(host, capacity, sizeof *c->ranges);
    bool is_whole = c->parts && c->allocations && c->ranges;
    if (sparse->tiles.count) {
        c->tiles = qi_host_allocate(host, capacity, sizeof *c->tiles);
        is_whole = is_whole && c->tiles;
    }
    return is_whole
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for binding %u part%s of a sparse object", capacity);
}

/* ---- translation ----------------------------------------------------------------------------- */

/* Finds the memory of a part. For unbinding it is VK_NULL_HANDLE. */
static quire_result memory_of(const qi_vulkan_change *c, uint32_t i, quire_vulkan_range *range)
{
    *range = (quire_vulkan_range){.size = 0};
    return c->is_binding ? quire_vulkan_get_range(c->sparse->memory, c->allocations[i], range)
                         : QUIRE_SUCCESS;
}

/* Adds a range of bytes, or extends the last one if the new range continues it in the object and in
   the memory. */
static void add_range(qi_vulkan_change *c, const quire_vulkan_range *range, uint64_t offset,
                      uint64_t size, VkSparseMemoryBindFlags flags)
{
    VkSparseMemoryBind *last = c->range_count ? &c->ranges[c->range_count - 1] : NULL;
    if (last && last->resourceOffset + last->size == offset && last->memory == range->memory &&
        last->flags == flags &&
        (!range->memory || last->memoryOffset + last->size == range->memory_offset)) {
        last->size += size;
        return;
    }
    c->ranges[c->range_count++] = (VkSparseMemoryBind){
        .resourceOffset = offset,
        .size = size,
        .memory = range->memory,
        .memoryOffset = range->memory_offset,
        .flags = flags,
    };
}

static void add_tile(qi_vulkan_change *c, const quire_vulkan_range *range,
                     const qi_vulkan_tile *tile)
{
    c->tiles[c->tile_count++] = (VkSparseImageMemoryBind){
        .subresource = {tile->aspect, tile->level, tile->layer},
        .offset = tile->offset,
        .extent = tile->extent,
        .memory = range->memory,
        .memoryOffset = range->memory_offset,
    };
}

/* Binds of metadata need a flag. */
static VkSparseMemoryBindFlags flags_of(const qi_vulkan_tile *tile)
{
    return tile->aspect & VK_IMAGE_ASPECT_METADATA_BIT ? VK_SPARSE_MEMORY_BIND_METADATA_BIT : 0;
}

/* Translates the parts: blocks of buffers and of mip tails into ranges, other blocks into tiles. */
static quire_result translate(qi_vulkan_change *c)
{
    const quire_vulkan_sparse *s = c->sparse;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t part = c->parts[i];
        quire_vulkan_range range;
        quire_result result = memory_of(c, i, &range);
        if (result)
            return result;
        if (!s->tiles.count) {
            add_range(c, &range, qi_vulkan_part_offset(s, part), qi_vulkan_part_size(s, part), 0);
            continue;
        }
        qi_vulkan_tile tile = qi_vulkan_tiles_at(&s->tiles, part, s->block);
        if (tile.is_tail)
            add_range(c, &range, tile.resource_offset, s->block, flags_of(&tile));
        else
            add_tile(c, &range, &tile);
    }
    return QUIRE_SUCCESS;
}

/* ---- submission ------------------------------------------------------------------------------ */

/* Submits and waits. On success the change is complete. If the wait fails *fence is set to the
   fence, except after a device loss. */
static quire_result run(const qi_vulkan *vulkan, const VkBindSparseInfo *info, VkFence *fence)
{
    const VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence created = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateFence(vulkan->device, &fence_info, vulkan->callbacks, &created);
    if (code)
        return qi_vulkan_fail(code, "vkCreateFence");
    const quire_vulkan_queue *queue = qi_vulkan_sparse_queue(vulkan);
    qi_vulkan_any_queue_lock(vulkan, queue);
    code = vulkan->f.QueueBindSparse(queue->queue, 1, info, created);
    qi_vulkan_any_queue_unlock(vulkan, queue);
    quire_result result = code ? qi_vulkan_fail(code, "vkQueueBindSparse") : QUIRE_SUCCESS;
    if (!result) {
        code = qi_vulkan_wait_fence(vulkan, created);
        result = code ? qi_vulkan_fail(code, "vkWaitForFences") : QUIRE_SUCCESS;
        *fence = code && code != VK_ERROR_DEVICE_LOST ? created : VK_NULL_HANDLE;
    }
    if (!*fence)
        vulkan->f.DestroyFence(vulkan->device, created, vulkan->callbacks);
    return result;
}

/* Submits ranges and tiles in one VkBindSparseInfo, so that they take effect together. */
static quire_result bind(qi_vulkan_change *c)
{
    const quire_vulkan_sparse *s = c->sparse;
    const VkSparseBufferMemoryBindInfo of_buffer = {QI_VULKAN_HANDLE(VkBuffer, s->native),
                                                    c->range_count, c->ranges};
    const VkSparseImageOpaqueMemoryBindInfo of_image = {QI_VULKAN_HANDLE(VkImage, s->native),
                                                        c->range_count, c->ranges};
    const VkSparseImageMemoryBindInfo of_tiles = {QI_VULKAN_HANDLE(VkImage, s->native),
                                                  c->tile_count, c->tiles};
    bool is_buffer = s->object == QUIRE_OBJECT_BUFFER;
    VkBindSparseInfo info = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO};
    /* Some validation layers dereference the pointers of empty lists. */
    if (c->range_count && is_buffer) {
        info.bufferBindCount = 1;
        info.pBufferBinds = &of_buffer;
    } else if (c->range_count) {
        info.imageOpaqueBindCount = 1;
        info.pImageOpaqueBinds = &of_image;
    }
    if (c->tile_count) {
        info.imageBindCount = 1;
        info.pImageBinds = &of_tiles;
    }
    return run(s->vulkan, &info, &c->fence);
}

quire_result qi_vulkan_change_submit(qi_vulkan_change *c)
{
    quire_result result = translate(c);
    return result ? result : bind(c);
}

/* ---- the parts after a change ---------------------------------------------------------------- */

quire_result qi_vulkan_change_check_maps(const qi_vulkan_change *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t maps = 0;
        quire_result result =
            quire_allocation_get_map_count(c->sparse->memory, c->allocations[i], &maps);
        if (!result && maps)
            result = qi_fail_with(QUIRE_ERROR_BUSY, "the block at %u of a sparse object is mapped",
                                  qi_vulkan_part_offset(c->sparse, c->parts[i]));
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

void qi_vulkan_change_apply(qi_vulkan_change *c)
{
    quire_vulkan_sparse *s = c->sparse;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t part = c->parts[i];
        uint64_t size = qi_vulkan_part_size(s, part);
        s->bound += c->is_binding ? size : UINT64_C(0) - size;
        s->parts[part] = c->is_binding ? c->allocations[i] : (quire_allocation){0};
    }
    if (!c->is_binding)
        qi_vulkan_parts_free(s, c->allocations, c->count);
}

/*
 * After a device loss the change counts as not done: the parts stay as they are, and the new
 * allocations of a change that binds are freed.
 */
quire_result qi_vulkan_sparse_retire(quire_vulkan_sparse *s)
{
    qi_vulkan_change *c = &s->pending;
    if (!c->fence)
        return QUIRE_SUCCESS;
    VkResult code = qi_vulkan_wait_fence(s->vulkan, c->fence);
    if (code && code != VK_ERROR_DEVICE_LOST)
        return qi_vulkan_fail(code, "vkWaitForFences for an earlier change of a sparse object");
    quire_result result = c->is_binding ? QUIRE_SUCCESS : qi_vulkan_change_check_maps(c);
    if (result)
        return result;
    s->vulkan->f.DestroyFence(s->vulkan->device, c->fence, s->vulkan->callbacks);
    if (!code)
        qi_vulkan_change_apply(c);
    else if (c->is_binding)
        qi_vulkan_parts_free(s, c->allocations, c->count);
    qi_vulkan_change_release(c);
    *c = (qi_vulkan_change){.sparse = s};
    return QUIRE_SUCCESS;
}

/* Destroys the object before it frees the memory that is bound to it. */
void qi_vulkan_sparse_destroy_now(quire_vulkan_sparse *s)
{
    qi_host *host = &s->vulkan->host;
    if (s->pending.fence)
        s->vulkan->f.DestroyFence(s->vulkan->device, s->pending.fence, s->vulkan->callbacks);
    qi_vulkan_change_release(&s->pending);
    if (s->native)
        qi_vulkan_object_destroy_now(s->vulkan, s->object, s->native);
    qi_vulkan_parts_free(s, s->parts, s->part_count);
    qi_host_release(host, s->parts, s->part_capacity, sizeof *s->parts);
    qi_host_release(host, s->offsets, s->offset_capacity, sizeof *s->offsets);
    qi_host_release_text(host, s->name);
    pthread_mutex_destroy(&s->mutex);
    qi_host_release(host, s, 1, sizeof *s);
}
