/*
 * page_info.c - describes one page, under its shard's lock (see stats.h).
 */
#include "src/base/result.h"
#include "src/core/page/life.h"
#include "src/core/state/memory.h"
#include "src/core/stats/stats.h"
#include "src/space/space.h"

static bool find_largest(void *user, const quire_space_item *item)
{
    uint64_t *largest = user;
    if (item->is_free && item->size > *largest)
        *largest = item->size;
    return true;
}

quire_result qi_page_get_info(quire_memory *memory, uint32_t number, quire_page_info *info)
{
    const qi_page *page = qi_page_acquire(memory, number); /* with its shard's lock */
    if (!page)
        return qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE, "memory '%t' has no page %u", memory->name,
                              number);
    *info = (quire_page_info){
        .page = number,
        .dedicated = page->dedicated,
        .mappable = (memory->flags & QUIRE_HOST_VISIBLE) != 0,
        .size = page->native.size,
        .address = page->native.native.address,
        .live_bytes = page->tally->live_bytes,
        .free_bytes = page->native.size - page->tally->live_bytes,
        .allocation_count = page->tally->allocation_count - page->objects,
        .peak_live_bytes = page->tally->peak_live_bytes > page->tally->live_bytes
                               ? page->tally->peak_live_bytes
                               : page->tally->live_bytes,
    };
    /* with one region the fit knows the answer; otherwise the ranges of the region are visited */
    quire_space *space = page->shard->space;
    if (!page->dedicated && space->fit->max_regions == 1)
        info->largest_free = space->fit->largest_free(space);
    else if (!page->dedicated)
        qi_space_walk_region(space, page->region, find_largest, &info->largest_free);
    qi_lock_release(&page->shard->lock);
    return QUIRE_SUCCESS;
}
