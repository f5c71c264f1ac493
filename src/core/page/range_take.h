/*
 * put.h - what every allocation and every free comes down to, under the shard's lock: a slot and a
 * range of the shared pages are taken together, and given back together. Inline, because a program
 * does it millions of times.
 */
#ifndef QUIRE_SRC_CORE_PAGE_RANGE_TAKE_H
#define QUIRE_SRC_CORE_PAGE_RANGE_TAKE_H

#include "src/base/bits.h"
#include "src/core/state/memory.h"
#include "src/space/space.h"

/* What is put: sizes with all that the policy adds, and what the record keeps for the caller. */
typedef struct qi_range_request {
    uint64_t size;
    uint64_t alignment;
    uint64_t requested;
    uint64_t user_data; /* or an object's native, as in the record */
    qi_slot_meta *meta;
    quire_object object;
    bool borrowed;
} qi_range_request;

static inline void qi_range_count_in(qi_shard *shard, const qi_slot *slot)
{
    quire_memory_stats *stats = &shard->stats;
    uint64_t held = slot->size + slot->left_padding;
    stats->live_bytes += held;
    stats->requested_bytes += slot->requested;
    stats->allocation_count++;
    stats->allocations++;
    qi_tally_add(slot->tally, held);
}

static inline void qi_range_count_out(qi_shard *shard, qi_slot *slot)
{
    quire_memory_stats *stats = &shard->stats;
    uint64_t held = slot->size + slot->left_padding + qi_checked_behind(slot);
    qi_checked_forget(shard->memory, slot);
    qi_shard_keep_peaks(stats);
    stats->live_bytes -= held;
    stats->requested_bytes -= slot->requested;
    stats->allocation_count--;
    stats->frees++;
    qi_tally_remove(slot->tally, held);
}

/* Fills the record of a private slot whose range is placed. */
static inline void qi_range_fill_record(qi_shard *shard, const qi_range_request *range_request,
                                        uint32_t slot, const quire_placement *at)
{
    qi_tally *tally = qi_shard_tally(shard, at->region);
    qi_slot *record = qi_memory_slot(shard->memory, slot);
    *record = (qi_slot){
        .offset = at->offset + tally->skipped,
        .size = at->size,
        .requested = range_request->requested,
        .user_data = range_request->user_data,
        .range = at->range,
        .meta = range_request->meta,
        .tally = tally,
        .left_padding = (uint32_t)at->left_padding,
        .shard = (uint8_t)shard->index,
        .object = (uint8_t)range_request->object,
        .borrowed = range_request->borrowed,
    };
    qi_range_count_in(shard, record);
}

/* Takes a slot, which stays private, and a range. NO_SPACE without a sentence at QI_TRY. */
QUIRE_MUST_USE static inline quire_result qi_range_take(qi_shard *shard,
                                                        const qi_range_request *range_request,
                                                        uint32_t how, uint32_t *slot)
{
    quire_memory *memory = shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (qi_unlikely(result))
        return result;
    quire_placement at;
    result = shard->space->allocate_range(shard->space, range_request->size,
                                          range_request->alignment, *slot, how, &at);
    if (qi_unlikely(result)) {
        qi_slot_give(&memory->slots, &shard->queue, *slot);
        return result;
    }
    qi_range_fill_record(shard, range_request, *slot, &at);
    return QUIRE_SUCCESS;
}

/* Gives back a private slot whose range is free. True: its page became empty. */
static inline bool qi_range_give_slot(qi_shard *shard, qi_slot *record, uint32_t slot)
{
    const qi_tally *tally = record->tally;
    qi_range_count_out(shard, record);
    qi_slot_give(&shard->memory->slots, &shard->queue, slot);
    return !tally->allocation_count;
}

/*
 * Gives back the range of a private slot of this shard, whose object and name are gone, and the
 * slot. True: its page became empty, and the policy is to be applied.
 */
static inline bool qi_range_give(qi_shard *shard, qi_slot *record, uint32_t slot)
{
    __builtin_prefetch(record->tally, 1);
    if (record->range.id) /* none on a dedicated page; ours, and live until here */
        (void)shard->space->free_range(shard->space, record->range);
    return qi_range_give_slot(shard, record, slot);
}

#endif
