/*
 * slot_state.c - looks up handles and changes the state words of their slots: use, commit, claim.
 *
 * No function requires a lock. A use, a commit and a claim are a compare-and-exchange of the word
 * that was judged, so that the check and the change are one step for other threads. The end of a
 * use is a subtraction. qi_slot_force_claim stores the word: its caller has exclusive use.
 */
#include "src/base/result.h"
#include "src/core/slot/slot_word.h"

/* ---- looking up handles ------------------------------------------------------------------- */

static quire_result refuse_stale(const qi_slots *slots, quire_allocation allocation)
{
    return qi_fail_text(QUIRE_ERROR_STALE_HANDLE,
                        "allocation %#llx of memory '%s' is not live: it was freed before",
                        (unsigned long long)allocation.id, slots->owner);
}

/*
 * Returns the state word of the slot that a handle names, or NULL with the thread's error set. The
 * generation is not compared yet: judge does that with the value that the caller then exchanges.
 */
static qi_atomic_u64 *look_up(const qi_slots *slots, quire_allocation allocation)
{
    if (!allocation.id) {
        qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the allocation is {0}, which is no handle");
        return NULL;
    }
    if (slots->tag == QI_TAG_DISABLED) {
        qi_fail(QUIRE_ERROR_NOT_PERMITTED, QI_DISABLED_SENTENCE);
        return NULL;
    }
    if (qi_handle_tag(allocation.id) != slots->tag) {
        qi_fail_text(QUIRE_ERROR_FOREIGN_HANDLE,
                     "allocation %#llx belongs to another memory than '%s'",
                     (unsigned long long)allocation.id, slots->owner);
        return NULL;
    }
    qi_atomic_u64 *state = qi_slot_find_state(slots, qi_handle_slot(allocation.id));
    if (!state)
        refuse_stale(slots, allocation);
    return state;
}

static bool accepts(int accept, qi_phase phase)
{
    return (phase == QI_PHASE_LIVE && accept & QI_ACCEPT_LIVE) ||
           (phase == QI_PHASE_RESERVED && accept & QI_ACCEPT_RESERVED);
}

/* Fails unless a word has the generation of the handle and an accepted phase. */
static quire_result judge(const qi_slots *slots, uint64_t word, quire_allocation allocation,
                          int accept)
{
    qi_phase phase = qi_word_phase(word);
    if (qi_slot_generation(word) != qi_handle_generation(allocation.id) || phase == QI_PHASE_FREE ||
        phase == QI_PHASE_PRIVATE)
        return refuse_stale(slots, allocation);
    if (!accepts(accept, phase) && phase == QI_PHASE_RESERVED)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "allocation %x is reserved: commit or abort it first", allocation.id);
    if (!accepts(accept, phase))
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE, "allocation %x is committed already",
                            allocation.id);
    return QUIRE_SUCCESS;
}

quire_result qi_slot_check(const qi_slots *slots, quire_allocation allocation, int accept)
{
    const qi_atomic_u64 *state = look_up(slots, allocation);
    return state ? judge(slots, qi_atomic_load_acquire_u64(state), allocation, accept)
                 : qi_error_result();
}

/* ---- uses --------------------------------------------------------------------------------- */

quire_result qi_slot_begin_use(const qi_slots *slots, quire_allocation allocation, int accept,
                               uint32_t *slot)
{
    qi_atomic_u64 *state = look_up(slots, allocation);
    if (!state)
        return qi_error_result();
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        quire_result result = judge(slots, word, allocation, accept);
        if (result)
            return result;
        if (qi_word_uses(word) == QI_WORD_COUNT_MASK)
            return qi_fail_with(QUIRE_ERROR_BUSY,
                                "allocation %x is in use by %u call%s or object%s", allocation.id,
                                QI_WORD_COUNT_MASK);
    } while (!qi_atomic_exchange_if_u64(state, &word, word + 1));
    *slot = qi_handle_slot(allocation.id);
    return QUIRE_SUCCESS;
}

void qi_slot_end_use(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_sub_release_u64(qi_slot_state(slots, slot), 1);
}

/* ---- phases ------------------------------------------------------------------------------- */

quire_result qi_slot_commit(const qi_slots *slots, quire_allocation allocation)
{
    qi_atomic_u64 *state = look_up(slots, allocation);
    if (!state)
        return qi_error_result();
    uint64_t word = qi_atomic_load_acquire_u64(state), live;
    do {
        quire_result result = judge(slots, word, allocation, QI_ACCEPT_RESERVED);
        if (result)
            return result;
        /* adding keeps the counts: calls may use a reserved allocation at the same time */
        live = word + ((uint64_t)(QI_PHASE_LIVE - QI_PHASE_RESERVED) << QI_PHASE_SHIFT);
    } while (!qi_atomic_exchange_if_u64(state, &word, live));
    return QUIRE_SUCCESS;
}

static quire_result refuse_busy(uint64_t word, quire_allocation allocation)
{
    if (qi_word_maps(word))
        return qi_fail_with(QUIRE_ERROR_BUSY,
                            "allocation %x is still mapped %u time%s: quire_unmap first",
                            allocation.id, qi_word_maps(word));
    return qi_fail_with(QUIRE_ERROR_BUSY, "allocation %x is in use by %u call%s or object%s",
                        allocation.id, qi_word_uses(word));
}

quire_result qi_slot_claim_or_fail(const qi_slots *slots, quire_allocation allocation, int accept)
{
    qi_atomic_u64 *state = look_up(slots, allocation);
    if (!state)
        return qi_error_result();
    uint64_t word = qi_atomic_load_acquire_u64(state), leaving;
    do {
        quire_result result = judge(slots, word, allocation, accept);
        if (result)
            return result;
        if (qi_word_maps(word) || qi_word_uses(word))
            return refuse_busy(word, allocation);
        leaving = qi_slot_word(qi_slot_generation(word), QI_PHASE_PRIVATE, 0);
    } while (!qi_atomic_exchange_if_u64(state, &word, leaving));
    return QUIRE_SUCCESS;
}

bool qi_slot_force_claim(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state);
    if (qi_word_phase(word) == QI_PHASE_FREE || qi_word_phase(word) == QI_PHASE_PRIVATE)
        return false;
    if (qi_table_has(&slots->holds, slot))
        qi_atomic_store_release_u32(qi_slot_hold_count(slots, slot), 0); /* holds <= uses == 0 */
    qi_atomic_store_release_u64(state, qi_slot_word(qi_slot_generation(word), QI_PHASE_PRIVATE, 0));
    return true;
}

/* ---- queries ------------------------------------------------------------------------------ */

qi_phase qi_slot_phase(const qi_slots *slots, uint32_t slot)
{
    return qi_word_phase(qi_atomic_load_acquire_u64(qi_slot_state(slots, slot)));
}

quire_allocation qi_slot_public_handle(const qi_slots *slots, uint32_t slot)
{
    uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(slots, slot));
    if (qi_word_phase(word) != QI_PHASE_LIVE && qi_word_phase(word) != QI_PHASE_RESERVED)
        return (quire_allocation){0};
    return (quire_allocation){qi_handle(slots->tag, qi_slot_generation(word), slot)};
}
