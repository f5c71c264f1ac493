/*
 * sparse_whole.c - allocates the parts of an object without residency and binds them.
 */
#include "backends/vulkan/sparse.h"
#include "src/base/bits.h"
#include "src/base/result.h"

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
        quire_result result = qi_vulkan_parts_allocate(s, left < *max ? left : *max, allocation, 1);
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
    quire_result result = qi_vulkan_change_init(&c, s, true, s->part_count);
    for (uint32_t i = 0; i < s->part_count && !result; i++) {
        c.parts[i] = i;
        c.allocations[i] = s->parts[i];
    }
    c.count = s->part_count;
    if (!result)
        result = qi_vulkan_change_submit(&c);
    s->pending.fence = c.fence;
    qi_vulkan_change_release(&c);
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
