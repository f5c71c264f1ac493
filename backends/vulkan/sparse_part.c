/*
 * sparse_part.c - the parts of a sparse object: where each begins, which one holds a byte, and how
 * an object that is bound whole gets them.
 */
#include "backends/vulkan/sparse.h"
#include "src/base/bits.h"
#include "src/base/result.h"

enum { FIRST_ROOM = 8 };

/* ---- where they are ----------------------------------------------------------------------- */

uint64_t qi_vulkan_part_offset(const quire_vulkan_sparse *s, uint32_t part)
{
    return s->offsets ? s->offsets[part] : part * s->block;
}

uint64_t qi_vulkan_part_size(const quire_vulkan_sparse *s, uint32_t part)
{
    uint64_t end = part + 1 == s->part_count ? s->size : qi_vulkan_part_offset(s, part + 1);
    return end - qi_vulkan_part_offset(s, part);
}

/* The part that holds a byte. */
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

/* Which texels they are. */
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

quire_result quire_vulkan_sparse_get_part(quire_vulkan_sparse *sparse, uint64_t offset,
                                          quire_vulkan_part *part)
{
    if (part)
        *part = (quire_vulkan_part){.size = 0};
    if (!sparse || !part)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_sparse_get_part: sparse or part is null");
    quire_result result = qi_vulkan_check_process(sparse->vulkan);
    if (result)
        return result;
    if (offset >= sparse->size)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "offset %u of a sparse object of %u bytes",
                            offset, sparse->size);
    uint32_t found = find_part(sparse, offset);
    pthread_mutex_lock(&sparse->mutex);
    *part = (quire_vulkan_part){
        .offset = qi_vulkan_part_offset(sparse, found),
        .size = qi_vulkan_part_size(sparse, found),
        .allocation = sparse->parts[found],
    };
    pthread_mutex_unlock(&sparse->mutex);
    if (sparse->tiles.count)
        describe_tile(sparse, found, part);
    return QUIRE_SUCCESS;
}

/* ---- their allocations -------------------------------------------------------------------- */

quire_result qi_vulkan_parts_allocate(const quire_vulkan_sparse *s, uint64_t size,
                                      quire_allocation *allocations, uint32_t count)
{
    quire_allocation_options wish = s->wish;
    uint32_t held = 0;
    if (qi_align_up_overflows(size, s->granularity, &wish.size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "a part of %u bytes", size);
    quire_result result = quire_allocate_batch(s->memory, &wish, allocations, count);
    if (result)
        return result;
    while (held < count && !result)
        result = quire_allocation_hold(s->memory, allocations[held++]);
    if (result) /* somebody has found and freed one in between */
        for (uint32_t i = 0; i < count; i++) {
            if (i + 1 < held)
                qi_ignore(quire_allocation_release(s->memory, allocations[i]));
            qi_ignore(quire_free(s->memory, allocations[i]));
        }
    return result;
}

void qi_vulkan_parts_free(const quire_vulkan_sparse *s, const quire_allocation *allocations,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (allocations[i].id) {
            qi_ignore(quire_allocation_release(s->memory, allocations[i]));
            qi_ignore(quire_free(s->memory, allocations[i])); /* harm is told */
        }
}

/* ---- bound whole -------------------------------------------------------------------------- */

/* For one part more; both lists are doubled. */
static quire_result make_room(quire_vulkan_sparse *s)
{
    qi_host *host = &s->vulkan->host;
    uint32_t room = s->part_room ? s->part_room * 2 : FIRST_ROOM;
    if (s->part_count < s->part_room)
        return QUIRE_SUCCESS;
    uint64_t *offsets = qi_host_resize(host, s->offsets, s->offset_room, room, sizeof *offsets);
    if (offsets) {
        s->offsets = offsets;
        s->offset_room = room;
    }
    quire_allocation *parts =
        offsets ? qi_host_resize(host, s->parts, s->part_room, room, sizeof *parts) : NULL;
    if (parts) {
        s->parts = parts;
        s->part_room = room;
    }
    return parts ? QUIRE_SUCCESS
                 : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for %u parts of a sparse object", room);
}

static bool is_want_of_room(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET ||
           result == QUIRE_ERROR_TOO_MANY_PAGES || result == QUIRE_ERROR_OUT_OF_RANGE;
}

/* Allocates a part, or one of fewer blocks; *most is what the next one may have. */
static quire_result allocate_most(const quire_vulkan_sparse *s, uint64_t left, uint64_t *most,
                                  quire_allocation *allocation)
{
    qi_error before = qi_error_save();
    for (;;) {
        quire_result result =
            qi_vulkan_parts_allocate(s, left < *most ? left : *most, allocation, 1);
        if (!is_want_of_room(result) || *most == s->block || left <= s->block) {
            if (!result)
                qi_error_restore(&before);
            return result;
        }
        uint64_t tried = left < *most ? left : *most;
        uint64_t half = qi_align_down(tried / 2, s->block);
        *most = half ? half : s->block;
    }
}

/*
 * Parts as large as a page that is made for them, so that they fill pages and leave nothing over;
 * smaller ones where no page can be had, down to a block, in what other allocations have left.
 */
quire_result qi_vulkan_sparse_place_whole(quire_vulkan_sparse *s)
{
    quire_memory_info info;
    quire_result result = quire_memory_get_info(s->memory, &info);
    /* the linear fit has one page, and a page for each allocation that is larger */
    uint64_t wanted = info.fit == QUIRE_FIT_LINEAR ? s->size : info.page_size;
    uint64_t most = qi_align_down(wanted, s->block);
    most = most ? most : s->block;
    for (uint64_t at = 0; at < s->size && !result; at += most) { /* the last ends beyond it */
        result = make_room(s);
        if (!result)
            result = allocate_most(s, s->size - at, &most, &s->parts[s->part_count]);
        if (!result)
            s->offsets[s->part_count++] = at;
    }
    s->bound = result ? 0 : s->size;
    return result ? result : qi_vulkan_sparse_bind_whole(s);
}
