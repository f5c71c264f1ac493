/*
 * recorded_use.h - uses of live allocations by streams. Every free of such an allocation waits for
 * them.
 *
 * The caller records a use for work of its own: the free waits for everything that the stream has
 * by then. quire records *own uses* for what it submits itself (transfer.h): they end at a point of
 * their own if one is known, and with the stream. No function may be called with a lock held.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_RECORDED_USE_H
#define QUIRE_SRC_CORE_DEFERRED_RECORDED_USE_H

#include "src/core/deferred/stream.h"
#include "src/core/state/memory.h"

/*
 * Records that work on the stream uses the allocation. Fails as handles do, as
 * qi_stream_check_marks does, and with OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_record_use(quire_memory *memory, quire_allocation allocation,
                                          quire_stream *stream);

/* The same for a slot that the caller owns or has in use. */
QUIRE_MUST_USE quire_result qi_record_slot_use(quire_memory *memory, uint32_t slot,
                                               quire_stream *stream);

/*
 * Records a use of a slot, which is in use, by work of quire that was submitted. `value` is a point
 * after the work, or 0: a backend that takes work on a stream can mark it. Fails with
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_record_own_use(quire_memory *memory, uint32_t slot,
                                              quire_stream *stream, uint64_t value);

/*
 * Ends the own uses of a stream that is destroyed, if nothing else waits for it: once its work is
 * done, or at once if destroying the native stream runs the work. Waits up to `nanoseconds`; after
 * them the uses stay.
 */
void qi_end_own_uses(quire_stream *stream, uint64_t nanoseconds);

#endif
