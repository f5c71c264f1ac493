/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * grow_shards.h - makes a memory grow its number of shards when a test wants it: as if allocating
 * calls had waited for each other often, and as if the system had more processors.
 */
#ifndef QUIRE_TESTS_SUPPORT_GROW_SHARDS_H
#define QUIRE_TESTS_SUPPORT_GROW_SHARDS_H

#include "src/core/state/memory.h"

/* The next allocation adds shards. A memory whose number of shards is fixed stays as it is. */
static inline void grow_shards_soon(quire_memory *memory)
{
    qi_shard *shard = memory->shards[0];
    qi_lock_acquire(&shard->lock);
    shard->contention.is_high = true;
    qi_atomic_store_release_u32(&memory->has_left_work, 1);
    qi_lock_release(&shard->lock);
}

/* For a new memory. */
static inline void allow_shards(quire_memory *memory, uint32_t most)
{
    memory->max_shards = most;
}

#endif
