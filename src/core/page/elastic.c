/*
 * growth.c - see growth.h.
 */
#include "src/core/page/elastic.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/transit.h"
#include "src/core/page/page_size.h"
#include "src/core/device/policy.h"
#include "src/core/allocate/oom_report.h"
#include "src/space/space.h"

/* ---- sizes -------------------------------------------------------------------------------- */

uint64_t qi_elastic_max_size(const qi_shard *shard, uint64_t size, bool dedicated)
{
    const quire_memory *memory = shard->memory;
    const quire_device_info *info = &memory->device->info;
    if (!memory->address_space || dedicated)
        return 0;
    uint64_t most = memory->address_space, line = qi_space_line_left(shard->space);
    if (info->limits.max_page && most > info->limits.max_page)
        most = info->limits.max_page;
    most = qi_align_down(most < line ? most : line, qi_page_unit(memory));
    return most > size ? most : size;
}

qi_page *qi_elastic_page(const qi_shard *shard)
{
    if (!shard->memory->address_space || !shard->shared)
        return NULL;
    return qi_shard_tally(shard, 0)->page; /* the only region has the lowest number */
}

/* The bytes of the region behind a page of a size. */
static uint64_t region_size(const qi_page *page, uint64_t size)
{
    return qi_align_down(size - page->tally->skipped, page->shard->memory->granule);
}

/* The size at which the request fits at the page's end; 0 where it fits now. */
static quire_result needed_size(const qi_page *page, uint64_t size, uint64_t alignment,
                                uint64_t *needed)
{
    const qi_shard *shard = page->shard;
    const uint64_t granule = shard->memory->granule, most = page->native.native.size;
    uint64_t end = page->tally->skipped + region_size(page, page->native.size), total = 0;
    uint64_t start = end - qi_space_free_at_end(shard->space, page->region);
    start +=
        qi_padding(page->native.native.address + start, alignment > granule ? alignment : granule);
    *needed = 0;
    if (qi_align_up_overflows(size, granule, &total) || qi_add_overflows(start, total, &total) ||
        qi_align_up_overflows(total, qi_page_unit(shard->memory), &total))
        total = UINT64_MAX;
    if (total > most)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b (%u bytes) asked: the page has %b, and addresses for %b", size,
                            size, page->native.size, most);
    if (total > page->native.size)
        *needed = total;
    return QUIRE_SUCCESS;
}

/* With both locks: what the policy makes of it. */
static uint64_t wanted_size(const qi_page *page, uint64_t needed)
{
    const qi_shard *shard = page->shard;
    uint64_t most = page->native.native.size, wanted = 0;
    if (qi_add_overflows(page->native.size, qi_page_policy_size(shard), &wanted) || wanted > most)
        wanted = most;
    return wanted > needed ? wanted : needed;
}

/* ---- growing ------------------------------------------------------------------------------ */

/* With the shard's lock: the end is this thread's to move. False: somebody else moves it. */
static bool begin(qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    bool is_free = !page->resizing;
    page->resizing = true;
    if (is_free)
        page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
    if (is_free)
        qi_transit_begin();
    return is_free;
}

/* With the shard's lock, given up meanwhile: until somebody else has moved it. */
static void await(qi_shard *shard, const qi_page *page)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    if (page->resizing)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
}

/* It is where it shall be, and others may move it. Where nothing moved nobody need look again. */
static void end(qi_page *page, bool has_moved)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    page->resizing = false;
    page->cut_from = 0;
    pages->changes += has_moved;
    qi_lock_wake_all(&pages->lock);
    qi_lock_release(&pages->lock);
    qi_transit_end();
}

/* Without a lock: asks the backend, for less and less while the request still fits. */
static quire_result ask(quire_memory *memory, const qi_page *page, uint64_t needed, uint64_t *to,
                        qi_page_progress *progress)
{
    const uint64_t from = page->native.size, unit = qi_page_unit(memory);
    for (;;) {
        quire_result result;
        do
            result = qi_device_page_grow(memory->device, &memory->calls, &memory->account,
                                         memory->name, &page->native, *to);
        while (qi_is_out_of_memory(result) && qi_pages_give_back_empty(memory, &progress->events));
        if (!qi_is_out_of_memory(result) || *to == needed)
            return result;
        uint64_t half = from + qi_align_down((*to - from) / 2, unit);
        *to = half > needed ? half : needed;
        progress->tried |= QI_TRIED_SMALLER;
    }
}

/* With the shard's lock: the figures follow the page's end. */
static void set_size(qi_page *page, uint64_t size)
{
    qi_pages *pages = &page->shard->memory->pages;
    quire_memory_stats *stats = &pages->stats;
    uint64_t from = page->native.size;
    if (!page->tally->allocation_count) {
        page->shard->empty_pages.bytes += size - from; /* or less: it wraps back */
        if (size < page->shard->empty_pages.least)
            page->shard->empty_pages.least = size;
    }
    qi_lock_acquire(&pages->lock);
    page->native.size = size;
    stats->reserved_bytes += size - from;
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
    qi_lock_release(&pages->lock);
}

/* With the shard's lock, given up meanwhile, for a page that is resizing. */
static quire_result grow(qi_page *page, uint64_t needed, uint64_t to, qi_page_progress *progress)
{
    qi_shard *shard = page->shard;
    quire_memory *memory = shard->memory;
    const uint64_t from = page->native.size;
    qi_page *leaving = qi_empty_pages_take_oldest(shard, to - from, QI_EMPTY_PAGES_PER_CALL, NULL);
    progress->tried |= QI_TRIED_EMPTIES;
    qi_lock_release(&shard->lock);
    qi_pages_give_back(memory, leaving, &progress->events);
    quire_result result = ask(memory, page, needed, &to, progress);
    qi_lock_acquire(&shard->lock);
    if (result)
        return result;
    result = qi_space_resize_region(shard->space, page->region, region_size(page, to));
    if (!result) {
        qi_checked_page_grown(page, from, to);
        set_size(page, to);
        return QUIRE_SUCCESS;
    }
    qi_lock_release(&shard->lock);
    qi_device_page_shrink(memory->device, &memory->calls, &memory->account, &page->native, to,
                          from);
    qi_lock_acquire(&shard->lock);
    return result;
}

quire_result qi_elastic_grow_for(qi_shard *shard, uint64_t size, uint64_t alignment,
                                 qi_elastic_result *growth, qi_page_progress *progress)
{
    qi_pages *pages = &shard->memory->pages;
    qi_page *page = qi_elastic_page(shard);
    uint64_t needed = 0;
    *growth = QI_ELASTIC_NONE;
    if (!page)
        return QUIRE_SUCCESS;
    if (!begin(page)) {
        if (qi_transit_is_on())
            return qi_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                           "a call from inside a backend's function does not wait for the page");
        await(shard, page);
        *growth = QI_ELASTIC_AWAITED;
        return QUIRE_SUCCESS;
    }
    quire_result result = needed_size(page, size, alignment, &needed);
    if (!result && needed) {
        qi_lock_acquire(&pages->lock);
        uint64_t wanted = wanted_size(page, needed);
        qi_lock_release(&pages->lock);
        result = grow(page, needed, wanted, progress);
        *growth = result ? QI_ELASTIC_NONE : QI_ELASTIC_DONE;
        if (!result)
            progress->events.made = (qi_page_change){page->native.size, page->number, true};
    }
    end(page, *growth == QI_ELASTIC_DONE);
    return result;
}

quire_result qi_elastic_grow(qi_shard *shard, qi_elastic_result *growth, qi_page_progress *progress)
{
    const qi_page *page = qi_elastic_page(shard);
    uint64_t free = page ? qi_space_free_at_end(shard->space, page->region) : 0;
    return qi_elastic_grow_for(shard, free + 1, 1, growth, progress);
}

/* ---- shrinking ---------------------------------------------------------------------------- */

/* How much of the page's end may go: whole units that are free, beyond what stays kept. */
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
    if (!page || !begin(page))
        return leaving;
    uint64_t spare = spare_bytes(page, keep), from = page->native.size;
    if (!spare ||
        qi_space_resize_region(shard->space, page->region, region_size(page, from - spare))) {
        end(page, false);
        return leaving;
    }
    qi_checked_page_cut(page, from - spare, from);
    set_size(page, from - spare);
    page->cut_from = from;
    page->next = leaving;
    return page;
}

bool qi_elastic_is_shrinking(const qi_shard *shard)
{
    const qi_page *page = qi_elastic_page(shard);
    return page && page->cut_from;
}

uint64_t qi_elastic_shrink_finish(quire_memory *memory, qi_page *page)
{
    uint64_t from = page->cut_from, bytes = from - page->native.size;
    qi_device_page_shrink(memory->device, &memory->calls, &memory->account, &page->native, from,
                          page->native.size);
    end(page, true);
    return bytes;
}
