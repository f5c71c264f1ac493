/*
 * contiguous.c - the thread that marks the page as `resizing` alone moves its end, and holds no
 * lock during the backend's call.
 */
#include "src/core/page/contiguous.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/space/space.h"

/* ---- the end ------------------------------------------------------------------------------ */

/*
 * `resizing` and `cut_from` of the page carry the protocol. The lock of the pages protects
 * `resizing`, because a thread that waits for the end to stop moving sleeps on that lock.
 */

qi_page *qi_contiguous_page(const qi_shard *shard)
{
    if (!shard->memory->address_space || !shard->shared)
        return NULL;
    return qi_shard_tally(shard, 0)->page; /* its only region has the lowest number */
}

/* The least of: the memory's address space, the largest page of the device, the rest of the
   line. */
uint64_t qi_contiguous_max_size(const qi_shard *shard, uint64_t size, bool dedicated)
{
    const quire_memory *memory = shard->memory;
    const quire_device_info *info = &memory->device->info;
    if (!memory->address_space || dedicated)
        return 0;
    uint64_t max = memory->address_space, line = qi_space_line_left(shard->space);
    if (info->limits.max_page && max > info->limits.max_page)
        max = info->limits.max_page;
    max = qi_align_down(max < line ? max : line, qi_page_unit(memory));
    return max > size ? max : size;
}

/* Returns the bytes of the region of a page of `size` bytes. */
static uint64_t region_size(const qi_page *page, uint64_t size)
{
    return qi_align_down(size - page->tally->skipped, page->shard->memory->granule);
}

/* Requires the shard's lock. Returns false if another thread moves the end. Marks the thread as
   busy with a page, so that it never waits for itself. */
static bool begin_move(qi_page *page)
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

/* Requires the shard's lock. Releases and reacquires it while another thread moves the end. Waits
   once: the caller tests its condition again, because another thread may begin at once. */
static void wait_for_move(qi_shard *shard, const qi_page *page)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    if (page->resizing)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
}

/* Ends what begin_move began. `has_moved` makes waiting threads look for room again. */
static void end_move(qi_page *page, bool has_moved)
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

/* Requires the shard's lock. The statistics follow the new size, and the list of empty pages, whose
   sum and minimum change with it. */
static void set_size(qi_page *page, uint64_t size)
{
    qi_pages *pages = &page->shard->memory->pages;
    quire_memory_stats *stats = &pages->stats;
    uint64_t from = page->native.bytes;
    if (!page->tally->allocation_count) {
        page->shard->empty_pages.bytes += size - from; /* of a smaller size: wraps, as intended */
        if (size < page->shard->empty_pages.least)
            page->shard->empty_pages.least = size;
    }
    qi_lock_acquire(&pages->lock);
    page->native.extent = page->native.bytes = size;
    qi_page_history_change(page, from, size);
    stats->reserved_bytes += size - from;
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
    qi_lock_release(&pages->lock);
}

bool qi_contiguous_is_shrinking(const qi_shard *shard)
{
    const qi_page *page = qi_contiguous_page(shard);
    return page && page->cut_from;
}

uint64_t qi_contiguous_shrink_finish(quire_memory *memory, qi_page *page)
{
    const quire_span cut = {page->native.extent, page->cut_from - page->native.extent};
    qi_device_page_unback(memory->device, &memory->calls, &memory->account, &page->native, &cut, 1);
    end_move(page, true);
    return cut.size;
}

/* ---- growing ------------------------------------------------------------------------------ */

/* The page is `resizing` during a growth, so that this thread alone moves its end, although it
   releases the locks for the backend call. */

/* Sets *needed to the page size at which the request fits at the page's end; 0 if it fits now. */
static quire_result needed_size(const qi_page *page, uint64_t size, uint64_t alignment,
                                uint64_t *needed)
{
    const qi_shard *shard = page->shard;
    const uint64_t granule = shard->memory->granule, max = page->native.native.size;
    uint64_t end = page->tally->skipped + region_size(page, page->native.extent), total = 0;
    uint64_t start = end - qi_space_free_at_end(shard->space, page->region);
    start +=
        qi_padding(page->native.native.address + start, alignment > granule ? alignment : granule);
    *needed = 0;
    if (qi_align_up_overflows(size, granule, &total) || qi_add_overflows(start, total, &total) ||
        qi_align_up_overflows(total, qi_page_unit(shard->memory), &total))
        total = UINT64_MAX;
    if (total > max)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            size > max
                                ? "%b (%u byte%s) can never fit: the page has %b and can grow to %b"
                                : "%b (%u byte%s) requested: the page has %b and can grow to %b",
                            size, size, page->native.extent, max);
    if (total > page->native.extent)
        *needed = total;
    return QUIRE_SUCCESS;
}

/*
 * Requires the shard's lock. Begins the attempts to grow the page, by the size that the policy says
 * or by as little as `needed`, the size of the page, lacks.
 */
static qi_page_attempt begin_growth(const qi_page *page, uint64_t needed,
                                    qi_page_progress *progress)
{
    const qi_shard *shard = page->shard;
    quire_memory *memory = shard->memory;
    const uint64_t from = page->native.extent, room = page->native.native.size - from;
    bool is_reduced = false;
    qi_lock_acquire(&memory->pages.lock);
    uint64_t by = qi_page_policy_size(shard);
    by = qi_page_attempt_size(memory, by < room ? by : room, needed - from,
                              qi_page_max_bytes(shard, progress), &is_reduced);
    qi_lock_release(&memory->pages.lock);
    return qi_page_attempt_begin(memory, by, needed - from, is_reduced, progress);
}

/*
 * Requires no lock. Maps a->size more bytes of the page. If memory is exhausted it gives back all
 * empty pages and tries again, then with a smaller a->size.
 */
static quire_result map_more(const qi_page *page, qi_page_attempt *a, qi_page_progress *progress)
{
    quire_memory *memory = a->memory;
    quire_result result;
    do {
        do {
            qi_page_attempt_start(a);
            const quire_span more = {page->native.extent, a->size};
            result = qi_device_page_back(memory->device, &memory->calls, &memory->account,
                                         &a->terms, memory->name, &page->native, &more, 1);
        } while (qi_is_out_of_memory(result) &&
                 qi_pages_give_back_empty(memory, UINT64_MAX, &progress->events));
    } while (qi_page_attempt_again(a, result, progress));
    return result;
}

/* Requires the shard's lock. The page has `to` bytes. */
static void grown(qi_page *page, uint64_t to, const qi_budget_terms *terms)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_checked_page_grown(page, page->native.extent, to);
    set_size(page, to);
    page->over_budget = terms->has_exceeded;
    qi_lock_acquire(&pages->lock);
    pages->stats.pages_over_budget += terms->has_exceeded;
    qi_lock_release(&pages->lock);
}

/*
 * Requires the shard's lock, for a page that is resizing. Releases and reacquires the lock. If the
 * space has no host memory for the larger region, the new part is unmapped again.
 */
static quire_result grow(qi_page *page, uint64_t needed, qi_page_progress *progress)
{
    qi_shard *shard = page->shard;
    quire_memory *memory = shard->memory;
    const uint64_t from = page->native.extent;
    qi_page_attempt a = begin_growth(page, needed, progress);
    qi_page *leaving = qi_empty_pages_take_oldest(shard, a.size, QI_EMPTY_PAGES_PER_CALL, NULL);
    progress->gave_back_empty = true;
    qi_lock_release(&shard->lock);
    qi_pages_give_back(memory, leaving, &progress->events);
    quire_result result = map_more(page, &a, progress);
    const uint64_t to = from + a.size;
    qi_lock_acquire(&shard->lock);
    if (result)
        return result;
    result = qi_addresses_grow_page(memory, page, to);
    if (!result)
        result = qi_space_resize_region(shard->space, page->region, region_size(page, to));
    if (!result) {
        grown(page, to, &a.terms);
        return QUIRE_SUCCESS;
    }
    qi_lock_release(&shard->lock);
    qi_device_page_unback(memory->device, &memory->calls, &memory->account, &page->native,
                          &(quire_span){from, to - from}, 1);
    qi_lock_acquire(&shard->lock);
    return result;
}

quire_result qi_contiguous_grow_for(qi_shard *shard, uint64_t size, uint64_t alignment,
                                    qi_contiguous_result *outcome, qi_page_progress *progress)
{
    qi_page *page = qi_contiguous_page(shard);
    uint64_t needed = 0;
    *outcome = QI_CONTIGUOUS_NONE;
    if (!page)
        return QUIRE_SUCCESS;
    if (!begin_move(page)) {
        if (qi_transit_is_on())
            return qi_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                           "a call from inside a backend's function does not wait for the page");
        wait_for_move(shard, page);
        *outcome = QI_CONTIGUOUS_AWAITED;
        return QUIRE_SUCCESS;
    }
    quire_result result = needed_size(page, size, alignment, &needed);
    if (!result && needed) {
        result = grow(page, needed, progress);
        *outcome = result ? QI_CONTIGUOUS_NONE : QI_CONTIGUOUS_DONE;
        if (!result) {
            progress->events.made = qi_page_made(page);
            progress->events.made.grown = true;
        }
    }
    end_move(page, *outcome == QI_CONTIGUOUS_DONE);
    return result;
}

quire_result qi_contiguous_grow(qi_shard *shard, qi_contiguous_result *outcome,
                                qi_page_progress *progress)
{
    const qi_page *page = qi_contiguous_page(shard);
    uint64_t free = page ? qi_space_free_at_end(shard->space, page->region) : 0;
    return qi_contiguous_grow_for(shard, free + 1, 1, outcome, progress);
}

/* ---- shrinking ---------------------------------------------------------------------------- */

/*
 * Returns how many free bytes at the page's end can be cut: whole units beyond `keep`, without
 * going below the memory's floor. At least one unit of the page stays.
 */
static uint64_t spare_bytes(const qi_page *page, uint64_t keep)
{
    const qi_shard *shard = page->shard;
    uint64_t unit = qi_page_unit(shard->memory), size = page->native.extent;
    uint64_t free = qi_space_free_at_end(shard->space, page->region);
    uint64_t above = qi_pages_above_floor(&shard->memory->pages);
    uint64_t spare = free > keep ? free - keep : 0;
    spare = qi_align_down(spare < above ? spare : above, unit);
    return spare < size ? spare : qi_align_down(size - 1, unit);
}

qi_page *qi_contiguous_shrink(qi_shard *shard, uint64_t keep, qi_page *leaving)
{
    qi_page *page = qi_contiguous_page(shard);
    if (!page || !begin_move(page))
        return leaving;
    uint64_t spare = spare_bytes(page, keep), from = page->native.extent;
    if (!spare ||
        qi_space_resize_region(shard->space, page->region, region_size(page, from - spare))) {
        end_move(page, false);
        return leaving;
    }
    qi_checked_page_cut(page, from - spare, from);
    set_size(page, from - spare);
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
            leaving = qi_contiguous_shrink(shard, 0, leaving);
        qi_lock_release(&shard->lock);
    }
    return qi_pages_give_back(memory, leaving, events);
}
