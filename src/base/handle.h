/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * handle.h - the 64-bit identity of an allocation of a memory or of a range of a space.
 *
 *   63        52 51              26 25               0
 *  +-----------+------------------+------------------+
 *  |    tag    |    generation    |       slot       |
 *  +-----------+------------------+------------------+
 *
 * The tag names the owner (a memory or a space). Invariants: an owner uses no generation of a slot
 * twice, and it never hands out slot 0 with generation 0, so that the id 0 means none. The owner
 * retires a slot whose generations are used up.
 */
#ifndef QUIRE_SRC_BASE_HANDLE_H
#define QUIRE_SRC_BASE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#define QI_SLOT_BITS 26
#define QI_GENERATION_BITS 26
#define QI_TAG_BITS 12

#define QI_SLOT_COUNT (UINT32_C(1) << QI_SLOT_BITS)
#define QI_LAST_GENERATION ((UINT32_C(1) << QI_GENERATION_BITS) - 1)

static inline uint64_t qi_handle(uint32_t tag, uint32_t generation, uint32_t slot)
{
    return (uint64_t)tag << (QI_SLOT_BITS + QI_GENERATION_BITS) |
           (uint64_t)generation << QI_SLOT_BITS | slot;
}

static inline uint32_t qi_handle_slot(uint64_t id)
{
    return (uint32_t)id & (QI_SLOT_COUNT - 1);
}

static inline uint32_t qi_handle_generation(uint64_t id)
{
    return (uint32_t)(id >> QI_SLOT_BITS) & QI_LAST_GENERATION;
}

static inline uint32_t qi_handle_tag(uint64_t id)
{
    return (uint32_t)(id >> (QI_SLOT_BITS + QI_GENERATION_BITS));
}

/* Whether an id names a live slot: it has the owner's tag and the slot's generation, an odd one. */
static inline bool qi_handle_is(uint64_t id, uint32_t tag, uint32_t generation)
{
    uint64_t expected = (uint64_t)tag << QI_GENERATION_BITS | generation;
    return id >> QI_SLOT_BITS == expected && generation & 1;
}

/*
 * Takes an owner tag from 1 to 4095, in rotation, and skips those in use; a returned tag is
 * therefore reused as late as possible. Two owners share a tag only while more than 4095 owners
 * live. Thread-safe.
 */
uint32_t qi_tag_take(void);
void qi_tag_give(uint32_t tag);

#endif
