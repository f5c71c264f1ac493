/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/compact.h - compaction: frees pages by moving allocations out of the emptiest ones.
 *
 * For memories of pages. Elastic memories (quire_memory_options.elastic) need none: free chunks of
 * their page serve any request.
 *
 * Allocations and buffers move that were requested as movable (quire_allocation_options,
 * quire_buffer_options). The handle stays valid; page, offset, address and pointer change. quire
 * moves them with their contents while they are neither mapped, held nor in use by another call;
 * calls that use an allocation wait until its move has ended. A buffer gets a new native object,
 * and the old one is destroyed. No work of a device may use a movable allocation during a step,
 * except work that was recorded with quire_record_use, until which the allocation stays, and
 * earlier work of the stream of quire_compact_step_on_stream.
 *
 *     quire_compaction *c;
 *     quire_compact_stats done;
 *     quire_compact_begin(memory, &c);
 *     do                                       (once a frame, for example)
 *         quire_compact_step(c, &(quire_compact_limits){.moves = 10}, &done);
 *     while (!done.is_complete);
 *     quire_compact_end(&c);
 *
 * Convergence: the allocations of a page move only if all of them have places in the other pages in
 * use, so that the page becomes free. A compaction that can free no page moves nothing, unless the
 * goal quire_compact_limits.largest_free is set and can be reached.
 */
#ifndef QUIRE_COMPACT_H
#define QUIRE_COMPACT_H

#include "quire/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_compaction quire_compaction;

/* What one step does at most. 0: no limit. */
typedef struct quire_compact_limits {
    uint64_t moves;
    uint64_t bytes;   /* of contents; a larger allocation moves alone */
    uint64_t records; /* pages and allocations that are looked at, and up to 1,024 and the number of
                         pages more, for the goal below those of a page; a step that finds nothing
                         to move ends too */
    /*
     * No limit, but a goal: bytes of a free range that is to exist in a page; 0: none. Once no page
     * can be freed, the allocations of one stretch of a page, at most 512 ranges, leave it for
     * places in the same page or in others, if all of them can. The range is free when the moves
     * have ended, on a stream once the copies are done.
     */
    uint64_t largest_free;
    uint64_t unused[3]; /* must be zero */
} quire_compact_limits;

/* What a compaction has done since it began, or would do. */
typedef struct quire_compact_stats {
    uint64_t moves;       /* allocations that have moved */
    uint64_t bytes_moved; /* of their contents */
    uint64_t pages_freed;
    uint64_t bytes_freed; /* of these pages */
    bool is_complete;     /* no further page can be freed now, nor a stretch be cleared */
    uint64_t unused[4];
} quire_compact_stats;

/*
 * Writes what a compaction that begins now would do at most: moves, bytes_moved, pages_freed,
 * bytes_freed; is_complete if it would free no page. The bytes of pages decide, and whether their
 * allocations are movable, not whether they are in use, nor whether free ranges have the right
 * size. Takes time in proportion to the pages and to the allocations of those that could be freed.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (as quire_compact_begin).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_compact_estimate(const quire_memory *memory,
                                                             quire_compact_stats *stats);

/*
 * Begins a compaction of a memory. The caller ends it with quire_compact_end, before it destroys
 * the memory. Moves nothing. In the child of a fork, a compaction from before the fork may go on,
 * or be ended, or be left alone: another one can begin.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the memory is elastic, has slabs or another fit than
 * segregated, or the build is a checked one), BUSY (a compaction of the memory has not ended),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_compact_begin(quire_memory *memory,
                                                          quire_compaction **compaction);

/*
 * Moves allocations, up to the limits; NULL: until no further page can be freed. Pages that become
 * empty go back to the backend at once, whatever the retention of the memory says, as far as
 * quire_memory_preallocate allows. *stats receives what the compaction has done so far, also if the
 * call fails; NULL is allowed. Other threads allocate, use and free in the memory meanwhile. One
 * thread at a time uses a compaction.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the backend does not copy bytes of the kind),
 * OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS, NOT_PERMITTED (the device is disabled), BUSY (in the
 * child of a fork: another compaction of the memory has begun there), and those of copies and of
 * the backend's objects. After an error every allocation is where its info says, with its
 * contents, and the next step goes on.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_compact_step(quire_compaction *compaction,
                                                         const quire_compact_limits *limits,
                                                         quire_compact_stats *stats);

/*
 * The same with copies in the order of a stream: after the work that was submitted to it before,
 * which may use the allocations, and before what is submitted later, which uses the new places.
 * Info, address and pointers are the new ones on return. Old places are free once the copies are
 * done; a page that becomes empty then goes back with the next step, or with quire_compact_end.
 * Where the backend cannot submit a copy, the call waits for the stream and copies itself.
 * Errors also: FOREIGN_HANDLE (a stream of another device), and as quire_copy with a stream.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_compact_step_on_stream(quire_compaction *compaction, const quire_compact_limits *limits,
                             quire_stream *stream, quire_compact_stats *stats);

/* ---- moves that the caller executes --------------------------------------------------------- */

/*
 * A move of an allocation to a target. Both are allocations until the move ends: the target has a
 * handle and can be bound, mapped, written and queried; it has the size of the source, no name, and
 * counts as an allocation. The source can be used as before, but what is written to it after its
 * contents were copied is lost.
 */
typedef struct quire_compact_move {
    quire_allocation source;
    quire_allocation target;
    uint64_t size; /* bytes to copy: what was requested */
    uint64_t unused[1];
} quire_compact_move;

/*
 * Offers moves of raw ranges, for example of those that have Vulkan objects of the caller: up to
 * `room` of them, within the limits, written to `moves` with their number in *count. Allocations
 * move that are not in use; mapped ones too, unless pages are mapped on demand. A target of an
 * allocation that was made with `mapped` is mapped in the same way. The caller copies the contents,
 * creates and binds objects anew, and then accepts or declines each move. Further moves may be
 * offered before. No moves: none is possible until offered ones end, or *complete is true: no
 * further page can be freed now. `complete` may be NULL.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS, NOT_PERMITTED (the device is
 * disabled), BUSY (as quire_compact_step). After an error the moves in `moves` are offered all the
 * same.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_compact_offer(quire_compaction *compaction,
                                                          const quire_compact_limits *limits,
                                                          quire_compact_move *moves, uint64_t room,
                                                          uint64_t *count, bool *complete);

/*
 * Ends a move whose contents were copied, or will be before `after` passes. The source has the
 * place of the target from now on, and keeps its handle, name, user data and maps; pointers to it
 * and addresses of it change. The handle of the target ends; the old place is free once the point
 * has passed; NULL: now.
 * Errors: INVALID_ARGUMENT (the move was not offered, or has ended), STALE_HANDLE (the source was
 * freed: the move has ended and the target is freed, too), BUSY (the source is in use by another
 * call, held, or has recorded uses, or the target is in use or mapped: the move has not ended),
 * OUT_OF_HOST_MEMORY, and as quire_free_after_point for the point.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_compact_accept(quire_compaction *compaction,
                                                           const quire_compact_move *move,
                                                           const quire_point *after);

/*
 * Ends a move without moving, and frees the target. The page of the source is not offered again in
 * this round of the compaction, and comes last in further ones. Errors: INVALID_ARGUMENT (the move
 * was not offered, or has ended), STALE_HANDLE (the target was freed: the move has ended), BUSY
 * (the target is in use or mapped).
 */
QUIRE_API quire_result quire_compact_decline(quire_compaction *compaction,
                                             const quire_compact_move *move);

/* Writes what a compaction has done since it began: its steps, and moves that were accepted.
   `is_complete` is what the last step or offer has found. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_compact_get_stats(const quire_compaction *compaction,
                                                              quire_compact_stats *stats);

/* Ends a compaction, complete or not, and sets *compaction to NULL. What has moved stays where it
   is. Moves that have not ended are declined; a target that is in use or mapped stays allocated. */
QUIRE_API void quire_compact_end(quire_compaction **compaction);

#ifdef __cplusplus
}
#endif
#endif
