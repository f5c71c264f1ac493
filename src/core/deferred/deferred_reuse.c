/*
 * deferred_reuse.c - renews freed slots whose ranges fit a request.
 */
#include "src/core/deferred/deferred_reuse.h"

#include "src/base/bits.h"
#include "src/base/result.h"

uint32_t qi_deferred_renew(qi_shard *shard, qi_wait *wait, const qi_range_request *request)
{
    quire_memory *memory = shard->memory;
    quire_memory_stats *stats = &shard->stats;
    uint32_t slot = wait->slot;
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_stream_queue_end_wait(shard, wait);
    qi_shard_keep_peaks(stats);
    stats->requested_bytes += request->requested - record->requested;
    stats->allocations++;
    stats->frees++;
    record->requested = request->requested;
    record->user_data = request->user_data;
    record->meta = request->meta;
    qi_slot_renew(&memory->slots, slot);
    return slot;
}

/*
 * Requires no lock. Orders a stream after the point of another stream's wait. The stream must
 * accept marks itself, because the range is freed on it later.
 */
static quire_result order_after(quire_stream *stream, qi_wait *wait)
{
    quire_result result = qi_stream_check_marks(stream);
    uint64_t value = wait->value;
    if (!result && !value)
        result = qi_stream_mark(wait->stream, &value);
    if (!result)
        result = qi_stream_order(stream, wait->stream, value);
    return result;
}

bool qi_deferred_take_over(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                           bool dedicated, uint32_t *slot)
{
    const qi_fitting fitting = qi_deferred_fitting(shard, request, dedicated);
    if (stream->capture || !qi_device_offers(stream->device, QUIRE_BACKEND_STREAM_ORDER))
        return false;
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        if (queue->stream->capture || queue->stream->device != stream->device)
            continue;
        qi_wait *wait = qi_stream_queue_take_fitting(queue, &fitting);
        if (!wait)
            continue;
        quire_stream *earlier = wait->stream;
        qi_stream_begin_look(earlier);
        qi_lock_release(&shard->lock);
        qi_error error = qi_error_save();
        quire_result result = order_after(stream, wait);
        qi_error_restore(&error);
        qi_lock_acquire(&shard->lock);
        qi_stream_end_look(earlier);
        if (!result) {
            *slot = qi_deferred_renew(shard, wait, request);
            return true;
        }
        qi_stream_queue_put(shard, wait, true);
    }
    return false;
}
