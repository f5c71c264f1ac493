/*
 * sparse_bind.c - binds and unbinds blocks of objects with residency.
 *
 * A call gathers the parts that change, allocates their memory, submits one vkQueueBindSparse and
 * updates the object only after that succeeded.
 *
 * If a submitted change cannot be waited for, for example for lack of memory, its outcome is
 * unknown, and nothing that it names may be freed. The object keeps the change as it is, and the
 * next call on the object waits for it first.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/sparse.h"
#include "src/base/result.h"

/* ---- changing blocks ------------------------------------------------------------------------- */

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
    quire_result result = qi_vulkan_parts_allocate(s, s->block, c->allocations, c->count);
    if (result)
        return result;
    result = qi_vulkan_change_submit(c);
    if (result && !c->fence) {
        qi_error failure;
        qi_error_save(&failure);
        qi_vulkan_parts_free(s, c->allocations, c->count);
        qi_error_restore(&failure);
    }
    if (!result)
        qi_vulkan_change_apply(c);
    return result;
}

/* Checks the mappings before the submission, because a mapped allocation cannot be freed after
   it. */
static quire_result unbind_gathered(qi_vulkan_change *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        c->allocations[i] = c->sparse->parts[c->parts[i]];
    quire_result result = qi_vulkan_change_check_maps(c);
    if (!result)
        result = qi_vulkan_change_submit(c);
    if (!result)
        qi_vulkan_change_apply(c);
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
    quire_result result = qi_vulkan_change_init(&c, s, is_binding, (uint32_t)capacity);
    if (!result) {
        for (uint32_t i = 0; i < boxes->count; i++)
            gather(&c, &boxes->all[i]);
        if (c.count)
            result = is_binding ? bind_gathered(&c) : unbind_gathered(&c);
    }
    if (c.fence) /* the next call on the object waits for it */
        s->pending = c;
    else
        qi_vulkan_change_release(&c);
    return result;
}

/* ---- public functions ------------------------------------------------------------------------ */

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
