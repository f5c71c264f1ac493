/*
 * allocate_on.h - allocations in the order of a stream.
 *
 * No function requires a lock. Invariant: a reused range serves work that is submitted to the
 * stream after the call; earlier work on it may still run.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_ALLOCATE_ON_H
#define QUIRE_SRC_CORE_ALLOCATE_ALLOCATE_ON_H

#include "src/core/allocate/ladder.h"
#include "src/core/deferred/deferred_reuse.h"

/*
 * Places the request of options with a stream, and completes it: the slot is PRIVATE and only has
 * to be published. Prefers ranges that were freed on the stream; their points need not have passed.
 * `how` as in allocation.h. Fails as quire_allocate, with the refusal counted.
 */
QUIRE_MUST_USE quire_result qi_allocate_on(quire_memory *memory,
                                           const quire_allocation_options *options, int how,
                                           uint32_t *slot);

/*
 * Does what can still fail after the placement on a stream: sets the name, and records the use of a
 * capture stream. The caller gives back the slot on failure.
 */
QUIRE_MUST_USE quire_result qi_allocate_on_complete(quire_memory *memory, uint32_t slot,
                                                    const char *name, quire_stream *stream);

/* ---- the hot path ------------------------------------------------------------------------- */

/* The common case: what was freed on the stream, or a range of an existing page. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_on_fast(
    quire_memory *memory, const quire_allocation_options *options, uint8_t extras, uint32_t *slot)
{
    qi_range_request request = qi_range_request_from(options);
    request.extras = extras;
    qi_shard *shard = qi_shard_mine(memory);
    qi_shard_enter(shard);
    quire_result result = qi_deferred_reuse_at_once(shard, options->stream, &request, slot)
                              ? QUIRE_SUCCESS
                              : qi_allocate_in_shard(shard, &request, slot);
    qi_lock_release(&shard->lock);
    return result;
}

/* Everything else. The common case saves no registers for it. */
QUIRE_MUST_USE quire_result qi_allocate_on_slow(quire_memory *memory,
                                                const quire_allocation_options *options, int how,
                                                uint32_t *slot);

/* As qi_allocate_on. Any failure of the common case leads to the ladder, which reports it. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_on_inline(
    quire_memory *memory, const quire_allocation_options *options, int how, uint32_t *slot)
{
    if (!options->stream->capture && qi_request_is_plain(memory, options) &&
        !qi_allocate_on_fast(memory, options, 0, slot))
        return QUIRE_SUCCESS;
    return qi_allocate_on_slow(memory, options, how, slot);
}

#endif
