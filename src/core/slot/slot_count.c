/*
 * slot_count.c - the counts of a slot: maps, and holds of backends.
 *
 * No function requires a lock. Maps are counted in the state word. The uses of a slot are counted
 * there too; its hold count says how many of them are holds. A hold raises the uses first and the
 * hold count second, and a release lowers them in the opposite order, so that the holds never
 * exceed the uses.
 */
#include "src/base/result.h"
#include "src/core/slot/slot_word.h"

/* ---- holds -------------------------------------------------------------------------------- */

/*
 * Ensures that a slot has a hold count. The caller has the slot in use, so that its chunk is not
 * released. Takes the lock of the tables. Returns false if host memory is exhausted.
 */
static bool ensure_count(qi_slots *slots, qi_host *host, uint32_t slot)
{
    if (qi_table_has(&slots->holds, slot))
        return true;
    qi_lock_acquire(&slots->lock);
    bool exists = qi_table_ensure(&slots->holds, host, slot);
    qi_lock_release(&slots->lock);
    return exists;
}

/* Returns false if the count is QI_MAX_HOLDS. */
static bool add_hold(qi_atomic_u32 *holds)
{
    uint32_t count;
    do {
        count = qi_atomic_load_u32(holds);
        if (count == QI_MAX_HOLDS)
            return false;
    } while (!qi_atomic_take_u32(holds, count, count + 1));
    return true;
}

/* Returns false if the count is 0. */
static bool remove_hold(qi_atomic_u32 *holds)
{
    uint32_t count;
    do {
        count = qi_atomic_load_u32(holds);
        if (!count)
            return false;
    } while (!qi_atomic_take_u32(holds, count, count - 1));
    return true;
}

quire_result qi_slot_hold(qi_slots *slots, qi_host *host, quire_allocation allocation)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    if (!ensure_count(slots, host, slot))
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a hold count");
    else if (!add_hold(qi_slot_hold_count(slots, slot)))
        result = qi_fail_with(QUIRE_ERROR_BUSY, "allocation %x is held %u times", allocation.id,
                              QI_MAX_HOLDS);
    if (result)
        qi_slot_end_use(slots, slot);
    return result;
}

quire_result qi_slot_release(const qi_slots *slots, quire_allocation allocation)
{
    uint32_t slot = 0; /* in use until the end, so that the count belongs to this allocation */
    quire_result result = qi_slot_begin_use(slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    if (qi_table_has(&slots->holds, slot) && remove_hold(qi_slot_hold_count(slots, slot)))
        qi_slot_end_use(slots, slot); /* the use that was the hold */
    else
        result = qi_fail_with(QUIRE_ERROR_WRONG_STATE, "allocation %x is not held", allocation.id);
    qi_slot_end_use(slots, slot);
    return result;
}

void qi_slots_drop_uses(const qi_slots *slots)
{
    for (uint32_t slot = 0, top = qi_slots_top(slots); slot < top; slot++) {
        qi_atomic_u64 *state = qi_slot_state(slots, slot);
        uint64_t word = qi_atomic_load_u64(state), holds = 0;
        if (qi_word_phase(word) != QI_PHASE_LIVE && qi_word_phase(word) != QI_PHASE_RESERVED)
            continue;
        if (qi_table_has(&slots->holds, slot))
            holds = qi_atomic_load_u32(qi_slot_hold_count(slots, slot));
        if (qi_word_uses(word) != holds) /* after a fork a store makes the system copy the page */
            qi_atomic_store_release_u64(state, (word & ~QI_WORD_COUNT_MASK) | holds);
    }
}

/* ---- maps --------------------------------------------------------------------------------- */

quire_result qi_slot_add_map(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        if (qi_word_maps(word) == QI_WORD_COUNT_MASK)
            return qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE,
                                  "allocation %x of memory '%t' is mapped %u times: no more",
                                  slots->owner, qi_slot_public_handle(slots, slot).id,
                                  QI_WORD_COUNT_MASK);
    } while (!qi_atomic_exchange_if_u64(state, &word, word + QI_WORD_ONE_MAP));
    return QUIRE_SUCCESS;
}

quire_result qi_slot_remove_map(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        if (!qi_word_maps(word))
            return qi_fail_naming(QUIRE_ERROR_NOT_MAPPED,
                                  "allocation %x of memory '%t' is not mapped", slots->owner,
                                  qi_slot_public_handle(slots, slot).id);
    } while (!qi_atomic_exchange_if_u64(state, &word, word - QI_WORD_ONE_MAP));
    return QUIRE_SUCCESS;
}

uint32_t qi_slot_map_count(const qi_slots *slots, uint32_t slot)
{
    return (uint32_t)qi_word_maps(qi_atomic_load_acquire_u64(qi_slot_state(slots, slot)));
}
