/*
 * transfer_stream.c - copies and fills in the order of a stream.
 *
 * What the backend cannot do on the stream is done after the stream's work so far, complete on
 * return: the order is the same, and the point that is told has passed.
 */
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/deferred/stream.h"
#include "src/core/copy/copy.h"

/* ---- common ------------------------------------------------------------------------------- */

static quire_result check_stream(const quire_stream *stream)
{
    if (stream->capture && !stream->is_over)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "stream '%s' is held: no device works on it", stream->name);
    return stream->is_over ? qi_stream_refuse_after_fork(stream) : QUIRE_SUCCESS;
}

static quire_result refuse_device(const quire_stream *stream)
{
    return qi_fail_text(QUIRE_ERROR_FOREIGN_HANDLE,
                        "stream '%s' is of another device than the memory that it is to work on",
                        stream->name);
}

/* Until all that was submitted to the stream is done. */
static quire_result await_work(quire_stream *stream)
{
    uint64_t value = 0;
    quire_result result = qi_stream_mark(stream, &value);
    return result ? result : qi_stream_await(stream, value, QUIRE_FOREVER);
}

/* The point behind what was just submitted. */
static quire_result tell_point(quire_stream *stream, quire_point *done)
{
    uint64_t value = 0;
    quire_result result = done ? qi_stream_mark(stream, &value) : QUIRE_SUCCESS;
    if (done && !result)
        *done = (quire_point){.stream = stream, .value = value};
    return result;
}

/* ---- copies ------------------------------------------------------------------------------- */

/* An end that the stream's backend knows: host memory, or a page of a device of its own. */
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
    return qi_device_stream_copy(self->device, self->calls, self->stream, job);
}

/* UNSUPPORTED: not by this backend, not these ends. Rows may have been submitted then. */
static quire_result submit_copy(const quire_stream *stream, const qi_copy *t)
{
    quire_memory *memory = is_on_device(stream, t->to.memory) ? t->to.memory : t->from.memory;
    const qi_job_call call = {call_stream_copy, stream->device, &memory->calls, stream->native};
    if (!qi_device_offers(stream->device, QUIRE_BACKEND_STREAM_COPY) ||
        !is_known(stream, t->to.memory) || !is_known(stream, t->from.memory))
        return QUIRE_ERROR_UNSUPPORTED;
    return qi_copy_call(t, &t->region, &call);
}

static quire_result copy_on(quire_stream *stream, qi_copy *t, quire_point *done)
{
    if (!is_on_device(stream, t->to.memory) && !is_on_device(stream, t->from.memory))
        return refuse_device(stream);
    if (!qi_copy_region_bytes(&t->region))
        return QUIRE_SUCCESS;
    qi_error before = qi_error_save();
    quire_result result = submit_copy(stream, t);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result ? result : tell_point(stream, done);
    qi_error_restore(&before);
    result = await_work(stream);
    return result ? result : qi_copy_run(t, &(quire_progress){0});
}

quire_result quire_copy_on(quire_stream *stream, const quire_copy_options *options,
                           quire_point *done)
{
    if (done)
        *done = (quire_point){0};
    if (!stream || !options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_copy_on: stream or options is null");
    quire_result result = check_stream(stream);
    if (!result && options->progress.goes_on)
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                         "a copy on a stream tells no progress: it goes on after the call");
    qi_copy transfer;
    if (!result)
        result = qi_copy_begin(&transfer, options);
    if (result)
        return result;
    result = copy_on(stream, &transfer, done);
    qi_copy_end(&transfer);
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
    qi_error before = qi_error_save();
    quire_result result = submit_fill(stream, memory, slot, *fill);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result ? result : tell_point(stream, done);
    qi_error_restore(&before);
    result = await_work(stream);
    return result ? result : qi_access_fill(memory, slot, fill->offset, fill->size, fill->value);
}

quire_result quire_fill_on(quire_stream *stream, quire_memory *memory, quire_allocation allocation,
                           uint64_t offset, uint64_t size, uint8_t value, quire_point *done)
{
    if (done)
        *done = (quire_point){0};
    if (!stream || !memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_fill_on: stream or memory is null");
    uint32_t slot = 0;
    quire_result result = check_stream(stream);
    if (!result && memory->device != stream->device)
        result = refuse_device(stream);
    if (!result)
        result = qi_access_begin_fill(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    const qi_stream_fill fill = {.offset = offset, .size = size, .value = value};
    result = fill_on(stream, memory, slot, &fill, done);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}
