/*
 * sparse_bind.c - what is bound where, changed: the parts are gathered, their memory is allocated,
 * one vkQueueBindSparse does it all, and only then the record is changed.
 */
#include "backends/vulkan/sparse.h"
#include "backends/vulkan/staging.h"
#include "src/base/result.h"

/* ---- the queue ---------------------------------------------------------------------------- */

static quire_result submit(const qi_vulkan *vulkan, const VkBindSparseInfo *info, VkFence fence)
{
    qi_vulkan_queue_take(vulkan);
    VkResult code = vulkan->f.QueueBindSparse(vulkan->queue.queue, 1, info, fence);
    qi_vulkan_queue_give(vulkan);
    if (code)
        return qi_vulkan_fail(code, "vkQueueBindSparse");
    code = qi_vulkan_wait(vulkan, fence);
    return code ? qi_vulkan_fail(code, "vkWaitForFences") : QUIRE_SUCCESS;
}

/* Nothing is known to be bound on failure; complete on success. */
static quire_result run(const qi_vulkan *vulkan, const VkBindSparseInfo *info)
{
    const VkFenceCreateInfo asked = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateFence(vulkan->device, &asked, vulkan->callbacks, &fence);
    if (code)
        return qi_vulkan_fail(code, "vkCreateFence");
    quire_result result = submit(vulkan, info, fence);
    vulkan->f.DestroyFence(vulkan->device, fence, vulkan->callbacks);
    return result;
}

/* ---- a change ----------------------------------------------------------------------------- */

/* Parts to be bound to their allocations, or unbound where there are none. */
typedef struct change {
    quire_vulkan_sparse *sparse;
    bool is_binding;
    uint32_t room, count;
    uint32_t *parts;
    quire_allocation *allocations;
    VkSparseMemoryBind *ranges; /* by bytes; neighbours that go on in the memory are one */
    uint32_t range_count;
    VkSparseImageMemoryBind *tiles;
    uint32_t tile_count;
} change;

static void finish(change *c)
{
    qi_host *host = &c->sparse->vulkan->host;
    qi_host_release(host, c->parts, c->room, sizeof *c->parts);
    qi_host_release(host, c->allocations, c->room, sizeof *c->allocations);
    qi_host_release(host, c->ranges, c->room, sizeof *c->ranges);
    qi_host_release(host, c->tiles, c->room, sizeof *c->tiles);
}

/* Makes room for so many parts; to be finished, whether this succeeds or not. */
static quire_result begin(change *c, quire_vulkan_sparse *sparse, bool is_binding, uint32_t room)
{
    qi_host *host = &sparse->vulkan->host;
    *c = (change){.sparse = sparse, .is_binding = is_binding, .room = room};
    c->parts = qi_host_allocate(host, room, sizeof *c->parts);
    c->allocations = qi_host_allocate(host, room, sizeof *c->allocations);
    c->ranges = qi_host_allocate(host, room, sizeof *c->ranges);
    bool is_whole = c->parts && c->allocations && c->ranges;
    if (sparse->tiles.tile.width) {
        c->tiles = qi_host_allocate(host, room, sizeof *c->tiles);
        is_whole = is_whole && c->tiles;
    }
    return is_whole ? QUIRE_SUCCESS
                    : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                   "no host memory for binding %u parts of a sparse object", room);
}

/* Where a part's memory is; VK_NULL_HANDLE: nowhere, for unbinding. */
static quire_result memory_of(const change *c, uint32_t i, quire_vulkan_range *range)
{
    *range = (quire_vulkan_range){.size = 0};
    return c->is_binding ? quire_vulkan_get_range(c->sparse->memory, c->allocations[i], range)
                         : QUIRE_SUCCESS;
}

static void add_range(change *c, const quire_vulkan_range *range, uint64_t offset, uint64_t size)
{
    VkSparseMemoryBind *last = c->range_count ? &c->ranges[c->range_count - 1] : NULL;
    if (last && last->resourceOffset + last->size == offset && last->memory == range->memory &&
        (!range->memory || last->memoryOffset + last->size == range->memory_offset)) {
        last->size += size;
        return;
    }
    c->ranges[c->range_count++] = (VkSparseMemoryBind){
        .resourceOffset = offset,
        .size = size,
        .memory = range->memory,
        .memoryOffset = range->memory_offset,
    };
}

static void add_tile(change *c, const quire_vulkan_range *range, const qi_vulkan_tile *tile)
{
    c->tiles[c->tile_count++] = (VkSparseImageMemoryBind){
        .subresource = {c->sparse->tiles.aspect, tile->level, tile->layer},
        .offset = tile->offset,
        .extent = tile->extent,
        .memory = range->memory,
        .memoryOffset = range->memory_offset,
    };
}

/* Puts the parts into Vulkan's words. */
static quire_result translate(change *c)
{
    const quire_vulkan_sparse *s = c->sparse;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t part = c->parts[i];
        quire_vulkan_range range;
        quire_result result = memory_of(c, i, &range);
        if (result)
            return result;
        if (!s->tiles.tile.width) {
            add_range(c, &range, qi_vulkan_part_offset(s, part), qi_vulkan_part_size(s, part));
            continue;
        }
        qi_vulkan_tile tile = qi_vulkan_tiles_at(&s->tiles, part, s->block);
        if (tile.is_tail)
            add_range(c, &range, tile.resource_offset, s->block);
        else
            add_tile(c, &range, &tile);
    }
    return QUIRE_SUCCESS;
}

static quire_result bind(const change *c)
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
    return run(s->vulkan, &info);
}

quire_result qi_vulkan_sparse_bind_whole(quire_vulkan_sparse *s)
{
    change c;
    quire_result result = begin(&c, s, true, s->part_count);
    for (uint32_t i = 0; i < s->part_count && !result; i++) {
        c.parts[i] = i;
        c.allocations[i] = s->parts[i];
    }
    c.count = s->part_count;
    if (!result)
        result = translate(&c);
    if (!result)
        result = bind(&c);
    finish(&c);
    return result;
}

/* ---- blocks that come and go -------------------------------------------------------------- */

/* Those of the box that are not yet as they are to be. */
static void gather(change *c, const qi_vulkan_box *box)
{
    for (uint64_t z = 0; z < box->slices; z++)
        for (uint64_t y = 0; y < box->rows; y++) {
            uint64_t first = box->first + z * box->slice_stride + y * box->row_stride;
            for (uint64_t part = first; part < first + box->blocks; part++)
                if (!c->sparse->parts[part].id == c->is_binding)
                    c->parts[c->count++] = (uint32_t)part;
        }
}

/* The record follows what was done: the allocations are the parts', or nobody's. */
static void keep(change *c)
{
    quire_vulkan_sparse *s = c->sparse;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t part = c->parts[i];
        uint64_t size = qi_vulkan_part_size(s, part);
        s->bound += c->is_binding ? size : UINT64_C(0) - size;
        s->parts[part] = c->is_binding ? c->allocations[i] : (quire_allocation){0};
    }
}

static quire_result bind_gathered(change *c)
{
    const quire_vulkan_sparse *s = c->sparse;
    quire_result result = qi_vulkan_parts_allocate(s, s->block, c->allocations, c->count);
    if (result)
        return result;
    result = translate(c);
    if (!result)
        result = bind(c);
    if (result) {
        qi_error said = qi_error_save();
        qi_vulkan_parts_free(s, c->allocations, c->count);
        qi_error_restore(&said);
        return result;
    }
    keep(c);
    return QUIRE_SUCCESS;
}

/* Memory that the host still has mapped cannot go. */
static quire_result check_maps(const change *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        quire_allocation_info info;
        quire_result result =
            quire_allocation_get_info(c->sparse->memory, c->allocations[i], &info);
        if (!result && info.map_count)
            result = qi_fail_with(QUIRE_ERROR_BUSY, "the block at %u of a sparse object is mapped",
                                  qi_vulkan_part_offset(c->sparse, c->parts[i]));
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

static quire_result unbind_gathered(change *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        c->allocations[i] = c->sparse->parts[c->parts[i]];
    quire_result result = check_maps(c);
    if (!result)
        result = translate(c);
    if (!result)
        result = bind(c);
    if (result)
        return result;
    keep(c);
    qi_vulkan_parts_free(c->sparse, c->allocations, c->count);
    return QUIRE_SUCCESS;
}

static quire_result change_box(quire_vulkan_sparse *s, const qi_vulkan_box *box, bool is_binding)
{
    change c;
    quire_result result =
        begin(&c, s, is_binding, (uint32_t)(box->blocks * box->rows * box->slices));
    if (!result) {
        gather(&c, box);
        if (c.count)
            result = is_binding ? bind_gathered(&c) : unbind_gathered(&c);
    }
    finish(&c);
    return result;
}

/* ---- public calls ------------------------------------------------------------------------- */

static quire_result check(const quire_vulkan_sparse *sparse, const char *call)
{
    if (!sparse)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the sparse object is null", call);
    return sparse->is_partial
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "%s: the object was made without SPARSE_RESIDENCY, and stays bound",
                              call);
}

static quire_result find_blocks(const quire_vulkan_sparse *s, uint64_t offset, uint64_t size,
                                qi_vulkan_box *box)
{
    if (offset >= s->size || size > s->size - offset)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "%u bytes from %u on: the sparse object has %u", size, offset, s->size);
    uint64_t end = size ? offset + size : s->size;
    if (offset % s->block || (end % s->block && end != s->size))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "bytes %u to %u of a sparse object whose blocks have %u", offset, end,
                            s->block);
    uint64_t first = offset / s->block;
    *box = (qi_vulkan_box){
        .first = first,
        .blocks = (end - 1) / s->block + 1 - first,
        .rows = 1,
        .slices = 1,
    };
    return QUIRE_SUCCESS;
}

static quire_result change_locked(quire_vulkan_sparse *s, const qi_vulkan_box *box, bool is_binding)
{
    pthread_mutex_lock(&s->mutex);
    quire_result result = change_box(s, box, is_binding);
    pthread_mutex_unlock(&s->mutex);
    return result;
}

static quire_result change_range(quire_vulkan_sparse *s, uint64_t offset, uint64_t size,
                                 bool is_binding, const char *call)
{
    qi_vulkan_box box;
    quire_result result = check(s, call);
    if (!result)
        result = find_blocks(s, offset, size, &box);
    return result ? result : change_locked(s, &box, is_binding);
}

quire_result quire_vulkan_sparse_bind(quire_vulkan_sparse *sparse, uint64_t offset, uint64_t size)
{
    return change_range(sparse, offset, size, true, "quire_vulkan_sparse_bind");
}

quire_result quire_vulkan_sparse_unbind(quire_vulkan_sparse *sparse, uint64_t offset, uint64_t size)
{
    return change_range(sparse, offset, size, false, "quire_vulkan_sparse_unbind");
}

static quire_result find_region(const quire_vulkan_sparse *s, const quire_vulkan_region *region,
                                qi_vulkan_box *box, const char *call)
{
    quire_result result = check(s, call);
    if (result)
        return result;
    if (!region)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the region is null", call);
    if (!s->tiles.tile.width)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the object is a buffer", call);
    result = qi_check_reserved(region, "quire_vulkan_region");
    return result ? result : qi_vulkan_tiles_find(&s->tiles, region, box);
}

static quire_result change_region(quire_vulkan_sparse *s, const quire_vulkan_region *region,
                                  bool is_binding, const char *call)
{
    qi_vulkan_box box;
    quire_result result = find_region(s, region, &box, call);
    return result ? result : change_locked(s, &box, is_binding);
}

quire_result quire_vulkan_sparse_bind_region(quire_vulkan_sparse *sparse,
                                             const quire_vulkan_region *region)
{
    return change_region(sparse, region, true, "quire_vulkan_sparse_bind_region");
}

quire_result quire_vulkan_sparse_unbind_region(quire_vulkan_sparse *sparse,
                                               const quire_vulkan_region *region)
{
    return change_region(sparse, region, false, "quire_vulkan_sparse_unbind_region");
}

quire_result quire_vulkan_sparse_find(quire_vulkan_sparse *sparse,
                                      const quire_vulkan_region *region, uint64_t *offset)
{
    qi_vulkan_box box;
    if (offset)
        *offset = 0;
    if (!offset)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_sparse_find: offset is null");
    quire_result result = find_region(sparse, region, &box, "quire_vulkan_sparse_find");
    if (!result)
        *offset = box.first * sparse->block;
    return result;
}
