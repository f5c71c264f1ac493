/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_stream.c - copies, batches and fills in the order of a stream: submitted to it if the
 * backend can, otherwise made by the calling thread after it waited for the work submitted so far
 * (see copy.h). In the second case the copy is complete on return, and no point is needed.
 *
 * What was submitted is recorded as an own use of its allocations, so that a free waits for it.
 */
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/copy/copy.h"
#include "src/core/copy/copy_batch.h"
#include "src/core/deferred/deferred_free.h"

/* ---- common ------------------------------------------------------------------------------- */

static quire_result check_stream(const quire_stream *stream)
{
    if (stream->capture && !stream->is_over)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "stream '%s' is a capture stream: no device works on it", stream->name);
    return stream->is_over ? qi_stream_refuse_after_fork(stream) : QUIRE_SUCCESS;
}

static quire_result refuse_device(const quire_stream *stream)
{
    return qi_fail_text(QUIRE_ERROR_FOREIGN_HANDLE,
                        "stream '%s' belongs to another device than the memory", stream->name);
}

/* Waits until the work submitted to the stream so far is done. */
static quire_result await_work(quire_stream *stream)
{
    uint64_t value = 0;
    quire_result result = qi_stream_mark(stream, &value);
    return result ? result : qi_stream_await(stream, value, QUIRE_FOREVER);
}

/* Waits for the rows or items that were submitted before a failure: the caller gets no point, and
   may free the allocations. The thread's last error stays that of the failure. */
static void settle(quire_stream *stream)
{
    qi_error failure;
    qi_error_save(&failure);
    qi_ignore(await_work(stream)); /* without a mark nothing is left to wait for */
    qi_error_restore(&failure);
}

/* Marks the stream if the caller wants the point after what was just submitted. *value is 0 if
   there is no mark. */
static quire_result get_point(quire_stream *stream, quire_point *done, uint64_t *value)
{
    *value = 0;
    quire_result result = done ? qi_stream_mark(stream, value) : QUIRE_SUCCESS;
    if (done && !result)
        *done = (quire_point){.stream = stream, .value = *value};
    return result;
}

/*
 * Records a use of a slot by what was just submitted, up to a value (0: not marked). If that is
 * impossible, the work is done on return.
 */
static void record(quire_stream *stream, quire_memory *memory, uint32_t slot, uint64_t value)
{
    qi_error before;
    qi_error_save(&before);
    if (qi_record_own_use(memory, slot, stream, value))
        settle(stream);
    qi_error_restore(&before);
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Whether the stream's backend knows this end: host memory, or a page of one of its devices. */
static bool is_known(const quire_stream *stream, const quire_memory *memory)
{
    return !memory || memory->device->original == stream->device->original;
}

static bool is_on_device(const quire_stream *stream, const quire_memory *memory)
{
    return memory && memory->device == stream->device;
}

static quire_result call_stream_copy(const qi_job_call *self, const quire_copy_job *job)
{
    quire_result result = qi_device_stream_copy(self->device, self->calls, self->stream, job);
    *self->has_submitted |= !result;
    return result;
}

/* Returns UNSUPPORTED if the backend cannot copy, or not between these ends. Some rows may have
   been submitted by then: the copy after the wait writes the same bytes again. */
static quire_result submit_copy(const quire_stream *stream, const qi_copy *copy,
                                bool *has_submitted)
{
    quire_memory *memory =
        is_on_device(stream, copy->to.memory) ? copy->to.memory : copy->from.memory;
    const qi_job_call call = {.call = call_stream_copy,
                              .device = stream->device,
                              .calls = &memory->calls,
                              .stream = stream->native,
                              .has_submitted = has_submitted};
    if (!qi_device_offers(stream->device, QUIRE_BACKEND_STREAM_COPY) ||
        !is_known(stream, copy->to.memory) || !is_known(stream, copy->from.memory))
        return QUIRE_ERROR_UNSUPPORTED;
    return qi_copy_call(copy, &copy->region, &call);
}

static void record_end(quire_stream *stream, const qi_end *end, uint64_t value)
{
    if (end->memory)
        record(stream, end->memory, end->slot, value);
}

static quire_result copy_on(quire_stream *stream, qi_copy *copy, quire_point *done)
{
    if (!is_on_device(stream, copy->to.memory) && !is_on_device(stream, copy->from.memory))
        return refuse_device(stream);
    if (!qi_copy_region_bytes(&copy->region))
        return QUIRE_SUCCESS;
    qi_error before;
    qi_error_save(&before);
    bool has_submitted = false;
    quire_result result = submit_copy(stream, copy, &has_submitted);
    if (!result) {
        uint64_t value;
        result = get_point(stream, done, &value);
        record_end(stream, &copy->to, value);
        record_end(stream, &copy->from, value);
        return result;
    }
    if (result != QUIRE_ERROR_UNSUPPORTED) {
        if (has_submitted)
            settle(stream);
        return result;
    }
    qi_error_restore(&before);
    result = await_work(stream);
    return result ? result : qi_copy_run(copy, &(quire_progress){0});
}

quire_result qi_copy_on_stream(quire_stream *stream, const quire_copy_options *options,
                               quire_point *done)
{
    quire_result result = check_stream(stream);
    if (!result && options->progress.goes_on)
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                         "a copy on a stream reports no progress: it continues after the call");
    qi_copy copy;
    if (!result)
        result = qi_copy_begin(&copy, options);
    if (result)
        return result;
    result = copy_on(stream, &copy, done);
    qi_copy_end(&copy);
    return result;
}

/* ---- batches ------------------------------------------------------------------------------ */

static quire_result write_batch_on(quire_stream *stream, const qi_copy_batch *batch,
                                   quire_point *done)
{
    qi_error before;
    qi_error_save(&before);
    bool has_submitted;
    quire_result result = qi_copy_batch_submit(batch, stream->native, &has_submitted);
    if (!result) {
        uint64_t value, i = 0;
        uint32_t slot;
        qi_error_restore(&before); /* the backend may have refused lists */
        result = get_point(stream, done, &value);
        while (qi_copy_batch_next_slot(batch, &i, &slot))
            record(stream, batch->memory, slot, value);
        return result;
    }
    if (result != QUIRE_ERROR_UNSUPPORTED) {
        if (has_submitted)
            settle(stream);
        return result;
    }
    qi_error_restore(&before);
    result = await_work(stream);
    return result ? result : qi_copy_batch_run(batch);
}

quire_result qi_copy_batch_on_stream(quire_stream *stream, const qi_copy_batch *batch,
                                     quire_point *done)
{
    quire_result result = check_stream(stream);
    if (!result && batch->memory->device != stream->device)
        result = refuse_device(stream);
    if (!result)
        result = qi_copy_batch_begin(batch);
    if (result)
        return result;
    if (batch->count)
        result = write_batch_on(stream, batch, done);
    qi_copy_batch_end(batch);
    return result;
}

/* ---- fills -------------------------------------------------------------------------------- */

static quire_result submit_fill(const quire_stream *stream, quire_memory *memory, uint32_t slot,
                                qi_stream_fill fill)
{
    if (!qi_device_offers(stream->device, QUIRE_BACKEND_STREAM_FILL))
        return QUIRE_ERROR_UNSUPPORTED;
    fill.offset += qi_memory_slot(memory, slot)->offset;
    return qi_device_stream_fill(stream->device, &memory->calls, stream->native,
                                 &qi_memory_page(memory, slot)->native, &fill);
}

static quire_result fill_on(quire_stream *stream, quire_memory *memory, uint32_t slot,
                            const qi_stream_fill *fill, quire_point *done)
{
    qi_error before;
    qi_error_save(&before);
    quire_result result = submit_fill(stream, memory, slot, *fill);
    if (!result) {
        uint64_t value;
        result = get_point(stream, done, &value);
        record(stream, memory, slot, value);
        return result;
    }
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    result = await_work(stream);
    return result ? result
                  : qi_access_fill_slot(memory, slot, fill->offset, fill->size, fill->value);
}

quire_result qi_fill_on_stream(quire_stream *stream, quire_memory *memory,
                               quire_allocation allocation, qi_stream_fill fill, quire_point *done)
{
    uint32_t slot = 0;
    quire_result result = check_stream(stream);
    if (!result && memory->device != stream->device)
        result = refuse_device(stream);
    if (!result)
        result = qi_access_begin_fill(memory, allocation, fill.offset, &fill.size, &slot);
    if (result)
        return result;
    result = fill_on(stream, memory, slot, &fill, done);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}
