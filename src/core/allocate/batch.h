/*
 * batch.h - allocating and freeing many at once. No function requires a lock.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_BATCH_H
#define QUIRE_SRC_CORE_ALLOCATE_BATCH_H

#include "src/core/state/memory.h"

/* Makes `count` equal allocations, or none. Fails as quire_allocate. */
QUIRE_MUST_USE quire_result qi_allocate_batch(quire_memory *memory,
                                              const quire_allocation_options *options,
                                              quire_allocation *allocations, uint64_t count);

/* Frees all, or none if one of the handles fails. Also fails with CORRUPTED after freeing all. */
QUIRE_MUST_USE quire_result qi_free_batch(quire_memory *memory, const quire_allocation *allocations,
                                          uint64_t count);

#endif
