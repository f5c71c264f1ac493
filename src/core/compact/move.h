/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * move.h - an allocation gets a place in another page, with its contents; its handle stays.
 *
 * The new place is that of a second slot, the target, which is PRIVATE and has no object and no
 * name. The source is in the state of a move (qi_slot_begin_move) while its contents are copied, so
 * that no call sees half of them. Then the records of both exchange their places, and the target is
 * released with the old one. Each step leaves an allocation whose record is true.
 *
 * A raw range moves that was requested as movable and is not on a dedicated page, unless it is
 * mapped, in use, or used by recorded work that has not passed.
 *
 * If the caller executes the move, the target is an allocation like others: it has a handle. Then
 * mapped ones move as well, unless pages are mapped on demand.
 */
#ifndef QUIRE_SRC_CORE_COMPACT_MOVE_H
#define QUIRE_SRC_CORE_COMPACT_MOVE_H

#include "quire/stream.h"
#include "src/core/state/memory.h"

/* What moves leave: a page, or a stretch of one. */
typedef struct qi_source {
    qi_page *page;       /* NULL: none; it may have left meanwhile */
    uint64_t begin, end; /* offsets in its region; of a whole page 0 and UINT64_MAX */
    uint64_t least;      /* live bytes of the pages that get what leaves, if they have room */
} qi_source;

typedef struct qi_move {
    uint32_t source, target; /* slots */
    quire_allocation handle; /* of the source, which may be freed once the move has ended */
    bool is_entered;         /* the handle of the source is found at the new address, once shown */
    bool is_mapped;          /* the source of an offer has a lasting map */
} qi_move;

/* Returns why quire cannot copy contents of a memory; NULL: it can. */
const char *qi_move_obstacle(const quire_memory *memory);

/* Requires the shard's lock. Whether an allocation can move now; by the caller, or by quire. Own
   work of quire on a stream may still use it; NULL: none. Accepts free slots. */
bool qi_move_is_possible(const quire_memory *memory, uint32_t slot, bool by_caller,
                         const quire_stream *own);

/*
 * Requires the shard's lock. Takes a range for an allocation of a source outside of it, in a page
 * that has allocations, so that it stays in use. Returns NO_SPACE, without a sentence, if none has
 * room.
 */
QUIRE_MUST_USE quire_result qi_move_find_place(qi_shard *shard, const qi_source *source,
                                               const qi_slot *record, quire_range *range);

/*
 * Requires the shard's lock. Begins the move of an allocation out of its source. Returns NO_SPACE,
 * without a sentence, if it cannot move now or no page in use has room. Fails as qi_slot_take. On
 * failure nothing has changed. `own` is NULL, as in qi_move_is_possible.
 */
QUIRE_MUST_USE quire_result qi_move_begin(qi_shard *shard, const qi_source *source, uint32_t slot,
                                          const quire_stream *own, qi_move *move);

/* Requires no lock. Makes the native object of the target, a PRIVATE slot, bound to its place. Does
   nothing for a raw range. Fails with errors of the backend; then there is none. */
QUIRE_MUST_USE quire_result qi_move_make_object(quire_memory *memory, uint32_t target);

/* Requires no lock. Makes the object of the target and copies the contents to it. Fails as these
   do, and with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_move_copy(quire_memory *memory, qi_move *move);

/* Requires the lock of the shard, or of both. The source gets the new place, the target the old
   one. */
void qi_move_complete(quire_memory *memory, qi_move *move);

/* Requires no lock. Ends a move, complete or not. */
void qi_move_end(quire_memory *memory, const qi_move *move);

/* Requires no lock, and that all moves of the thread have ended: may call the hook of the memory,
   which may use any allocation. Releases the place that nobody uses. */
void qi_move_release(quire_memory *memory, const qi_move *move);

/* ---- by the caller ------------------------------------------------------------------------ */

/* Require the shard's lock. As qi_move_begin, but the source goes on as it is. Without a stream the
   caller executes the move; with one quire submits it there, and mapped ones stay. */
QUIRE_MUST_USE quire_result qi_move_offer(qi_shard *shard, const qi_source *source, uint32_t slot,
                                          const quire_stream *own, qi_move *move);

/*
 * Requires no lock. Makes the target of an offer an allocation, mapped for good if the source was.
 * Fails with what a map fails with, and with OUT_OF_HOST_MEMORY; the target is released then.
 */
QUIRE_MUST_USE quire_result qi_move_publish(quire_memory *memory, const qi_move *move,
                                            quire_allocation *target);

/*
 * Requires no lock. The source gets the place of the target, a PRIVATE slot of this shard, which
 * has the old one then. `own` is the stream that copies the contents; NULL: the caller has. Fails
 * as handles do for the source, with BUSY while it cannot move, and with OUT_OF_HOST_MEMORY. On
 * failure nothing has changed.
 */
QUIRE_MUST_USE quire_result qi_move_exchange(qi_shard *shard, quire_allocation source,
                                             uint32_t target, const quire_stream *own);

#endif
