/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_reuse.c - gives the slot of a deferred free to a new allocation, with a new generation;
 * the former native object keeps the wait. Takes that back if the creation fails.
 */
#include "src/core/deferred/deferred_reuse.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/find/addresses.h"
#include "src/core/slot/slot.h"

/* ---- renewing ----------------------------------------------------------------------------- */

/* Requires the lock. Counts the requested bytes of one allocation in place of another's. */
static void count_requested(qi_shard *shard, uint64_t requested, uint64_t former)
{
    shard->stats.requested_bytes += requested - former;
    if (shard->peaks.mode)
        qi_peaks_count_renewal(shard, requested, former);
}

uint32_t qi_deferred_renew_raw(qi_shard *shard, const qi_wait *wait,
                               const qi_range_request *request)
{
    quire_memory *memory = shard->memory;
    uint32_t slot = wait->slot;
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard_keep_peaks(&shard->stats);
    count_requested(shard, request->requested, record->requested);
    qi_shard_count_allocation(shard, 1);
    record->requested = request->requested;
    record->user_data = request->user_data;
    qi_range_note_alignment(record, request);
    qi_slot_renew(&memory->slots, slot);
    return slot;
}

/* Requires the lock. The same for every sort of allocation. */
static uint32_t renew(qi_shard *shard, const qi_wait *wait, const qi_range_request *request)
{
    qi_slot *record = qi_memory_slot(shard->memory, wait->slot);
    record->meta = request->meta;
    record->object = (uint8_t)request->object;
    record->extras = request->extras;
    return qi_deferred_renew_raw(shard, wait, request);
}

/* Requires the lock. The limits of names no longer count the record. Its name stays. */
static void uncount_name(qi_shard *shard, const qi_slot *record)
{
    if (record->meta)
        qi_ignore(qi_names_replace(&shard->memory->names, record->meta->name, NULL,
                                   record)); /* removing a name cannot fail */
}

/*
 * Requires the lock. The wait of a freed allocation whose range has a new owner becomes that of its
 * native object, or ends if it has none to destroy.
 */
static void leave_range(qi_shard *shard, qi_wait *wait, const qi_slot *former)
{
    qi_slot_meta_release(&shard->memory->host, former->meta);
    if (!former->object || !former->native || former->extras & QI_EXTRA_BORROWED) {
        qi_stream_queue_end_wait(shard, wait);
        return;
    }
    wait->slot = QI_NO_SLOT;
    wait->page = former->tally->page;
    wait->native = former->native;
    wait->object = former->object;
    wait->page->objects++;
    wait->page->tally->allocation_count++; /* above 0: the new owner of the range is counted */
    qi_stream_queue_put(shard, wait);
}

/* ---- reusing ------------------------------------------------------------------------------ */

/*
 * Requires the lock. The thread that destroys the wait's stream waits until the reuse ends. The
 * name is uncounted here, not at the end, so that the limits always agree with the records.
 */
static uint32_t begin_reuse(qi_shard *shard, qi_wait *wait, const qi_range_request *request,
                            qi_reuse *reuse)
{
    qi_stream_begin_query(wait->stream);
    *reuse = (qi_reuse){wait, *qi_memory_slot(shard->memory, wait->slot)};
    uncount_name(shard, &reuse->former);
    return renew(shard, wait, request);
}

void qi_deferred_end_reuse(quire_memory *memory, uint32_t slot, qi_reuse *reuse)
{
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    quire_stream *stream = reuse->wait->stream;
    qi_lock_acquire(&shard->lock);
    leave_range(shard, reuse->wait, &reuse->former);
    qi_stream_end_query(stream);
    qi_lock_release(&shard->lock);
    reuse->wait = NULL;
}

/* Requires the lock. Counts the name of a freed allocation again, or drops it beyond a limit. */
static void recount_name(qi_shard *shard, const qi_slot *former)
{
    quire_memory *memory = shard->memory;
    if (!former->meta || !former->meta->name ||
        !qi_names_replace(&memory->names, NULL, former->meta->name, former))
        return;
    qi_host_release_text(&memory->host, former->meta->name);
    former->meta->name = NULL;
}

/* Counterpart of begin_reuse. The caller's error stays. */
void qi_deferred_undo_reuse(quire_memory *memory, uint32_t slot, qi_reuse *reuse)
{
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_error error;
    qi_error_save(&error);
    if (memory->addresses)
        qi_addresses_hide(memory, slot);
    qi_lock_acquire(&shard->lock);
    shard->peaks.is_undoing = true;
    count_requested(shard, reuse->former.requested, record->requested);
    shard->peaks.is_undoing = false;
    qi_shard_count_allocation(shard, -1);
    uncount_name(shard, record);
    qi_slot_meta_release(&memory->host, record->meta);
    *record = reuse->former;
    recount_name(shard, record);
    qi_stream_queue_put(shard, reuse->wait);
    qi_stream_end_query(reuse->wait->stream);
    qi_lock_release(&shard->lock);
    qi_error_restore(&error);
    reuse->wait = NULL;
}

bool qi_deferred_reuse(qi_shard *shard, quire_stream *stream, const qi_range_request *request,
                       const qi_fitting *fitting, uint32_t *slot, qi_reuse *reuse)
{
    qi_wait *wait = qi_stream_queue_take_fitting_on(shard, stream, fitting);
    if (wait)
        *slot = begin_reuse(shard, wait, request, reuse);
    return wait != NULL;
}

uint32_t qi_deferred_renew_any(qi_shard *shard, qi_wait *wait, const qi_range_request *request)
{
    const qi_slot former = *qi_memory_slot(shard->memory, wait->slot);
    uncount_name(shard, &former);
    uint32_t slot = renew(shard, wait, request);
    leave_range(shard, wait, &former);
    return slot;
}

/* ---- taking over from another stream ------------------------------------------------------ */

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
                           const qi_fitting *fitting, uint32_t *slot, qi_reuse *reuse)
{
    if (stream->capture || !qi_device_offers(stream->device, QUIRE_BACKEND_STREAM_ORDER))
        return false;
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        if (queue->stream->capture || queue->stream->device != stream->device)
            continue;
        qi_wait *wait = qi_stream_queue_take_fitting(queue, fitting);
        if (!wait)
            continue;
        quire_stream *earlier = wait->stream;
        qi_stream_begin_query(earlier);
        qi_lock_release(&shard->lock);
        qi_error error;
        qi_error_save(&error);
        quire_result result = order_after(stream, wait);
        qi_error_restore(&error);
        qi_lock_acquire(&shard->lock);
        if (!result)
            *slot = begin_reuse(shard, wait, request, reuse);
        else
            qi_stream_queue_put(shard, wait);
        qi_stream_end_query(earlier);
        if (!result)
            return true;
    }
    return false;
}
