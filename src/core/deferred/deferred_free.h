/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_free.h - frees that wait: a freed allocation keeps its slot and range until the points
 * of the streams that use it have passed. Recording uses, deferring a free, and collecting it.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_FREE_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_FREE_H

#include "src/core/deferred/stream.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/state/memory.h"

/* ---- recorded uses ------------------------------------------------------------------------ */

/*
 * The caller records a use for work of its own: the free waits for everything that the stream has
 * by then. quire records *own uses* for what it submits itself (quire/transfer.h): they end at a
 * point of their own if one is known, and with the stream. No function may be called with a lock
 * held.
 */

/*
 * Records that work on the stream uses the allocation. Fails as handles do, with UNSUPPORTED for a
 * stream without marks, with OUT_OF_HOST_MEMORY, and as the backend does.
 */
QUIRE_MUST_USE quire_result qi_record_use(quire_memory *memory, quire_allocation allocation,
                                          quire_stream *stream);

/* The same for a slot that the caller owns or has in use. */
QUIRE_MUST_USE quire_result qi_record_slot_use(quire_memory *memory, uint32_t slot,
                                               quire_stream *stream);

/*
 * Records a use of a slot, which is in use, by work of quire that was submitted. `value` is a point
 * after the work, or 0: a backend that takes work on a stream can mark it. Fails with
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_record_own_use(quire_memory *memory, uint32_t slot,
                                              quire_stream *stream, uint64_t value);

/*
 * Ends the own uses of a stream that is destroyed, if nothing else waits for it: once its work is
 * done, or at once if destroying the native stream runs the work. Waits up to `nanoseconds`; after
 * them the uses stay.
 */
void qi_end_own_uses(quire_stream *stream, uint64_t nanoseconds);

/* Requires the shard's lock. Whether all recorded uses of an allocation are known to be over, but
   for quire's own work on a stream; NULL: all of them. */
bool qi_uses_are_over(const qi_slot *record, const quire_stream *but_on);

/* Requires the shard's lock. Drops the recorded uses of an allocation, which are over. */
void qi_uses_forget(qi_shard *shard, qi_slot *record);

/* ---- deferring ---------------------------------------------------------------------------- */

/*
 * A deferred free keeps its slot PRIVATE and its range taken until the points it waits for have
 * passed. stream_queue.h has the records. Collecting queries the backend and releases what
 * has passed. deferred_reuse.h hands ranges out again before their points have passed.
 */

typedef struct qi_wait qi_wait;

/*
 * Requires no lock. Frees a slot that the caller has claimed, after its recorded uses have passed.
 * Fails only with CORRUPTED, as qi_release_checked.
 */
quire_result qi_deferred_free(quire_memory *memory, uint32_t slot);

/* The same after a value of the stream as well. Also fails with OUT_OF_HOST_MEMORY; the slot is
   unchanged then. */
quire_result qi_deferred_free_after(quire_memory *memory, uint32_t slot, quire_stream *stream,
                                    uint64_t value);

/*
 * Requires no lock. Claims an allocation in a phase of `accept` (QI_ACCEPT_LIVE or
 * QI_ACCEPT_RESERVED) and frees it after its recorded uses. Fails as handles do; nothing changed
 * then. Otherwise like qi_deferred_free. Inline, because every quire_free is this.
 */
static inline quire_result qi_claim_and_free(quire_memory *memory, quire_allocation allocation,
                                             int accept)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_claim(&memory->slots, allocation, accept, &slot);
    return result ? result : qi_deferred_free(memory, slot);
}

/*
 * Requires no lock. Claims a live allocation and frees it after its recorded uses and after a value
 * of the stream (0: everything submitted until the next mark). Fails as handles do and with
 * OUT_OF_HOST_MEMORY; nothing changed then. Otherwise like qi_deferred_free.
 */
quire_result qi_deferred_claim_and_free(quire_memory *memory, quire_allocation allocation,
                                        quire_stream *stream, uint64_t value);

/* Returns how many allocations have deferred frees. */
static inline uint64_t qi_deferred_count(const quire_memory *memory)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        count += qi_atomic_load_u64(&memory->shards[i]->deferred);
    return count;
}

/* ---- collecting --------------------------------------------------------------------------- */

/*
 * The library queries the backend when the application collects, and when an allocation finds no
 * room, before it creates a page. The shard's lock protects the queues; no lock is held during the
 * backend's calls.
 */

/*
 * Requires no lock. Releases what has passed in a memory and adds its bytes. Returns the first
 * error of a backend; the other streams are queried all the same.
 */
quire_result qi_deferred_collect(quire_memory *memory, uint64_t *bytes);

/* The same for a caller that goes on whatever a backend answers: what fails stays deferred. Returns
   the bytes, and keeps the thread's error. */
uint64_t qi_deferred_collect_quietly(quire_memory *memory);

/*
 * Requires the shard's lock. Releases and reacquires it. Like qi_deferred_collect; returns whether
 * anything was released.
 */
bool qi_deferred_make_room(qi_shard *shard);

/* Like qi_deferred_collect, for one stream in all memories; waits up to `nanoseconds` for it. */
quire_result qi_deferred_collect_stream(quire_stream *stream, uint64_t nanoseconds);

/* Requires no lock. Releases the empty queues of a stream that is destroyed. */
void qi_deferred_forget_stream(quire_stream *stream);

/* ---- finishing ---------------------------------------------------------------------------- */

/*
 * Requires no lock. Waits for the points of every deferred free, and of live allocations with
 * recorded uses, and releases all of them. It does not wait for capture streams. It waits for a
 * stream as long as points of the stream pass; when none has passed for the device's stall timeout
 * it logs a warning and releases the rest.
 */
void qi_deferred_finish(quire_memory *memory);

#endif
