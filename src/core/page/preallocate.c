/*
 * reserve.c - how many bytes of pages a memory keeps: quire_memory_trim, quire_memory_set_limit
 * and quire_memory_preallocate.
 */
#include "src/base/result.h"
#include "src/core/state/event.h"
#include "src/core/page/elastic.h"
#include "src/core/state/memory.h"
#include "src/space/space.h"

/* ---- trimming ----------------------------------------------------------------------------- */

/* With the locks of all shards: whether a page is there and empty. */
static bool is_empty(quire_memory *memory, const qi_page *page)
{
    qi_lock_acquire(&memory->pages.lock);
    bool is_live = page->phase == QI_PAGE_LIVE && !page->resizing;
    qi_lock_release(&memory->pages.lock);
    return is_live && !page->tally->allocation_count;
}

/* With the locks of all shards. */
static uint64_t empty_bytes(const quire_memory *memory)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory->shard_count; i++)
        bytes += memory->shards[i].empty_pages.bytes;
    return bytes;
}

/* With the locks of all shards: takes empty pages, the highest numbers first. */
static qi_page *take_highest(quire_memory *memory, uint64_t target, qi_page *leaving)
{
    uint64_t empty = empty_bytes(memory);
    for (uint32_t i = memory->pages.top; i-- > 0 && empty > target;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (!is_empty(memory, page))
            continue;
        empty -= page->native.size;
        leaving = qi_page_take(page, leaving);
    }
    return leaving;
}

/* With the locks of all shards: the free ends of pages that grow, down to that much in all. */
static qi_page *cut_ends(quire_memory *memory, uint64_t target, qi_page *leaving)
{
    uint64_t empty = empty_bytes(memory);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        leaving =
            qi_elastic_shrink(&memory->shards[i], target > empty ? target - empty : 0, leaving);
    return leaving;
}

/* Sets how many bytes of pages stay; returns the old value. */
static uint64_t set_floor(quire_memory *memory, uint64_t bytes)
{
    qi_lock_acquire(&memory->pages.lock);
    uint64_t old = memory->pages.floor;
    memory->pages.floor = bytes;
    qi_lock_release(&memory->pages.lock);
    return old;
}

quire_result quire_memory_trim(quire_memory *memory, uint64_t target, uint64_t *released)
{
    if (released)
        *released = 0;
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_trim: memory is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_slot_queue *queues[QI_MAX_SHARDS];
    qi_checked_drain(memory);
    set_floor(memory, 0);
    qi_shards_acquire(memory);
    qi_page *leaving = NULL;
    for (uint32_t i = 0; i < memory->shard_count; i++)
        leaving = qi_empty_pages_apply(&memory->shards[i], QI_EMPTY_PAGES_ALL, leaving);
    leaving = take_highest(memory, target, leaving);
    leaving = cut_ends(memory, target, leaving);
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        qi_space_trim(memory->shards[i].space);
        queues[i] = &memory->shards[i].queue;
    }
    qi_slots_trim(&memory->slots, queues, memory->shard_count, &memory->host);
    qi_shards_release(memory);
    uint64_t bytes = qi_pages_destroy(memory, leaving);
    if (released)
        *released = bytes;
    return QUIRE_SUCCESS;
}

/* What is too much leaves, as far as it is empty. */
quire_result quire_memory_set_limit(quire_memory *memory, uint64_t bytes)
{
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_set_limit: memory is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_account_set_limit(&memory->account, bytes);
    qi_checked_drain(memory);
    qi_shards_acquire(memory);
    uint64_t empty = empty_bytes(memory), used = qi_account_used(&memory->account);
    uint64_t over = bytes && used > bytes ? used - bytes : 0;
    qi_page *leaving = take_highest(memory, empty > over ? empty - over : 0, NULL);
    if (over > empty)
        leaving = cut_ends(memory, 0, leaving);
    qi_shards_release(memory);
    qi_pages_destroy(memory, leaving);
    return QUIRE_SUCCESS;
}

/* ---- reserving ---------------------------------------------------------------------------- */

/* With the shard's lock, given up meanwhile: a page of the policy's size, or as much at its end. */
static quire_result add(qi_shard *shard, qi_page_progress *progress)
{
    qi_elastic_result growth;
    if (qi_elastic_page(shard))
        return qi_elastic_grow(shard, &growth, progress);
    qi_page *page = NULL;
    quire_result result = qi_page_make(shard, 1, 1, false, &page, progress);
    if (!result) {
        qi_page_keep(page);
        progress->events.made = (qi_page_change){.number = page->number, .size = page->native.size};
    }
    return result;
}

/* Makes one page of the policy's size, which stays empty. */
static quire_result make_page(qi_shard *shard)
{
    qi_page_progress progress = {0};
    qi_page_wait stall_timeout = {0};
    quire_result result;
    qi_lock_acquire(&shard->lock);
    do {
        stall_timeout.changes = qi_pages_changes(shard);
        result = add(shard, &progress);
    } while (qi_page_wait_for_change(shard, result, &stall_timeout));
    qi_lock_release(&shard->lock);
    qi_page_events_report(shard->memory, &progress.events, ", reserved");
    return result;
}

/* Not once another thread has set a floor of its own, or none: what is made would leave again. */
static bool needs_pages(quire_memory *memory, uint64_t bytes)
{
    qi_lock_acquire(&memory->pages.lock);
    bool needs = memory->pages.floor == bytes && memory->pages.stats.reserved_bytes < bytes;
    qi_lock_release(&memory->pages.lock);
    return needs;
}

/* Back to the old floor, unless another thread has set one meanwhile. */
static void restore_floor(quire_memory *memory, uint64_t bytes, uint64_t old)
{
    qi_lock_acquire(&memory->pages.lock);
    if (memory->pages.floor == bytes)
        memory->pages.floor = old;
    qi_lock_release(&memory->pages.lock);
}

static quire_result check_reserve(const quire_memory *memory, uint64_t bytes)
{
    const quire_device_info *info = &memory->device->info;
    uint64_t heap = info->heaps[info->kinds[memory->kind].heap].size;
    if (bytes > heap)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b are to be reserved: the heap of memory kind %u has %b in all",
                            bytes, memory->kind, heap);
    if (bytes && memory->policy.dedicated == QUIRE_DEDICATED_ALWAYS)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "pages of one allocation each cannot be made before it: nothing can be "
                       "reserved");
    return QUIRE_SUCCESS;
}

quire_result quire_memory_preallocate(quire_memory *memory, uint64_t bytes)
{
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_preallocate: memory is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = check_reserve(memory, bytes);
    if (result)
        return result;
    uint64_t old = set_floor(memory, bytes);
    for (uint32_t turn = 0; !result && needs_pages(memory, bytes); turn++)
        result = make_page(&memory->shards[turn % memory->shard_count]);
    if (result) {
        qi_page_events events = {.gone = NULL};
        restore_floor(memory, bytes, old);
        qi_pages_give_back_empty(memory, &events);
        qi_page_events_report(memory, &events, "");
    } else if (bytes < old) { /* what the policy keeps no longer */
        qi_pages_destroy(memory, qi_empty_pages_apply_all(memory, QI_EMPTY_PAGES_ALL, NULL));
    }
    return result;
}
