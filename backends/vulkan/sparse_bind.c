/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sparse_bind.c - the parts of a sparse object, their allocations, and how they are bound: all at
 * once, or block by block.
 *
 * A call gathers the parts that change, allocates their memory, submits one vkQueueBindSparse and
 * updates the object only after that succeeded.
 *
 * If a submitted change cannot be waited for, for example for lack of memory, its outcome is
 * unknown, and nothing that it names may be freed. The object keeps the change as it is, and the
 * next call on the object waits for it first.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/sparse.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the parts ---------------------------------------------------------------------------- */

/* Return the offset of a part in the object and its size, in bytes. */
static uint64_t part_offset(const quire_vulkan_sparse *s, uint32_t part)
{
    return s->offsets ? s->offsets[part] : part * s->block;
}

static uint64_t part_size(const quire_vulkan_sparse *s, uint32_t part)
{
    uint64_t end = part + 1 == s->part_count ? s->size : part_offset(s, part + 1);
    return end - part_offset(s, part);
}

/* Returns the part that contains a byte: by division if each part is a block, otherwise by binary
   search. */
static uint32_t find_part(const quire_vulkan_sparse *s, uint64_t offset)
{
    if (!s->offsets)
        return (uint32_t)(offset / s->block);
    uint32_t first = 0, end = s->part_count;
    while (end - first > 1) {
        uint32_t middle = first + (end - first) / 2;
        if (s->offsets[middle] <= offset)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* Describes the texels of a block of an image. */
static void describe_tile(const quire_vulkan_sparse *s, uint32_t block, quire_vulkan_part *part)
{
    qi_vulkan_tile tile = qi_vulkan_tiles_at(&s->tiles, block, s->block);
    part->is_tail = tile.is_tail;
    part->region = (quire_vulkan_region){.level = tile.level,
                                         .layer = tile.layer,
                                         .aspect = tile.aspect,
                                         .offset = tile.offset,
                                         .extent = tile.extent};
}

/* Offsets and sizes of parts are constant; only the allocation needs the mutex. */
quire_result quire_vulkan_sparse_get_part(const quire_vulkan_sparse *sparse, uint64_t offset,
                                          quire_vulkan_part *part)
{
    if (part)
        *part = (quire_vulkan_part){.size = 0};
    if (!sparse || !part)
        return qi_fail_null("quire_vulkan_sparse_get_part", !sparse ? "sparse" : "part");
    quire_result result = qi_vulkan_check_process(sparse->vulkan);
    if (result)
        return result;
    if (offset >= sparse->size)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "offset %u of a sparse object of %u byte%s",
                            offset, sparse->size);
    uint32_t found = find_part(sparse, offset);
    pthread_mutex_lock(qi_vulkan_sparse_mutex(sparse));
    *part = (quire_vulkan_part){
        .offset = part_offset(sparse, found),
        .size = part_size(sparse, found),
        .allocation = sparse->parts[found],
    };
    pthread_mutex_unlock(qi_vulkan_sparse_mutex(sparse));
    if (sparse->tiles.count)
        describe_tile(sparse, found, part);
    return QUIRE_SUCCESS;
}

/* ---- allocations of parts ----------------------------------------------------------------- */

/*
 * Allocates `count` parts of `size` bytes, all or none. The allocations are held, so that no other
 * caller can free them.
 */
static quire_result allocate_parts(const quire_vulkan_sparse *s, uint64_t size,
                                   quire_allocation *allocations, uint32_t count)
{
    quire_allocation_options options = s->options;
    uint32_t held = 0;
    if (qi_align_up_overflows(size, s->granularity, &options.size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "a part of %u byte%s", size);
    quire_result result = quire_allocate_batch(s->memory, &options, allocations, count);
    if (result)
        return result;
    while (held < count && !result)
        result = quire_allocation_hold(s->memory, allocations[held++]);
    /* Another thread can find an allocation, for example by a walk, and free it before the hold. */
    if (result)
        for (uint32_t i = 0; i < count; i++) {
            if (i + 1 < held)
                quire_allocation_release(s->memory, allocations[i]);
            quire_free(s->memory, allocations[i]);
        }
    return result;
}

/* Releases and frees the allocations of parts. Skips {0}. */
static void free_parts(const quire_vulkan_sparse *s, const quire_allocation *allocations,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (allocations[i].id) {
            quire_allocation_release(s->memory, allocations[i]);
            quire_free(s->memory, allocations[i]); /* the core reports corruption */
        }
}

/* ---- a change: its arrays ----------------------------------------------------------------- */

static void release_change(qi_vulkan_change *c)
{
    qi_host *host = &c->sparse->vulkan->host;
    qi_host_release(host, c->parts, c->capacity, sizeof *c->parts);
    qi_host_release(host, c->allocations, c->capacity, sizeof *c->allocations);
    qi_host_release(host, c->ranges, c->capacity, sizeof *c->ranges);
    qi_host_release(host, c->tiles, c->capacity, sizeof *c->tiles);
}

/* Initialises a change of up to `capacity` parts. The caller releases it, even after a failure. */
static quire_result init_change(qi_vulkan_change *c, quire_vulkan_sparse *sparse, bool is_binding,
                                uint32_t capacity)
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

/* ---- a change: translation ---------------------------------------------------------------- */

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
            add_range(c, &range, part_offset(s, part), part_size(s, part), 0);
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

/* ---- a change: submission ----------------------------------------------------------------- */

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
    return qi_vulkan_run_binds(s->vulkan, &info, &c->fence);
}

/* Submits a change and waits for it. On failure nothing has changed, unless the change has a fence:
   then its outcome is unknown. */
static quire_result submit_change(qi_vulkan_change *c)
{
    quire_result result = translate(c);
    return result ? result : bind(c);
}

/* ---- a change: the parts after it --------------------------------------------------------- */

/* BUSY if the host has mapped the allocation of one of the parts, which then cannot be freed. */
static quire_result check_maps(const qi_vulkan_change *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t maps = 0;
        quire_result result =
            quire_allocation_get_map_count(c->sparse->memory, c->allocations[i], &maps);
        if (!result && maps)
            result = qi_fail_with(QUIRE_ERROR_BUSY, "the block at %u of a sparse object is mapped",
                                  part_offset(c->sparse, c->parts[i]));
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

/* Updates the object's parts after a change succeeded, and frees the allocations of unbound
   parts. */
static void apply_change(qi_vulkan_change *c)
{
    quire_vulkan_sparse *s = c->sparse;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t part = c->parts[i];
        uint64_t size = part_size(s, part);
        s->bound += c->is_binding ? size : UINT64_C(0) - size;
        s->parts[part] = c->is_binding ? c->allocations[i] : (quire_allocation){0};
    }
    if (!c->is_binding)
        free_parts(s, c->allocations, c->count);
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
    quire_result result = c->is_binding ? QUIRE_SUCCESS : check_maps(c);
    if (result)
        return result;
    s->vulkan->f.DestroyFence(s->vulkan->device, c->fence, s->vulkan->callbacks);
    if (!code)
        apply_change(c);
    else if (c->is_binding)
        free_parts(s, c->allocations, c->count);
    release_change(c);
    *c = (qi_vulkan_change){.sparse = s};
    return QUIRE_SUCCESS;
}

/* Destroys the object before it frees the memory that is bound to it. */
void qi_vulkan_sparse_destroy_now(quire_vulkan_sparse *s)
{
    qi_host *host = &s->vulkan->host;
    if (s->pending.fence)
        s->vulkan->f.DestroyFence(s->vulkan->device, s->pending.fence, s->vulkan->callbacks);
    release_change(&s->pending);
    if (s->native)
        qi_vulkan_object_destroy_now(s->vulkan, s->object, s->native);
    free_parts(s, s->parts, s->part_count);
    qi_host_release(host, s->parts, s->part_capacity, sizeof *s->parts);
    qi_host_release(host, s->offsets, s->offset_capacity, sizeof *s->offsets);
    qi_host_release_text(host, s->name);
    pthread_mutex_destroy(&s->mutex);
    qi_host_release(host, s, 1, sizeof *s);
}

/* ---- binding a whole object --------------------------------------------------------------- */

/* Parts for which the first list has space. */
enum { FIRST_CAPACITY = 8 };

/* Ensures that both lists have space for one more part. Doubles them if they are full. */
static quire_result reserve_part(quire_vulkan_sparse *s)
{
    qi_host *host = &s->vulkan->host;
    uint32_t capacity = s->part_capacity ? s->part_capacity * 2 : FIRST_CAPACITY;
    if (s->part_count < s->part_capacity)
        return QUIRE_SUCCESS;
    uint64_t *offsets =
        qi_host_resize(host, s->offsets, s->offset_capacity, capacity, sizeof *offsets);
    if (offsets) {
        s->offsets = offsets;
        s->offset_capacity = capacity;
    }
    quire_allocation *parts =
        offsets ? qi_host_resize(host, s->parts, s->part_capacity, capacity, sizeof *parts) : NULL;
    if (parts) {
        s->parts = parts;
        s->part_capacity = capacity;
    }
    return parts ? QUIRE_SUCCESS
                 : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for %u part%s of a sparse object", capacity);
}

static bool is_lack_of_space(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET ||
           result == QUIRE_ERROR_TOO_MANY_PAGES || result == QUIRE_ERROR_OUT_OF_RANGE;
}

/* Allocates a part of at most `left` and at most *max bytes. While the memory has no space the size
   is halved, down to one block. *max then is the maximum size of the following parts. */
static quire_result allocate_largest(const quire_vulkan_sparse *s, uint64_t left, uint64_t *max,
                                     quire_allocation *allocation)
{
    qi_error before;
    qi_error_save(&before);
    for (;;) {
        quire_result result = allocate_parts(s, left < *max ? left : *max, allocation, 1);
        if (!is_lack_of_space(result) || *max == s->block || left <= s->block) {
            if (!result)
                qi_error_restore(&before);
            return result;
        }
        uint64_t tried = left < *max ? left : *max;
        uint64_t half = qi_align_down(tried / 2, s->block);
        *max = half ? half : s->block;
    }
}

/* Binds all parts. The parts already belong to the object, so that a pending change needs only its
   fence. */
static quire_result bind_parts(quire_vulkan_sparse *s)
{
    qi_vulkan_change c;
    quire_result result = init_change(&c, s, true, s->part_count);
    for (uint32_t i = 0; i < s->part_count && !result; i++) {
        c.parts[i] = i;
        c.allocations[i] = s->parts[i];
    }
    c.count = s->part_count;
    if (!result)
        result = submit_change(&c);
    s->pending.fence = c.fence;
    release_change(&c);
    return result;
}

/*
 * Prefers parts as large as a new page, so that each part fills a page. If no page is available the
 * parts are smaller, down to one block, and use the free ranges of existing pages.
 */
quire_result qi_vulkan_sparse_bind_whole(quire_vulkan_sparse *s)
{
    quire_memory_info info;
    quire_result result = quire_memory_get_info(s->memory, &info);
    /* The linear fit has one page; an allocation larger than it gets a page of its own. */
    uint64_t wanted = info.fit == QUIRE_FIT_LINEAR ? s->size : info.page_size;
    uint64_t max = qi_align_down(wanted, s->block);
    max = max ? max : s->block;
    for (uint64_t at = 0; at < s->size && !result; at += max) { /* the last step passes the end */
        result = reserve_part(s);
        if (!result)
            result = allocate_largest(s, s->size - at, &max, &s->parts[s->part_count]);
        if (!result)
            s->offsets[s->part_count++] = at;
    }
    s->bound = result ? 0 : s->size;
    return result ? result : bind_parts(s);
}

/* ---- binding blocks ----------------------------------------------------------------------- */

/* Adds those parts of a box that are not yet in the wanted state. */
static void gather(qi_vulkan_change *c, const qi_vulkan_box *box)
{
    for (uint64_t z = 0; z < box->slices; z++)
        for (uint64_t y = 0; y < box->rows; y++) {
            uint64_t first = box->first + z * box->slice_stride + y * box->row_stride;
            for (uint64_t part = first; part < first + box->blocks; part++)
                if (!c->sparse->parts[part].id == c->is_binding)
                    c->parts[c->count++] = (uint32_t)part;
        }
}

/* Allocates memory for the gathered parts and binds them, all or none. */
static quire_result bind_gathered(qi_vulkan_change *c)
{
    const quire_vulkan_sparse *s = c->sparse;
    quire_result result = allocate_parts(s, s->block, c->allocations, c->count);
    if (result)
        return result;
    result = submit_change(c);
    if (result && !c->fence) {
        qi_error failure;
        qi_error_save(&failure);
        free_parts(s, c->allocations, c->count);
        qi_error_restore(&failure);
    }
    if (!result)
        apply_change(c);
    return result;
}

/* Checks the mappings before the submission, because a mapped allocation cannot be freed after
   it. */
static quire_result unbind_gathered(qi_vulkan_change *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        c->allocations[i] = c->sparse->parts[c->parts[i]];
    quire_result result = check_maps(c);
    if (!result)
        result = submit_change(c);
    if (!result)
        apply_change(c);
    return result;
}

/* Changes the blocks of some boxes. Requires the object's mutex. */
static quire_result change_boxes(quire_vulkan_sparse *s, const qi_vulkan_boxes *boxes,
                                 bool is_binding)
{
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < boxes->count; i++)
        capacity += boxes->all[i].blocks * boxes->all[i].rows * boxes->all[i].slices;
    qi_vulkan_change c;
    quire_result result = init_change(&c, s, is_binding, (uint32_t)capacity);
    if (!result) {
        for (uint32_t i = 0; i < boxes->count; i++)
            gather(&c, &boxes->all[i]);
        if (c.count)
            result = is_binding ? bind_gathered(&c) : unbind_gathered(&c);
    }
    if (c.fence) /* the next call on the object waits for it */
        s->pending = c;
    else
        release_change(&c);
    return result;
}

/* ---- public functions --------------------------------------------------------------------- */

/* The checks that all public functions of this file make. `call` is the name of the function. */
static quire_result check(const quire_vulkan_sparse *sparse, const char *call)
{
    if (!sparse)
        return qi_fail_null(call, "sparse");
    quire_result result = qi_vulkan_check_process(sparse->vulkan);
    if (result)
        return result;
    return sparse->is_partial
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "%s: the object was created without SPARSE_RESIDENCY and stays bound",
                              call);
}

/* Finds the blocks of a byte range. Size 0 means the rest of the object. The last block may be
   shorter than the others. */
static quire_result find_blocks(const quire_vulkan_sparse *s, uint64_t offset, uint64_t size,
                                qi_vulkan_boxes *boxes)
{
    if (offset >= s->size || size > s->size - offset)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "%u byte%s from offset %u: the sparse object has %u", size, offset,
                            s->size);
    uint64_t end = size ? offset + size : s->size;
    if (offset % s->block || (end % s->block && end != s->size))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "bytes %u to %u are not whole blocks of %u byte%s", offset, end,
                            s->block);
    uint64_t first = offset / s->block;
    *boxes = (qi_vulkan_boxes){.count = 1};
    boxes->all[0] = (qi_vulkan_box){
        .first = first,
        .blocks = (end - 1) / s->block + 1 - first,
        .rows = 1,
        .slices = 1,
    };
    return QUIRE_SUCCESS;
}

/* Locks the object, waits for its pending change and changes the blocks. */
static quire_result change_locked(quire_vulkan_sparse *s, const qi_vulkan_boxes *boxes,
                                  bool is_binding)
{
    quire_result result = qi_vulkan_check_queue(s->vulkan);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = qi_vulkan_sparse_retire(s);
    if (!result)
        result = change_boxes(s, boxes, is_binding);
    pthread_mutex_unlock(&s->mutex);
    return result;
}

static quire_result change_range(quire_vulkan_sparse *s, uint64_t offset, uint64_t size,
                                 bool is_binding, const char *call)
{
    qi_vulkan_boxes boxes;
    quire_result result = check(s, call);
    if (!result)
        result = find_blocks(s, offset, size, &boxes);
    return result ? result : change_locked(s, &boxes, is_binding);
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
                                qi_vulkan_boxes *boxes, const char *call)
{
    quire_result result = check(s, call);
    if (result)
        return result;
    if (!region)
        return qi_fail_null(call, "region");
    if (!s->tiles.count)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the object is a buffer", call);
    result = qi_check_unused(region, "quire_vulkan_region");
    return result ? result : qi_vulkan_tiles_find(&s->tiles, region, boxes);
}

static quire_result change_region(quire_vulkan_sparse *s, const quire_vulkan_region *region,
                                  bool is_binding, const char *call)
{
    qi_vulkan_boxes boxes;
    quire_result result = find_region(s, region, &boxes, call);
    return result ? result : change_locked(s, &boxes, is_binding);
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

quire_result quire_vulkan_sparse_find(const quire_vulkan_sparse *sparse,
                                      const quire_vulkan_region *region, uint64_t *offset)
{
    qi_vulkan_boxes boxes;
    if (offset)
        *offset = 0;
    if (!offset)
        return qi_fail_null("quire_vulkan_sparse_find", "offset");
    quire_result result = find_region(sparse, region, &boxes, "quire_vulkan_sparse_find");
    if (!result)
        *offset = boxes.all[0].first * sparse->block;
    return result;
}
