/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * capture.c - see capture.h.
 */
#include "tests/support/cuda/capture.h"

#include "tests/support/cuda/graph.h"

static const qi_cu_capture_mode GLOBAL = QI_CU_STREAM_CAPTURE_MODE_GLOBAL,
                                RELAXED = QI_CU_STREAM_CAPTURE_MODE_RELAXED;

/* ---- unsafe calls ------------------------------------------------------------------------- */

#define UNSAFE_CALLS(X)                                                                            \
    X(MemAlloc_v2)                                                                                 \
    X(MemAllocManaged)                                                                             \
    X(MemFree_v2)                                                                                  \
    X(MemHostAlloc)                                                                                \
    X(MemFreeHost)                                                                                 \
    X(MemHostRegister_v2)                                                                          \
    X(MemHostUnregister)                                                                           \
    X(Array3DCreate_v2)                                                                            \
    X(ArrayDestroy)                                                                                \
    X(MipmappedArrayCreate)                                                                        \
    X(MipmappedArrayDestroy)                                                                       \
    X(MemPoolTrimTo)

/* With FC_UNSAFE_CALLS. */
#define UNCERTAIN_CALLS(X)                                                                         \
    X(CtxEnablePeerAccess)                                                                         \
    X(CtxDisablePeerAccess)                                                                        \
    X(MemCreate)                                                                                   \
    X(MemRelease)                                                                                  \
    X(MemAddressReserve)                                                                           \
    X(MemAddressFree)                                                                              \
    X(MemMap)                                                                                      \
    X(MemUnmap)                                                                                    \
    X(MemSetAccess)                                                                                \
    X(MemExportToShareableHandle)                                                                  \
    X(MemImportFromShareableHandle)                                                                \
    X(MemGetHandleForAddressRange)                                                                 \
    X(MemRetainAllocationHandle)                                                                   \
    X(MulticastCreate)                                                                             \
    X(MulticastAddDevice)                                                                          \
    X(MulticastBindMem)                                                                            \
    X(MulticastBindAddr)                                                                           \
    X(MulticastUnbind)                                                                             \
    X(ImportExternalMemory)                                                                        \
    X(ExternalMemoryGetMappedBuffer)                                                               \
    X(DestroyExternalMemory)                                                                       \
    X(MemMapArrayAsync)                                                                            \
    X(MemPoolSetAttribute)                                                                         \
    X(MemPoolCreate)                                                                               \
    X(MemPoolDestroy)                                                                              \
    X(MemPoolSetAccess)                                                                            \
    X(IpcGetMemHandle)                                                                             \
    X(IpcOpenMemHandle_v2)                                                                         \
    X(IpcCloseMemHandle)                                                                           \
    X(StreamCreate)                                                                                \
    X(StreamDestroy_v2)                                                                            \
    X(EventCreate)                                                                                 \
    X(EventDestroy_v2)

static bool is_unsafe(fc_call call)
{
    switch ((int)call) {
#define X(name) case FC_CALL_##name:
        UNSAFE_CALLS(X)
        return true;
        UNCERTAIN_CALLS(X)
#undef X
        return fc.options.flags & FC_UNSAFE_CALLS;
    default:
        return false;
    }
}

/* ---- modes -------------------------------------------------------------------------------- */

/* The thread's mode in one generation of the driver. */
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

/* Also captures that are invalid already, until they end. */
static fc_stream *next_capturing(uint64_t *index)
{
    for (fc_object *object = fc_object_next(index); object; object = fc_object_next(index))
        if (object->kind == FC_STREAM && ((fc_stream *)object)->is_capturing)
            return (fc_stream *)object;
    return NULL;
}

bool fc_capture_permits(fc_call call)
{
    return !is_unsafe(call) || fc_capture_permits_unsafe();
}

bool fc_capture_permits_unsafe(void)
{
    uint64_t index = 0;
    bool permits = true;
    if (*mode_of_thread() == RELAXED)
        return true;
    for (fc_stream *s = next_capturing(&index); s; s = next_capturing(&index))
        if (s->thread == fc_thread() ? s->mode != RELAXED
                                     : s->mode == GLOBAL && *mode_of_thread() == GLOBAL) {
            s->is_broken = true;
            permits = false;
        }
    return permits;
}

/* ---- conflicts ---------------------------------------------------------------------------- */

/* Returns true if a stream of the context captures; with `blocking`, one that the legacy default
   stream waits for. */
static bool any_captures(const fc_context *context, bool blocking, bool breaks)
{
    uint64_t index = 0;
    bool any = false;
    for (fc_stream *s = next_capturing(&index); s; s = next_capturing(&index))
        if (fc_context_has(context, s->context) &&
            !(blocking && s->flags & QI_CU_STREAM_NON_BLOCKING)) {
            s->is_broken |= breaks;
            any = true;
        }
    return any;
}

static qi_cu_result check_legacy(const fc_context *context)
{
    return any_captures(context, true, true) ? QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : 0;
}

/* NULL unless the stream captures. */
static fc_stream *capturing(fc_call call, const fc_context *context, qi_cu_stream handle)
{
    fc_stream *stream = fc_is_legacy(handle) ? NULL : fc_stream_find(call, context, handle);
    return stream && stream->is_capturing ? stream : NULL;
}

bool fc_is_capturing(fc_call call, const fc_context *context, qi_cu_stream handle)
{
    return capturing(call, context, handle);
}

qi_cu_result fc_capture_check(fc_call call, const fc_context *context, qi_cu_stream handle,
                              bool *is_captured)
{
    *is_captured = false;
    if (fc_is_legacy(handle))
        return check_legacy(context);
    const fc_stream *stream = capturing(call, context, handle);
    if (!stream)
        return 0;
    if (!(fc.options.flags & FC_GRAPHS))
        fc_say("fc-capture", call, "the stream captures a graph, which the call becomes part of");
    *is_captured = true;
    return stream->is_broken ? QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
}

qi_cu_result fc_capture_check_wait(fc_call call, const fc_context *context, qi_cu_stream handle)
{
    qi_cu_result result = fc_is_legacy(handle) ? check_legacy(context) : 0;
    fc_stream *stream = capturing(call, context, handle);
    if (stream)
        stream->is_broken = true;
    FC_REFUSE_IF(stream || !fc_capture_permits_unsafe(), STREAM_CAPTURE_UNSUPPORTED);
    return result;
}

qi_cu_result fc_capture_check_context(const fc_context *context)
{
    return any_captures(context, false, true) ? QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : 0;
}

/* ---- calls -------------------------------------------------------------------------------- */

/* No current context is needed, except to find the default stream of the thread. */
static fc_stream *enter(fc_call call, qi_cu_stream handle, qi_cu_result *result)
{
    *result = fc_enter(call);
    if (!*result && fc_is_legacy(handle))
        *result = call == FC_CALL_StreamEndCapture ? QI_CUDA_ERROR_ILLEGAL_STATE
                                                   : QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fc_stream *stream = *result ? NULL : fc_stream_find(call, fc_context_peek(), handle);
    if (!*result && !stream)
        *result = QI_CUDA_ERROR_INVALID_VALUE;
    return stream;
}

qi_cu_result fc_StreamBeginCapture_v2(qi_cu_stream handle, qi_cu_capture_mode mode)
{
    qi_cu_result result;
    fc_stream *stream = enter(FC_CALL_StreamBeginCapture_v2, handle, &result);
    FC_REFUSE_IF(mode > RELAXED, INVALID_VALUE);
    FC_REFUSE_IF(stream->is_capturing, ILLEGAL_STATE);
    if (!result) {
        stream->is_capturing = true;
        stream->is_broken = false;
        stream->mode = mode;
        stream->thread = fc_thread();
    }
    return fc_leave(result);
}

qi_cu_result fc_StreamEndCapture(qi_cu_stream handle, qi_cu_graph *graph)
{
    qi_cu_result result;
    fc_stream *stream = enter(FC_CALL_StreamEndCapture, handle, &result);
    FC_REFUSE_IF(!graph, INVALID_VALUE);
    FC_REFUSE_IF(!stream->is_capturing, ILLEGAL_STATE);
    FC_REFUSE_IF(stream->mode != RELAXED && stream->thread != fc_thread(),
                 STREAM_CAPTURE_WRONG_THREAD);
    if (!result) {
        stream->is_capturing = false;
        *graph = fc_graph_take(stream);
        result = stream->is_broken ? QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
    }
    return fc_leave(result);
}

qi_cu_result fc_StreamIsCapturing(qi_cu_stream handle, qi_cu_capture_status *status)
{
    qi_cu_result result;
    const fc_context *context = fc_enter_context(FC_CALL_StreamIsCapturing, &result);
    const fc_stream *stream = NULL;
    FC_REFUSE_IF(!status, INVALID_VALUE);
    if (!result && fc_is_legacy(handle))
        result = any_captures(context, true, false) ? QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : 0;
    else if (!result)
        stream = fc_stream_find(FC_CALL_StreamIsCapturing, context, handle);
    FC_REFUSE_IF(!fc_is_legacy(handle) && !stream, INVALID_VALUE);
    if (!result)
        *status = !stream || !stream->is_capturing ? QI_CU_STREAM_CAPTURE_STATUS_NONE
                  : stream->is_broken              ? QI_CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                   : QI_CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return fc_leave(result);
}

qi_cu_result fc_ThreadExchangeStreamCaptureMode(qi_cu_capture_mode *mode)
{
    qi_cu_result result = fc_enter(FC_CALL_ThreadExchangeStreamCaptureMode);
    FC_REFUSE_IF(!mode || *mode > RELAXED, INVALID_VALUE);
    if (!result) {
        qi_cu_capture_mode before = *mode_of_thread();
        *mode_of_thread() = *mode;
        *mode = before;
    }
    return fc_leave(result);
}
