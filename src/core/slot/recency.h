/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recency.h - the priority of each allocation, and the frame in which it was used last: the order
 * in which allocations are evicted (compact/evict.h).
 *
 * Both are in one word of a table, beside the generation of the slot: what is said of an allocation
 * does not hold for the next one in its slot. The table exists once something was said.
 *
 * Locks: the lock of the tables protects their growth. Everything else is atomic. The slot is in
 * use by the caller, so that its chunk of the table is not released.
 */
#ifndef QUIRE_SRC_CORE_SLOT_RECENCY_H
#define QUIRE_SRC_CORE_SLOT_RECENCY_H

#include "src/core/slot/slot.h"

/* Frames are numbered from 1 and wrap: 0 is none. */
enum { QI_FRAME_BITS = 30 };

typedef struct qi_recency {
    uint32_t
        age; /* frames since the last use, 0: used in the current one; UINT32_MAX: never used */
    int8_t priority;
} qi_recency;

/* Fail with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_recency_touch(qi_slots *slots, qi_host *host, uint32_t slot,
                                             uint32_t frame);
QUIRE_MUST_USE quire_result qi_recency_set_priority(qi_slots *slots, qi_host *host, uint32_t slot,
                                                    int8_t priority);

qi_recency qi_recency_get(const qi_slots *slots, uint32_t slot, uint32_t frame);

/* Returns the frame that follows. */
static inline uint32_t qi_recency_next_frame(uint32_t frame)
{
    const uint32_t last = (UINT32_C(1) << QI_FRAME_BITS) - 1;
    return frame == last ? 1 : frame + 1;
}

#endif
