/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* deferred_unback.h - chunks of lazy allocations that get memory of what has passed, and that lose
   theirs at a point of a stream. */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_UNBACK_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_UNBACK_H

#include "src/core/deferred/stream_queue.h"

/* Requires no lock. As quire_back_range. Collects what has passed, also frees, before it is
   refused. */
QUIRE_MUST_USE quire_result qi_back_or_collect(quire_memory *memory, const quire_view *ranges,
                                               uint64_t count);

/*
 * Requires no lock. As quire_unback_range, once a value of the stream (0: everything submitted
 * until the next mark) has passed. Fails also with OUT_OF_HOST_MEMORY; then no chunk has changed.
 */
QUIRE_MUST_USE quire_result qi_unback_after(quire_memory *memory, const quire_view *ranges,
                                            uint64_t count, quire_stream *stream, uint64_t value);

#endif
