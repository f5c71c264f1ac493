/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slot.c - a call judges the state word that it then exchanges, so that the check of a handle and
 * the change are one step for other threads. Creates and trims slots, and counts maps and holds.
 */
#include "src/core/slot/slot.h"

#include <stdint.h>

#include "src/base/result.h"
#include "src/base/sleep.h"
#include "src/base/thread.h"

/* A shard takes so many new slots at a time: their state words fill whole cache lines. */
enum { BLOCK = 1 << QI_TABLE_FIRST_BITS };

void qi_slots_init(qi_slots *slots, uint32_t tag)
{
    slots->tag = tag;
    qi_lock_init(&slots->lock, "slots", QI_RANK_SLOTS);
    qi_atomic_init_u32(&slots->top, 0);
    slots->is_shut = false;
    slots->owner = "";
    qi_table_init(&slots->states, sizeof(qi_atomic_u64));
    qi_table_init(&slots->records, sizeof(qi_slot));
    qi_table_init(&slots->holds, sizeof(qi_atomic_u32));
    qi_table_init(&slots->recency, sizeof(qi_atomic_u64));
}

void qi_slots_finish(qi_slots *slots, qi_host *host)
{
    qi_table_finish(&slots->recency, host);
    qi_table_finish(&slots->holds, host);
    qi_table_finish(&slots->records, host);
    qi_table_finish(&slots->states, host);
}

void qi_slot_queue_init(qi_slot_queue *queue)
{
    *queue = (qi_slot_queue){.first = QI_NO_SLOT, .last = QI_NO_SLOT};
}

/* ---- new slots and their records ---------------------------------------------------------- */

/*
 * Requires the shard lock; takes the lock of the tables. Assigns a block of slots that no shard had
 * before to the queue. Fails with TOO_MANY_ALLOCATIONS or OUT_OF_HOST_MEMORY.
 */
static quire_result take_block(qi_slots *slots, qi_slot_queue *queue, qi_host *host)
{
    quire_result result = QUIRE_SUCCESS;
    qi_lock_acquire(&slots->lock);
    uint32_t top = qi_slots_top(slots);
    if (top + BLOCK == QI_SLOT_COUNT) { /* the last block would need a separate chunk */
        result = qi_fail_at_limit(
            QI_LIMIT_ALLOCATIONS, top,
            qi_fail_naming(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                           "memory '%t' has %u allocation%s, as many as it can number",
                           slots->owner, top));
    } else if (!qi_table_ensure(&slots->states, host, top)) {
        result = qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for the record of allocation %u", top + 1);
    } else {
        queue->fresh = top;
        queue->fresh_end = top + BLOCK;
        qi_atomic_store_release_u32(&slots->top, top + BLOCK);
    }
    qi_lock_release(&slots->lock);
    return result;
}

/*
 * Ensures that a slot has a record: qi_slots_trim may have released those of its chunk. Takes the
 * lock of the tables.
 */
static quire_result ensure_record(qi_slots *slots, qi_host *host, uint32_t slot)
{
    if (qi_table_get(&slots->records, slot))
        return QUIRE_SUCCESS;
    qi_lock_acquire(&slots->lock);
    bool exists = qi_table_ensure(&slots->records, host, slot);
    qi_lock_release(&slots->lock);
    if (exists)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                        "no host memory for the record of allocation %u", slot + 1);
}

quire_result qi_slot_refill(qi_slots *slots, qi_slot_queue *queue, qi_host *host)
{
    if (slots->is_shut)
        return qi_fail_naming(QUIRE_ERROR_WRONG_STATE, "memory '%t' is being destroyed",
                              slots->owner, 0);
    if (queue->first == QI_NO_SLOT) {
        if (queue->fresh == queue->fresh_end) {
            quire_result result = take_block(slots, queue, host);
            if (result)
                return result;
        }
        /* 0 is the generation of no handle: qi_slot_take raises it before the slot is published */
        qi_atomic_store_release_u64(qi_slot_state(slots, queue->fresh),
                                    qi_slot_word(0, QI_PHASE_FREE, QI_NO_SLOT));
        qi_slot_enqueue(slots, queue, queue->fresh++);
    }
    return ensure_record(slots, host, queue->first);
}

/* ---- trimming ----------------------------------------------------------------------------- */

/* Whether a slot is in the unused rest of a shard's block. Its state word is still 0. */
static bool is_fresh(qi_slot_queue *const *queues, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++)
        if (slot >= queues[i]->fresh && slot < queues[i]->fresh_end)
            return true;
    return false;
}

/* Appends a free slot to a queue as its last one; the word may link to another slot. */
static void requeue(const qi_slots *slots, qi_slot_queue *queue, uint32_t slot, uint64_t word)
{
    qi_atomic_store_release_u64(qi_slot_state(slots, slot),
                                qi_slot_word(qi_slot_generation(word), QI_PHASE_FREE, QI_NO_SLOT));
    qi_slot_enqueue(slots, queue, slot);
}

void qi_slots_trim(qi_slots *slots, qi_slot_queue *const *queues, uint32_t count, qi_host *host)
{
    for (uint32_t chunk = 0; chunk < QI_TABLE_CHUNKS; chunk++) {
        uint32_t used = 0;
        for (uint32_t i = 0; i < count; i++)
            used += queues[i]->used_by_chunk[chunk];
        if (used)
            continue;
        qi_table_release_chunk(&slots->records, host, chunk);
        qi_table_release_chunk(&slots->holds, host, chunk);
        qi_table_release_chunk(&slots->recency, host, chunk);
    }
    /* refill the queues in the order of the slot numbers: later allocations use the lowest chunks,
       and the records of the others stay released */
    for (uint32_t i = 0; i < count; i++)
        queues[i]->first = queues[i]->last = QI_NO_SLOT;
    for (uint32_t slot = 0, top = qi_slots_top(slots); slot < top; slot++) {
        uint64_t word = qi_atomic_load_u64(qi_slot_state(slots, slot));
        if (qi_word_phase(word) == QI_PHASE_FREE &&
            qi_slot_generation(word) != QI_LAST_GENERATION && !is_fresh(queues, count, slot))
            requeue(slots, queues[slot / BLOCK % count], slot, word);
    }
}

/* ---- links of private slots --------------------------------------------------------------- */

void qi_slot_set_next(const qi_slots *slots, uint32_t slot, uint32_t next)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(state));
    qi_atomic_store_release_u64(state, qi_slot_word(generation, QI_PHASE_PRIVATE, next));
}

uint32_t qi_slot_next(const qi_slots *slots, uint32_t slot)
{
    return (uint32_t)(qi_atomic_load_u64(qi_slot_state(slots, slot)) & (QI_SLOT_COUNT - 1));
}

/* ---- handles and phases ------------------------------------------------------------------- */

/*
 * No function requires a lock. A use, a commit and a claim are a compare-and-exchange of the word
 * that was judged, so that the check and the change are one step for other threads. The end of a
 * use is a subtraction. qi_slot_force_claim stores the word: its caller has exclusive use.
 */

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
           (phase == QI_PHASE_RESERVED && accept & QI_ACCEPT_RESERVED) ||
           (phase == QI_PHASE_ASLEEP && accept & QI_ACCEPT_ASLEEP);
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
    if (!accepts(accept, phase) && accept & QI_ACCEPT_LIVE)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "allocation %x is asleep: quire_memory_wake gives it memory",
                            allocation.id);
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

/* ---- moves -------------------------------------------------------------------------------- */

/* The moves that the thread is in, which are of one table: a move calls nothing that begins another
   one elsewhere. */
static _Thread_local struct {
    const qi_slots *slots;
    uint32_t count;
} own_moves;

static bool begun(const qi_slots *slots)
{
    own_moves.slots = slots;
    own_moves.count++;
    return true;
}

bool qi_slot_begin_move(const qi_slots *slots, uint32_t slot, uint32_t *maps)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    const uint64_t word = qi_atomic_load_u64(state);
    const uint64_t generation = qi_slot_word(qi_slot_generation(word), 0, 0);
    const uint64_t mapped = maps ? qi_word_maps(word) : 0;
    const uint64_t still =
        qi_slot_word(qi_slot_generation(word), QI_PHASE_LIVE, mapped << QI_WORD_MAP_SHIFT);
    if (maps)
        *maps = (uint32_t)mapped;
    return qi_atomic_take_u64(state, still, generation | QI_WORD_MOVING) && begun(slots);
}

/* Every qi_slots is part of a record that is not const. */
static qi_atomic_u32 *ended_moves(const qi_slots *slots)
{
    return (qi_atomic_u32 *)(uintptr_t)&slots->moves;
}

/* The word of a LIVE slot without uses, or of an ASLEEP one: its record says which. */
static uint64_t settled_word(const qi_slots *slots, uint32_t slot, uint32_t maps)
{
    const uint64_t word = qi_atomic_load_u64(qi_slot_state(slots, slot));
    const uint64_t generation = qi_slot_word(qi_slot_generation(word), 0, 0);
    return qi_slot_at(slots, slot)->extras & QI_EXTRA_ASLEEP
               ? generation | QI_WORD_ASLEEP
               : generation | qi_slot_word(0, QI_PHASE_LIVE, (uint64_t)maps << QI_WORD_MAP_SHIFT);
}

static void settle(const qi_slots *slots, uint32_t slot, uint32_t maps)
{
    qi_atomic_store_release_u64(qi_slot_state(slots, slot), settled_word(slots, slot, maps));
    qi_atomic_add_release_u32(ended_moves(slots), 1); /* after the word */
    qi_sleep_wake_all(ended_moves(slots));
}

void qi_slot_end_move(const qi_slots *slots, uint32_t slot, uint32_t maps)
{
    own_moves.count--;
    settle(slots, slot, maps);
}

void qi_slots_drop_moves(const qi_slots *slots)
{
    if (own_moves.count && own_moves.slots == slots)
        return;
    for (uint32_t slot = 0, top = qi_slots_top(slots); slot < top; slot++)
        if (qi_word_is_moving(qi_atomic_load_u64(qi_slot_state(slots, slot))))
            settle(slots, slot, 0);
}

/* Sleeps while the slot of a word moves. Fails with BUSY inside a function of the backend, which
   the mover may have called. */
static quire_result await_move(const qi_slots *slots, qi_atomic_u64 *state, uint64_t *word)
{
    while (qi_word_is_moving(*word)) {
        if (qi_transit_is_on())
            return qi_fail(QUIRE_ERROR_BUSY, "the allocation moves, and a call from inside a "
                                             "backend's function does not wait");
        qi_lock_assert_none();
        const uint32_t seen = qi_atomic_load_acquire_u32(ended_moves(slots));
        *word = qi_atomic_load_acquire_u64(state);
        if (qi_word_is_moving(*word))
            qi_sleep_while(ended_moves(slots), seen);
        *word = qi_atomic_load_acquire_u64(state);
    }
    return QUIRE_SUCCESS;
}

qi_slot_begun qi_slot_begin_waking_move(const qi_slots *slots, quire_allocation allocation)
{
    const uint32_t generation = qi_handle_generation(allocation.id);
    const uint64_t base = qi_slot_word(generation, 0, 0);
    qi_atomic_u64 *state = qi_slot_state(slots, qi_handle_slot(allocation.id));
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        if (await_move(slots, state, &word))
            return QI_SLOT_BUSY;
        if (qi_slot_generation(word) != generation || qi_word_phase(word) != QI_PHASE_ASLEEP)
            return QI_SLOT_GONE;
        if (qi_word_uses(word))
            return QI_SLOT_BUSY;
    } while (!qi_atomic_exchange_if_u64(state, &word, base | QI_WORD_MOVING));
    begun(slots);
    return QI_SLOT_BEGUN;
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
        quire_result result =
            qi_unlikely(qi_word_is_moving(word)) ? await_move(slots, state, &word) : QUIRE_SUCCESS;
        if (!result)
            result = judge(slots, word, allocation, accept);
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
    if (accept & QI_ACCEPT_LIVE)
        accept |= QI_ACCEPT_ASLEEP;
    do {
        quire_result result = await_move(slots, state, &word);
        if (!result)
            result = judge(slots, word, allocation, accept);
        if (result)
            return result;
        if (qi_word_maps(word) || qi_word_uses(word))
            return refuse_busy(word, allocation);
        leaving = qi_slot_word(qi_slot_generation(word), QI_PHASE_PRIVATE, 0);
    } while (!qi_atomic_exchange_if_u64(state, &word, leaving));
    return QUIRE_SUCCESS;
}

void qi_slot_unclaim(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_store_release_u64(qi_slot_state(slots, slot), settled_word(slots, slot, 0));
}

/* From a word without maps and uses to an ASLEEP one with a use. */
static qi_slot_begun begin_asleep(const qi_slots *slots, uint32_t slot, qi_phase from)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state), asleep;
    do {
        if (qi_word_phase(word) != from)
            return QI_SLOT_GONE;
        if (qi_word_maps(word) || qi_word_uses(word))
            return QI_SLOT_BUSY;
        asleep = qi_slot_word(qi_slot_generation(word), 0, 0) | QI_WORD_ASLEEP;
    } while (!qi_atomic_exchange_if_u64(state, &word, asleep + 1));
    return QI_SLOT_BEGUN;
}

qi_slot_begun qi_slot_begin_sleep(const qi_slots *slots, uint32_t slot)
{
    return begin_asleep(slots, slot, QI_PHASE_LIVE);
}

qi_slot_begun qi_slot_begin_wake(const qi_slots *slots, uint32_t slot)
{
    return begin_asleep(slots, slot, QI_PHASE_ASLEEP);
}

void qi_slot_end_sleep(const qi_slots *slots, uint32_t slot, qi_phase phase)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state), ended;
    do { /* calls that read what the record says have further uses */
        ended = phase == QI_PHASE_ASLEEP
                    ? word - 1
                    : qi_slot_word(qi_slot_generation(word), phase, qi_word_uses(word) - 1);
    } while (!qi_atomic_exchange_if_u64(state, &word, ended));
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
    if (qi_word_phase(word) == QI_PHASE_FREE || qi_word_phase(word) == QI_PHASE_PRIVATE)
        return (quire_allocation){0};
    return (quire_allocation){qi_handle(slots->tag, qi_slot_generation(word), slot)};
}

/* ---- counts ------------------------------------------------------------------------------- */

/*
 * No function requires a lock. Maps are counted in the state word. The uses of a slot are counted
 * there too; its hold count says how many of them are holds. A hold raises the uses first and the
 * hold count second, and a release lowers them in the opposite order, so that the holds never
 * exceed the uses.
 */

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
        if (qi_word_phase(word) == QI_PHASE_FREE || qi_word_phase(word) == QI_PHASE_PRIVATE ||
            qi_word_is_moving(word))
            continue;
        if (qi_word_is_asleep(word)) {
            qi_slot *record = qi_slot_at(slots, slot);
            record->extras &= (uint8_t)~QI_EXTRA_CHANGING;
            if (!(record->extras & QI_EXTRA_ASLEEP))
                word = qi_slot_word(qi_slot_generation(word), QI_PHASE_LIVE, qi_word_uses(word));
        }
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
        if (qi_word_maps(word) == QI_WORD_COUNT_MASK - (qi_word_phase(word) == QI_PHASE_RESERVED))
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

quire_result qi_asleep_create(qi_host *host, const qi_slot *record, uint64_t bytes,
                              const char *what, qi_asleep **asleep, qi_slot_meta **meta)
{
    *asleep = qi_host_allocate(host, 1, sizeof **asleep);
    *meta = record->meta ? NULL : qi_slot_meta_create_empty(host);
    if (!*asleep || (!*meta && !record->meta))
        return qi_fail_naming(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the record of %t",
                              what, 0);
    if (!bytes)
        return QUIRE_SUCCESS;
    (*asleep)->bytes = qi_host_allocate(host, bytes, 1);
    if (!(*asleep)->bytes)
        return qi_fail_naming(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for the contents of %t: %b", what, bytes);
    (*asleep)->count = bytes;
    return QUIRE_SUCCESS;
}

void qi_asleep_release(qi_host *host, qi_asleep *asleep)
{
    if (asleep)
        qi_host_release(host, asleep->bytes, asleep->count, 1);
    qi_host_release(host, asleep, 1, sizeof *asleep);
}

/* ---- meta records ------------------------------------------------------------------------- */

void qi_slot_meta_release(qi_host *host, qi_slot_meta *meta)
{
    if (!meta)
        return;
    qi_host_release_text(host, meta->name);
    qi_host_release(host, meta->image, 1, sizeof *meta->image);
    qi_asleep_release(host, meta->asleep);
    qi_host_release(host, meta->lazy, 1, sizeof *meta->lazy);
    qi_host_release(host, meta, 1, sizeof *meta);
}

qi_slot_meta *qi_slot_meta_create_empty(qi_host *host)
{
    return qi_host_allocate(host, 1, sizeof(qi_slot_meta));
}

/* Returns false if host memory is exhausted; what was allocated stays in the record. */
static bool fill(qi_host *host, qi_slot_meta *meta, const char *name, uint32_t parts)
{
    if (name)
        meta->name = qi_host_copy_text(host, name);
    if (parts & QI_META_IMAGE)
        meta->image = qi_host_allocate(host, 1, sizeof *meta->image);
    return (!name || meta->name) && (!(parts & QI_META_IMAGE) || meta->image);
}

quire_result qi_slot_meta_create_some(qi_host *host, const char *name, uint64_t user_data,
                                      uint32_t parts, qi_slot_meta **meta)
{
    *meta = qi_slot_meta_create_empty(host);
    if (*meta && fill(host, *meta, name, parts)) {
        (*meta)->user_data = user_data;
        return QUIRE_SUCCESS;
    }
    qi_slot_meta_release(host, *meta);
    *meta = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                   "no host memory for the name, user data or description of an allocation");
}

/* ---- callbacks during a use --------------------------------------------------------------- */

/* Callbacks that the thread is in, while calls that enclose them have allocations in use. */
static _Thread_local uint32_t callbacks;

void qi_uses_begin_callback(void)
{
    callbacks++;
}

void qi_uses_end_callback(void)
{
    callbacks--;
}

bool qi_uses_are_kept(void)
{
    return callbacks != 0;
}
