/*
 * stats.c - the figures of memories, pages and devices, and the check of a memory's records.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/stats/stats.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/state/memory.h"
#include "src/space/space.h"

quire_result quire_device_get_stats(quire_device *device, quire_device_stats *out)
{
    if (out)
        *out = (quire_device_stats){0};
    if (!device || !out)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_get_stats: device or stats is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    for (uint32_t i = 0; i < QUIRE_MAX_HEAPS; i++)
        out->heap_reserved_bytes[i] = qi_account_used(&device->heaps[i].account);
    out->reserved_bytes = qi_atomic_load_u64(&device->reserved_bytes);
    out->peak_reserved_bytes = qi_atomic_load_u64(&device->peak_reserved_bytes);
    out->page_count = qi_account_used(&device->pages);
    out->backend_calls = qi_atomic_load_u64(&device->calls.count);
    out->backend_nanoseconds = qi_atomic_load_u64(&device->calls.nanoseconds);
    out->metadata_bytes = qi_atomic_load_u64(&device->host.bytes);
    qi_lock_acquire(&device->lock);
    out->memory_count = device->memory_count;
    for (quire_memory *m = device->memories; m; m = m->next_of_device) {
        quire_memory_stats stats;
        qi_ignore(quire_memory_get_stats(m, &stats));
        out->live_bytes += stats.live_bytes;
        out->allocation_count += stats.allocation_count;
        out->metadata_bytes += stats.metadata_bytes;
    }
    qi_lock_release(&device->lock);
    return QUIRE_SUCCESS;
}

static bool find_largest(void *user, const quire_space_item *item)
{
    uint64_t *largest = user;
    if (item->is_free && item->size > *largest)
        *largest = item->size;
    return true;
}

quire_result quire_page_get_info(quire_memory *memory, uint32_t number, quire_page_info *info)
{
    if (info)
        *info = (quire_page_info){0};
    if (!memory || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_page_get_info: memory or info is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    const qi_page *page = qi_page_acquire(memory, number);
    if (!page)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the memory has no page %u", number);
    *info = (quire_page_info){
        .page = number,
        .dedicated = page->dedicated,
        .mappable = page->native.host != NULL,
        .size = page->native.size,
        .address = page->native.native.address,
        .live_bytes = page->tally->live_bytes,
        .free_bytes = page->native.size - page->tally->live_bytes,
        .allocation_count = page->tally->allocation_count,
        .peak_live_bytes = page->tally->peak_live_bytes > page->tally->live_bytes
                               ? page->tally->peak_live_bytes
                               : page->tally->live_bytes,
    };
    quire_space *space = page->shard->space;
    if (!page->dedicated && space->fit->max_regions == 1)
        info->largest_free = space->fit->largest_free(space);
    else if (!page->dedicated)
        qi_space_walk_region(space, page->region, find_largest, &info->largest_free);
    qi_lock_release(&page->shard->lock);
    return QUIRE_SUCCESS;
}

/* ---- check -------------------------------------------------------------------------------- */

static quire_result damaged(const quire_memory *memory, const char *what, uint64_t number)
{
    return qi_fail_text(QUIRE_ERROR_CORRUPTED, "memory '%s': %s (%llu)", memory->name, what,
                        (unsigned long long)number);
}

/* The live page that a record leads to; NULL where it leads to none. */
static const qi_page *page_of(const quire_memory *memory, const qi_slot *record)
{
    if (record->shard >= memory->shard_count)
        return NULL;
    const qi_shard *shard = &memory->shards[record->shard];
    const qi_tally *tally = record->tally;
    const qi_page *page = (const void *)((uintptr_t)tally - offsetof(qi_page, own));
    uint32_t index = 0;
    if (qi_table_find(&shard->by_region, tally, &index))
        page = tally->page;
    return qi_table_find(&memory->pages.records, page, &index) && page->phase == QI_PAGE_LIVE &&
                   page->shard == shard && page->tally == tally
               ? page
               : NULL;
}

static quire_result check_slot(quire_memory *memory, uint32_t slot, quire_memory_stats *seen)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = page_of(memory, record);
    if (!page || (page->dedicated && record->range.id))
        return damaged(memory, "an allocation names a page that is not there", slot);
    if (!qi_range_fits(record->offset, record->size, page->native.size))
        return damaged(memory, "an allocation reaches beyond its page", slot);
    if (page->dedicated && page->slot != slot)
        return damaged(memory, "a dedicated page names another allocation", slot);
    if (!page->dedicated) {
        quire_placement at;
        if (qi_space_get(page->shard->space, record->range, &at) || at.user != slot ||
            at.offset + page->tally->skipped + qi_checked_front(record) != record->offset ||
            at.size != qi_checked_front(record) + record->size + qi_checked_behind(record) ||
            at.region != page->region)
            return damaged(memory, "an allocation and its range disagree", slot);
    }
    seen->allocation_count++;
    seen->live_bytes += record->size + record->left_padding + qi_checked_behind(record);
    seen->requested_bytes += record->requested;
    return QUIRE_SUCCESS;
}

/* Whether the tally of a page is where it should be, and leads back to it. */
static bool tally_agrees(const qi_page *page)
{
    const qi_tally *there = &page->own;
    if (!page->dedicated)
        there = page->region < QI_SLOT_COUNT ? qi_table_get(&page->shard->by_region, page->region)
                                             : NULL;
    return there && there == page->tally && there->page == page &&
           !(page->dedicated && there->skipped);
}

static quire_result check_pages(quire_memory *memory, quire_memory_stats *seen)
{
    const qi_pages *pages = &memory->pages;
    uint64_t live = 0, count = 0, shared = 0, ranges = 0;
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < pages->top; i++) {
        const qi_page *page = qi_page_at(pages, i);
        in_use += page->phase != QI_PAGE_NONE && page->phase != QI_PAGE_GONE;
        if (page->phase != QI_PAGE_LIVE && page->phase != QI_PAGE_MOVING)
            continue;
        seen->page_count++;
        seen->reserved_bytes += page->native.size;
        if (page->phase == QI_PAGE_MOVING)
            continue;
        if (!tally_agrees(page))
            return damaged(memory, "a page and its region disagree", i);
        seen->empty_bytes += page->tally->allocation_count ? 0 : page->native.size;
        live += page->tally->live_bytes;
        count += page->tally->allocation_count;
        shared += page->dedicated ? 0 : page->tally->allocation_count;
    }
    for (uint32_t i = 0; i < memory->shard_count; i++)
        ranges += memory->shards[i].space->live_count;
    if (live != seen->live_bytes || count != seen->allocation_count)
        return damaged(memory, "the pages' live figures are not the sum of the allocations", count);
    if (shared != ranges)
        return damaged(memory, "the space holds ranges that no allocation has", shared);
    if (in_use != pages->in_use)
        return damaged(memory, "the count of page numbers is not that of the pages", in_use);
    return QUIRE_SUCCESS;
}

/* What shards and pages say that there is. */
static quire_memory_stats kept_figures(const quire_memory *memory, uint32_t *slots)
{
    quire_memory_stats kept = qi_stats_counted(memory);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        *slots += memory->shards[i].queue.used;
    return kept;
}

static quire_result compare_figures(const quire_memory *memory, const quire_memory_stats *seen,
                                    uint32_t seen_slots)
{
    uint32_t slots = 0;
    const quire_memory_stats kept = kept_figures(memory, &slots);
    if (seen_slots != slots)
        return damaged(memory, "the count of slots is not that of the allocations", seen_slots);
    if (seen->allocation_count != kept.allocation_count || seen->live_bytes != kept.live_bytes ||
        seen->requested_bytes != kept.requested_bytes)
        return damaged(memory, "the live figures are not the sum of the allocations",
                       seen->allocation_count);
    if (seen->page_count != kept.page_count || seen->reserved_bytes != kept.reserved_bytes ||
        seen->empty_bytes != kept.empty_bytes)
        return damaged(memory, "the page figures are not the sum of the pages", seen->page_count);
    if (qi_account_used(&memory->account) < seen->reserved_bytes)
        return damaged(memory, "the memory's account is less than its pages", seen->reserved_bytes);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        if (!qi_stream_queues_agree(&memory->shards[i]))
            return damaged(memory, "what waits for points of streams is in disorder", i);
    if (!qi_names_agree(memory))
        return damaged(memory, "the accounts of names are not the sums of the allocations",
                       seen->allocation_count);
    return QUIRE_SUCCESS;
}

/* With every lock of the memory. */
static quire_result check_locked(quire_memory *memory)
{
    quire_memory_stats seen = {0};
    quire_result result = QUIRE_SUCCESS;
    uint32_t used = 0, top = qi_slots_top(&memory->slots);
    for (uint32_t i = 0; i < memory->shard_count && !result; i++)
        result = qi_space_check(memory->shards[i].space);
    for (uint32_t i = 0; i < top && !result; i++)
        if (qi_slot_phase(&memory->slots, i) != QI_PHASE_FREE) {
            result = check_slot(memory, i, &seen);
            used++;
        }
    if (!result)
        result = check_pages(memory, &seen);
    return result ? result : compare_figures(memory, &seen, used);
}

quire_result quire_memory_check(quire_memory *memory)
{
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_check: memory is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_shards_acquire(memory);
    qi_lock_acquire(&memory->pages.lock);
    quire_result result = check_locked(memory);
    qi_lock_release(&memory->pages.lock);
    qi_shards_release(memory);
    return result ? result : qi_checked_check(memory);
}
