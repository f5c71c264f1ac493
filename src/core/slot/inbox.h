/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * inbox.h - the list of PRIVATE slots that other threads freed for a shard.
 *
 * Any thread adds a slot with one compare-and-exchange. A thread that has the shard lock takes all
 * slots at once. A word holds the number of slots and the last slot; each slot is linked to the one
 * added before it. Because a take removes every slot, a slot cannot be taken, freed again and added
 * while another thread still compares the old word (the ABA problem).
 *
 * The word is atomic; adding and looking require no lock. The count is exact: it equals the number
 * of linked slots.
 */
#ifndef QUIRE_SRC_CORE_SLOT_INBOX_H
#define QUIRE_SRC_CORE_SLOT_INBOX_H

#include "src/core/slot/slot.h"

typedef struct qi_inbox {
    qi_atomic_u64 word; /* count << 32 | last slot; 0: empty */
} qi_inbox;

static inline void qi_inbox_init(qi_inbox *inbox)
{
    qi_atomic_init_u64(&inbox->word, 0);
}

static inline bool qi_inbox_is_empty(const qi_inbox *inbox)
{
    return !qi_atomic_load_u64(&inbox->word);
}

/*
 * Adds a PRIVATE slot, which belongs to the shard from then on. Returns how many slots the inbox
 * has now.
 */
static inline uint32_t qi_inbox_put(qi_inbox *inbox, const qi_slots *slots, uint32_t slot)
{
    uint64_t word = qi_atomic_load_u64(&inbox->word), next;
    do {
        qi_slot_set_next(slots, slot, (uint32_t)word);
        next = ((word >> 32) + 1) << 32 | slot;
    } while (!qi_atomic_exchange_if_u64(&inbox->word, &word, next));
    return (uint32_t)(next >> 32);
}

/*
 * Requires the shard lock. Takes all slots and returns their number. *first receives the slot added
 * last, where the chain of links starts. The link of the last slot is meaningless.
 */
static inline uint32_t qi_inbox_take(qi_inbox *inbox, uint32_t *first)
{
    uint64_t word = qi_atomic_swap_acquire_u64(&inbox->word, 0);
    *first = (uint32_t)word;
    return (uint32_t)(word >> 32);
}

#endif
