/*
 * deferred_reuse.h - handing out freed ranges before their points have passed.
 *
 * Work on one stream runs in order: a range freed on a stream can be used on the same stream at
 * once. The new allocation keeps the slot, with a new generation. The lock of the shard protects
 * the queues and the slots in them.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_REUSE_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_REUSE_H

#include "src/core/deferred/stream.h"
#include "src/core/page/range_take.h"

/*
 * Requires the shard's lock. Gives the request a range that was freed on the stream and is at most
 * an eighth larger. Returns false if the shard has no such range.
 */
bool qi_deferred_reuse(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                       bool dedicated, uint32_t *slot);

/*
 * Requires the shard's lock. Releases and reacquires it. The same for a range freed on another
 * stream of the device; the stream is ordered after that range's point.
 */
bool qi_deferred_take_over(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                           bool dedicated, uint32_t *slot);

#endif
