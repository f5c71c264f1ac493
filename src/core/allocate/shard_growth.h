/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shard_growth.h - the shards of a memory: their number doubles when allocating calls often wait
 * for each other.
 *
 * A memory whose number of shards is adaptive begins with one. An allocating call that finds its
 * shard's lock held checks whether another allocation was made while it waited. Frees, statistics
 * and other calls do not count. The number of shards doubles up to max_shards.
 * Allocations stay in their shards.
 *
 * The number of shards changes under the locks of all shards that exist (qi_shard_count). New
 * shards are created under these locks too, so that a fork never sees half of one.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_SHARD_GROWTH_H
#define QUIRE_SRC_CORE_ALLOCATE_SHARD_GROWTH_H

#include "src/core/state/memory.h"

/*
 * Requires that no other thread uses the memory. Creates its first shards, of which it has none.
 * Fails with OUT_OF_HOST_MEMORY, and with the errors of the space's options; the caller then
 * releases the shards that exist.
 */
QUIRE_MUST_USE quire_result qi_shards_create(quire_memory *memory, uint32_t count);
void qi_shards_destroy(quire_memory *memory);

/* Waits for the lock of a shard, and counts if it waited for an allocation. */
void qi_shard_enter_held(qi_shard *shard);

/* Acquires the lock of a shard in order to allocate. */
static inline void qi_shard_enter(qi_shard *shard)
{
    if (qi_unlikely(!qi_lock_try(&shard->lock)))
        qi_shard_enter_held(shard);
}

/*
 * Requires no lock. Does what allocating calls left to do when they held a lock: settles the peaks
 * (state/peaks.h) and adds shards. Reports new shards to the hook and the log. If host memory is
 * exhausted, the memory keeps its shards. The thread's last error stays.
 */
void qi_memory_do_due(quire_memory *memory);

/* Called for every allocation when its lock is released, before its handle is published. */
static inline void qi_memory_catch_up(quire_memory *memory)
{
    if (qi_unlikely(qi_atomic_load_u32(&memory->has_left_work)))
        qi_memory_do_due(memory);
}

#endif
