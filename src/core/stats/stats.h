/*
 * stats.h - what can be read of a memory: statistics, pages, ranges, and the check of all records.
 *
 * The module owns no counters. Shards and pages count while they work, under their own locks; this
 * module adds their counts up. Statistics over all shards are consistent because every shard lock
 * is held while they are read. Functions that take locks must be called without any. Invariant
 * (what qi_memory_check verifies): slots, pages and counters of a memory agree.
 */
#ifndef QUIRE_SRC_CORE_STATS_STATS_H
#define QUIRE_SRC_CORE_STATS_STATS_H

#include "quire/insight.h"

/* ---- statistics: stats.c, page_info.c ------------------------------------------------------ */

/* Requires the locks of all shards and of the pages: the sum of what these count, without the peaks
   of state/peaks.h. */
quire_memory_stats qi_stats_counted(quire_memory *memory);

/*
 * Requires the locks of all shards, without which no page is created or destroyed. Takes the lock
 * of the pages. Returns the sum above and what is derived from it.
 */
quire_memory_stats qi_stats_of(quire_memory *memory);

/* Takes the locks of all shards, which frees what is in their inboxes. */
quire_memory_stats qi_stats_get(quire_memory *memory);

/* The same without the peaks of state/peaks.h, which stay as they are: the calling thread may have
   allocations that it takes back. */
quire_memory_stats qi_stats_present(quire_memory *memory);

/* What a refusal says of the memory. Takes the locks of all shards. */
typedef struct qi_stats_room {
    uint64_t largest_free, free_bytes, page_count; /* as in quire_memory_stats */
} qi_stats_room;

qi_stats_room qi_stats_get_room(quire_memory *memory);

/* Takes the lock of the device, and then those of each of its memories in turn. */
quire_device_stats qi_stats_get_device(quire_device *device);

/* Takes the lock of the page's shard. Fails with OUT_OF_RANGE where no page has this number. */
QUIRE_MUST_USE quire_result qi_page_get_info(quire_memory *memory, uint32_t number,
                                             quire_page_info *info);

/* ---- scopes: stats_scope.c ----------------------------------------------------------------- */

/* As quire_memory_push_stats and quire_memory_pop_stats. Take the locks of all shards. */
QUIRE_MUST_USE quire_result qi_stats_push(quire_memory *memory);
QUIRE_MUST_USE quire_result qi_stats_pop(quire_memory *memory, quire_memory_stats *stats);

/* ---- ranges: walk.c ------------------------------------------------------------------- */

/* As quire_memory_walk: one page after the other under its shard's lock, `visit` without a lock. */
QUIRE_MUST_USE quire_result qi_memory_walk(quire_memory *memory,
                                           bool (*visit)(void *user, const quire_item *item),
                                           void *user);

/* ---- check: check.c ------------------------------------------------------------------------ */

/* Verifies every record, as quire_memory_check. Takes every lock of the memory. */
QUIRE_MUST_USE quire_result qi_memory_check(quire_memory *memory);

#endif
