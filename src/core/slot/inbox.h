/*
 * inbox.h - slots on their way to the shard they belong to: many threads put in, one takes all.
 *
 * A word holds how many slots there are and the last one put in; each slot is linked to the one
 * before it. Taking takes everything at once, so that a slot cannot come back while another thread
 * still looks at it.
 */
#ifndef QUIRE_SRC_CORE_SLOT_INBOX_H
#define QUIRE_SRC_CORE_SLOT_INBOX_H

#include "src/core/slot/slot.h"

typedef struct qi_inbox {
    qi_atomic_u64 word; /* count << 32 | slot; 0: empty */
} qi_inbox;

static inline void qi_inbox_init(qi_inbox *inbox)
{
    qi_atomic_init_u64(&inbox->word, 0);
}

static inline bool qi_inbox_is_empty(const qi_inbox *inbox)
{
    return !qi_atomic_load_u64(&inbox->word);
}

/* Puts in a private slot, which is its shard's from then on. Returns how many lie there now. */
static inline uint32_t qi_inbox_put(qi_inbox *inbox, const qi_slots *slots, uint32_t slot)
{
    uint64_t word = qi_atomic_load_u64(&inbox->word), next;
    do {
        qi_slot_set_next(slots, slot, (uint32_t)word);
        next = ((word >> 32) + 1) << 32 | slot;
    } while (!qi_atomic_exchange_if_u64(&inbox->word, &word, next));
    return (uint32_t)(next >> 32);
}

/* Takes all: returns how many there are, *first the first of them in the order of their links. */
static inline uint32_t qi_inbox_take(qi_inbox *inbox, uint32_t *first)
{
    uint64_t word = qi_atomic_swap_acquire_u64(&inbox->word, 0);
    *first = (uint32_t)word;
    return (uint32_t)(word >> 32);
}

#endif
