/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stats.h - reads what shards and pages have counted: statistics, pages, ranges, and the check of
 * all records.
 *
 * Shards and pages count while they work, under their own locks. Statistics over all shards are
 * consistent because every shard lock is held while they are read. Functions that take locks must
 * be called without any. Invariant (what qi_memory_check verifies): slots, pages and counters of a
 * memory agree.
 */
#ifndef QUIRE_SRC_CORE_STATS_STATS_H
#define QUIRE_SRC_CORE_STATS_STATS_H

#include "quire/insight.h"
#include "src/base/host_memory.h"
#include "src/core/state/memory.h"

/* ---- statistics --------------------------------------------------------------------------- */

/* Requires the locks of all shards and of the pages: the sum of what these count, without the peaks
   of state/peaks.h. */
quire_memory_stats qi_stats_counted(quire_memory *memory);

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

/* Takes the lock of the page's shard. Fails with OUT_OF_RANGE if no page has this number. */
QUIRE_MUST_USE quire_result qi_page_get_info(quire_memory *memory, uint32_t number,
                                             quire_page_info *info);

/* ---- scopes ------------------------------------------------------------------------------- */

/* As quire_memory_push_stats and quire_memory_pop_stats. Take the locks of all shards. */
QUIRE_MUST_USE quire_result qi_stats_push(quire_memory *memory);
QUIRE_MUST_USE quire_result qi_stats_pop(quire_memory *memory, quire_memory_stats *stats);

/* ---- ranges ------------------------------------------------------------------------------- */

/* As quire_memory_walk: one page after the other under its shard's lock, `visit` without a lock. */
QUIRE_MUST_USE quire_result qi_memory_walk(quire_memory *memory,
                                           bool (*visit)(void *user, const quire_item *item),
                                           void *user);

/* ---- check -------------------------------------------------------------------------------- */

/* Verifies every record, as quire_memory_check. Takes every lock of the memory. */
QUIRE_MUST_USE quire_result qi_memory_check(quire_memory *memory);

/* ---- scopes ------------------------------------------------------------------------------- */

/*
 * A scope costs an allocation or a free nothing. A push saves the peaks and restarts them at the
 * present values; its pop subtracts what was counted before the push, and restores the higher of
 * the saved and the new peaks. The scopes of a memory are a stack, guarded by the locks of all its
 * shards.
 */

typedef struct qi_stats_scope {
    struct qi_stats_scope *outer;
    quire_memory_stats begun; /* statistics at the push, with the peaks until then */
} qi_stats_scope;

/* Frees the scopes that were never popped, when a memory is destroyed. */
void qi_stats_scopes_finish(qi_stats_scope *innermost, qi_host *host);

/* ---- names -------------------------------------------------------------------------------- */

/*
 * The functions acquire the locks of all shards, except qi_names_agree, which requires them. These
 * locks protect the list of limits. Invariant: the account of a limit is the sum over the live
 * allocations whose names start with its prefix.
 */

/* Sets the limit of a prefix in bytes; 0 removes it. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_name_limit_set(quire_memory *memory, const char *prefix,
                                              uint64_t bytes);

/* Returns the limit of a prefix and what its allocations hold. */
quire_name_usage qi_name_usage_of(quire_memory *memory, const char *prefix);

/* Whether every account equals the sum over the allocations. */
bool qi_names_agree(const quire_memory *memory);

#endif
