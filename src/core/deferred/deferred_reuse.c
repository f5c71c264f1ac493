/*
 * waiting_reuse.c - who may have a range before its points have passed (see waiting.h).
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/state/event.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/deferred/deferred_free.h"

/* ---- reuse ---------------------------------------------------------------------------------- */

/* With the lock: a wait that was taken out ends, and its slot is another allocation's. */
static uint32_t renew(qi_shard *shard, qi_wait *wait, const qi_range_request *range_request)
{
    quire_memory *memory = shard->memory;
    quire_memory_stats *stats = &shard->stats;
    uint32_t slot = wait->slot;
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_stream_queue_end_wait(shard, wait);
    qi_shard_keep_peaks(stats);
    stats->requested_bytes += range_request->requested - record->requested;
    stats->allocations++;
    stats->frees++;
    record->requested = range_request->requested;
    record->user_data = range_request->user_data;
    record->meta = range_request->meta;
    qi_slot_renew(&memory->slots, slot);
    return slot;
}

/* In a shared page as large as what was freed of the same size. */
static qi_fitting fitting_for(const qi_shard *shard, const qi_range_request *range_request,
                              bool dedicated)
{
    uint64_t size = 0;
    if (dedicated || qi_space_range_overflows(shard->space, range_request->size, &size))
        size = range_request->size;
    return (qi_fitting){
        .size = size, .alignment = range_request->alignment, .dedicated = dedicated};
}

bool qi_deferred_reuse(qi_shard *shard, quire_stream *stream, const qi_range_request *range_request,
                       bool dedicated, uint32_t *slot)
{
    const qi_fitting fitting = fitting_for(shard, range_request, dedicated);
    qi_wait *wait = qi_stream_queue_take_fitting_on(shard, stream, &fitting);
    if (wait)
        *slot = renew(shard, wait, range_request);
    return wait != NULL;
}

/* Without a lock: orders a stream behind a wait of another. It must take the range back, too. */
static quire_result order_behind(quire_stream *stream, qi_wait *wait)
{
    quire_result result = qi_stream_check_marks(stream);
    uint64_t value = wait->value;
    if (!result && !value)
        result = qi_stream_mark(wait->stream, &value);
    if (!result)
        result = qi_stream_order(stream, wait->stream, value);
    return result;
}

bool qi_deferred_take_over(qi_shard *shard, quire_stream *stream,
                           const qi_range_request *range_request, bool dedicated, uint32_t *slot)
{
    const qi_fitting fitting = fitting_for(shard, range_request, dedicated);
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
        quire_result result = order_behind(stream, wait);
        qi_error_restore(&error);
        qi_lock_acquire(&shard->lock);
        qi_stream_end_look(earlier);
        if (!result) {
            *slot = renew(shard, wait, range_request);
            return true;
        }
        qi_stream_queue_put(shard, wait, true);
    }
    return false;
}

/* ---- allocation --------------------------------------------------------------------------- */

/* What may still fail once the range is had. */
static quire_result complete(quire_memory *memory, quire_allocation allocation, const char *name,
                             quire_stream *stream)
{
    quire_result result = QUIRE_SUCCESS;
    if (name)
        result = quire_allocation_set_name(memory, allocation, name);
    if (!result && stream->capture)
        result = quire_record_use(memory, allocation, stream);
    return result;
}

/* A range that waited waits again, for which its record is there. Neither call is counted. */
static void wait_again(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    qi_shard *shard = qi_shard_of_slot(memory, qi_handle_slot(allocation.id));
    qi_ignore(quire_free_on(memory, allocation, stream));
    qi_lock_acquire(&shard->lock);
    shard->stats.allocations--;
    shard->stats.frees--;
    qi_lock_release(&shard->lock);
}

/* Gives back what was allocated and cannot be completed. Keeps the thread's last error. */
static void take_back(quire_memory *memory, quire_allocation allocation, quire_stream *stream,
                      bool has_waited)
{
    uint32_t slot = 0;
    qi_error error = qi_error_save();
    if (has_waited) {
        wait_again(memory, allocation, stream);
    } else if (!qi_slot_claim(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot)) {
        qi_event_slot(memory, QUIRE_EVENT_FREED, slot);
        qi_checked_await_reader(memory, slot);
        qi_release_unpublished(memory, slot);
    }
    qi_error_restore(&error);
}

/* The usual case: what was freed on the stream, or a range of a page there is. */
static quire_result place_at_once(quire_memory *memory, const quire_allocation_options *options,
                                  quire_stream *stream, bool *has_waited, uint32_t *slot)
{
    const qi_range_request range_request = qi_range_request_from(options);
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    *has_waited = qi_deferred_reuse(shard, stream, &range_request, false, slot);
    qi_lock_release(&shard->lock);
    return *has_waited ? QUIRE_SUCCESS : qi_allocate_fast(memory, &range_request, slot);
}

/* Places as wished, in what was freed on the stream first. */
static quire_result place_on(quire_memory *memory, const quire_allocation_options *options,
                             quire_stream *stream, bool *has_waited, uint32_t *slot)
{
    *has_waited = false;
    if (qi_request_is_plain(memory, options) &&
        !place_at_once(memory, options, stream, has_waited, slot))
        return QUIRE_SUCCESS;
    qi_request request;
    quire_result result = qi_request_from(memory, options, &request);
    request.stream = stream;
    request.has_waited = has_waited;
    request.name_later = request.name;
    request.name = NULL;
    return result ? result : qi_allocate(memory, &request, QUIRE_SUCCESS, slot);
}

quire_result quire_allocate_on(quire_memory *memory, const quire_allocation_options *options,
                               quire_stream *stream, quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !stream || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocate_on: memory, options, stream or allocation is null");
    uint32_t slot = 0;
    bool has_waited = false;
    quire_result result = place_on(memory, options, stream, &has_waited, &slot);
    if (result)
        return result;
    qi_event_slot(memory, QUIRE_EVENT_ALLOCATED, slot);
    *allocation = qi_slot_publish(&memory->slots, slot, QI_PHASE_LIVE);
    result = complete(memory, *allocation, options->name, stream);
    if (result) {
        take_back(memory, *allocation, stream, has_waited);
        *allocation = (quire_allocation){0};
        result = qi_oom_report(memory, options->name, options->size,
                               options->alignment + !options->alignment, 0, result);
    }
    return result;
}
