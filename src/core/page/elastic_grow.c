/*
 * elastic_grow.c - maps more of an elastic page in the backend, and extends its region.
 *
 * The page is `resizing` during a growth (elastic_end.h), so that this thread alone moves its end,
 * although it releases the locks for the backend call.
 */
#include "src/core/page/elastic_grow.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/find/addresses.h"
#include "src/core/page/elastic_end.h"
#include "src/core/page/elastic_shrink.h"
#include "src/core/page/page_attempt.h"
#include "src/core/page/page_give_back.h"
#include "src/core/page/page_size.h"
#include "src/core/page/retention.h"
#include "src/space/space.h"

/* Sets *needed to the page size at which the request fits at the page's end; 0 if it fits now. */
static quire_result needed_size(const qi_page *page, uint64_t size, uint64_t alignment,
                                uint64_t *needed)
{
    const qi_shard *shard = page->shard;
    const uint64_t granule = shard->memory->granule, most = page->native.native.size;
    uint64_t end = page->tally->skipped + qi_elastic_region_size(page, page->native.size),
             total = 0;
    uint64_t start = end - qi_space_free_at_end(shard->space, page->region);
    start +=
        qi_padding(page->native.native.address + start, alignment > granule ? alignment : granule);
    *needed = 0;
    if (qi_align_up_overflows(size, granule, &total) || qi_add_overflows(start, total, &total) ||
        qi_align_up_overflows(total, qi_page_unit(shard->memory), &total))
        total = UINT64_MAX;
    if (total > most)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            size > most
                                ? "%b (%u byte%s) can never fit: the page has %b and can grow to %b"
                                : "%b (%u byte%s) requested: the page has %b and can grow to %b",
                            size, size, page->native.size, most);
    if (total > page->native.size)
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
    const uint64_t from = page->native.size, room = page->native.native.size - from;
    bool is_reduced = false;
    qi_lock_acquire(&memory->pages.lock);
    uint64_t by = qi_page_policy_size(shard);
    by = qi_page_attempt_size(memory, by < room ? by : room, needed - from,
                              qi_page_most(shard, progress), &is_reduced);
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
            result =
                qi_device_page_grow(memory->device, &memory->calls, &memory->account, &a->terms,
                                    memory->name, &page->native, page->native.size + a->size);
        } while (qi_is_out_of_memory(result) &&
                 qi_pages_give_back_empty(memory, UINT64_MAX, &progress->events));
    } while (qi_page_attempt_again(a, result, progress));
    return result;
}

/* Requires the shard's lock. The page has `to` bytes. */
static void grown(qi_page *page, uint64_t to, const qi_budget_terms *terms)
{
    qi_pages *pages = &page->shard->memory->pages;
    qi_checked_page_grown(page, page->native.size, to);
    qi_elastic_set_size(page, to);
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
    const uint64_t from = page->native.size;
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
        result =
            qi_space_resize_region(shard->space, page->region, qi_elastic_region_size(page, to));
    if (!result) {
        grown(page, to, &a.terms);
        return QUIRE_SUCCESS;
    }
    qi_lock_release(&shard->lock);
    qi_device_page_shrink(memory->device, &memory->calls, &memory->account, &page->native, to,
                          from);
    qi_lock_acquire(&shard->lock);
    return result;
}

quire_result qi_elastic_grow_for(qi_shard *shard, uint64_t size, uint64_t alignment,
                                 qi_elastic_result *outcome, qi_page_progress *progress)
{
    qi_page *page = qi_elastic_page(shard);
    uint64_t needed = 0;
    *outcome = QI_ELASTIC_NONE;
    if (!page)
        return QUIRE_SUCCESS;
    if (!qi_elastic_begin(page)) {
        if (qi_transit_is_on())
            return qi_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                           "a call from inside a backend's function does not wait for the page");
        qi_elastic_wait(shard, page);
        *outcome = QI_ELASTIC_AWAITED;
        return QUIRE_SUCCESS;
    }
    quire_result result = needed_size(page, size, alignment, &needed);
    if (!result && needed) {
        result = grow(page, needed, progress);
        *outcome = result ? QI_ELASTIC_NONE : QI_ELASTIC_DONE;
        if (!result) {
            progress->events.made = qi_page_made(page);
            progress->events.made.grown = true;
        }
    }
    qi_elastic_end(page, *outcome == QI_ELASTIC_DONE);
    return result;
}

quire_result qi_elastic_grow(qi_shard *shard, qi_elastic_result *outcome,
                             qi_page_progress *progress)
{
    const qi_page *page = qi_elastic_page(shard);
    uint64_t free = page ? qi_space_free_at_end(shard->space, page->region) : 0;
    return qi_elastic_grow_for(shard, free + 1, 1, outcome, progress);
}
