/*
 * allocate_on.h - allocations in the order of a stream.
 *
 * No function requires a lock. Invariant: a reused range serves work that is submitted to the
 * stream after the call; earlier work on it may still run.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_ALLOCATE_ON_H
#define QUIRE_SRC_CORE_ALLOCATE_ALLOCATE_ON_H

#include "src/core/deferred/stream.h"
#include "src/core/state/memory.h"

/*
 * As quire_allocate_on, for checked pointers. Prefers ranges that were freed on the stream; their
 * points need not have passed.
 */
QUIRE_MUST_USE quire_result qi_allocate_on(quire_memory *memory,
                                           const quire_allocation_options *options,
                                           quire_stream *stream, quire_allocation *allocation);

#endif
