/*
 * share.c - pages handed to other processes and APIs, and memory that they hand to us.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/memfd.h"
#include "src/base/result.h"

/* ---- exporting ---------------------------------------------------------------------------- */

/* The page of an allocation, which can be exported as this. */
static quire_result find_exportable(quire_memory *memory, quire_allocation allocation,
                                    quire_cuda_handle_types type, qi_cuda **cuda,
                                    qi_cuda_page **page)
{
    quire_native native;
    quire_result result = qi_cuda_native(memory, allocation, &native, cuda);
    if (!result)
        result = qi_cuda_check_process(*cuda);
    if (result)
        return result;
    *page = qi_cuda_page_of(&native.page);
    if ((*page)->types & type)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "the page cannot be exported as handle type %u: it was made for types %x",
                        type, (*page)->types);
}

static quire_result export_handle(qi_cuda *cuda, const qi_cuda_page *page, void *shared,
                                  quire_cuda_handle_types type)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemExportToShareableHandle(shared, page->chunks->handle, type, 0);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemExportToShareableHandle") : QUIRE_SUCCESS;
}

static quire_result copy_descriptor(int from, int *descriptor)
{
    *descriptor = fcntl(from, F_DUPFD_CLOEXEC, 0);
    if (*descriptor >= 0)
        return QUIRE_SUCCESS;
    int code = errno;
    return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, code, "copying a descriptor: %s",
                              strerror(code));
}

quire_result quire_cuda_export_fd(quire_memory *memory, quire_allocation allocation,
                                  int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_export_fd: memory or descriptor is null");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    quire_result result = find_exportable(memory, allocation, QUIRE_CUDA_FD, &cuda, &page);
    if (result)
        return result;
    if (page->make == QI_CUDA_SHARED)
        return copy_descriptor(page->descriptor, descriptor);
    result = export_handle(cuda, page, descriptor, QUIRE_CUDA_FD);
    if (result)
        *descriptor = -1;
    return result;
}

quire_result quire_cuda_export_fabric(quire_memory *memory, quire_allocation allocation,
                                      void *fabric)
{
    if (fabric)
        memset(fabric, 0, QUIRE_CUDA_FABRIC_SIZE);
    if (!memory || !fabric)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_export_fabric: memory or fabric is null");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    qi_cu_fabric_handle handle = {.data = {0}};
    quire_result result = find_exportable(memory, allocation, QUIRE_CUDA_FABRIC, &cuda, &page);
    if (!result)
        result = export_handle(cuda, page, &handle, QUIRE_CUDA_FABRIC);
    if (!result)
        memcpy(fabric, handle.data, QUIRE_CUDA_FABRIC_SIZE);
    return result;
}

/* The whole page: the driver takes only what is mapped without a gap, in one piece. */
static quire_result export_dma_buf(qi_cuda *cuda, const qi_cuda_page *page, int *descriptor)
{
    if (page->growth)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the page cannot be a dma-buf: it grows, and a dma-buf keeps its size");
    if (!cuda->offers.dma_buf || page->host || !page->address || page->make == QI_CUDA_BORROWED)
        return qi_fail(
            QUIRE_ERROR_UNSUPPORTED,
            "the page cannot be a dma-buf: driver and device must have them, and the page "
            "be device-local and quire's own");
    if (qi_padding(page->address, (uint64_t)sysconf(_SC_PAGESIZE)))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the page lies at %x: a dma-buf begins at a page of the host",
                            page->address);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemGetHandleForAddressRange(
        descriptor, page->address, page->padded, QI_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    qi_cuda_leave(cuda);
    if (!code)
        return QUIRE_SUCCESS;
    *descriptor = -1;
    return qi_cuda_fail(&cuda->f, code, "cuMemGetHandleForAddressRange of %s",
                        qi_bytes(page->padded).text);
}

quire_result quire_cuda_export_dma_buf(quire_memory *memory, quire_allocation allocation,
                                       int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_export_dma_buf: memory or descriptor is null");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_native(memory, allocation, &native, &cuda);
    return result ? result : export_dma_buf(cuda, qi_cuda_page_of(&native.page), descriptor);
}

/* ---- importing ---------------------------------------------------------------------------- */

/* A memfd of the exporter's. One that is short, or whose owner can make it so, would end the
   process when it is touched. */
static quire_result adopt_shared(qi_cuda *cuda, const quire_page_request *request, int from,
                                 qi_cuda_page *page)
{
    int descriptor = -1;
    if (!cuda->offers.host_register)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver registers no host memory");
    if (!qi_memfd_has(from, page->padded))
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "descriptor %d is no memory of %s that is sealed against "
                                  "becoming less",
                                  from, qi_bytes(page->padded).text);
    quire_result result = copy_descriptor(from, &descriptor);
    return result ? result : qi_cuda_shared_map(cuda, request->alignment, descriptor, page);
}

static qi_cu_result import_handle(const qi_cuda *cuda, const quire_cuda_import *import,
                                  qi_cu_handle *handle)
{
    qi_cu_fabric_handle fabric;
    *handle = import->handle;
    if (import->type == QUIRE_CUDA_IMPORT_HANDLE)
        return QI_CUDA_SUCCESS;
    if (!cuda->f.MemImportFromShareableHandle)
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (import->type == QUIRE_CUDA_IMPORT_FD)
        return cuda->f.MemImportFromShareableHandle(handle, (void *)(intptr_t)import->descriptor,
                                                    QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    memcpy(fabric.data, import->fabric, sizeof fabric.data);
    return cuda->f.MemImportFromShareableHandle(handle, &fabric, QI_CU_MEM_HANDLE_TYPE_FABRIC);
}

static quire_result adopt_handle(qi_cuda *cuda, const quire_page_request *request,
                                 qi_cuda_page *page)
{
    const quire_cuda_import *import = request->description;
    bool is_callers = import->type == QUIRE_CUDA_IMPORT_HANDLE;
    qi_cu_handle handle = 0;
    qi_cu_result code = import_handle(cuda, import, &handle);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemImportFromShareableHandle");
    quire_result result =
        qi_cuda_chunk_adopt(cuda, page->kind, page->padded, handle, &page->chunks);
    if (result) {
        if (!is_callers)
            cuda->f.MemRelease(handle);
        return result;
    }
    page->chunk_count = 1;
    page->chunks->is_callers = is_callers; /* and stays so when the page cannot be made */
    result = qi_cuda_virtual_map(cuda, request->alignment, page);
    if (!result)
        page->chunks->is_callers = false;
    return result;
}

static quire_result adopt_pointer(qi_cuda *cuda, const quire_cuda_import *import,
                                  qi_cuda_page *page)
{
    uint32_t type = 0;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (cuda->f.PointerGetAttribute)
        code = cuda->f.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                           import->pointer);
    if (code || (cuda->f.PointerGetAttribute && type != QI_CU_MEMORYTYPE_DEVICE))
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, code,
                                  "0x%llx is no address of device memory that the driver knows",
                                  (unsigned long long)import->pointer);
    page->make = QI_CUDA_BORROWED;
    page->address = import->pointer;
    return QUIRE_SUCCESS;
}

static quire_result adopt_external(qi_cuda *cuda, const quire_cuda_import *import,
                                   qi_cuda_page *page)
{
    int descriptor = -1;
    if (!cuda->f.ImportExternalMemory || !cuda->f.ExternalMemoryGetMappedBuffer ||
        !cuda->f.DestroyExternalMemory)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver imports no memory of other APIs");
    quire_result result = copy_descriptor(import->descriptor, &descriptor);
    return result ? result : qi_cuda_external_adopt(cuda, import, descriptor, page);
}

quire_result qi_cuda_adopt(qi_cuda *cuda, const quire_page_request *request, qi_cuda_page *page)
{
    const quire_cuda_import *import = request->description;
    page->padded = request->size;
    if (import->type == QUIRE_CUDA_IMPORT_POINTER)
        return adopt_pointer(cuda, import, page);
    if (import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD)
        return adopt_external(cuda, import, page);
    if (cuda->kinds[page->kind].is_virtual)
        return adopt_handle(cuda, request, page);
    return adopt_shared(cuda, request, import->descriptor, page);
}

/* ---- public: importing -------------------------------------------------------------------- */

static quire_result check_source(const quire_cuda_import *import)
{
    switch (import->type) {
    case QUIRE_CUDA_IMPORT_FD:
    case QUIRE_CUDA_IMPORT_EXTERNAL_FD:
        if (import->descriptor < 0)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a negative descriptor");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_FABRIC:
        if (!import->fabric)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null fabric handle");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_HANDLE:
        if (!import->handle)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of handle 0");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_POINTER:
        if (!import->pointer)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null pointer");
        return QUIRE_SUCCESS;
    }
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no import type %u",
                        (uint64_t)import->type);
}

/* Whether pages of the kind are made of such memory. */
static quire_result check_kind(const qi_cuda_kind *kind, const quire_cuda_import *import)
{
    bool is_pool = kind->page_kind == QUIRE_CUDA_TILES;
    bool is_device = kind->description.flags & QUIRE_DEVICE_LOCAL;
    bool is_locked = kind->page_kind == QUIRE_CUDA_PINNED || kind->page_kind == QUIRE_CUDA_COMBINED;
    bool is_foreign =
        import->type == QUIRE_CUDA_IMPORT_POINTER || import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD;
    bool fits = is_foreign                             ? is_device
                : import->type == QUIRE_CUDA_IMPORT_FD ? kind->is_virtual || is_locked
                                                       : kind->is_virtual;
    if (!fits || is_pool)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "import type %u is not for pages of page kind %u",
                            (uint64_t)import->type, (uint64_t)kind->page_kind);
    if (is_foreign)
        return QUIRE_SUCCESS;
    uint64_t unit = kind->is_virtual ? kind->granularity : (uint64_t)sysconf(_SC_PAGESIZE);
    if (import->size % unit)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an import of %u bytes: whole pages are multiples of %u", import->size,
                            unit);
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_import_range(quire_memory *memory, const quire_cuda_import *import,
                                     quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !import || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_import_range: memory, import or allocation is null");
    quire_memory_info info;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_of_memory(memory, &info, &cuda);
    if (!result)
        result = check_source(import);
    if (!result)
        result = qi_check_unused(import, "quire_cuda_import");
    if (!result && !import->size)
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of size 0");
    if (!result)
        result = check_kind(&cuda->kinds[info.kind], import);
    if (!result && import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD)
        result = qi_cuda_check_uuid(cuda, import->device_uuid);
    if (result)
        return result;
    const quire_allocation_options options = {
        .size = import->size, .name = import->name, .user_data = import->user_data};
    return quire_page_adopt(memory, import, &options, allocation);
}

/* ---- public: handles ---------------------------------------------------------------------- */

quire_result quire_cuda_retain_handle(quire_device *device, uint64_t address, uint64_t *handle)
{
    if (handle)
        *handle = 0;
    if (!handle || !address)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_retain_handle: handle is null or the address 0");
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (!cuda->offers.virtual_memory || !cuda->f.MemRetainAllocationHandle)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver retains no handles");
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemRetainAllocationHandle(handle, (void *)(uintptr_t)address);
    qi_cuda_leave(cuda);
    if (!code)
        return QUIRE_SUCCESS;
    *handle = 0;
    if (code == QI_CUDA_ERROR_INVALID_VALUE)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code,
                                  "nothing at 0x%llx was mapped by virtual memory management",
                                  (unsigned long long)address);
    return qi_cuda_fail(&cuda->f, code, "cuMemRetainAllocationHandle");
}

quire_result quire_cuda_release_handle(quire_device *device, uint64_t handle)
{
    if (!handle)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_release_handle: the handle is 0");
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (!cuda->offers.virtual_memory)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no virtual memory management");
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemRelease(handle);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemRelease") : QUIRE_SUCCESS;
}
