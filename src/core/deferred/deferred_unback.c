/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_unback.c - chunks of lazy allocations that lose their memory at a point: each range has
 * a chunk wait in the queue of the stream, and its chunks have the number of the wait. A chunk that
 * gets memory again before the point loses that number, so that the wait no longer means it.
 */
#include "src/core/deferred/deferred_unback.h"

#include "src/base/result.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/page/lazy.h"

/* ---- taking memory at a point ------------------------------------------------------------- */

/* The waits that a call has taken and not put into the queue yet, linked by `next`. */
typedef struct chunk_waits {
    qi_shard *shard;
    const quire_view *ranges;
    qi_wait *first;
    uint64_t value;
} chunk_waits;

/* Requires no lock. Links waits for the stream by `next`. Fails with OUT_OF_HOST_MEMORY. */
static quire_result take_waits(qi_shard *shard, quire_stream *stream, uint64_t count,
                               qi_wait **first)
{
    uint64_t taken = 0;
    *first = NULL;
    qi_lock_acquire(&shard->lock);
    for (qi_wait *wait; taken < count && (wait = qi_stream_queue_take_wait(shard, stream));
         taken++) {
        wait->next = *first;
        *first = wait;
    }
    qi_lock_release(&shard->lock);
    return taken == count ? QUIRE_SUCCESS
                          : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                    "no host memory for chunks that wait for a point");
}

/* Requires no lock. */
static void give_waits(qi_shard *shard, qi_wait *first)
{
    qi_lock_acquire(&shard->lock);
    for (qi_wait *wait = first, *next; wait; wait = next) {
        next = wait->next;
        (void)qi_stream_queue_end_wait(shard, wait);
    }
    qi_lock_release(&shard->lock);
}

/* A free of the allocation waits for the point, too. */
static quire_result record_uses(quire_memory *memory, const quire_view *ranges, uint64_t count,
                                quire_stream *stream, uint64_t value)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < count && !result; i++) {
        uint32_t slot = 0;
        result = qi_slot_begin_use(&memory->slots, ranges[i].allocation, QI_ACCEPT_LIVE, &slot);
        if (result)
            break;
        result = qi_record_own_use(memory, slot, stream, value);
        qi_slot_end_use(&memory->slots, slot);
    }
    return result;
}

/* The waits enter the queue under the lock under which their chunks were marked. */
static void enter(void *user, uint64_t index, uint32_t number)
{
    chunk_waits *waits = user;
    qi_wait *wait = waits->first;
    waits->first = wait->next;
    wait->slot = QI_NO_SLOT;
    wait->object = QUIRE_OBJECT_NONE;
    wait->value = waits->value;
    wait->allocation = waits->ranges[index].allocation.id;
    wait->number = number;
    qi_stream_queue_put(waits->shard, wait);
}

quire_result qi_unback_after(quire_memory *memory, const quire_view *ranges, uint64_t count,
                             quire_stream *stream, uint64_t value)
{
    qi_shard *shard = memory->shards[0];
    chunk_waits waits = {shard, ranges, NULL, value};
    quire_result result = record_uses(memory, ranges, count, stream, value);
    if (!result)
        result = take_waits(shard, stream, count, &waits.first);
    if (!result)
        result = qi_lazy_begin_wait(memory, ranges, count, enter, &waits);
    give_waits(shard, waits.first);
    return result;
}

/* ---- giving memory ------------------------------------------------------------------------ */

/* A success keeps the thread's last error. */
quire_result qi_back_or_collect(quire_memory *memory, const quire_view *ranges, uint64_t count)
{
    qi_error before;
    qi_error_save(&before);
    quire_result result = qi_lazy_back(memory, ranges, count);
    bool has_failed = result != QUIRE_SUCCESS;
    while (qi_is_out_of_memory(result) && qi_deferred_collect_quietly(memory))
        result = qi_lazy_back(memory, ranges, count);
    if (!result && has_failed)
        qi_error_restore(&before);
    return result;
}
