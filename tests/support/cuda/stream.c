/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - streams and events of the fake CUDA driver.
 */
#include "tests/support/cuda/capture.h"
#include "tests/support/cuda/graph.h"
#include "tests/support/cuda/pool.h"

#define MAX_EVENT_FLAGS 7u
#define INTERPROCESS 4u

/* ---- streams ------------------------------------------------------------------------------ */

qi_cu_result fc_StreamCreate(qi_cu_stream *out, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_StreamCreate, &result);
    FC_REFUSE_IF(!out || flags > QI_CU_STREAM_NON_BLOCKING, INVALID_VALUE);
    if (!result) {
        fc_stream *stream = fc_object_new(FC_STREAM, sizeof *stream);
        stream->context = context->object.handle;
        stream->flags = flags;
        *out = FC_HANDLE(qi_cu_stream, &stream->object);
    }
    return fc_leave(result);
}

/* Work of the stream continues. */
qi_cu_result fc_StreamDestroy_v2(qi_cu_stream handle)
{
    qi_cu_result result = fc_enter(FC_CALL_StreamDestroy_v2);
    fc_stream *stream =
        result ? NULL : fc_object_find(FC_CALL_StreamDestroy_v2, FC_STREAM, FC_NUMBER(handle));
    FC_REFUSE_IF(!stream, INVALID_HANDLE);
    if (!result && stream->is_capturing)
        fc_say("fc-capture", FC_CALL_StreamDestroy_v2, "the stream captures a graph");
    if (!result) {
        fc_context *context = fc_object_peek(FC_CONTEXT, stream->context);
        if (context && context->orphaned < stream->end)
            context->orphaned = stream->end;
        fc_graph_drop(&stream->nodes);
        fc_object_end(&stream->object);
    }
    return fc_leave(result);
}

/* The context of a stream, which may be another than the current one (CUDA programming guide,
   "Stream and Event Behavior"; seen on an H100). */
static fc_context *context_with(fc_context *current, qi_cu_stream handle)
{
    const fc_stream *stream = (uintptr_t)handle <= QI_CU_STREAM_PER_THREAD
                                  ? NULL
                                  : fc_object_peek(FC_STREAM, FC_NUMBER(handle));
    fc_context *other = stream ? fc_object_peek(FC_CONTEXT, stream->context) : NULL;
    return other && current ? other : current;
}

qi_cu_result fc_StreamQuery(qi_cu_stream stream)
{
    qi_cu_result result;
    fc_context *context = context_with(fc_enter_context(FC_CALL_StreamQuery, &result), stream);
    uint64_t *end = result ? NULL : fc_line_of(FC_CALL_StreamQuery, context, stream);
    FC_REFUSE_IF(!end, INVALID_HANDLE);
    if (!result)
        result = fc_capture_check_wait(FC_CALL_StreamQuery, context, stream);
    if (!result)
        result = *end > fc.clock ? QI_CUDA_ERROR_NOT_READY : fc.devices[context->device].lost;
    return fc_leave(result);
}

qi_cu_result fc_StreamSynchronize(qi_cu_stream stream)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_StreamSynchronize, &result);
    FC_REFUSE_IF(!fc_line_of(FC_CALL_StreamSynchronize, context, stream), INVALID_HANDLE);
    if (!result)
        result = fc_capture_check_wait(FC_CALL_StreamSynchronize, context, stream);
    if (!result)
        result = fc_finish_stream(context, stream);
    return fc_leave(result);
}

/* The handle of a stream's context: the current one for the default streams. 0 after an error. */
static uint64_t context_of(fc_call call, qi_cu_stream handle, qi_cu_result *result)
{
    const fc_context *context = fc_enter_context(call, result);
    if (*result)
        return 0;
    if ((uintptr_t)handle <= QI_CU_STREAM_PER_THREAD)
        return context->object.handle;
    const fc_stream *stream = fc_stream_find(call, context, handle);
    if (!stream)
        *result = QI_CUDA_ERROR_INVALID_HANDLE;
    return stream ? stream->context : 0;
}

qi_cu_result fc_StreamGetCtx(qi_cu_stream handle, qi_cu_context *out)
{
    qi_cu_result result;
    uint64_t context = context_of(FC_CALL_StreamGetCtx, handle, &result);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    if (!result)
        *out = (qi_cu_context)(uintptr_t)context;
    return fc_leave(result);
}

/* NULL for a stream of another context than a green one. */
qi_cu_result fc_StreamGetGreenCtx(qi_cu_stream handle, qi_cu_green *out)
{
    qi_cu_result result;
    uint64_t number = context_of(FC_CALL_StreamGetGreenCtx, handle, &result);
    const fc_context *context = fc_object_peek(FC_CONTEXT, number);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    if (!result)
        *out = context && context->primary ? (qi_cu_green)(uintptr_t)number : NULL;
    return fc_leave(result);
}

qi_cu_result fc_StreamGetDevice(qi_cu_stream handle, qi_cu_device *out)
{
    qi_cu_result result;
    uint64_t number = context_of(FC_CALL_StreamGetDevice, handle, &result);
    const fc_context *context = fc_object_peek(FC_CONTEXT, number);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    if (!result)
        *out = context ? context->device : 0;
    return fc_leave(result);
}

static bool call_host(fc_work *work)
{
    fc_set_in_host_function(true);
    work->function(work->user);
    fc_set_in_host_function(false);
    return true;
}

qi_cu_result fc_LaunchHostFunc(qi_cu_stream stream, qi_cu_host_function function, void *user)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_LaunchHostFunc, &result);
    FC_REFUSE_IF(!function, INVALID_VALUE);
    if (!result)
        result = fc_queue(context, stream,
                          &(fc_work){.call = FC_CALL_LaunchHostFunc,
                                     .run = call_host,
                                     .function = function,
                                     .user = user});
    return fc_leave(result);
}

/* ---- events ------------------------------------------------------------------------------- */

static fc_event *find_event(fc_call call, qi_cu_event handle, qi_cu_result *result)
{
    fc_event *event = *result ? NULL : fc_object_find(call, FC_EVENT, FC_NUMBER(handle));
    if (!*result && !event)
        *result = QI_CUDA_ERROR_INVALID_HANDLE;
    return event;
}

qi_cu_result fc_EventCreate(qi_cu_event *out, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_EventCreate, &result);
    FC_REFUSE_IF(!out || flags > MAX_EVENT_FLAGS ||
                     (flags & INTERPROCESS && !(flags & QI_CU_EVENT_DISABLE_TIMING)),
                 INVALID_VALUE);
    if (!result) {
        fc_event *event = fc_object_new(FC_EVENT, sizeof *event);
        event->context = context->object.handle;
        event->flags = flags;
        *out = FC_HANDLE(qi_cu_event, &event->object);
    }
    return fc_leave(result);
}

qi_cu_result fc_EventDestroy_v2(qi_cu_event handle)
{
    qi_cu_result result = fc_enter(FC_CALL_EventDestroy_v2);
    fc_event *event = find_event(FC_CALL_EventDestroy_v2, handle, &result);
    if (!result)
        fc_object_end(&event->object);
    return fc_leave(result);
}

qi_cu_result fc_EventRecord(qi_cu_event handle, qi_cu_stream stream)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_EventRecord, &result);
    fc_event *event = find_event(FC_CALL_EventRecord, handle, &result);
    uint64_t *end = result ? NULL : fc_line_of(FC_CALL_EventRecord, context, stream);
    FC_REFUSE_IF(!end || event->context != context->object.handle, INVALID_HANDLE);
    bool is_captured = false;
    if (!result)
        result = fc_capture_check(FC_CALL_EventRecord, context, stream, &is_captured);
    if (!result) {
        event->is_captured = is_captured;
        event->finish = fc_start_of(FC_CALL_EventRecord, context, stream);
    }
    return fc_leave(result);
}

/* The stream and the event may belong to different contexts. */
qi_cu_result fc_StreamWaitEvent(qi_cu_stream stream, qi_cu_event handle, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_StreamWaitEvent, &result);
    fc_event *event = find_event(FC_CALL_StreamWaitEvent, handle, &result);
    uint64_t *end = result ? NULL : fc_line_of(FC_CALL_StreamWaitEvent, context, stream);
    if (!result && (!end || flags > 1))
        result = flags > 1 ? QI_CUDA_ERROR_INVALID_VALUE : QI_CUDA_ERROR_INVALID_HANDLE;
    bool is_captured = false;
    if (!result)
        result = fc_capture_check(FC_CALL_StreamWaitEvent, context, stream, &is_captured);
    if (!result && event->is_captured != is_captured) {
        if (!is_captured)
            fc_say("fc-capture", FC_CALL_StreamWaitEvent, "the event is part of a graph");
        result = QI_CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!result && event->finish > *end)
        *end = event->finish;
    return fc_leave(result);
}

/* An event that is part of a graph never happens. */
static qi_cu_result check_event_wait(const fc_event *event)
{
    if (event->is_captured)
        return QI_CUDA_ERROR_CAPTURED_EVENT;
    return fc_capture_permits_unsafe() ? 0 : QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

qi_cu_result fc_EventQuery(qi_cu_event handle)
{
    qi_cu_result result = fc_enter(FC_CALL_EventQuery);
    fc_event *event = find_event(FC_CALL_EventQuery, handle, &result);
    if (!result)
        result = check_event_wait(event);
    if (!result)
        result = event->finish > fc.clock ? QI_CUDA_ERROR_NOT_READY : 0;
    return fc_leave(result);
}

qi_cu_result fc_EventSynchronize(qi_cu_event handle)
{
    qi_cu_result result = fc_enter(FC_CALL_EventSynchronize);
    fc_event *event = find_event(FC_CALL_EventSynchronize, handle, &result);
    const fc_context *context = event ? fc_object_peek(FC_CONTEXT, event->context) : NULL;
    if (!result)
        result = check_event_wait(event);
    if (!result) {
        fc_run_until(event->finish);
        fc_pools_settle();
        result = context ? fc.devices[context->device].lost : 0;
    }
    return fc_leave(result);
}

/* A tick is a microsecond. */
qi_cu_result fc_EventElapsedTime(float *milliseconds, qi_cu_event start, qi_cu_event end)
{
    qi_cu_result result = fc_enter(FC_CALL_EventElapsedTime);
    fc_event *first = find_event(FC_CALL_EventElapsedTime, start, &result);
    fc_event *second = find_event(FC_CALL_EventElapsedTime, end, &result);
    FC_REFUSE_IF(!milliseconds, INVALID_VALUE);
    FC_REFUSE_IF(!first->finish || !second->finish ||
                     (first->flags | second->flags) & QI_CU_EVENT_DISABLE_TIMING,
                 INVALID_HANDLE);
    FC_REFUSE_IF(first->finish > fc.clock || second->finish > fc.clock, NOT_READY);
    if (!result)
        *milliseconds = ((float)second->finish - (float)first->finish) / 1000;
    return fc_leave(result);
}
