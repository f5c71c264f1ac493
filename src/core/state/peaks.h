/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * state/peaks.h - the peaks of a memory: of live bytes, of requested bytes and of the number of
 * allocations.
 *
 * With one shard the peaks are in the statistics of the shard. With several shards the peak of a
 * sum is not the sum of the peaks, and a counter that every operation writes would make all threads
 * wait for one cache line. Each shard therefore *claims* a part of the sum in advance:
 *
 *   claimed  the sum over the shards of the current value and the unused part: what the shard has
 *            claimed and does not use yet
 *   peak     the peak so far
 *
 * While `claimed` is at most `peak`, no value of the sum is a new peak, whatever the shards do
 * within their claims. A rise beyond the claims is recorded later, before its call returns: under
 * the locks of all shards, which add the exact sum up.
 *
 * Modes: a shard of several is DIVIDED, as above, or EXACT. In mode EXACT no shard has a unused
 * part: every operation changes `claimed`, which is the exact sum, and a fall records the value
 * before it. EXACT serves while the sum rises or stays close below its peak; DIVIDED costs no
 * shared cache line while there is room below the peak. All shards of a memory have the same mode,
 * which changes under the locks of all of them (qi_peaks_settle).
 *
 * Locks: the lock of a shard protects its qi_shard_peaks. The words of qi_peaks are atomic; `peak`
 * changes under the lock of any shard in mode EXACT, and otherwise under the locks of all. The
 * other fields require the locks of all shards. Invariants, under the locks of all shards: claimed
 * is the sum of the values and the unused parts; if quire_memory.has_left_work is 0 and the mode is
 * DIVIDED, claimed is at most peak.
 */
#ifndef QUIRE_SRC_CORE_STATE_PEAKS_H
#define QUIRE_SRC_CORE_STATE_PEAKS_H

#include "quire/insight.h"
#include "src/base/host_memory.h"
#include "src/core/slot/slot.h"

typedef struct qi_shard qi_shard;

/* The values with a peak. */
enum { QI_PEAK_LIVE, QI_PEAK_REQUESTED, QI_PEAK_COUNT, QI_PEAKS };

typedef enum qi_peak_mode {
    QI_PEAKS_ALONE = 0, /* the memory has one shard */
    QI_PEAKS_EXACT,
    QI_PEAKS_DIVIDED
} qi_peak_mode;

typedef struct qi_shard_peaks {
    uint8_t mode;        /* a qi_peak_mode */
    bool is_undoing;     /* what falls now leaves no trace in the peaks */
    uint32_t rises_left; /* EXACT: rises until the mode is decided again */
    uint64_t unused[QI_PEAKS];
    uint64_t extra[QI_PEAKS]; /* DIVIDED: what to claim beyond the need */
} qi_shard_peaks;

typedef struct qi_peaks {
    _Alignas(QI_CACHE_LINE) qi_atomic_u64 claimed[QI_PEAKS];
    qi_atomic_u64 peak[QI_PEAKS];
    _Alignas(QI_CACHE_LINE) uint64_t settled_at; /* allocations so far, at the last settlement */
    uint32_t retry_after; /* rises of a shard in mode EXACT before DIVIDED is tried again */
} qi_peaks;

/*
 * Exact means: a peak is the maximum of the sum over an order of the calls in which a call that
 * returned before another began comes first. A free that waits in an inbox counts when the inbox is
 * drained. The frees within a call that overlaps a rise may come before it in that order, which is
 * why a rise beyond the claims may be recorded as late as the end of its call.
 *
 * An allocation that is taken back before its call succeeds leaves no trace, unless another thread
 * changes the sum in the meantime.
 */

/*
 * Require the lock of the shard, which is one of several. Count what an allocation adds to the
 * sums, or what a free subtracts. A rise may set has_left_work of the memory: the call then settles
 * the peaks before it returns (qi_peaks_settle).
 */
void qi_peaks_count_in(qi_shard *shard, const qi_slot *record);
void qi_peaks_count_out(qi_shard *shard, const qi_slot *record);

/* The same for an allocation in the place of a freed one: only the requested bytes differ. */
void qi_peaks_count_renewal(qi_shard *shard, uint64_t requested, uint64_t freed);

/*
 * Requires the locks of all shards, of which there are several. Raises the peaks to the exact sums,
 * takes all unused parts back, and decides the mode.
 */
void qi_peaks_settle(quire_memory *memory);

/*
 * Requires the locks of all shards. Raises the peaks of live bytes, requested bytes and allocations
 * to the current values, and returns them in these fields of *out.
 */
void qi_peaks_read(quire_memory *memory, quire_memory_stats *out);

/* Requires the locks of all shards. Raises the peaks to the current values, which are to fall
   without a trace. */
void qi_peaks_keep(quire_memory *memory);

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
