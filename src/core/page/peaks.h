/*
 * page/peaks.h - keeps the peaks of a memory exact where several shards count (state/peaks.h has
 * the records and the idea).
 *
 * Exact means: a peak is the maximum of the sum over an order of the calls in which a call that
 * returned before another began comes first. A free that waits in an inbox counts when the inbox is
 * drained. The frees within a call that overlaps a rise may come before it in that order, which is
 * why a rise beyond the claims may be recorded as late as the end of its call.
 *
 * An allocation that is taken back before its call succeeds leaves no trace, unless another thread
 * changes the sum in the meantime.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PEAKS_H
#define QUIRE_SRC_CORE_PAGE_PEAKS_H

#include "src/core/state/memory.h"

/*
 * Require the lock of the shard, which is one of several. Count what an allocation adds to the
 * sums, or what a free subtracts. A rise may set is_due of the memory: the call then settles the
 * peaks before it returns (qi_peaks_settle).
 */
void qi_peaks_count_in(qi_shard *shard, const qi_slot *record);
void qi_peaks_count_out(qi_shard *shard, const qi_slot *record);

/* The same for an allocation in the place of a freed one: only the requested bytes differ. */
void qi_peaks_count_renewal(qi_shard *shard, uint64_t requested, uint64_t freed);

/*
 * Requires the locks of all shards, of which there are several. Raises the peaks to the exact sums,
 * takes all spare parts back, and decides the mode.
 */
void qi_peaks_settle(quire_memory *memory);

/*
 * Requires the locks of all shards. Raises the peaks of live bytes, requested bytes and allocations
 * to the current values, and returns them in these fields of *out.
 */
void qi_peaks_read(quire_memory *memory, quire_memory_stats *out);

/*
 * Requires the locks of all shards. Sets the peaks to the current values, or raises them to those
 * of *before. For stats scopes.
 */
void qi_peaks_restart(quire_memory *memory);
void qi_peaks_restore(quire_memory *memory, const quire_memory_stats *before);

/*
 * Requires the locks of all shards, which the memory has now; `old_count` of them are not new. The
 * new shards have no allocations.
 */
void qi_peaks_add_shards(quire_memory *memory, uint32_t old_count);

/* Requires the locks of all shards. Whether the records agree with the values of the shards. */
bool qi_peaks_agree(const quire_memory *memory);

#endif
