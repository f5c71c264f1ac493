/*
 * ladder.h - the allocation ladder: the ways to serve a request, cheapest first.
 *
 * ladder.c has the rungs in one table. Raw allocations, buffers and images all use it. The ladder
 * takes the locks it needs and holds none on return. Invariant: the slot that it returns is
 * PRIVATE, so that the calling thread owns it; the caller completes and publishes it, or gives it
 * back.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_LADDER_H
#define QUIRE_SRC_CORE_ALLOCATE_LADDER_H

#include "src/base/result.h"
#include "src/core/allocate/request.h"

/*
 * Requires no lock. Serves the request, or refuses it with a report (oom_report.h). The slot has a
 * meta record if the request has a name or is for an image. On failure nothing changed. If `failed`
 * is an error, an earlier step has failed already and the request is only refused.
 */
QUIRE_MUST_USE quire_result qi_allocate(quire_memory *memory, const qi_request *request,
                                        quire_result failed, uint32_t *slot);

/* Requires the shard's lock. Whether an allocation may need host memory for a slot or for the
   records of its range. Draining the inbox first can save that. */
static inline bool qi_allocate_needs_records(const qi_shard *shard)
{
    return shard->queue.first == QI_NO_SLOT || shard->space->pool.spare < 2;
}

/*
 * Requires no lock. The common case, inline: a raw range in an existing page of the thread's shard.
 * Returns NO_SPACE if the request is not of that kind at this moment; qi_allocate then serves it.
 */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_fast(quire_memory *memory,
                                                              const qi_range_request *request,
                                                              uint32_t *slot)
{
    qi_shard *shard = qi_shard_mine(memory);
    quire_result result = QUIRE_ERROR_NO_SPACE;
    qi_lock_acquire(&shard->lock);
    if (!qi_shard_poll_work(shard) &&
        !(qi_unlikely(qi_allocate_needs_records(shard)) && !qi_inbox_is_empty(&shard->inbox)))
        result = qi_range_take(shard, request, QI_TRY, slot);
    qi_lock_release(&shard->lock);
    return result;
}

#endif
