/*
 * slot.c - the tables of slots and the queues of free slots: creates slots and their records, and
 * releases the records of chunks that are free.
 */
#include "src/core/slot/slot.h"

#include "src/base/result.h"
#include "src/core/slot/slot_word.h"

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
        result = qi_fail_naming(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                                "memory '%t' has %u allocation%s, as many as it can number",
                                slots->owner, top);
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
