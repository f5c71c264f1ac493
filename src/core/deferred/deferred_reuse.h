/*
 * deferred_reuse.h - handing out freed ranges before their points have passed.
 *
 * Work on one stream runs in order: a range freed on a stream can be used on the same stream at
 * once. The new allocation keeps the slot, with a new generation. The lock of the shard protects
 * the queues and the slots in them.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_REUSE_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_REUSE_H

#include "src/core/deferred/stream_queue.h"
#include "src/core/page/range_take.h"
#include "src/space/space.h"

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
 * Requires the shard's lock. Ends a wait that was taken out of its queue; its slot becomes a new
 * allocation with the same range. Returns the slot.
 */
uint32_t qi_deferred_renew(qi_shard *shard, qi_wait *wait, const qi_range_request *request);

/*
 * Requires the shard's lock. Gives the request a range that was freed on the stream and is at most
 * an eighth larger. Returns false if the shard has no such range. Inline, because every allocation
 * on a stream begins here.
 */
static inline bool qi_deferred_reuse(qi_shard *shard, quire_stream *stream,
                                     const qi_range_request *request, bool dedicated,
                                     uint32_t *slot)
{
    const qi_fitting fitting = qi_deferred_fitting(shard, request, dedicated);
    qi_wait *wait = qi_stream_queue_take_fitting_on(shard, stream, &fitting);
    if (wait)
        *slot = qi_deferred_renew(shard, wait, request);
    return wait != NULL;
}

/*
 * Requires the shard's lock. Releases and reacquires it. The same for a range freed on another
 * stream of the device; the stream is ordered after that range's point.
 */
bool qi_deferred_take_over(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                           bool dedicated, uint32_t *slot);

#endif
