/*
 * sparse_change.c - one change of what is bound where: put into Vulkan's words, submitted as one
 * vkQueueBindSparse, and waited for.
 */
#include "backends/vulkan/sparse.h"
#include "backends/vulkan/staging.h"
#include "src/base/result.h"

/* ---- the queue ---------------------------------------------------------------------------- */

/* On success it is done. What is submitted and cannot be waited for leaves its fence. */
static quire_result run(const qi_vulkan *vulkan, const VkBindSparseInfo *info, VkFence *fence)
{
    const VkFenceCreateInfo asked = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence made = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateFence(vulkan->device, &asked, vulkan->callbacks, &made);
    if (code)
        return qi_vulkan_fail(code, "vkCreateFence");
    qi_vulkan_queue_take(vulkan);
    code = vulkan->f.QueueBindSparse(vulkan->queue.queue, 1, info, made);
    qi_vulkan_queue_give(vulkan);
    quire_result result = code ? qi_vulkan_fail(code, "vkQueueBindSparse") : QUIRE_SUCCESS;
    if (!result) {
        code = qi_vulkan_wait(vulkan, made);
        result = code ? qi_vulkan_fail(code, "vkWaitForFences") : QUIRE_SUCCESS;
        *fence = code && code != VK_ERROR_DEVICE_LOST ? made : VK_NULL_HANDLE;
    }
    if (!*fence)
        vulkan->f.DestroyFence(vulkan->device, made, vulkan->callbacks);
    return result;
}

/* ---- in Vulkan's words -------------------------------------------------------------------- */

void qi_vulkan_change_end(qi_vulkan_change *c)
{
    qi_host *host = &c->sparse->vulkan->host;
    qi_host_release(host, c->parts, c->room, sizeof *c->parts);
    qi_host_release(host, c->allocations, c->room, sizeof *c->allocations);
    qi_host_release(host, c->ranges, c->room, sizeof *c->ranges);
    qi_host_release(host, c->tiles, c->room, sizeof *c->tiles);
}

quire_result qi_vulkan_change_begin(qi_vulkan_change *c, quire_vulkan_sparse *sparse,
                                    bool is_binding, uint32_t room)
{
    qi_host *host = &sparse->vulkan->host;
    *c = (qi_vulkan_change){.sparse = sparse, .is_binding = is_binding, .room = room};
    c->parts = qi_host_allocate(host, room, sizeof *c->parts);
    c->allocations = qi_host_allocate(host, room, sizeof *c->allocations);
    c->ranges = qi_host_allocate(host, room, sizeof *c->ranges);
    bool is_whole = c->parts && c->allocations && c->ranges;
    if (sparse->tiles.count) {
        c->tiles = qi_host_allocate(host, room, sizeof *c->tiles);
        is_whole = is_whole && c->tiles;
    }
    return is_whole ? QUIRE_SUCCESS
                    : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                   "no host memory for binding %u parts of a sparse object", room);
}

/* Where a part's memory is; VK_NULL_HANDLE: nowhere, for unbinding. */
static quire_result memory_of(const qi_vulkan_change *c, uint32_t i, quire_vulkan_range *range)
{
    *range = (quire_vulkan_range){.size = 0};
    return c->is_binding ? quire_vulkan_get_range(c->sparse->memory, c->allocations[i], range)
                         : QUIRE_SUCCESS;
}

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

static VkSparseMemoryBindFlags flags_of(const qi_vulkan_tile *tile)
{
    return tile->aspect & VK_IMAGE_ASPECT_METADATA_BIT ? VK_SPARSE_MEMORY_BIND_METADATA_BIT : 0;
}

/* Puts the parts into Vulkan's words. */
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
    /* some validation layers follow the pointers of lists that are empty */
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
