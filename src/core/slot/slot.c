/*
 * slot.c - see slot.h.
 */
#include "src/core/slot/slot.h"

#include <string.h>

#include "src/base/result.h"

#define MAP_SHIFT 18
#define COUNT_MASK ((UINT64_C(1) << MAP_SHIFT) - 1)
#define ONE_MAP (UINT64_C(1) << MAP_SHIFT)

static qi_phase phase_of(uint64_t word)
{
    return (qi_phase)(word >> QI_PHASE_SHIFT & 3);
}

static uint64_t maps_of(uint64_t word)
{
    return word >> MAP_SHIFT & COUNT_MASK;
}

static uint64_t pins_of(uint64_t word)
{
    return word & COUNT_MASK;
}

/* New slots come to a shard this many at a time: whole cache lines of state words. */
enum { BLOCK = 1 << QI_TABLE_FIRST_BITS };

void qi_slots_init(qi_slots *slots, uint32_t tag)
{
    slots->tag = tag;
    qi_lock_init(&slots->lock, "slots", QI_RANK_SLOTS);
    qi_atomic_init_u32(&slots->top, 0);
    slots->is_shut = false;
    qi_table_init(&slots->states, sizeof(qi_atomic_u64));
    qi_table_init(&slots->records, sizeof(qi_slot));
    qi_table_init(&slots->holds, sizeof(qi_atomic_u32));
}

void qi_slots_finish(qi_slots *slots, qi_host *host)
{
    qi_table_finish(&slots->holds, host);
    qi_table_finish(&slots->records, host);
    qi_table_finish(&slots->states, host);
}

void qi_slot_queue_init(qi_slot_queue *queue)
{
    *queue = (qi_slot_queue){.first = QI_NO_SLOT, .last = QI_NO_SLOT};
}

/* ---- taking and giving -------------------------------------------------------------------- */

/* A block of slots that no shard has had. */
static quire_result take_block(qi_slots *slots, qi_slot_queue *queue, qi_host *host)
{
    quire_result result = QUIRE_SUCCESS;
    qi_lock_acquire(&slots->lock);
    uint32_t top = qi_slots_top(slots);
    if (top + BLOCK == QI_SLOT_COUNT) { /* the last block would have a chunk of its own */
        result = qi_fail_with(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                              "the memory has %u allocations, as many as it can number", top);
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

/* The records of a chunk without used slots may have been given back. */
static quire_result make_record(qi_slots *slots, qi_host *host, uint32_t slot)
{
    if (qi_table_get(&slots->records, slot))
        return QUIRE_SUCCESS;
    qi_lock_acquire(&slots->lock);
    bool is_there = qi_table_ensure(&slots->records, host, slot);
    qi_lock_release(&slots->lock);
    if (is_there)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                        "no host memory for the record of allocation %u", slot + 1);
}

quire_result qi_slot_refill(qi_slots *slots, qi_slot_queue *queue, qi_host *host)
{
    if (slots->is_shut)
        return qi_fail(QUIRE_ERROR_WRONG_STATE, "the memory is being destroyed");
    if (queue->first == QI_NO_SLOT) {
        if (queue->fresh == queue->fresh_end) {
            quire_result result = take_block(slots, queue, host);
            if (result)
                return result;
        }
        qi_atomic_store_release_u64(qi_slot_state(slots, queue->fresh),
                                    qi_slot_word(0, QI_PHASE_FREE, QI_NO_SLOT));
        qi_slot_enqueue(slots, queue, queue->fresh++);
    }
    return make_record(slots, host, queue->first);
}

static bool is_fresh(qi_slot_queue *const *queues, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++)
        if (slot >= queues[i]->fresh && slot < queues[i]->fresh_end)
            return true;
    return false;
}

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
    }
    for (uint32_t i = 0; i < count; i++)
        queues[i]->first = queues[i]->last = QI_NO_SLOT;
    for (uint32_t slot = 0, top = qi_slots_top(slots); slot < top; slot++) {
        uint64_t word = qi_atomic_load_u64(qi_slot_state(slots, slot));
        if (phase_of(word) == QI_PHASE_FREE && qi_slot_generation(word) != QI_LAST_GENERATION &&
            !is_fresh(queues, count, slot))
            requeue(slots, queues[slot / BLOCK % count], slot, word);
    }
}

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

/* ---- handles ------------------------------------------------------------------------------ */

quire_allocation qi_slot_public_handle(const qi_slots *slots, uint32_t slot)
{
    uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(slots, slot));
    if (phase_of(word) != QI_PHASE_LIVE && phase_of(word) != QI_PHASE_RESERVED)
        return (quire_allocation){0};
    return (quire_allocation){qi_handle(slots->tag, qi_slot_generation(word), slot)};
}

static quire_result refuse_stale(quire_allocation allocation)
{
    return qi_fail_with(QUIRE_ERROR_STALE_HANDLE, "allocation %x is not live: it was freed before",
                        allocation.id);
}

/* The state word's place, or NULL with the error set. */
static qi_atomic_u64 *look_up(const qi_slots *slots, quire_allocation allocation)
{
    if (!allocation.id) {
        qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the allocation is {0}, none");
        return NULL;
    }
    if (slots->tag == QI_TAG_DISABLED) {
        qi_fail(QUIRE_ERROR_NOT_PERMITTED, QI_DISABLED_SENTENCE);
        return NULL;
    }
    if (qi_handle_tag(allocation.id) != slots->tag) {
        qi_fail_with(QUIRE_ERROR_FOREIGN_HANDLE, "allocation %x belongs to another memory",
                     allocation.id);
        return NULL;
    }
    qi_atomic_u64 *state = qi_slot_find_state(slots, qi_handle_slot(allocation.id));
    if (!state)
        refuse_stale(allocation);
    return state;
}

static bool accepts(int accept, qi_phase phase)
{
    return (phase == QI_PHASE_LIVE && accept & QI_ACCEPT_LIVE) ||
           (phase == QI_PHASE_RESERVED && accept & QI_ACCEPT_RESERVED);
}

/* Whether a word belongs to the handle and is in an accepted phase; else the error is set. */
static quire_result judge(uint64_t word, quire_allocation allocation, int accept)
{
    qi_phase phase = phase_of(word);
    if (qi_slot_generation(word) != qi_handle_generation(allocation.id) || phase == QI_PHASE_FREE ||
        phase == QI_PHASE_PRIVATE)
        return refuse_stale(allocation);
    if (!accepts(accept, phase) && phase == QI_PHASE_RESERVED)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "allocation %x is reserved: commit or abort it first", allocation.id);
    if (!accepts(accept, phase))
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE, "allocation %x is committed already",
                            allocation.id);
    return QUIRE_SUCCESS;
}

quire_result qi_slot_begin_use(const qi_slots *slots, quire_allocation allocation, int accept,
                               uint32_t *slot)
{
    qi_atomic_u64 *state = look_up(slots, allocation);
    if (!state)
        return qi_error_result();
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        quire_result result = judge(word, allocation, accept);
        if (result)
            return result;
        if (pins_of(word) == COUNT_MASK)
            return qi_fail_with(QUIRE_ERROR_BUSY,
                                "allocation %x is in use by %u call%s or object%s", allocation.id,
                                COUNT_MASK);
    } while (!qi_atomic_exchange_if_u64(state, &word, word + 1));
    *slot = qi_handle_slot(allocation.id);
    return QUIRE_SUCCESS;
}

void qi_slot_end_use(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_sub_release_u64(qi_slot_state(slots, slot), 1);
}

/* ---- holds -------------------------------------------------------------------------------- */

/* The count of a slot that is pinned: its chunk stays. */
static qi_atomic_u32 *holds_of(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->holds, slot, sizeof(qi_atomic_u32));
}

static bool has_count(qi_slots *slots, qi_host *host, uint32_t slot)
{
    if (qi_table_has(&slots->holds, slot))
        return true;
    qi_lock_acquire(&slots->lock);
    bool is_there = qi_table_ensure(&slots->holds, host, slot);
    qi_lock_release(&slots->lock);
    return is_there;
}

/* Counts one more; false: there are as many as may be. */
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

/* Counts one less; false: there is none. */
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
    if (!has_count(slots, host, slot))
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a count of holds");
    else if (!add_hold(holds_of(slots, slot)))
        result = qi_fail_with(QUIRE_ERROR_BUSY, "allocation %x is held %u times", allocation.id,
                              QI_MAX_HOLDS);
    if (result)
        qi_slot_end_use(slots, slot);
    return result;
}

quire_result qi_slot_release(const qi_slots *slots, quire_allocation allocation)
{
    uint32_t slot = 0; /* pinned meanwhile: the count is this allocation's */
    quire_result result = qi_slot_begin_use(slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    if (qi_table_has(&slots->holds, slot) && remove_hold(holds_of(slots, slot)))
        qi_slot_end_use(slots, slot);
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
        if (phase_of(word) != QI_PHASE_LIVE && phase_of(word) != QI_PHASE_RESERVED)
            continue;
        if (qi_table_has(&slots->holds, slot))
            holds = qi_atomic_load_u32(holds_of(slots, slot));
        if (pins_of(word) != holds) /* a store makes the system copy its page */
            qi_atomic_store_release_u64(state, (word & ~COUNT_MASK) | holds);
    }
}

/* ---- maps and phases ---------------------------------------------------------------------- */

quire_result qi_slot_add_map(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        if (maps_of(word) == COUNT_MASK)
            return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the allocation is mapped %u times",
                                COUNT_MASK);
    } while (!qi_atomic_exchange_if_u64(state, &word, word + ONE_MAP));
    return QUIRE_SUCCESS;
}

quire_result qi_slot_remove_map(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state);
    do {
        if (!maps_of(word))
            return qi_fail(QUIRE_ERROR_NOT_MAPPED, "the allocation is not mapped");
    } while (!qi_atomic_exchange_if_u64(state, &word, word - ONE_MAP));
    return QUIRE_SUCCESS;
}

uint32_t qi_slot_map_count(const qi_slots *slots, uint32_t slot)
{
    return (uint32_t)maps_of(qi_atomic_load_acquire_u64(qi_slot_state(slots, slot)));
}

qi_phase qi_slot_phase(const qi_slots *slots, uint32_t slot)
{
    return phase_of(qi_atomic_load_acquire_u64(qi_slot_state(slots, slot)));
}

quire_result qi_slot_commit(const qi_slots *slots, quire_allocation allocation)
{
    qi_atomic_u64 *state = look_up(slots, allocation);
    if (!state)
        return qi_error_result();
    uint64_t word = qi_atomic_load_acquire_u64(state), live;
    do {
        quire_result result = judge(word, allocation, QI_ACCEPT_RESERVED);
        if (result)
            return result;
        live = word + ((uint64_t)(QI_PHASE_LIVE - QI_PHASE_RESERVED) << QI_PHASE_SHIFT);
    } while (!qi_atomic_exchange_if_u64(state, &word, live));
    return QUIRE_SUCCESS;
}

static quire_result refuse_busy(uint64_t word, quire_allocation allocation)
{
    if (maps_of(word))
        return qi_fail_with(QUIRE_ERROR_BUSY, "allocation %x is still mapped %u time%s",
                            allocation.id, maps_of(word));
    return qi_fail_with(QUIRE_ERROR_BUSY, "allocation %x is in use by %u call%s or object%s",
                        allocation.id, pins_of(word));
}

quire_result qi_slot_claim_or_fail(const qi_slots *slots, quire_allocation allocation, int accept,
                                   uint32_t *slot)
{
    qi_atomic_u64 *state = look_up(slots, allocation);
    if (!state)
        return qi_error_result();
    uint64_t word = qi_atomic_load_acquire_u64(state), leaving;
    do {
        quire_result result = judge(word, allocation, accept);
        if (result)
            return result;
        if (maps_of(word) || pins_of(word))
            return refuse_busy(word, allocation);
        leaving = qi_slot_word(qi_slot_generation(word), QI_PHASE_PRIVATE, 0);
    } while (!qi_atomic_exchange_if_u64(state, &word, leaving));
    *slot = qi_handle_slot(allocation.id);
    return QUIRE_SUCCESS;
}

bool qi_slot_force_claim(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_acquire_u64(state);
    if (phase_of(word) == QI_PHASE_FREE || phase_of(word) == QI_PHASE_PRIVATE)
        return false;
    if (qi_table_has(&slots->holds, slot))
        qi_atomic_store_release_u32(holds_of(slots, slot), 0);
    qi_atomic_store_release_u64(state, qi_slot_word(qi_slot_generation(word), QI_PHASE_PRIVATE, 0));
    return true;
}
