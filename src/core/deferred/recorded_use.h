/*
 * recorded_use.h - uses of live allocations by streams. Every free of such an allocation waits for
 * them.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_RECORDED_USE_H
#define QUIRE_SRC_CORE_DEFERRED_RECORDED_USE_H

#include "src/core/deferred/stream.h"
#include "src/core/state/memory.h"

/*
 * Requires no lock. Records that work submitted to the stream so far uses the allocation. Fails as
 * handles do, as qi_stream_check_marks does, and with OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_record_use(quire_memory *memory, quire_allocation allocation,
                                          quire_stream *stream);

/* The same for a slot that the caller owns or has in use. */
QUIRE_MUST_USE quire_result qi_record_slot_use(quire_memory *memory, uint32_t slot,
                                               quire_stream *stream);

#endif
