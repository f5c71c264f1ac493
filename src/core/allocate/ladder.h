/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ladder.h - the allocation ladder: the ways to serve a request, cheapest first.
 *
 * ladder.c says the order. Raw allocations, buffers and images all use it. The ladder takes the
 * locks it needs and holds none on return. Invariant: the slot that it returns is PRIVATE, so that
 * the calling thread owns it; the caller completes and publishes it, or gives it back.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_LADDER_H
#define QUIRE_SRC_CORE_ALLOCATE_LADDER_H

#include "src/base/result.h"
#include "src/core/allocate/request.h"
#include "src/core/allocate/shard_growth.h"

/*
 * Requires no lock. Serves the request, or refuses it with a report (oom_report.h). The slot has a
 * meta record if the request has a name or is for an image. On failure nothing changed. If `failed`
 * is an error, an earlier step has failed already and the request is only refused.
 */
QUIRE_MUST_USE quire_result qi_allocate(quire_memory *memory, const qi_request *request,
                                        quire_result failed, uint32_t *slot);

/*
 * Requires no lock. Gives back a slot of qi_allocate that cannot be completed. A range that was
 * reused (`reuse` may be NULL) waits for its point again. The native object stays with its creator.
 */
void qi_allocate_undo(quire_memory *memory, uint32_t slot, struct qi_reuse *reuse);

/* Requires the shard's lock. Whether an allocation may need host memory for a slot or for the
   records of its range. Draining the inbox first can save that. */
static inline bool qi_allocate_needs_records(const qi_shard *shard)
{
    return shard->queue.first == QI_NO_SLOT || shard->space->pool.spare < 2;
}

/*
 * The common case, inline: a raw range in an existing page of the thread's shard. The first
 * requires the shard's lock, the second no lock. Return NO_SPACE if the request is not of that kind
 * at this moment; qi_allocate then serves it.
 */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_in_shard(qi_shard *shard,
                                                                  const qi_range_request *request,
                                                                  uint32_t *slot)
{
    if (qi_shard_poll_work(shard) ||
        (qi_unlikely(qi_allocate_needs_records(shard)) && !qi_inbox_is_empty(&shard->inbox)))
        return QUIRE_ERROR_NO_SPACE;
    return qi_range_take(shard, request, QI_TRY, slot);
}
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_fast(quire_memory *memory,
                                                              const qi_range_request *request,
                                                              uint32_t *slot)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_shard_enter(shard);
    quire_result result = qi_allocate_in_shard(shard, request, slot);
    qi_lock_release(&shard->lock);
    return result;
}

#endif
