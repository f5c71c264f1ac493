/*
 * slot_word.h - the fields of a state word, for the files of this folder (picture in slot.h).
 *
 * These functions read a copy of the word and require no lock.
 */
#ifndef QUIRE_SRC_CORE_SLOT_SLOT_WORD_H
#define QUIRE_SRC_CORE_SLOT_SLOT_WORD_H

#include "src/core/slot/slot.h"

enum { QI_WORD_MAP_SHIFT = 18 };

/* The largest number of uses, and of maps. */
#define QI_WORD_COUNT_MASK ((UINT64_C(1) << QI_WORD_MAP_SHIFT) - 1)
#define QI_WORD_ONE_MAP (UINT64_C(1) << QI_WORD_MAP_SHIFT)

static inline qi_phase qi_word_phase(uint64_t word)
{
    return (qi_phase)(word >> QI_PHASE_SHIFT & 3);
}

static inline uint64_t qi_word_maps(uint64_t word)
{
    return word >> QI_WORD_MAP_SHIFT & QI_WORD_COUNT_MASK;
}

/* The in-use count, holds included. */
static inline uint64_t qi_word_uses(uint64_t word)
{
    return word & QI_WORD_COUNT_MASK;
}

/* The hold count of a slot. Its chunk must exist: qi_table_has(&slots->holds, slot). */
static inline qi_atomic_u32 *qi_slot_hold_count(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->holds, slot, sizeof(qi_atomic_u32));
}

#endif
