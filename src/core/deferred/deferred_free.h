/*
 * deferred_free.h - freeing allocations that streams may still use.
 *
 * A deferred free keeps its slot PRIVATE and its range taken until the points it waits for have
 * passed. stream_queue.h has the records. deferred_collect.h queries the backend and releases what
 * has passed. deferred_reuse.h hands ranges out again before their points have passed.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_FREE_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_FREE_H

#include "src/core/deferred/stream.h"
#include "src/core/state/memory.h"

typedef struct qi_wait qi_wait;

/*
 * Requires no lock. Frees a slot that the caller has claimed, after its recorded uses have passed.
 * Fails only with CORRUPTED, as qi_release_checked.
 */
quire_result qi_deferred_free(quire_memory *memory, uint32_t slot);

/*
 * Requires no lock. Claims an allocation in a phase of `accept` (QI_ACCEPT_LIVE or
 * QI_ACCEPT_RESERVED) and frees it after its recorded uses. Fails as handles do; nothing changed
 * then. Otherwise like qi_deferred_free. Inline, because every quire_free is this.
 */
static inline quire_result qi_claim_and_free(quire_memory *memory, quire_allocation allocation,
                                             int accept)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_claim(&memory->slots, allocation, accept, &slot);
    return result ? result : qi_deferred_free(memory, slot);
}

/*
 * Requires no lock. Claims a live allocation and frees it after its recorded uses and after a value
 * of the stream (0: everything submitted until the next mark). Fails as handles do and with
 * OUT_OF_HOST_MEMORY; nothing changed then. Otherwise like qi_deferred_free.
 */
quire_result qi_deferred_claim_and_free(quire_memory *memory, quire_allocation allocation,
                                        quire_stream *stream, uint64_t value);

/*
 * Requires the shard's lock. Puts the slot into the queue of its first wait whose point has not
 * passed. Returns false if all have passed: the caller releases the slot.
 */
bool qi_deferred_advance(qi_shard *shard, qi_wait *first, uint32_t slot);

/* Returns how many allocations have deferred frees. */
static inline uint64_t qi_deferred_count(const quire_memory *memory)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        count += qi_atomic_load_u64(&memory->shards[i]->deferred);
    return count;
}

#endif
