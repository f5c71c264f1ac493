/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * external.c - memory of other drivers in the fake CUDA driver: a descriptor of a file that can be
 * mapped, such as the fake Vulkan driver exports.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cuda/context.h"
#include "tests/support/cuda/external.h"
#include "tests/support/cuda/queue.h"
#include "tests/support/cuda/span.h"

typedef struct fc_external {
    fc_object object;
    uint64_t context;
    int fd;
    uint64_t size;
} fc_external;

void fc_external_end(fc_object *object)
{
    close(((fc_external *)object)->fd);
    fc_object_end(object);
}

uint64_t fc_external_context(const fc_object *object)
{
    return ((const fc_external *)object)->context;
}

static qi_cu_result check(const qi_cu_external_desc *desc)
{
    struct stat status;
    if (!desc->size || desc->flags & ~(unsigned)QI_CUDA_EXTERNAL_MEMORY_DEDICATED)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (desc->type != QI_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (fstat(desc->handle.fd, &status))
        return QI_CUDA_ERROR_INVALID_HANDLE;
    return (uint64_t)status.st_size < desc->size ? QI_CUDA_ERROR_INVALID_VALUE : 0;
}

/* The driver owns the descriptor after success. */
qi_cu_result fc_ImportExternalMemory(qi_cu_external *out, const qi_cu_external_desc *desc)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_ImportExternalMemory, &result);
    FC_REFUSE_IF(!out || !desc, INVALID_VALUE);
    if (!result)
        result = check(desc);
    if (!result) {
        fc_external *external = fc_object_new(FC_EXTERNAL, sizeof *external);
        external->context = context->object.handle;
        external->fd = desc->handle.fd;
        external->size = desc->size;
        *out = FC_HANDLE(qi_cu_external, &external->object);
    }
    return fc_leave(result);
}

/* ---- buffers ------------------------------------------------------------------------------ */

static qi_cu_result map(fc_context *context, fc_external *external,
                        const qi_cu_external_buffer *buffer, qi_cu_ptr *pointer)
{
    fc_bytes bytes;
    uint64_t room = fc_whole_pages(buffer->offset + buffer->size);
    uint64_t base = fc_addresses_take(room, fc_page(), 0);
    int copy = base ? dup(external->fd) : -1;
    if (copy >= 0)
        fc_bytes_adopt(&bytes, copy, room);
    if (copy < 0 || !fc_bytes_map(&bytes, 0, room, base)) {
        if (copy >= 0)
            close(copy);
        if (base)
            fc_addresses_give(base, room);
        return QI_CUDA_ERROR_INVALID_VALUE;
    }
    fc_span *span = fc_span_add(FC_BUFFER, base + buffer->offset, buffer->size);
    span->owned = bytes;
    span->bytes = &span->owned;
    span->offset = span->front = buffer->offset;
    span->device = context->device;
    span->context = context->object.handle;
    span->external = external->object.handle;
    *pointer = span->base;
    return 0;
}

qi_cu_result fc_ExternalMemoryGetMappedBuffer(qi_cu_ptr *pointer, qi_cu_external handle,
                                              const qi_cu_external_buffer *buffer)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_ExternalMemoryGetMappedBuffer, &result);
    fc_external *external = result ? NULL
                                   : fc_object_find(FC_CALL_ExternalMemoryGetMappedBuffer,
                                                    FC_EXTERNAL, FC_NUMBER(handle));
    FC_REFUSE_IF(!external, INVALID_HANDLE);
    if (!result &&
        (!pointer || !buffer || buffer->flags || !buffer->size || buffer->offset > external->size ||
         buffer->size > external->size - buffer->offset))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = map(context, external, buffer, pointer);
    return fc_leave(result);
}

static bool has_buffers(const fc_external *external)
{
    for (uint32_t i = 0; i < fc.span_count; i++)
        if (fc.spans[i]->external == external->object.handle)
            return true;
    return false;
}

qi_cu_result fc_DestroyExternalMemory(qi_cu_external handle)
{
    qi_cu_result result = fc_enter(FC_CALL_DestroyExternalMemory);
    fc_external *external =
        result ? NULL
               : fc_object_find(FC_CALL_DestroyExternalMemory, FC_EXTERNAL, FC_NUMBER(handle));
    FC_REFUSE_IF(!external, INVALID_HANDLE);
    if (!result && has_buffers(external))
        fc_say("fc-buffers", FC_CALL_DestroyExternalMemory, "buffers of it are not freed");
    if (!result)
        fc_external_end(&external->object);
    return fc_leave(result);
}
