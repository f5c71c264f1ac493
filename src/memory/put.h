/*
 * put.h - what every allocation and every free comes down to, under the shard's lock: a slot and a
 * range of the shared pages are taken together, and given back together. Inline, because a program
 * does it millions of times.
 */
#ifndef QUIRE_SRC_MEMORY_PUT_H
#define QUIRE_SRC_MEMORY_PUT_H

#include "src/base/bits.h"
#include "src/memory/memory.h"
#include "src/space/fit.h"

/* What is put: sizes with all that the policy adds, and what the record keeps for the caller. */
typedef struct qi_load {
    uint64_t size;
    uint64_t alignment;
    uint64_t requested;
    uint64_t user_data; /* or an object's native, as in the record */
    qi_extra *extra;
    quire_object object;
    bool borrowed;
} qi_load;

static inline void qi_put_count_in(qi_shard *shard, const qi_slot *slot)
{
    quire_memory_stats *stats = &shard->stats;
    uint64_t held = slot->size + slot->left_padding;
    stats->live_bytes += held;
    stats->requested_bytes += slot->requested;
    stats->allocation_count++;
    stats->allocations++;
    qi_tally_add(slot->tally, held);
}

static inline void qi_put_count_out(qi_shard *shard, qi_slot *slot)
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
static inline void qi_put_fill(qi_shard *shard, const qi_load *load, uint32_t slot,
                               const quire_placement *at)
{
    qi_tally *tally = qi_shard_tally(shard, at->region);
    qi_slot *record = qi_memory_slot(shard->memory, slot);
    *record = (qi_slot){
        .offset = at->offset + tally->skipped,
        .size = at->size,
        .requested = load->requested,
        .user_data = load->user_data,
        .range = at->range,
        .extra = load->extra,
        .tally = tally,
        .left_padding = (uint32_t)at->left_padding,
        .shard = (uint8_t)shard->index,
        .object = (uint8_t)load->object,
        .borrowed = load->borrowed,
    };
    qi_put_count_in(shard, record);
}

/* Takes a slot, which stays private, and a range. NO_SPACE without a sentence at QI_TRY. */
QUIRE_MUST_USE static inline quire_result qi_put(qi_shard *shard, const qi_load *load, uint32_t how,
                                                 uint32_t *slot)
{
    quire_memory *memory = shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (qi_unlikely(result))
        return result;
    quire_placement at;
    result =
        shard->space->allocate_range(shard->space, load->size, load->alignment, *slot, how, &at);
    if (qi_unlikely(result)) {
        qi_slot_give(&memory->slots, &shard->queue, *slot);
        return result;
    }
    qi_put_fill(shard, load, *slot, &at);
    return QUIRE_SUCCESS;
}

/* Gives back a private slot whose range is free. True: its page became empty. */
static inline bool qi_put_end(qi_shard *shard, qi_slot *record, uint32_t slot)
{
    const qi_tally *tally = record->tally;
    qi_put_count_out(shard, record);
    qi_slot_give(&shard->memory->slots, &shard->queue, slot);
    return !tally->allocation_count;
}

/*
 * Gives back the range of a private slot of this shard, whose object and name are gone, and the
 * slot. True: its page became empty, and the policy is to be applied.
 */
static inline bool qi_put_back(qi_shard *shard, qi_slot *record, uint32_t slot)
{
    __builtin_prefetch(record->tally, 1);
    if (record->range.id) /* none on a dedicated page; ours, and live until here */
        (void)shard->space->free_range(shard->space, record->range);
    return qi_put_end(shard, record, slot);
}

#endif
