/*
 * elastic_shrink.c - returns the end of an elastic page in two steps: cuts it off the region under
 * the shard's lock, and unmaps it without the lock.
 */
#include "src/core/page/elastic_shrink.h"

#include "src/base/bits.h"
#include "src/core/page/drain.h"
#include "src/core/page/elastic_end.h"
#include "src/core/page/page_give_back.h"
#include "src/core/page/page_size.h"
#include "src/core/page/retention.h"
#include "src/space/space.h"

/*
 * Returns how many free bytes at the page's end can be cut: whole units beyond `keep`, without
 * going below the memory's floor. At least one unit of the page stays.
 */
static uint64_t spare_bytes(const qi_page *page, uint64_t keep)
{
    const qi_shard *shard = page->shard;
    uint64_t unit = qi_page_unit(shard->memory), size = page->native.size;
    uint64_t free = qi_space_free_at_end(shard->space, page->region);
    uint64_t above = qi_pages_above_floor(&shard->memory->pages);
    uint64_t spare = free > keep ? free - keep : 0;
    spare = qi_align_down(spare < above ? spare : above, unit);
    return spare < size ? spare : qi_align_down(size - 1, unit);
}

qi_page *qi_elastic_shrink(qi_shard *shard, uint64_t keep, qi_page *leaving)
{
    qi_page *page = qi_elastic_page(shard);
    if (!page || !qi_elastic_begin(page))
        return leaving;
    uint64_t spare = spare_bytes(page, keep), from = page->native.size;
    if (!spare || qi_space_resize_region(shard->space, page->region,
                                         qi_elastic_region_size(page, from - spare))) {
        qi_elastic_end(page, false);
        return leaving;
    }
    qi_checked_page_cut(page, from - spare, from);
    qi_elastic_set_size(page, from - spare);
    page->cut_from = from;
    page->next = leaving;
    return page;
}

uint64_t qi_pages_give_back_empty(quire_memory *memory, uint64_t bytes, qi_page_events *events)
{
    qi_page *leaving = NULL;
    uint64_t taken = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory) && taken < bytes; i++) {
        qi_shard *shard = memory->shards[i];
        qi_lock_acquire(&shard->lock);
        qi_shard_drain(shard);
        uint64_t before = shard->empty_pages.bytes;
        leaving = qi_empty_pages_take_oldest(shard, bytes - taken, 0, leaving);
        taken += before - shard->empty_pages.bytes;
        if (taken < bytes)
            leaving = qi_elastic_shrink(shard, 0, leaving);
        qi_lock_release(&shard->lock);
    }
    return qi_pages_give_back(memory, leaving, events);
}
