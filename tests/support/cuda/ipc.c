/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ipc.c - blocks of cuMemAlloc that another process maps, by the legacy handles of the fake CUDA
 * driver. A handle names a part of the store of its process, which lives as long as the process.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cuda/linear.h"

#define MARK UINT64_C(0x64656b6166637069)

/* The contents of a handle. */
typedef struct ticket {
    uint64_t mark;
    int process, fd;
    uint64_t file, offset, room; /* inode; bytes of the store */
    uint64_t size;               /* of the block */
    uint32_t front;              /* bytes of the store before it */
    int device;
} ticket;

_Static_assert(sizeof(ticket) <= sizeof(qi_cu_ipc_handle), "a handle holds a ticket");

/* ---- export ------------------------------------------------------------------------------- */

static ticket ticket_of(const fc_span *span)
{
    struct stat status = {0};
    (void)fstat(span->owned.fd, &status);
    return (ticket){.mark = MARK,
                    .process = (int)getpid(),
                    .fd = span->owned.fd,
                    .file = (uint64_t)status.st_ino,
                    .offset = span->owned.offset,
                    .room = span->owned.size,
                    .size = span->size,
                    .front = (uint32_t)span->front,
                    .device = span->device};
}

/* Any address of a block gives its handle (seen on an H100). */
qi_cu_result fc_IpcGetMemHandle(qi_cu_ipc_handle *handle, qi_cu_ptr pointer)
{
    qi_cu_result result;
    const fc_context *context = fc_enter_context(FC_CALL_IpcGetMemHandle, &result);
    const fc_span *span = result ? NULL : fc_span_at(pointer);
    FC_REFUSE_IF(fc.devices[context->device].model.features & FC_INTEGRATED, NOT_SUPPORTED);
    FC_REFUSE_IF(!handle || !span || span->kind != FC_ALLOCATION, INVALID_VALUE);
    if (!result) {
        ticket of = ticket_of(span);
        memset(handle, 0, sizeof *handle);
        memcpy(handle, &of, sizeof of);
    }
    return fc_leave(result);
}

/* ---- import ------------------------------------------------------------------------------- */

/* The block that the context has opened already. *is_elsewhere: another context of the device has
   opened a block of the same process and device. */
static fc_span *find_opened(const fc_context *context, const ticket *of, bool *is_elsewhere)
{
    for (uint32_t i = 0; i < fc.span_count; i++) {
        fc_span *span = fc.spans[i];
        if (span->kind != FC_OPENED || span->process != of->process || span->device != of->device)
            continue;
        const fc_context *by = fc_object_peek(FC_CONTEXT, span->context);
        if (by == context && span->origin == of->offset)
            return span;
        *is_elsewhere |= by && by != context && by->device == context->device;
    }
    return NULL;
}

/* The file of the other process; -1 if the process has ended, or the handle is of another one. */
static int open_store(const ticket *of)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", of->process, of->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &status) || (uint64_t)status.st_ino != of->file)) {
        close(fd);
        return -1;
    }
    return fd;
}

static fc_span *map(const fc_context *context, const ticket *of)
{
    int fd = open_store(of);
    if (fd < 0)
        return NULL;
    fc_bytes bytes = {.fd = fd, .offset = of->offset, .size = of->room, .alone = true};
    uint64_t base = fc_addresses_take(of->room, fc_page(), 0);
    if (!base || !fc_bytes_map(&bytes, 0, of->room, base)) {
        if (base)
            fc_addresses_give(base, of->room);
        fc_bytes_end(&bytes);
        return NULL;
    }
    fc_span *span = fc_span_add(FC_OPENED, base + of->front, of->size);
    span->owned = bytes;
    span->bytes = &span->owned;
    span->offset = span->front = of->front;
    span->device = of->device;
    span->context = context->object.handle;
    span->process = of->process;
    span->origin = of->offset;
    return span;
}

static qi_cu_result open_block(const fc_context *context, const ticket *of, qi_cu_ptr *pointer)
{
    bool is_elsewhere = false;
    if (of->mark != MARK)
        return QI_CUDA_ERROR_INVALID_HANDLE;
    if (of->process == (int)getpid())
        return QI_CUDA_ERROR_INVALID_CONTEXT;
    if (!fc_is_device(of->device))
        return QI_CUDA_ERROR_INVALID_VALUE;
    fc_span *span = find_opened(context, of, &is_elsewhere);
    if (!span && is_elsewhere)
        return QI_CUDA_ERROR_INVALID_CONTEXT;
    if (!span)
        span = map(context, of);
    if (!span)
        return QI_CUDA_ERROR_MAP_FAILED;
    span->flags++;
    *pointer = span->base;
    return 0;
}

/* Opened again, a block has the same address and one more reference. */
qi_cu_result fc_IpcOpenMemHandle_v2(qi_cu_ptr *pointer, qi_cu_ipc_handle handle, unsigned int flags)
{
    qi_cu_result result;
    ticket of;
    const fc_context *context = fc_enter_context(FC_CALL_IpcOpenMemHandle_v2, &result);
    memcpy(&of, &handle, sizeof of);
    FC_REFUSE_IF(!pointer || flags != QI_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, INVALID_VALUE);
    if (!result)
        result = open_block(context, &of, pointer);
    return fc_leave(result);
}

qi_cu_result fc_IpcCloseMemHandle(qi_cu_ptr pointer)
{
    qi_cu_result result;
    const fc_context *context = fc_enter_context(FC_CALL_IpcCloseMemHandle, &result);
    fc_span *span = result ? NULL : fc_span_at(pointer);
    FC_REFUSE_IF(!span || span->kind != FC_OPENED || span->base != pointer, INVALID_VALUE);
    FC_REFUSE_IF(span->context != context->object.handle, INVALID_CONTEXT);
    if (!result && !--span->flags)
        fc_linear_end(FC_CALL_IpcCloseMemHandle, span);
    return fc_leave(result);
}
