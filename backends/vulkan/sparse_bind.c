/*
 * sparse_bind.c - what is bound where, changed: the parts are gathered, their memory is allocated,
 * one vkQueueBindSparse does it all, and only then the record is changed.
 *
 * A change that was submitted and cannot be waited for, for want of memory say, is neither done nor
 * undone for what anybody knows: nothing that it names may go. It stays with the object, as it was,
 * and is settled before the next one.
 */
#include "backends/vulkan/sparse.h"
#include "backends/vulkan/staging.h"
#include "src/base/result.h"

/* ---- bound whole -------------------------------------------------------------------------- */

quire_result qi_vulkan_sparse_bind_whole(quire_vulkan_sparse *s)
{
    qi_vulkan_change c;
    quire_result result = qi_vulkan_change_begin(&c, s, true, s->part_count);
    for (uint32_t i = 0; i < s->part_count && !result; i++) {
        c.parts[i] = i;
        c.allocations[i] = s->parts[i];
    }
    c.count = s->part_count;
    if (!result)
        result = qi_vulkan_change_submit(&c);
    s->late.fence = c.fence; /* the parts are the object's already */
    qi_vulkan_change_end(&c);
    return result;
}

/* ---- blocks that come and go -------------------------------------------------------------- */

/* Those of the box that are not yet as they are to be. */
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

/* The record follows what was done: the allocations are the parts', or go. */
static void keep(qi_vulkan_change *c)
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

/* Memory that the host still has mapped cannot go. */
static quire_result check_maps(const qi_vulkan_change *c)
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

quire_result qi_vulkan_sparse_settle(quire_vulkan_sparse *s)
{
    qi_vulkan_change *c = &s->late;
    if (!c->fence)
        return QUIRE_SUCCESS;
    VkResult code = qi_vulkan_wait(s->vulkan, c->fence);
    if (code && code != VK_ERROR_DEVICE_LOST)
        return qi_vulkan_fail(code, "vkWaitForFences for an earlier change of a sparse object");
    quire_result result = c->is_binding ? QUIRE_SUCCESS : check_maps(c);
    if (result)
        return result;
    s->vulkan->f.DestroyFence(s->vulkan->device, c->fence, s->vulkan->callbacks);
    if (!code)
        keep(c);
    else if (c->is_binding)
        qi_vulkan_parts_free(s, c->allocations, c->count);
    qi_vulkan_change_end(c);
    *c = (qi_vulkan_change){.sparse = s};
    return QUIRE_SUCCESS;
}

static quire_result bind_gathered(qi_vulkan_change *c)
{
    const quire_vulkan_sparse *s = c->sparse;
    quire_result result = qi_vulkan_parts_allocate(s, s->block, c->allocations, c->count);
    if (result)
        return result;
    result = qi_vulkan_change_submit(c);
    if (result && !c->fence) {
        qi_error said = qi_error_save();
        qi_vulkan_parts_free(s, c->allocations, c->count);
        qi_error_restore(&said);
    }
    if (!result)
        keep(c);
    return result;
}

static quire_result unbind_gathered(qi_vulkan_change *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        c->allocations[i] = c->sparse->parts[c->parts[i]];
    quire_result result = check_maps(c);
    if (!result)
        result = qi_vulkan_change_submit(c);
    if (!result)
        keep(c);
    return result;
}

static quire_result change_boxes(quire_vulkan_sparse *s, const qi_vulkan_boxes *boxes,
                                 bool is_binding)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < boxes->count; i++)
        room += boxes->all[i].blocks * boxes->all[i].rows * boxes->all[i].slices;
    qi_vulkan_change c;
    quire_result result = qi_vulkan_change_begin(&c, s, is_binding, (uint32_t)room);
    if (!result) {
        for (uint32_t i = 0; i < boxes->count; i++)
            gather(&c, &boxes->all[i]);
        if (c.count)
            result = is_binding ? bind_gathered(&c) : unbind_gathered(&c);
    }
    if (c.fence) /* whoever changes the object next goes on with it */
        s->late = c;
    else
        qi_vulkan_change_end(&c);
    return result;
}

/* ---- public calls ------------------------------------------------------------------------- */

static quire_result check(const quire_vulkan_sparse *sparse, const char *call)
{
    if (!sparse)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the sparse object is null", call);
    quire_result result = qi_vulkan_check_process(sparse->vulkan);
    if (result)
        return result;
    return sparse->is_partial
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "%s: the object was made without SPARSE_RESIDENCY, and stays bound",
                              call);
}

static quire_result find_blocks(const quire_vulkan_sparse *s, uint64_t offset, uint64_t size,
                                qi_vulkan_boxes *boxes)
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
    *boxes = (qi_vulkan_boxes){.count = 1};
    boxes->all[0] = (qi_vulkan_box){
        .first = first,
        .blocks = (end - 1) / s->block + 1 - first,
        .rows = 1,
        .slices = 1,
    };
    return QUIRE_SUCCESS;
}

static quire_result change_locked(quire_vulkan_sparse *s, const qi_vulkan_boxes *boxes,
                                  bool is_binding)
{
    pthread_mutex_lock(&s->mutex);
    quire_result result = qi_vulkan_sparse_settle(s);
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
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the region is null", call);
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

quire_result quire_vulkan_sparse_find(quire_vulkan_sparse *sparse,
                                      const quire_vulkan_region *region, uint64_t *offset)
{
    qi_vulkan_boxes boxes;
    if (offset)
        *offset = 0;
    if (!offset)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_sparse_find: offset is null");
    quire_result result = find_region(sparse, region, &boxes, "quire_vulkan_sparse_find");
    if (!result)
        *offset = boxes.all[0].first * sparse->block;
    return result;
}
