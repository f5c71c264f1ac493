/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact.h - empties pages, the emptiest first: what lives in one gets places in the others that
 * are in use, and the page goes back to the backend.
 *
 * A round looks at each page of a shard once, from that with the fewest live bytes on, and last at
 * those out of which the caller has declined a move. A page is a source if all its allocations can
 * move now, and places for all of them are found at the same time; then they move. No place is in a
 * page that the round empties, because moves that the caller executes end later; a source that
 * keeps an allocation is none any more. The round ends at a page with more live bytes than the
 * other pages have free ones, so that neither it nor a fuller one can become empty. If a round has
 * freed a page, another one follows; otherwise the shard is compact, and the next shard's turn
 * comes.
 *
 * The caller can have the moves of several sources at a time, and a page with places for them is no
 * source. These places are therefore in pages that are at least as full as the average, if there is
 * room. A step empties one page after the other and does without, because the search takes longer.
 *
 * If the caller wants a free range of some size and no page can be freed, one stretch of a page is
 * cleared in the same way (stretch.c).
 *
 * Convergence: nothing moves unless a page or a stretch will be free, but for what other threads do
 * meanwhile.
 *
 * A step looks at a bounded number of records under each hold of a shard's lock, for a stretch at
 * those of one page, and copies without a lock. Other threads allocate, use and free meanwhile.
 */
#ifndef QUIRE_SRC_CORE_COMPACT_COMPACT_H
#define QUIRE_SRC_CORE_COMPACT_COMPACT_H

#include "quire/compact.h"
#include "src/core/state/memory.h"

/* As quire_compact_begin and quire_compact_end, for checked pointers. */
QUIRE_MUST_USE quire_result qi_compact_begin(quire_memory *memory, quire_compaction **compaction);
void qi_compact_end(quire_compaction *c);

/* As quire_compact_estimate, for checked pointers. Requires no lock. */
QUIRE_MUST_USE quire_result qi_compact_estimate(quire_memory *memory, quire_compact_stats *stats);

quire_compact_stats qi_compact_stats(const quire_compaction *c);

/* As quire_compact_step. Requires no lock. */
QUIRE_MUST_USE quire_result qi_compact_step(quire_compaction *c, const quire_compact_limits *limits,
                                            quire_compact_stats *stats);

/* As the public functions of these names. Require no lock. */
QUIRE_MUST_USE quire_result qi_compact_offer(quire_compaction *c,
                                             const quire_compact_limits *limits,
                                             quire_compact_move *moves, uint64_t room,
                                             uint64_t *count, bool *is_complete);
QUIRE_MUST_USE quire_result qi_compact_step_on_stream(quire_compaction *c,
                                                      const quire_compact_limits *limits,
                                                      quire_stream *stream,
                                                      quire_compact_stats *stats);
QUIRE_MUST_USE quire_result qi_compact_accept(quire_compaction *c, const quire_compact_move *move,
                                              const quire_point *after);
QUIRE_MUST_USE quire_result qi_compact_decline(quire_compaction *c, const quire_compact_move *move);

#endif
