/*
 * stats.c - the figures of memories, pages and devices, and the check of a memory's records.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/memory/memory.h"
#include "src/space/fit.h"

static double lost_share(uint64_t used, uint64_t whole)
{
    return whole ? 1.0 - (double)used / (double)whole : 0.0;
}

quire_result quire_memory_get_stats(quire_memory *memory, quire_memory_stats *out)
{
    if (out)
        *out = (quire_memory_stats){0};
    if (!memory || !out)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_get_stats: memory or stats is null");
    quire_space_stats space;
    qi_lock_acquire(&memory->lock);
    *out = memory->stats;
    qi_ignore(quire_space_get_stats(memory->space, &space));
    qi_lock_release(&memory->lock);
    out->free_bytes = out->reserved_bytes - out->live_bytes;
    out->largest_free = space.largest_free;
    out->full_passes = space.full_passes;
    out->full_pass_hits = space.full_pass_hits;
    out->backend_calls = qi_atomic_load_u64(&memory->calls.count);
    out->backend_nanoseconds = qi_atomic_load_u64(&memory->calls.nanoseconds);
    out->metadata_bytes = qi_atomic_load_u64(&memory->host.bytes) + space.metadata_bytes;
    out->metadata_peak = qi_atomic_load_u64(&memory->host.peak) + space.metadata_peak;
    out->fragmentation = (quire_fragmentation){
        .reserved = lost_share(out->peak_live_bytes, out->peak_reserved_bytes),
        .free = lost_share(space.largest_free, space.free_bytes),
        .internal = out->live_bytes - out->requested_bytes,
        .split = out->free_bytes - out->empty_bytes,
    };
    return QUIRE_SUCCESS;
}

quire_result quire_device_get_stats(quire_device *device, quire_device_stats *out)
{
    if (out)
        *out = (quire_device_stats){0};
    if (!device || !out)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_get_stats: device or stats is null");
    for (uint32_t i = 0; i < QUIRE_MOST_HEAPS; i++)
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
    quire_result result = QUIRE_SUCCESS;
    qi_lock_acquire(&memory->lock);
    const qi_page *page = qi_page_at(&memory->pages, number);
    if (!page || page->phase != QI_PAGE_LIVE) {
        result = qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the memory has no page %u", number);
    } else {
        *info = (quire_page_info){
            .page = number,
            .dedicated = page->dedicated,
            .mappable = page->native.host != NULL,
            .size = page->native.native.size,
            .address = page->native.native.address,
            .live_bytes = page->live_bytes,
            .free_bytes = page->native.native.size - page->live_bytes,
            .allocation_count = page->allocation_count,
            .peak_live_bytes = page->peak_live_bytes,
        };
        if (!page->dedicated && memory->space->fit->most_regions == 1)
            info->largest_free = memory->space->fit->largest_free(memory->space);
        else if (!page->dedicated)
            qi_space_walk_region(memory->space, page->region, find_largest, &info->largest_free);
    }
    qi_lock_release(&memory->lock);
    return result;
}

/* ---- check -------------------------------------------------------------------------------- */

static quire_result damaged(const quire_memory *memory, const char *what, uint64_t number)
{
    return qi_fail_text(QUIRE_ERROR_CORRUPTED, "memory '%s': %s (%llu)", memory->name, what,
                        (unsigned long long)number);
}

static quire_result check_slot(quire_memory *memory, uint32_t slot, quire_memory_stats *seen)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_page_at(&memory->pages, record->page);
    if (!page || page->phase != QI_PAGE_LIVE || page->dedicated != record->dedicated)
        return damaged(memory, "an allocation names a page that is not there", slot);
    if (!qi_range_fits(record->offset, record->size, page->native.native.size))
        return damaged(memory, "an allocation reaches beyond its page", slot);
    if (record->dedicated && page->slot != slot)
        return damaged(memory, "a dedicated page names another allocation", slot);
    if (!record->dedicated) {
        quire_placement at;
        if (quire_space_get(memory->space, record->range, &at) || at.user != slot ||
            at.offset + page->skipped != record->offset || at.size != record->size ||
            at.region != page->region)
            return damaged(memory, "an allocation and its range disagree", slot);
    }
    seen->allocation_count++;
    seen->live_bytes += record->size + record->left_padding;
    seen->requested_bytes += record->requested;
    return QUIRE_SUCCESS;
}

/* Whether the region of a shared page leads back to it. */
static bool region_agrees(const qi_pages *pages, const qi_page *page)
{
    const uint32_t *number =
        page->region < QI_SLOT_COUNT ? qi_table_get(&pages->by_region, page->region) : NULL;
    return page->dedicated || (number && *number == page->number);
}

static quire_result check_pages(quire_memory *memory, quire_memory_stats *seen)
{
    uint64_t live = 0, count = 0, shared = 0;
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < memory->pages.top; i++) {
        const qi_page *page = qi_page_at(&memory->pages, i);
        in_use += page->phase != QI_PAGE_NONE;
        if (page->phase != QI_PAGE_LIVE)
            continue;
        if (!region_agrees(&memory->pages, page))
            return damaged(memory, "a page and its region disagree", i);
        seen->page_count++;
        seen->reserved_bytes += page->native.native.size;
        seen->empty_bytes += page->allocation_count ? 0 : page->native.native.size;
        live += page->live_bytes;
        count += page->allocation_count;
        shared += page->dedicated ? 0 : page->allocation_count;
    }
    if (live != seen->live_bytes || count != seen->allocation_count)
        return damaged(memory, "the pages' live figures are not the sum of the allocations", count);
    if (shared != memory->space->live_count)
        return damaged(memory, "the space holds ranges that no allocation has", shared);
    if (in_use != memory->pages.in_use)
        return damaged(memory, "the count of page numbers is not that of the pages", in_use);
    return QUIRE_SUCCESS;
}

static quire_result check_locked(quire_memory *memory)
{
    quire_memory_stats seen = {0};
    const quire_memory_stats *kept = &memory->stats;
    quire_result result = quire_space_check(memory->space);
    uint32_t used = 0;
    for (uint32_t i = 0; i < memory->slots.top && !result; i++)
        if (qi_slot_phase(&memory->slots, i) != QI_PHASE_FREE) {
            result = check_slot(memory, i, &seen);
            used++;
        }
    if (!result)
        result = check_pages(memory, &seen);
    if (result)
        return result;
    if (used != memory->slots.used)
        return damaged(memory, "the count of slots is not that of the allocations", used);
    if (seen.allocation_count != kept->allocation_count || seen.live_bytes != kept->live_bytes ||
        seen.requested_bytes != kept->requested_bytes)
        return damaged(memory, "the live figures are not the sum of the allocations",
                       seen.allocation_count);
    if (seen.page_count != kept->page_count || seen.reserved_bytes != kept->reserved_bytes ||
        seen.empty_bytes != kept->empty_bytes)
        return damaged(memory, "the page figures are not the sum of the pages", seen.page_count);
    if (qi_account_used(&memory->account) < seen.reserved_bytes)
        return damaged(memory, "the memory's account is less than its pages", seen.reserved_bytes);
    if (!qi_names_agree(memory))
        return damaged(memory, "the accounts of names are not the sums of the allocations",
                       seen.allocation_count);
    return QUIRE_SUCCESS;
}

quire_result quire_memory_check(quire_memory *memory)
{
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_check: memory is null");
    qi_lock_acquire(&memory->lock);
    quire_result result = check_locked(memory);
    qi_lock_release(&memory->lock);
    return result;
}
