/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * range.c - takes dedicated pages, and gives back ranges, at once or through the inbox of their
 * shard.
 */
#include "src/core/page/range.h"

#include "src/base/result.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/map.h"
#include "src/core/slot/slot.h"
#include "src/space/space.h"

/* ---- taking ------------------------------------------------------------------------------- */

quire_result qi_range_take_page(qi_page *page, const qi_range_request *request, uint32_t *slot)
{
    qi_shard *shard = page->shard;
    quire_memory *memory = shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (result)
        return result;
    uint64_t padding = page->tied ? 0 : qi_padding(page->native.native.address, request->alignment);
    qi_slot *record = qi_memory_slot(memory, *slot);
    *record = (qi_slot){
        .offset = padding,
        .size = request->size,
        .requested = request->requested,
        .user_data = request->user_data,
        .meta = request->meta,
        .tally = page->tally,
        .left_padding = (uint32_t)padding,
        .shard = (uint8_t)shard->index,
        .object = (uint8_t)request->object,
        .extras = request->extras,
    };
    page->slot = *slot;
    qi_range_count_in(shard, record);
    return QUIRE_SUCCESS;
}

/* The page stays without allocations, but never counts as empty. */
void qi_nowhere_init(qi_shard *shard)
{
    qi_page *page = &shard->nowhere;
    *page = (qi_page){
        .shard = shard, .tally = &page->own, .number = QUIRE_NO_PAGE, .phase = QI_PAGE_NOWHERE};
    page->own = (qi_tally){.page = page, .allocation_count = 1};
}

quire_result qi_range_take_nowhere(qi_shard *shard, const qi_range_request *request, uint32_t *slot)
{
    quire_memory *memory = shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (result)
        return result;
    qi_slot *record = qi_memory_slot(memory, *slot);
    *record = (qi_slot){.tally = &shard->nowhere.own,
                        .shard = (uint8_t)shard->index,
                        .object = (uint8_t)request->object,
                        .extras = request->extras};
    qi_range_count_in(shard, record);
    return QUIRE_SUCCESS;
}

/* ---- lazy and sleeping allocations --------------------------------------------------------- */

/* Chunks without memory have no addresses to find, and those with memory are free. */
static void uncover(qi_page *page, const qi_window *window)
{
    const quire_space *space = page->shard->space;
    qi_chunk_run run = {0};
    while (qi_space_next_piece(space, window, QI_PIECE_HOLE, &run))
        qi_addresses_uncover(page->shard->memory, page, run.offset, run.size);
    run = (qi_chunk_run){0};
    while (qi_space_next_piece(space, window, QI_PIECE_ASLEEP, &run)) {
        qi_addresses_uncover(page->shard->memory, page, run.offset, run.size);
        page->shard->stats.asleep_bytes -= run.size;
    }
    run = (qi_chunk_run){0};
    while (qi_space_next_piece(space, window, QI_PIECE_BACKED, &run))
        qi_checked_page_grown(page, run.offset, run.offset + run.size);
}

static void give_lazy(qi_shard *shard, const qi_slot *record)
{
    qi_page *page = record->tally->page;
    qi_lazy *lazy = qi_slot_lazy(record);
    const qi_window window = qi_lazy_window(lazy);
    uncover(page, &window);
    qi_space_close_window(shard->space, &window);
    qi_host_release(&shard->memory->host, lazy, 1, sizeof *lazy);
    page->lazy_count--;
}

/* The meta record, with the contents, is released already. */
static void give_asleep(qi_shard *shard, const qi_slot *record)
{
    quire_placement at;
    if (qi_page_is_nowhere(record->tally->page)) {
        shard->stats.asleep_bytes -= record->evicted;
        return;
    }
    qi_ignore(qi_space_get(shard->space, record->asleep, &at)); /* it is live */
    record->tally->page->asleep_bytes -= at.size;
    shard->stats.asleep_bytes -= at.size;
    qi_space_free_asleep(shard->space, record->asleep);
}

void qi_range_give_partial(qi_shard *shard, const qi_slot *record)
{
    shard->stats.asleep_count -= (record->extras & QI_EXTRA_ASLEEP) != 0;
    if (qi_slot_is_lazy(record))
        give_lazy(shard, record);
    else
        give_asleep(shard, record);
}

/* ---- the inbox ---------------------------------------------------------------------------- */

static void drain(qi_shard *shard)
{
    const qi_slots *slots = &shard->memory->slots;
    uint32_t slot = 0, next = 0;
    for (uint32_t left = qi_inbox_take(&shard->inbox, &slot); left; left--, slot = next) {
        next = qi_slot_next(slots, slot);
        qi_slot_fetch(slots, next); /* another thread wrote it last: the line is in its cache */
        qi_shard_note_given(shard, qi_range_give(shard, qi_slot_at(slots, slot), slot));
    }
}

void qi_shard_drain(qi_shard *shard)
{
    if (!qi_inbox_is_empty(&shard->inbox))
        drain(shard);
}

void qi_shards_acquire(quire_memory *memory)
{
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_lock_acquire(&memory->shards[i]->lock);
        qi_shard_drain(memory->shards[i]);
    }
}

void qi_shards_release(quire_memory *memory)
{
    for (uint32_t i = qi_shard_count(memory); i-- > 0;)
        qi_lock_release(&memory->shards[i]->lock);
}

/* ---- native objects ----------------------------------------------------------------------- */

quire_result qi_native_bind(quire_memory *memory, uint32_t slot, quire_object object,
                            uint64_t native)
{
    if (!native)
        return QUIRE_SUCCESS;
    return qi_device_object_bind(memory->device, &memory->calls, object, native,
                                 &qi_memory_page(memory, slot)->native,
                                 qi_memory_slot(memory, slot)->offset);
}

void qi_native_destroy(quire_memory *memory, qi_slot *record)
{
    uint64_t native = qi_slot_native(record);
    if (!native || record->extras & QI_EXTRA_BORROWED)
        return;
    /*
     * The release that follows reads the range's record. Fetching it now hides the cache miss
     * behind the backend's call. The lock is needed because records move when their table grows.
     */
    qi_shard *shard = qi_shard_of(memory, record);
    qi_lock_acquire(&shard->lock);
    qi_space_fetch(shard->space, record->range);
    qi_lock_release(&shard->lock);
    record->native = 0;
    qi_device_object_destroy(memory->device, &memory->calls, record->object, native);
}

/* ---- release ------------------------------------------------------------------------------ */

/* Frees that an inbox may hold; beyond it the freeing thread drains the inbox. */
enum { MAX_QUEUED = 1024 };

/*
 * Takes the slot's meta record out. No other thread changes it any more, but a walk may be reading
 * the name: hence the lock.
 */
static qi_slot_meta *detach_meta(qi_shard *shard, qi_slot *record)
{
    qi_slot_meta *meta = record->meta;
    qi_lock_acquire(&shard->lock);
    qi_ignore(qi_names_replace(&shard->memory->names, meta->name, NULL,
                               record)); /* removing a name cannot fail */
    qi_slot_detach_meta(record);
    qi_lock_release(&shard->lock);
    return meta;
}

QI_ALWAYS_INLINE void release_meta(quire_memory *memory, qi_slot *record)
{
    if (record->meta)
        qi_slot_meta_release(&memory->host, detach_meta(qi_shard_of(memory, record), record));
}

/* What few allocations have: an address that finds them, a lasting map. */
static void release_seldom(quire_memory *memory, uint32_t slot, const qi_slot *record)
{
    if (record->extras & QI_EXTRA_ADDRESS)
        qi_addresses_remove(memory, slot);
    qi_page_map_drop(memory, slot);
}

/* Releases everything except the range. */
static void release_rest(quire_memory *memory, uint32_t slot, qi_slot *record)
{
    if (qi_unlikely(record->extras >= QI_EXTRA_ADDRESS)) /* this one or the last */
        release_seldom(memory, slot, record);
    if (record->object)
        qi_native_destroy(memory, record);
    release_meta(memory, record);
}

/* The address stays: the range is not given back yet, and may be reused on its stream. */
void qi_release_name(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    if (!record->object && !qi_slot_is_lazy(record)) /* its meta record has its addresses */
        release_meta(memory, record);
}

/*
 * Requires the lock and releases it. Drains the inbox and applies the retention limits; destroys
 * the pages that leave.
 */
static void catch_up(qi_shard *shard)
{
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(shard->memory, leaving);
}

/*
 * The object and the name are released first, without the lock: a backend call destroys the object.
 * From the inbox the owning shard gives back the range later.
 */
void qi_release(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    uint32_t count = qi_shard_count(memory);
    qi_shard *shard = memory->shards[count == 1 ? 0 : record->shard];
    if (record->extras || record->meta)
        release_rest(memory, slot, record);
    bool is_mine = count == 1 || shard == qi_shard_mine(memory) ||
                   qi_shard_is_for_images(memory, shard); /* no thread would drain that one */
    if (!is_mine && qi_inbox_put(&shard->inbox, &memory->slots, slot) < MAX_QUEUED)
        return;
    qi_lock_acquire(&shard->lock);
    if (is_mine)
        qi_shard_note_given(shard, qi_range_give(shard, record, slot));
    if (!is_mine || qi_shard_poll_work_of_free(shard))
        catch_up(shard);
    else
        qi_lock_release(&shard->lock);
}

/* Works in the slot's shard, not through its inbox, so that the statistics can be restored. */
void qi_release_unpublished(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    qi_tally *tally = record->tally;
    if (record->object)
        record->native = 0; /* its creator destroys it */
    if (record->extras || record->meta)
        release_rest(memory, slot, record);
    qi_lock_acquire(&shard->lock);
    const quire_memory_stats before = shard->stats;
    uint64_t page_peak = tally->peak_live_bytes;
    shard->peaks.is_undoing = true;
    qi_shard_note_given(shard, qi_range_give(shard, record, slot));
    shard->peaks.is_undoing = false;
    tally->peak_live_bytes = page_peak;
    shard->stats.peak_live_bytes = before.peak_live_bytes;
    shard->stats.peak_requested_bytes = before.peak_requested_bytes;
    shard->stats.peak_allocation_count = before.peak_allocation_count;
    qi_shard_count_allocation(shard, -1);
    catch_up(shard);
}
