/*
 * sparse_part.c - the parts of a sparse object: their offsets and sizes, the search by offset, and
 * their allocations.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/sparse.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- offsets --------------------------------------------------------------------------------- */

uint64_t qi_vulkan_part_offset(const quire_vulkan_sparse *s, uint32_t part)
{
    return s->offsets ? s->offsets[part] : part * s->block;
}

uint64_t qi_vulkan_part_size(const quire_vulkan_sparse *s, uint32_t part)
{
    uint64_t end = part + 1 == s->part_count ? s->size : qi_vulkan_part_offset(s, part + 1);
    return end - qi_vulkan_part_offset(s, part);
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
        .offset = qi_vulkan_part_offset(sparse, found),
        .size = qi_vulkan_part_size(sparse, found),
        .allocation = sparse->parts[found],
    };
    pthread_mutex_unlock(qi_vulkan_sparse_mutex(sparse));
    if (sparse->tiles.count)
        describe_tile(sparse, found, part);
    return QUIRE_SUCCESS;
}

/* ---- allocations ----------------------------------------------------------------------------- */

quire_result qi_vulkan_parts_allocate(const quire_vulkan_sparse *s, uint64_t size,
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

void qi_vulkan_parts_free(const quire_vulkan_sparse *s, const quire_allocation *allocations,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (allocations[i].id) {
            quire_allocation_release(s->memory, allocations[i]);
            quire_free(s->memory, allocations[i]); /* the core reports corruption */
        }
}
