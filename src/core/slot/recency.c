/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recency.c - a word has three fields:
 *
 *   63          38 37           8 7        0
 *  +--------------+--------------+----------+
 *  |  generation  |    frame     | priority |
 *  +--------------+--------------+----------+
 */
#include "src/core/slot/recency.h"

#include "src/base/result.h"

enum { FRAME_SHIFT = 8 };

#define FRAME_MASK ((UINT64_C(1) << QI_FRAME_BITS) - 1)

_Static_assert(FRAME_SHIFT + QI_FRAME_BITS == QI_GENERATION_SHIFT, "the fields fill the word");

static uint32_t generation_of(const qi_slots *slots, uint32_t slot)
{
    return qi_slot_generation(qi_atomic_load_u64(qi_slot_state(slots, slot)));
}

static qi_atomic_u64 *word_of(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->recency, slot, sizeof(qi_atomic_u64));
}

static quire_result ensure_word(qi_slots *slots, qi_host *host, uint32_t slot)
{
    if (qi_table_has(&slots->recency, slot))
        return QUIRE_SUCCESS;
    qi_lock_acquire(&slots->lock);
    const bool exists = qi_table_ensure(&slots->recency, host, slot);
    qi_lock_release(&slots->lock);
    return exists ? QUIRE_SUCCESS
                  : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the order of eviction");
}

/* Sets the bits of a mask. What was said of an earlier allocation is forgotten. */
static quire_result set(qi_slots *slots, qi_host *host, uint32_t slot, uint64_t mask, uint64_t bits)
{
    quire_result result = ensure_word(slots, host, slot);
    if (result)
        return result;
    const uint64_t generation = (uint64_t)generation_of(slots, slot) << QI_GENERATION_SHIFT;
    qi_atomic_u64 *word = word_of(slots, slot);
    uint64_t before = qi_atomic_load_u64(word), kept;
    do
        kept = before >> QI_GENERATION_SHIFT == generation >> QI_GENERATION_SHIFT ? before
                                                                                  : generation;
    while (!qi_atomic_exchange_if_u64(word, &before, (kept & ~mask) | bits));
    return QUIRE_SUCCESS;
}

quire_result qi_recency_touch(qi_slots *slots, qi_host *host, uint32_t slot, uint32_t frame)
{
    return set(slots, host, slot, FRAME_MASK << FRAME_SHIFT, (uint64_t)frame << FRAME_SHIFT);
}

quire_result qi_recency_set_priority(qi_slots *slots, qi_host *host, uint32_t slot, int8_t priority)
{
    return set(slots, host, slot, UINT8_MAX, (uint8_t)priority);
}

qi_recency qi_recency_get(const qi_slots *slots, uint32_t slot, uint32_t frame)
{
    const uint64_t word =
        qi_table_has(&slots->recency, slot) ? qi_atomic_load_u64(word_of(slots, slot)) : 0;
    qi_recency recency = {.age = UINT32_MAX};
    if (qi_slot_generation(word) != generation_of(slots, slot))
        return recency;
    const uint64_t used = word >> FRAME_SHIFT & FRAME_MASK;
    recency.priority = (int8_t)(word & UINT8_MAX);
    if (used)
        recency.age = (uint32_t)((frame - used) & FRAME_MASK);
    return recency;
}
