/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.c - verifies the records of a memory against each other (see stats.h).
 *
 * Three views must agree: the slots, which say where allocations lie; the pages with their tallies;
 * and the counters of shards and pages. The first contradiction fails with CORRUPTED.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/find/addresses.h"
#include "src/core/page/lazy.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/core/state/peaks.h"
#include "src/core/state/memory.h"
#include "src/core/stats/stats.h"
#include "src/space/space.h"

/* Fails with CORRUPTED. `what` is the contradiction, `number` the slot, page or count that shows
   it. */
static quire_result damaged(const quire_memory *memory, const char *what, uint64_t number)
{
    return qi_fail_text(QUIRE_ERROR_CORRUPTED, "memory '%s': %s (%llu)", memory->name, what,
                        (unsigned long long)number);
}

/*
 * The live page that a record leads to; NULL if it leads to none. The record may be damaged, so
 * every pointer is looked up in its table before it is followed.
 */
static const qi_page *page_of(const quire_memory *memory, const qi_slot *record)
{
    if (record->shard >= qi_shard_count(memory))
        return NULL;
    const qi_shard *shard = memory->shards[record->shard];
    const qi_tally *tally = record->tally;
    if (tally == &shard->nowhere.own)
        return &shard->nowhere;
    const qi_page *page = (const void *)((uintptr_t)tally - offsetof(qi_page, own));
    uint32_t index = 0;
    if (qi_table_find(&shard->by_region, tally, &index))
        page = tally->page;
    return qi_table_find(&memory->pages.records, page, &index) && page->phase == QI_PAGE_LIVE &&
                   page->shard == shard && page->tally == tally
               ? page
               : NULL;
}

/* The range of a record; of a sleeping one, also while it is being released. */
static quire_range range_of(const qi_slot *record)
{
    const qi_asleep *asleep = qi_slot_asleep(record);
    if (asleep)
        return asleep->range;
    return record->extras & QI_EXTRA_ASLEEP ? record->asleep : record->range;
}

/* Whether range and record begin and end at the same bytes: red zones and the padding before an
   offset are parts of both. A sleeping one that is being released has only the range. */
static bool range_agrees(const qi_page *page, const qi_slot *record, uint32_t slot)
{
    quire_placement at;
    if (qi_slot_is_lazy(record))
        return qi_lazy_agrees(page, slot);
    if (qi_page_is_nowhere(page))
        return !record->size && !record->range.id;
    if (qi_space_get(page->shard->space, range_of(record), &at) || at.user != slot ||
        at.region != page->region)
        return false;
    if (record->extras & QI_EXTRA_ASLEEP && !record->meta)
        return true;
    at.offset += page->tally->skipped;
    return at.offset - at.left_padding == record->offset - qi_slot_padding(record) &&
           at.offset + at.size == record->offset + qi_slot_extent(record) + qi_slot_behind(record);
}

/* Adds what sleeps. */
static void count_asleep(const qi_slot *record, const qi_page *page, uint32_t slot,
                         quire_memory_stats *seen)
{
    quire_placement at;
    if (!(record->extras & QI_EXTRA_ASLEEP))
        return;
    seen->asleep_count++;
    if (qi_slot_is_lazy(record))
        seen->asleep_bytes += qi_lazy_bytes(page, slot, QI_PIECE_ASLEEP);
    else if (qi_page_is_nowhere(page))
        seen->asleep_bytes +=
            record->meta ? qi_slot_extent(record) + qi_slot_padding(record) : record->evicted;
    else if (!qi_space_get(page->shard->space, range_of(record), &at))
        seen->asleep_bytes += at.size + at.left_padding;
}

/* Checks a slot in use against its page and its range, and adds it to `seen`. */
static quire_result check_slot(quire_memory *memory, uint32_t slot, quire_memory_stats *seen)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = page_of(memory, record);
    if (!page || (page->dedicated && record->range.id))
        return damaged(memory, "an allocation names a page that does not exist", slot);
    if (!qi_range_fits(record->offset, record->size, page->native.native.size))
        return damaged(memory, "an allocation reaches beyond its page", slot);
    if (page->dedicated && page->slot != slot)
        return damaged(memory, "a dedicated page names another allocation", slot);
    if (!page->dedicated && !range_agrees(page, record, slot))
        return damaged(memory, "an allocation and its range disagree", slot);
    seen->allocation_count++;
    seen->live_bytes += record->size + record->left_padding + qi_checked_behind(record);
    seen->requested_bytes += record->requested;
    count_asleep(record, page, slot, seen);
    return QUIRE_SUCCESS;
}

/* Whether the tally of a page is stored where its region or the page says, and names the page. */
static bool tally_agrees(const qi_page *page)
{
    const qi_tally *expected = &page->own;
    if (!page->dedicated)
        expected = page->region < QI_SLOT_COUNT
                       ? qi_table_get(&page->shard->by_region, page->region)
                       : NULL;
    return expected && expected == page->tally && expected->page == page &&
           !(page->dedicated && expected->skipped);
}

/* Adds the pages to `seen`, which has all slots, and compares both. */
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
        seen->reserved_bytes += page->native.bytes;
        if (page->phase == QI_PAGE_MOVING)
            continue;
        if (!tally_agrees(page))
            return damaged(memory, "a page and its region disagree", i);
        seen->empty_bytes +=
            page->tally->allocation_count || page->elastic ? 0 : page->native.bytes;
        live += page->tally->live_bytes;
        count += page->tally->allocation_count - page->objects;
        shared +=
            page->dedicated ? 0 : page->tally->allocation_count - page->objects - page->lazy_count;
    }
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        ranges += memory->shards[i]->space->live_count;
        count += memory->shards[i]->nowhere.own.allocation_count - 1;
    }
    if (live != seen->live_bytes || count != seen->allocation_count)
        return damaged(memory, "the pages' live statistics are not the sum of the allocations",
                       count);
    if (shared != ranges)
        return damaged(memory, "the space holds ranges that no allocation has", shared);
    if (in_use != pages->in_use)
        return damaged(memory, "the count of page numbers is not that of the pages", in_use);
    return QUIRE_SUCCESS;
}

/* The counters of shards and pages; *slots receives the number of slots in use. */
static quire_memory_stats read_counters(quire_memory *memory, uint32_t *slots)
{
    quire_memory_stats counted = qi_stats_counted(memory);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        *slots += memory->shards[i]->queue.used;
    return counted;
}

static quire_result compare_counters(quire_memory *memory, const quire_memory_stats *seen,
                                     uint32_t seen_slots)
{
    uint32_t slots = 0;
    const quire_memory_stats counted = read_counters(memory, &slots);
    if (seen_slots != slots)
        return damaged(memory, "the count of slots is not that of the allocations", seen_slots);
    if (seen->allocation_count != counted.allocation_count ||
        seen->live_bytes != counted.live_bytes || seen->requested_bytes != counted.requested_bytes)
        return damaged(memory, "the live statistics are not the sum of the allocations",
                       seen->allocation_count);
    if (seen->asleep_count != counted.asleep_count || seen->asleep_bytes != counted.asleep_bytes)
        return damaged(memory, "the statistics of what sleeps are not the sum of the allocations",
                       seen->asleep_count);
    if (seen->page_count != counted.page_count || seen->reserved_bytes != counted.reserved_bytes ||
        seen->empty_bytes != counted.empty_bytes)
        return damaged(memory, "the page statistics are not the sum of the pages",
                       seen->page_count);
    if (!qi_page_history_agrees(memory))
        return damaged(memory, "the bytes of shared pages are not the sum of the pages",
                       memory->pages.shared_bytes);
    if (!qi_peaks_agree(memory))
        return damaged(memory, "the shards' claims below the peaks are not what they share",
                       counted.live_bytes);
    if (qi_account_used(&memory->account) < seen->reserved_bytes)
        return damaged(memory, "the memory's account is less than its pages", seen->reserved_bytes);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        if (!qi_stream_queues_agree(memory->shards[i]))
            return damaged(memory, "the queues of deferred frees are inconsistent", i);
    if (!qi_names_agree(memory))
        return damaged(memory, "the accounts of names are not the sums of the allocations",
                       seen->allocation_count);
    return QUIRE_SUCCESS;
}

/* Requires every lock of the memory. */
static quire_result check_locked(quire_memory *memory)
{
    quire_memory_stats seen = {0};
    quire_result result = QUIRE_SUCCESS;
    uint32_t used = 0, top = qi_slots_top(&memory->slots);
    for (uint32_t i = 0; i < qi_shard_count(memory) && !result; i++)
        result = qi_space_check(memory->shards[i]->space);
    for (uint32_t i = 0; i < top && !result; i++)
        if (qi_slot_phase(&memory->slots, i) != QI_PHASE_FREE) {
            result = check_slot(memory, i, &seen);
            used++;
        }
    if (!result)
        result = check_pages(memory, &seen);
    return result ? result : compare_counters(memory, &seen, used);
}

/* Requires the locks of all shards, and not that of the pages. */
static quire_result check_addresses(quire_memory *memory)
{
    uint32_t missing = memory->addresses ? qi_addresses_missing(memory) : QI_NO_SLOT;
    return missing == QI_NO_SLOT
               ? QUIRE_SUCCESS
               : damaged(memory, "an allocation is not found by its address", missing);
}

quire_result qi_memory_check(quire_memory *memory)
{
    qi_shards_acquire(memory);
    qi_lock_acquire(&memory->pages.lock);
    quire_result result = check_locked(memory);
    qi_lock_release(&memory->pages.lock);
    if (!result)
        result = check_addresses(memory);
    qi_shards_release(memory);
    return result ? result : qi_checked_check(memory); /* acquires its locks itself */
}
