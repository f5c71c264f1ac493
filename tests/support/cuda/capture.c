/*
 * capture.c - see capture.h.
 */
#include "tests/support/cuda/capture.h"

static const qi_cu_capture_mode GLOBAL = QI_CU_STREAM_CAPTURE_MODE_GLOBAL,
                                RELAXED = QI_CU_STREAM_CAPTURE_MODE_RELAXED;

/* The thread's mode in one generation of the driver. Its address identifies the thread. */
static _Thread_local struct {
    uint64_t generation;
    qi_cu_capture_mode mode;
} own;

static qi_cu_capture_mode *mode_of_thread(void)
{
    if (own.generation != fc.generation) {
        own.generation = fc.generation;
        own.mode = GLOBAL;
    }
    return &own.mode;
}

static fc_stream *next_capturing(uint64_t *index)
{
    for (fc_object *object = fc_object_next(index); object; object = fc_object_next(index))
        if (object->kind == FC_STREAM && ((fc_stream *)object)->is_capturing)
            return (fc_stream *)object;
    return NULL;
}

bool fc_capture_permits(void)
{
    uint64_t index = 0;
    bool permits = true;
    if (*mode_of_thread() == RELAXED)
        return true;
    for (fc_stream *s = next_capturing(&index); s; s = next_capturing(&index))
        if (s->thread == &own ? s->mode != RELAXED
                              : s->mode == GLOBAL && *mode_of_thread() == GLOBAL) {
            s->is_broken = true;
            permits = false;
        }
    return permits;
}

/* Returns true if a stream captures that the default stream waits for. */
static bool any_blocking(const fc_context *context)
{
    uint64_t index = 0;
    for (const fc_stream *s = next_capturing(&index); s; s = next_capturing(&index))
        if (s->context == context->object.handle && !(s->flags & QI_CU_STREAM_NON_BLOCKING))
            return true;
    return false;
}

static bool is_default(qi_cu_stream stream)
{
    return (uintptr_t)stream <= QI_CU_STREAM_LEGACY;
}

qi_cu_result fc_capture_check(fc_call call, const fc_context *context, qi_cu_stream handle)
{
    if (is_default(handle))
        return any_blocking(context) ? QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : 0;
    fc_stream *stream = fc_object_peek(FC_STREAM, FC_NUMBER(handle));
    if (!stream || !stream->is_capturing)
        return 0;
    fc_say("fc-capture", call, "the stream captures a graph, which the call would become part of");
    stream->is_broken = true;
    return QI_CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

/* ---- calls -------------------------------------------------------------------------------- */

static fc_stream *enter(fc_call call, qi_cu_stream handle, qi_cu_result *result)
{
    *result = fc_enter(call);
    fc_stream *stream = *result ? NULL : fc_object_find(call, FC_STREAM, FC_NUMBER(handle));
    if (!*result && !stream)
        *result = QI_CUDA_ERROR_INVALID_VALUE;
    return stream;
}

qi_cu_result fc_StreamBeginCapture_v2(qi_cu_stream handle, qi_cu_capture_mode mode)
{
    qi_cu_result result;
    fc_stream *stream = enter(FC_CALL_StreamBeginCapture_v2, handle, &result);
    if (!result && (stream->is_capturing || mode > RELAXED))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        stream->is_capturing = true;
        stream->is_broken = false;
        stream->mode = mode;
        stream->thread = &own;
    }
    return fc_leave(result);
}

qi_cu_result fc_StreamEndCapture(qi_cu_stream handle, qi_cu_graph *graph)
{
    qi_cu_result result;
    fc_stream *stream = enter(FC_CALL_StreamEndCapture, handle, &result);
    if (!result && (!graph || !stream->is_capturing))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result && stream->mode != RELAXED && stream->thread != &own)
        result = QI_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (!result) {
        stream->is_capturing = false;
        *graph = NULL;
        result = stream->is_broken ? QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
    }
    return fc_leave(result);
}

qi_cu_result fc_StreamIsCapturing(qi_cu_stream handle, qi_cu_capture_status *status)
{
    qi_cu_result result;
    const fc_context *context = fc_enter_context(FC_CALL_StreamIsCapturing, &result);
    const fc_stream *stream = NULL;
    if (!result && !status)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result && is_default(handle))
        result = any_blocking(context) ? QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : 0;
    else if (!result)
        stream = fc_object_find(FC_CALL_StreamIsCapturing, FC_STREAM, FC_NUMBER(handle));
    if (!result && !is_default(handle) && !stream)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *status = !stream || !stream->is_capturing ? QI_CU_STREAM_CAPTURE_STATUS_NONE
                  : stream->is_broken              ? QI_CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                   : QI_CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return fc_leave(result);
}

qi_cu_result fc_ThreadExchangeStreamCaptureMode(qi_cu_capture_mode *mode)
{
    qi_cu_result result = fc_enter(FC_CALL_ThreadExchangeStreamCaptureMode);
    if (!result && (!mode || *mode > RELAXED))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        qi_cu_capture_mode before = *mode_of_thread();
        *mode_of_thread() = *mode;
        *mode = before;
    }
    return fc_leave(result);
}
