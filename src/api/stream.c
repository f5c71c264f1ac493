/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - the public functions of quire/stream.h: each zeroes its outputs, checks its arguments,
 * refuses a stream or a device that did not survive a fork, and calls the core.
 */
#include "quire/stream.h"

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/deferred/stream.h"

/* ---- streams -------------------------------------------------------------------------------- */

quire_result quire_stream_create(quire_device *device, const quire_stream_options *options,
                                 quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!device || !stream)
        return qi_fail_null("quire_stream_create", !device ? "device" : "stream");
    const quire_stream_options given = options ? *options : (quire_stream_options){0};
    quire_result result = qi_check_unused(&given, "quire_stream_options");
    return result ? result : qi_stream_create(device, NULL, given.name, given.capture, stream);
}

quire_result quire_stream_destroy(quire_stream **stream)
{
    if (!stream)
        return qi_fail_null("quire_stream_destroy", "stream");
    return *stream ? qi_stream_destroy(stream) : QUIRE_SUCCESS;
}

quire_result quire_stream_get_info(const quire_stream *stream, quire_stream_info *info)
{
    if (info)
        *info = (quire_stream_info){0};
    if (!stream || !info)
        return qi_fail_null("quire_stream_get_info", !stream ? "stream" : "info");
    if (stream->device->is_disabled)
        return qi_refuse_disabled();
    *info = (quire_stream_info){
        .name = stream->name,
        .device = stream->device,
        .capture = stream->capture,
        .native = stream->native,
        .marked = qi_atomic_load_acquire_u64(&stream->marked),
        .passed = qi_atomic_load_acquire_u64(&stream->passed),
        .deferred = qi_stream_waits(stream),
    };
    return QUIRE_SUCCESS;
}

/* ---- points --------------------------------------------------------------------------------- */

quire_result quire_stream_mark(quire_stream *stream, quire_point *point)
{
    if (point)
        *point = (quire_point){0};
    if (!stream || !point)
        return qi_fail_null("quire_stream_mark", !stream ? "stream" : "point");
    if (stream->is_over)
        return qi_stream_refuse_after_fork(stream);
    uint64_t value = 0;
    quire_result result = qi_stream_mark(stream, &value);
    if (!result)
        *point = (quire_point){stream, value};
    return result;
}

quire_result quire_stream_announce(quire_stream *stream, uint64_t value)
{
    if (!stream)
        return qi_fail_null("quire_stream_announce", "stream");
    if (!value)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_stream_announce: value is 0");
    return stream->is_over ? qi_stream_refuse_after_fork(stream)
                           : qi_stream_announce(stream, value);
}

quire_result quire_stream_wait(quire_stream *stream, const quire_point *point)
{
    if (!stream || !point)
        return qi_fail_null("quire_stream_wait", !stream ? "stream" : "point");
    if (stream->is_over)
        return qi_stream_refuse_after_fork(stream);
    quire_result result = qi_stream_check_point(point);
    if (result || !point->stream)
        return result;
    return qi_stream_order(stream, point->stream, point->value);
}

quire_result quire_point_has_passed(const quire_point *point, bool *has_passed)
{
    if (has_passed)
        *has_passed = false;
    if (!point || !has_passed)
        return qi_fail_null("quire_point_has_passed", !point ? "point" : "has_passed");
    if (point->stream && point->stream->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = qi_stream_check_point(point);
    if (!result && point->stream && !qi_stream_has_passed(point->stream, point->value))
        result = qi_stream_query(point->stream);
    *has_passed = !result && (!point->stream || qi_stream_has_passed(point->stream, point->value));
    return result;
}

quire_result quire_point_await(const quire_point *point, uint64_t nanoseconds)
{
    if (!point)
        return qi_fail_null("quire_point_await", "point");
    if (point->stream && point->stream->device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = qi_stream_check_point(point);
    if (result || !point->stream)
        return result;
    return qi_stream_await(point->stream, point->value, nanoseconds);
}

/* ---- memory in the order of streams --------------------------------------------------------- */

quire_result quire_free_on_stream(quire_memory *memory, quire_allocation allocation,
                                  quire_stream *stream)
{
    if (!memory || !stream)
        return qi_fail_null("quire_free_on_stream", !memory ? "memory" : "stream");
    quire_result result = qi_stream_check_marks(stream);
    return result ? result : qi_deferred_claim_and_free(memory, allocation, stream, 0);
}

quire_result quire_free_after_point(quire_memory *memory, quire_allocation allocation,
                                    const quire_point *point)
{
    if (!memory || !point)
        return qi_fail_null("quire_free_after_point", !memory ? "memory" : "point");
    if (!point->stream || qi_stream_has_passed(point->stream, point->value))
        return qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE);
    quire_result result = qi_stream_check_point(point);
    return result ? result
                  : qi_deferred_claim_and_free(memory, allocation, point->stream, point->value);
}

quire_result quire_record_use(quire_memory *memory, quire_allocation allocation,
                              quire_stream *stream)
{
    if (!memory || !stream)
        return qi_fail_null("quire_record_use", !memory ? "memory" : "stream");
    return qi_record_use(memory, allocation, stream);
}

quire_result quire_collect(quire_memory *memory, uint64_t *released)
{
    if (released)
        *released = 0;
    quire_result result = check_memory(memory, "quire_collect");
    if (result)
        return result;
    uint64_t bytes = 0;
    result = qi_deferred_collect(memory, &bytes);
    if (released)
        *released = bytes;
    return result;
}
