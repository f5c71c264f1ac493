/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_calls.c - the copying functions of the fake CUDA driver. Each describes source and target;
 * copy.c copies.
 */
#include "tests/support/cuda/copy.h"

static const qi_cu_memory_type DEVICE = QI_CU_MEMORYTYPE_DEVICE, HOST = QI_CU_MEMORYTYPE_HOST;

/* Copies within the reach of the current context's device. */
static qi_cu_result copy(fc_call call, const qi_cu_memcpy3d *what, qi_cu_stream stream, bool waits)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(call, &result);
    FC_REFUSE_IF(!what, INVALID_VALUE);
    if (!result)
        result = fc_copy(context, call, what, context->device, context->device, stream, waits);
    return fc_leave(result);
}

qi_cu_result fc_MemcpyHtoD_v2(qi_cu_ptr to, const void *from, size_t size)
{
    qi_cu_memcpy3d row = fc_row(DEVICE, NULL, to, HOST, from, 0, size);
    return copy(FC_CALL_MemcpyHtoD_v2, &row, NULL, true);
}

qi_cu_result fc_MemcpyDtoH_v2(void *to, qi_cu_ptr from, size_t size)
{
    qi_cu_memcpy3d row = fc_row(HOST, to, 0, DEVICE, NULL, from, size);
    return copy(FC_CALL_MemcpyDtoH_v2, &row, NULL, true);
}

qi_cu_result fc_MemcpyDtoD_v2(qi_cu_ptr to, qi_cu_ptr from, size_t size)
{
    qi_cu_memcpy3d row = fc_row(DEVICE, NULL, to, DEVICE, NULL, from, size);
    return copy(FC_CALL_MemcpyDtoD_v2, &row, NULL, true);
}

qi_cu_result fc_MemcpyHtoDAsync_v2(qi_cu_ptr to, const void *from, size_t size, qi_cu_stream stream)
{
    qi_cu_memcpy3d row = fc_row(DEVICE, NULL, to, HOST, from, 0, size);
    return copy(FC_CALL_MemcpyHtoDAsync_v2, &row, stream, false);
}

qi_cu_result fc_MemcpyDtoHAsync_v2(void *to, qi_cu_ptr from, size_t size, qi_cu_stream stream)
{
    qi_cu_memcpy3d row = fc_row(HOST, to, 0, DEVICE, NULL, from, size);
    return copy(FC_CALL_MemcpyDtoHAsync_v2, &row, stream, false);
}

qi_cu_result fc_MemcpyDtoDAsync_v2(qi_cu_ptr to, qi_cu_ptr from, size_t size, qi_cu_stream stream)
{
    qi_cu_memcpy3d row = fc_row(DEVICE, NULL, to, DEVICE, NULL, from, size);
    return copy(FC_CALL_MemcpyDtoDAsync_v2, &row, stream, false);
}

/* ---- boxes -------------------------------------------------------------------------------- */

static qi_cu_memcpy3d box_of(const qi_cu_memcpy2d *flat)
{
    return (qi_cu_memcpy3d){.srcXInBytes = flat->srcXInBytes,
                            .srcY = flat->srcY,
                            .srcMemoryType = flat->srcMemoryType,
                            .srcHost = flat->srcHost,
                            .srcDevice = flat->srcDevice,
                            .srcArray = flat->srcArray,
                            .srcPitch = flat->srcPitch,
                            .dstXInBytes = flat->dstXInBytes,
                            .dstY = flat->dstY,
                            .dstMemoryType = flat->dstMemoryType,
                            .dstHost = flat->dstHost,
                            .dstDevice = flat->dstDevice,
                            .dstArray = flat->dstArray,
                            .dstPitch = flat->dstPitch,
                            .WidthInBytes = flat->WidthInBytes,
                            .Height = flat->Height,
                            .Depth = 1};
}

qi_cu_result fc_Memcpy2D_v2(const qi_cu_memcpy2d *flat)
{
    qi_cu_memcpy3d box = flat ? box_of(flat) : (qi_cu_memcpy3d){0};
    return copy(FC_CALL_Memcpy2D_v2, flat ? &box : NULL, NULL, true);
}

qi_cu_result fc_Memcpy2DAsync_v2(const qi_cu_memcpy2d *flat, qi_cu_stream stream)
{
    qi_cu_memcpy3d box = flat ? box_of(flat) : (qi_cu_memcpy3d){0};
    return copy(FC_CALL_Memcpy2DAsync_v2, flat ? &box : NULL, stream, false);
}

qi_cu_result fc_Memcpy3D_v2(const qi_cu_memcpy3d *box)
{
    return copy(FC_CALL_Memcpy3D_v2, box, NULL, true);
}

qi_cu_result fc_Memcpy3DAsync_v2(const qi_cu_memcpy3d *box, qi_cu_stream stream)
{
    return copy(FC_CALL_Memcpy3DAsync_v2, box, stream, false);
}

/* ---- between devices ---------------------------------------------------------------------- */

typedef struct peer_copy {
    qi_cu_ptr to, from;
    qi_cu_context to_context, from_context;
    size_t size;
} peer_copy;

static qi_cu_result copy_peer(fc_call call, const peer_copy *what, qi_cu_stream stream, bool waits)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(call, &result);
    const fc_context *to =
        result ? NULL : fc_object_find(call, FC_CONTEXT, FC_NUMBER(what->to_context));
    const fc_context *from =
        result ? NULL : fc_object_find(call, FC_CONTEXT, FC_NUMBER(what->from_context));
    FC_REFUSE_IF(!to || !from, INVALID_CONTEXT);
    qi_cu_memcpy3d row = fc_row(DEVICE, NULL, what->to, DEVICE, NULL, what->from, what->size);
    if (!result)
        result = fc_copy(context, call, &row, to->device, from->device, stream, waits);
    return fc_leave(result);
}

qi_cu_result fc_MemcpyPeer(qi_cu_ptr to, qi_cu_context to_context, qi_cu_ptr from,
                           qi_cu_context from_context, size_t size)
{
    return copy_peer(FC_CALL_MemcpyPeer, &(peer_copy){to, from, to_context, from_context, size},
                     NULL, true);
}

qi_cu_result fc_MemcpyPeerAsync(qi_cu_ptr to, qi_cu_context to_context, qi_cu_ptr from,
                                qi_cu_context from_context, size_t size, qi_cu_stream stream)
{
    return copy_peer(FC_CALL_MemcpyPeerAsync,
                     &(peer_copy){to, from, to_context, from_context, size}, stream, false);
}
