/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * green.c - green contexts of the fake CUDA driver, which have a part of a device's processors.
 * Here they only have streams. A green context is a context that keeps the primary one of its
 * device.
 *
 * From cuda.h 13.0: cuGreenCtxCreate retains the primary context and requires its one flag; streams
 * must be non-blocking; cuStreamGetCtx answers what cuCtxFromGreenCtx does, never the primary
 * context.
 */
#include "tests/support/cuda/queue.h"

#define DEFAULT_STREAM 1u

static fc_context *find(fc_call call, qi_cu_green handle, qi_cu_result *result)
{
    fc_context *green = *result ? NULL : fc_object_find(call, FC_CONTEXT, FC_NUMBER(handle));
    if (!*result && (!green || !green->primary))
        *result = QI_CUDA_ERROR_INVALID_CONTEXT;
    return green;
}

qi_cu_result fc_GreenCtxCreate(qi_cu_green *out, qi_cu_resources resources, qi_cu_device device,
                               unsigned int flags)
{
    qi_cu_result result = fc_enter(FC_CALL_GreenCtxCreate);
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    FC_REFUSE_IF(!out || !resources || flags != DEFAULT_STREAM, INVALID_VALUE);
    if (!result) {
        fc_context *green = fc_object_new(FC_CONTEXT, sizeof *green);
        green->device = device;
        green->primary = fc_primary_retain(device)->object.handle;
        *out = FC_HANDLE(qi_cu_green, &green->object);
    }
    return fc_leave(result);
}

qi_cu_result fc_GreenCtxDestroy(qi_cu_green handle)
{
    qi_cu_result result = fc_enter(FC_CALL_GreenCtxDestroy);
    fc_context *green = find(FC_CALL_GreenCtxDestroy, handle, &result);
    if (!result) {
        fc_context *primary = fc_object_peek(FC_CONTEXT, green->primary);
        fc_context_end(green, FC_CALL_GreenCtxDestroy);
        fc_primary_release(primary, FC_CALL_GreenCtxDestroy);
    }
    return fc_leave(result);
}

qi_cu_result fc_CtxFromGreenCtx(qi_cu_context *context, qi_cu_green handle)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxFromGreenCtx);
    const fc_context *green = find(FC_CALL_CtxFromGreenCtx, handle, &result);
    FC_REFUSE_IF(!context, INVALID_VALUE);
    if (!result)
        *context = FC_HANDLE(qi_cu_context, &green->object);
    return fc_leave(result);
}

qi_cu_result fc_GreenCtxStreamCreate(qi_cu_stream *out, qi_cu_green handle, unsigned int flags,
                                     int priority)
{
    qi_cu_result result = fc_enter(FC_CALL_GreenCtxStreamCreate);
    const fc_context *green = find(FC_CALL_GreenCtxStreamCreate, handle, &result);
    (void)priority;
    FC_REFUSE_IF(!out || flags != QI_CU_STREAM_NON_BLOCKING, INVALID_VALUE);
    if (!result) {
        fc_stream *stream = fc_object_new(FC_STREAM, sizeof *stream);
        stream->context = green->object.handle;
        stream->flags = flags;
        *out = FC_HANDLE(qi_cu_stream, &stream->object);
    }
    return fc_leave(result);
}
