/*
 * batch.h - allocates and frees many allocations at once.
 *
 * No function requires a lock. Plain ranges of the thread's shard need one hold of its lock for up
 * to QI_MAX_BATCH of them. Invariant: on failure no allocation was created or freed, with the one
 * exception of qi_free_batch.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_BATCH_H
#define QUIRE_SRC_CORE_ALLOCATE_BATCH_H

#include "src/core/state/memory.h"

/* Makes `count` equal allocations, or none. Fails as quire_allocate. */
QUIRE_MUST_USE quire_result qi_allocate_batch(quire_memory *memory,
                                              const quire_allocation_options *options,
                                              quire_allocation *allocations, uint64_t count);

/*
 * Frees all, or none if one of the handles fails. CORRUPTED is different: all were freed, and a
 * checked build found bytes written beside one of them.
 */
QUIRE_MUST_USE quire_result qi_free_batch(quire_memory *memory, const quire_allocation *allocations,
                                          uint64_t count);

#endif
