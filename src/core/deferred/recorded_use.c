/*
 * recorded_use.c - adds a stream to the recorded uses of an allocation, at most once each.
 *
 * The waits of the uses are in no queue. Those of the caller have no value: the free assigns it.
 */
#include "src/core/deferred/recorded_use.h"

#include "src/base/result.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/slot/slot_meta.h"

/* Requires the lock, and the slot in use. Returns the use by the stream, or NULL. */
static qi_wait *find_use(const qi_slot *record, const quire_stream *stream)
{
    qi_wait *use = record->meta ? record->meta->uses : NULL;
    while (use && use->stream != stream)
        use = use->then;
    return use;
}

/* Requires the same. Returns NULL if host memory is exhausted. */
static qi_wait *add_use(qi_shard *shard, qi_slot *record, quire_stream *stream)
{
    if (!record->meta)
        record->meta = qi_slot_meta_create_empty(&shard->memory->host);
    if (!record->meta)
        return NULL;
    qi_wait *use = qi_stream_queue_take_wait(shard, stream);
    if (!use)
        return NULL;
    use->then = record->meta->uses;
    record->meta->uses = use;
    return use;
}

static quire_result refuse_without_memory(void)
{
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                   "no host memory for the use of an allocation by a stream");
}

quire_result qi_record_slot_use(quire_memory *memory, uint32_t slot, quire_stream *stream)
{
    quire_result result = qi_stream_check_marks(stream);
    if (result)
        return result;
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock_acquire(&shard->lock);
    qi_wait *use = find_use(record, stream);
    if (!use)
        use = add_use(shard, record, stream);
    else if (use->is_own) {
        qi_stream_queue_disown(shard, use);
        use->value = 0;
    }
    qi_lock_release(&shard->lock);
    return use ? QUIRE_SUCCESS : refuse_without_memory();
}

quire_result qi_record_use(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_record_slot_use(memory, slot, stream);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- own uses ----------------------------------------------------------------------------- */

/*
 * An own use without a value stays without one: the value of another thread's work may precede it.
 */
quire_result qi_record_own_use(quire_memory *memory, uint32_t slot, quire_stream *stream,
                               uint64_t value)
{
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock_acquire(&shard->lock);
    qi_wait *use = find_use(record, stream);
    if (!use) {
        use = add_use(shard, record, stream);
        if (use) {
            use->value = value;
            qi_stream_queue_own(shard, use);
        }
    } else if (!value || (use->value && use->value < value)) {
        use->value = value;
    }
    qi_lock_release(&shard->lock);
    return use ? QUIRE_SUCCESS : refuse_without_memory();
}

static uint64_t count_own_uses(quire_stream *stream)
{
    uint64_t count = 0;
    for (const qi_stream_queue *queue = qi_stream_first_queue(stream); queue;
         queue = queue->next_of_stream) {
        qi_lock_acquire(&queue->shard->lock);
        for (const qi_wait *use = queue->own.first; use; use = use->next)
            count++;
        qi_lock_release(&queue->shard->lock);
    }
    return count;
}

/* The records stay with their allocations: a free may be looking at them. */
static void end_uses_in(qi_stream_queue *queue)
{
    qi_shard *shard = queue->shard;
    qi_lock_acquire(&shard->lock);
    while (queue->own.first) {
        qi_wait *use = queue->own.first;
        qi_stream_queue_disown(shard, use);
        qi_stream_drop_wait(use->stream);
        use->stream = NULL;
    }
    qi_lock_release(&shard->lock);
}

void qi_end_own_uses(quire_stream *stream, uint64_t nanoseconds)
{
    uint64_t count = count_own_uses(stream);
    if (!count || count < qi_stream_waits(stream) || !qi_stream_finish(stream, nanoseconds))
        return;
    for (qi_stream_queue *queue = qi_stream_first_queue(stream); queue;
         queue = queue->next_of_stream)
        end_uses_in(queue);
}
