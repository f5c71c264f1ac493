/*
 * drain.h - completes the frees that other threads queued in the inbox of a shard, and acquires the
 * locks of all shards.
 *
 * The shard's lock protects everything that a drained free changes. Invariant: a slot in an inbox
 * is PRIVATE, and its object and name are released already.
 */
#ifndef QUIRE_SRC_CORE_PAGE_DRAIN_H
#define QUIRE_SRC_CORE_PAGE_DRAIN_H

#include "src/core/state/memory.h"

/* Requires the shard's lock. Frees every slot in its inbox. */
void qi_shard_drain(qi_shard *shard);

/*
 * Acquires the locks of all shards in the order of their ranks, and drains their inboxes. For calls
 * that read or change a whole memory.
 */
void qi_shards_acquire(quire_memory *memory);

/* Releases the locks of all shards, in the opposite order. */
void qi_shards_release(quire_memory *memory);

#endif
