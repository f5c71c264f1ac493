/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * share.c - see share.h.
 */
#include "tests/support/cuda/share.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cuda/multicast.h"
#include "tests/support/cuda/span.h"

#define MARK "fake cuda memory"

typedef struct trailer {
    char mark[sizeof MARK];
    uint64_t size;
    qi_cu_allocation_prop prop;
} trailer;

/* A fabric handle: the process and its descriptor. */
typedef struct ticket {
    char mark[sizeof MARK];
    int process, fd;
    uint64_t file;
} ticket;

void fc_share_prepare(fc_memory *memory)
{
    trailer of;
    memset(&of, 0, sizeof of); /* padding is written too */
    memcpy(of.mark, MARK, sizeof of.mark);
    of.size = memory->size;
    of.prop = memory->prop;
    of.prop.win32HandleMetaData = NULL; /* valid in this process only */
    (void)!pwrite(memory->bytes.fd, &of, sizeof of, (off_t)memory->bytes.size);
}

fc_memory *fc_share_known(int fd)
{
    struct stat status;
    uint64_t index = 0;
    if (fstat(fd, &status))
        return NULL;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index)) {
        fc_memory *memory = (fc_memory *)object;
        if (object->kind == FC_MEMORY && memory->bytes.alone && memory->file == status.st_ino &&
            memory->file_system == status.st_dev)
            return memory;
    }
    return NULL;
}

/* ---- export ------------------------------------------------------------------------------- */

static qi_cu_result export_fd(const fc_memory *memory, int *fd)
{
    int copy = fcntl(memory->bytes.fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    *fd = copy;
    return 0;
}

static void export_fabric(const fc_memory *memory, qi_cu_fabric_handle *out)
{
    ticket made = {.mark = MARK,
                   .process = (int)getpid(),
                   .fd = memory->bytes.fd,
                   .file = (uint64_t)memory->file};
    memset(out, 0, sizeof *out);
    memcpy(out, &made, sizeof made);
}

qi_cu_result fc_MemExportToShareableHandle(void *shared, qi_cu_handle handle,
                                           qi_cu_handle_type type, unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemExportToShareableHandle);
    fc_memory *memory = result ? NULL : fc_memory_find(FC_CALL_MemExportToShareableHandle, handle);
    FC_REFUSE_IF(!shared || flags || !memory || !type || type & (type - 1) ||
                     !(memory->prop.requestedHandleTypes & type),
                 INVALID_VALUE);
    if (!result && type == QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        result = export_fd(memory, shared);
    else if (!result)
        export_fabric(memory, shared);
    return fc_leave(result);
}

/* ---- import ------------------------------------------------------------------------------- */

static bool read_trailer(int fd, trailer *of)
{
    struct stat status;
    if (fstat(fd, &status) || status.st_size <= FC_TRAILER_SIZE)
        return false;
    off_t at = status.st_size - FC_TRAILER_SIZE;
    return pread(fd, of, sizeof *of, at) == (ssize_t)sizeof *of &&
           !memcmp(of->mark, MARK, sizeof of->mark) && of->size <= (uint64_t)at;
}

static qi_cu_result import_object(qi_cu_handle *handle, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    *handle = fc_multicast_import(copy)->object.handle;
    return 0;
}

/* The caller keeps the descriptor. The device of another process may be missing here. */
static qi_cu_result import_file(qi_cu_handle *handle, int fd)
{
    trailer of;
    fc_memory *memory = fc_share_known(fd);
    if (memory) {
        fc_memory_reference(memory);
        *handle = memory->object.handle;
        return 0;
    }
    if (fc_multicast_is(fd))
        return import_object(handle, fd);
    if (!read_trailer(fd, &of))
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (of.prop.location.type == QI_CU_MEM_LOCATION_TYPE_DEVICE &&
        !fc_is_device(of.prop.location.id))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    struct stat status;
    memory = fc_memory_new(&of.prop, of.size);
    fc_bytes_adopt(&memory->bytes, copy, of.size);
    if (!fstat(copy, &status)) {
        memory->file = status.st_ino;
        memory->file_system = status.st_dev;
    }
    *handle = memory->object.handle;
    return 0;
}

static qi_cu_result import_fabric(qi_cu_handle *handle, const void *shared)
{
    ticket of;
    char path[64];
    memcpy(&of, shared, sizeof of);
    if (memcmp(of.mark, MARK, sizeof of.mark))
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (!fc_any_device_has(FC_FABRIC_PERMITTED))
        return QI_CUDA_ERROR_NOT_PERMITTED;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", of.process, of.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    qi_cu_result result = fd < 0 || fstat(fd, &status) || (uint64_t)status.st_ino != of.file
                              ? QI_CUDA_ERROR_INVALID_VALUE
                              : import_file(handle, fd);
    if (fd >= 0)
        close(fd);
    return result;
}

qi_cu_result fc_MemImportFromShareableHandle(qi_cu_handle *handle, void *shared,
                                             qi_cu_handle_type type)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemImportFromShareableHandle);
    FC_REFUSE_IF(!handle, INVALID_VALUE);
    if (result)
        return fc_leave(result);
    switch (type) {
    case QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: /* the pointer carries the descriptor */
        result = import_file(handle, (int)(intptr_t)shared);
        break;
    case QI_CU_MEM_HANDLE_TYPE_FABRIC:
        result = shared ? import_fabric(handle, shared) : QI_CUDA_ERROR_INVALID_VALUE;
        break;
    case QI_CU_MEM_HANDLE_TYPE_WIN32:
    case QI_CU_MEM_HANDLE_TYPE_WIN32_KMT:
        result = QI_CUDA_ERROR_NOT_SUPPORTED;
        break;
    default:
        result = QI_CUDA_ERROR_INVALID_VALUE;
        break;
    }
    return fc_leave(result);
}

/* ---- dma-buf ------------------------------------------------------------------------------ */

static bool can_export(const fc_span *span)
{
    return span && span->kind != FC_PINNED && span->kind != FC_REGISTERED &&
           span->kind != FC_MANAGED && span->bytes;
}

/* Copies the bytes of mappings side by side into a file. A real dma-buf would share them. Returns
   false if one of them cannot be exported or is not mapped. */
static bool copy_range(qi_cu_ptr pointer, size_t size, int file)
{
    for (uint64_t done = 0, run; done < size; done += run) {
        const fc_span *span = fc_span_at(pointer + done);
        if (!can_export(span))
            return false;
        const unsigned char *bytes = fc_reach(pointer + done, span->device, false, &run);
        if (run > size - done)
            run = size - done;
        if (!bytes || pwrite(file, bytes, run, (off_t)done) != (ssize_t)run)
            return false;
    }
    return true;
}

/* A span that begins its file is exported as that file: writes to either are seen in both. */
static qi_cu_result export_range(qi_cu_ptr pointer, size_t size, int *fd)
{
    const fc_span *span = fc_span_at(pointer);
    if (!can_export(span))
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (!(fc.devices[span->device < 0 ? 0 : span->device].model.features & FC_DMA_BUF))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    const bool is_whole =
        pointer == span->base && size <= span->size && !(span->bytes->offset + span->offset);
    int copy = is_whole ? fcntl(span->bytes->fd, F_DUPFD_CLOEXEC, 0)
                        : memfd_create("fake dma-buf", MFD_CLOEXEC);
    if (copy < 0)
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (!is_whole && !copy_range(pointer, size, copy)) {
        close(copy);
        return QI_CUDA_ERROR_INVALID_VALUE;
    }
    *fd = copy;
    return 0;
}

qi_cu_result fc_MemGetHandleForAddressRange(void *handle, qi_cu_ptr pointer, size_t size,
                                            qi_cu_range_type type, unsigned long long flags)
{
    qi_cu_result result = fc_enter(FC_CALL_MemGetHandleForAddressRange);
    FC_REFUSE_IF(!handle || !size || flags > 1 || type != QI_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
                     (pointer | size) % fc_page(),
                 INVALID_VALUE);
    if (!result)
        result = export_range(pointer, size, handle);
    return fc_leave(result);
}
