/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_reuse.h - hands out freed ranges before their points have passed: work on one stream
 * runs in order, so that a range freed on a stream can be used on the same stream at once.
 *
 * The new allocation keeps the slot, with a new generation. A native object of the freed
 * allocation is destroyed after the point, by an object wait (stream_queue.h). A reuse begins with
 * qi_deferred_reuse or qi_deferred_take_over and ends with qi_deferred_end_reuse or
 * qi_deferred_undo_reuse. Between them the creation of the allocation can still fail.
 *
 * The lock of the shard protects the queues and the slots in them. A qi_reuse belongs to the
 * calling thread. Invariants: the stream of a reuse stays until the reuse ends; no step of a reuse
 * needs host memory, so that its end and its undoing cannot fail.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_REUSE_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_REUSE_H

#include "src/core/deferred/stream_queue.h"
#include "src/core/page/range.h"
#include "src/space/space.h"

/* A deferred free whose range was taken over by a new allocation. */
typedef struct qi_reuse {
    qi_wait *wait;  /* in no queue; NULL: no range was taken over */
    qi_slot former; /* the record of the freed allocation */
} qi_reuse;

/* Describes the wanted range. In a shared page, sizes are compared as the space rounds them. */
static inline qi_fitting qi_deferred_fitting(const qi_shard *shard, const qi_range_request *request,
                                             bool dedicated)
{
    uint64_t size = 0;
    if (dedicated || qi_space_range_overflows(shard->space, request->size, &size))
        size = request->size;
    return (qi_fitting){.size = size, .alignment = request->alignment, .dedicated = dedicated};
}

/*
 * Requires the shard's lock. Gives the request a range that was freed on the stream and is at most
 * an eighth larger. Returns false if the shard has no such range. The slot is PRIVATE.
 */
bool qi_deferred_reuse(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                       const qi_fitting *fitting, uint32_t *slot, qi_reuse *reuse);

/*
 * Require the shard's lock. The slot of a wait that was taken out of its queue becomes a new
 * allocation, and the reuse ends at once: no step may follow that can fail. The first requires that
 * the freed allocation and the new one are raw ranges without names and with equal extras, and the
 * caller ends the wait.
 * Both return the slot, which is PRIVATE.
 */
uint32_t qi_deferred_renew_raw(qi_shard *shard, const qi_wait *wait,
                               const qi_range_request *request);
uint32_t qi_deferred_renew_any(qi_shard *shard, qi_wait *wait, const qi_range_request *request);

/*
 * Requires the shard's lock. As qi_deferred_reuse for a raw range without a name, in a shared page,
 * and ends the reuse at once. Inline, because every plain allocation on a stream begins here.
 */
static inline bool qi_deferred_reuse_at_once(qi_shard *shard, quire_stream *stream,
                                             const qi_range_request *request, uint32_t *slot)
{
    const qi_fitting fitting = qi_deferred_fitting(shard, request, false);
    qi_wait *wait = qi_stream_queue_take_fitting_on(shard, stream, &fitting);
    if (!wait)
        return false;
    const qi_slot *record = qi_memory_slot(shard->memory, wait->slot);
    if (qi_unlikely(record->object || record->meta || record->extras != request->extras)) {
        *slot = qi_deferred_renew_any(shard, wait, request);
        return true;
    }
    *slot = qi_deferred_renew_raw(shard, wait, request);
    qi_stream_queue_end_wait(shard, wait);
    return true;
}

/*
 * Requires the shard's lock. Releases and reacquires it. The same as qi_deferred_reuse for a range
 * freed on another stream of the device; the stream is ordered after that range's point.
 */
bool qi_deferred_take_over(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                           const qi_fitting *fitting, uint32_t *slot, qi_reuse *reuse);

/*
 * Require no lock. End a reuse: the new allocation keeps the range, or the slot becomes the
 * deferred free again that it was; the new native object stays with its creator. The statistics
 * count no call that was undone.
 */
void qi_deferred_end_reuse(quire_memory *memory, uint32_t slot, qi_reuse *reuse);
void qi_deferred_undo_reuse(quire_memory *memory, uint32_t slot, qi_reuse *reuse);

#endif
