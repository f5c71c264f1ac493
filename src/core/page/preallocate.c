/*
 * preallocate.c - makes empty pages up to a floor that retention and trims respect.
 */
#include "src/core/page/preallocate.h"

#include "src/base/result.h"
#include "src/core/page/elastic_end.h"
#include "src/core/page/elastic_grow.h"
#include "src/core/page/elastic_shrink.h"
#include "src/core/page/other_memories.h"
#include "src/core/page/page_give_back.h"
#include "src/core/page/page_make.h"
#include "src/core/page/page_size.h"
#include "src/core/page/page_wait.h"
#include "src/core/page/retention.h"
#include "src/core/page/trim.h"

/*
 * Requires the shard's lock. Releases and reacquires it. Makes a page of the policy's size, or
 * grows the elastic page.
 */
static quire_result add(qi_shard *shard, qi_page_progress *progress)
{
    qi_elastic_result outcome;
    if (qi_elastic_page(shard))
        return qi_elastic_grow(shard, &outcome, progress);
    qi_page *page = NULL;
    uint64_t needed = 0;
    quire_result result = qi_page_needed_size(shard, 1, 1, false, &needed);
    if (result)
        return result;
    qi_page_give_back_before(shard, needed, &progress->events);
    result = qi_page_make(shard, 1, 1, false, &page, progress);
    if (!result) {
        qi_page_keep(page);
        progress->events.made = qi_page_made(page);
    }
    return result;
}

/* Like `add`, within the backend's budget, then after other memories have given back empty pages,
   then beyond the budget where the memory allows that. *turns is of qi_pages_take_from_others. */
static quire_result add_anyway(qi_shard *shard, qi_page_progress *progress, uint32_t *turns)
{
    quire_result result;
    do {
        progress->is_over_budget = false;
        result = add(shard, progress);
    } while (result &&
             qi_pages_take_from_others(shard, result, qi_page_unit(shard->memory), false, turns));
    if (!result || !progress->is_over_budget)
        return result;
    progress->may_exceed = true;
    result = add(shard, progress);
    progress->may_exceed = false;
    return result;
}

/* Requires no lock. Adds one page of the policy's size, which stays empty. */
static quire_result make_page(qi_shard *shard)
{
    qi_page_progress progress = {0};
    qi_page_wait wait = {0};
    uint32_t turns = 0;
    quire_result result;
    qi_lock_acquire(&shard->lock);
    do {
        wait.changes = qi_pages_changes(shard);
        result = add_anyway(shard, &progress, &turns);
    } while (qi_page_wait_for_change(shard, result, &wait));
    qi_lock_release(&shard->lock);
    qi_page_events_report(shard->memory, &progress.events, ", preallocated");
    return result;
}

/*
 * Whether more pages are needed. No longer once another thread has changed the floor: the pages
 * would leave again.
 */
static bool needs_pages(quire_memory *memory, uint64_t bytes)
{
    qi_lock_acquire(&memory->pages.lock);
    bool needs = memory->pages.floor == bytes && memory->pages.stats.reserved_bytes < bytes;
    qi_lock_release(&memory->pages.lock);
    return needs;
}

/* Restores the old floor, unless another thread has changed it since. */
static void restore_floor(quire_memory *memory, uint64_t bytes, uint64_t old)
{
    qi_lock_acquire(&memory->pages.lock);
    if (memory->pages.floor == bytes)
        memory->pages.floor = old;
    qi_lock_release(&memory->pages.lock);
}

static quire_result check(const quire_memory *memory, uint64_t bytes)
{
    const quire_device_info *info = &memory->device->info;
    uint32_t index = info->kinds[memory->kind].heap;
    uint64_t heap = qi_heap_size(&memory->device->heaps[index], info->heaps[index].size);
    if (bytes > heap)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b to preallocate: the heap of memory kind %u has %b in all", bytes,
                            memory->kind, heap);
    if (bytes && memory->policy.dedicated == QUIRE_DEDICATED_ALWAYS)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a memory of dedicated pages cannot preallocate: each page is made for its "
                       "allocation");
    return QUIRE_SUCCESS;
}

quire_result qi_memory_preallocate(quire_memory *memory, uint64_t bytes)
{
    quire_result result = check(memory, bytes);
    if (result)
        return result;
    uint64_t old = qi_memory_set_floor(memory, bytes);
    for (uint32_t turn = 0; !result && needs_pages(memory, bytes); turn++) {
        uint32_t first = memory->first_shard;
        result = make_page(memory->shards[first + turn % (qi_shard_count(memory) - first)]);
    }
    if (result) {
        qi_page_events events = {.gone = NULL};
        restore_floor(memory, bytes, old);
        qi_pages_give_back_empty(memory, UINT64_MAX, &events);
        qi_page_events_report(memory, &events, "");
    } else if (bytes < old) { /* the policy may no longer keep all pages */
        qi_pages_destroy(memory, qi_empty_pages_apply_all(memory, QI_EMPTY_PAGES_ALL, NULL));
    }
    return result;
}
