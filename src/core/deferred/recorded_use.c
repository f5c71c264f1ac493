/*
 * recorded_use.c - adds a stream to the recorded uses of an allocation, at most once each.
 *
 * The waits of the uses are in no queue and have no value yet: the free assigns the value.
 */
#include "src/core/deferred/recorded_use.h"

#include "src/base/result.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/slot/slot_meta.h"

/* Requires the lock, and the slot in use. Returns false if host memory is exhausted. */
static bool add_use(qi_shard *shard, uint32_t slot, quire_stream *stream)
{
    qi_slot *record = qi_memory_slot(shard->memory, slot);
    if (!record->meta)
        record->meta = qi_slot_meta_create_empty(&shard->memory->host);
    if (!record->meta)
        return false;
    for (const qi_wait *use = record->meta->uses; use; use = use->then)
        if (use->stream == stream)
            return true;
    qi_wait *use = qi_stream_queue_take_wait(shard, stream);
    if (!use)
        return false;
    use->then = record->meta->uses;
    record->meta->uses = use;
    return true;
}

quire_result qi_record_slot_use(quire_memory *memory, uint32_t slot, quire_stream *stream)
{
    quire_result result = qi_stream_check_marks(stream);
    if (result)
        return result;
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_lock_acquire(&shard->lock);
    bool is_added = add_use(shard, slot, stream);
    qi_lock_release(&shard->lock);
    return is_added ? QUIRE_SUCCESS
                    : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for the use of an allocation by a stream");
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
