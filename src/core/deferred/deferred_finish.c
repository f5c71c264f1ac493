/*
 * deferred_finish.c - waits for the deferred frees of a memory that is destroyed.
 */
#include "src/core/deferred/deferred_finish.h"

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/deferred/deferred_collect.h"
#include "src/core/deferred/deferred_free.h"

/* Frees the live allocations that have recorded uses. */
static void free_used(quire_memory *memory)
{
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++) {
        if (qi_slot_phase(&memory->slots, i) != QI_PHASE_LIVE)
            continue;
        const qi_slot_meta *meta = qi_memory_slot(memory, i)->meta;
        if (meta && meta->uses && qi_slot_force_claim(&memory->slots, i))
            qi_ignore(qi_deferred_free(memory, i)); /* CORRUPTED is logged */
    }
}

/* Requires the lock. Whether everything in the queue is known to have passed. */
static bool is_done(const qi_stream_queue *queue)
{
    uint64_t passed = qi_atomic_load_acquire_u64(&queue->stream->passed);
    return passed == QI_ALL_PASSED ||
           (!queue->fresh.first && passed >= qi_stream_queue_highest(queue));
}

/*
 * Requires the lock. Releases and reacquires it. Waits until everything in the queue has passed.
 * Every point that passes moves the deadline. Returns false at the deadline.
 */
static bool await_queue(qi_stream_queue *queue, uint64_t *deadline)
{
    while (!is_done(queue)) {
        uint64_t before = qi_atomic_load_acquire_u64(&queue->stream->passed), now = qi_clock();
        uint64_t left = now < *deadline ? *deadline - now : 0;
        qi_ignore(qi_stream_queue_look(queue, left)); /* is_done decides */
        if (!is_done(queue) && qi_atomic_load_acquire_u64(&queue->stream->passed) == before)
            return false;
        *deadline = qi_clock() + queue->stream->device->stall_timeout;
    }
    return true;
}

/*
 * Requires the lock. Releases and reacquires it to log a warning. A wait is added for that time, so
 * that the log sink cannot destroy the stream and its queue.
 */
static void report_unfinished(const qi_stream_queue *queue)
{
    qi_shard *shard = queue->shard;
    quire_stream *stream = queue->stream;
    qi_stream_add_wait(stream);
    qi_lock_release(&shard->lock);
    qi_log(&shard->memory->device->log, QUIRE_LOG_WARNING,
           "memory '%s' is destroyed: what waits for stream '%s' is freed though its points have "
           "not passed",
           shard->memory->name, stream->name);
    qi_lock_acquire(&shard->lock);
    qi_stream_drop_wait(stream);
}

/* Requires no lock. Releases every deferred free of a shard. Capture streams are not waited for. */
static void finish_shard(qi_shard *shard, uint64_t *deadline)
{
    qi_passed passed = {.slots = QI_NO_SLOT};
    qi_lock_acquire(&shard->lock);
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        if (!queue->stream->capture && !await_queue(queue, deadline))
            report_unfinished(queue);
        qi_deferred_take_passed(queue, QI_ALL_PASSED, &passed);
    }
    qi_lock_release(&shard->lock);
    qi_deferred_release_passed(shard, &passed);
}

void qi_deferred_finish(quire_memory *memory)
{
    qi_error error;
    qi_error_save(&error);
    uint64_t deadline = qi_clock() + memory->device->stall_timeout;
    free_used(memory);
    /* a slot whose first wait is over may have another one in the queue of another stream */
    while (qi_deferred_count(memory))
        for (uint32_t i = 0; i < qi_shard_count(memory); i++)
            finish_shard(memory->shards[i], &deadline);
    qi_error_restore(&error);
}
