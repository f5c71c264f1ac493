/*
 * import.c - pages of memory that was created elsewhere: by another process, another API, or the
 * caller.
 */
#include <string.h>
#include <unistd.h>

#include "backends/cuda/page.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* Imports a memfd of another process. Touching a memfd beyond its end kills the process, so a
   descriptor is refused if it is too short, or if its owner can shorten it. */
static quire_result import_shared(qi_cuda *cuda, const quire_page_request *request, int from,
                                  qi_cuda_page *page)
{
    int descriptor = -1;
    if (!cuda->capabilities.host_register)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver registers no host memory");
    if (!qi_memfd_has(from, page->padded))
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "descriptor %d is not a memfd of %s that is sealed against "
                                  "shrinking",
                                  from, qi_bytes(page->padded).text);
    quire_result result = qi_cuda_copy_descriptor(from, &descriptor);
    return result ? result : qi_cuda_shared_map(cuda, request->alignment, descriptor, page);
}

/* The caller's own handle, or the handle that the driver imports. */
static qi_cu_result get_handle(const qi_cuda *cuda, const quire_cuda_import *import,
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

/* Ownership of the caller's handle passes to the page only when everything has succeeded. */
static quire_result import_handle(qi_cuda *cuda, const quire_page_request *request,
                                  qi_cuda_page *page)
{
    const quire_cuda_import *import = request->description;
    bool is_caller_owned = import->type == QUIRE_CUDA_IMPORT_HANDLE;
    qi_cu_handle handle = 0;
    qi_cu_result code = get_handle(cuda, import, &handle);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemImportFromShareableHandle");
    quire_result result =
        qi_cuda_chunk_import(cuda, page->kind, page->padded, handle, &page->chunks);
    if (result) {
        if (!is_caller_owned)
            cuda->f.MemRelease(handle);
        return result;
    }
    page->chunk_count = 1;
    page->chunks->is_caller_owned = is_caller_owned; /* remains if mapping fails */
    result = qi_cuda_virtual_map(cuda, request->alignment, page);
    if (!result)
        page->chunks->is_caller_owned = false;
    return result;
}

/* ---- pointers --------------------------------------------------------------------------- */

/* Checks that the range ends in the block of its first byte, and that its last byte is mapped: for
   virtual memory management the driver reports all reserved addresses as the block. */
static quire_result check_extent(const qi_cuda *cuda, const quire_cuda_import *import)
{
    uint64_t start = 0, size = 0;
    uint32_t is_mapped = 1;
    const uint64_t at = import->pointer;
    if (cuda->f.PointerGetAttribute(&start, QI_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) ||
        cuda->f.PointerGetAttribute(&size, QI_CU_POINTER_ATTRIBUTE_RANGE_SIZE, at))
        return QUIRE_SUCCESS; /* the driver does not tell */
    uint64_t left = start + size - at;
    if (import->size > left)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "an import of %s at 0x%llx: the memory there ends after %s",
                                  qi_bytes(import->size).text, (unsigned long long)at,
                                  qi_bytes(left).text);
    const uint64_t last = at + import->size - 1;
    if (!cuda->f.PointerGetAttribute(&is_mapped, QI_CU_POINTER_ATTRIBUTE_MAPPED, last) &&
        !is_mapped)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "an import of %s at 0x%llx: its end is not mapped",
                                  qi_bytes(import->size).text, (unsigned long long)at);
    return QUIRE_SUCCESS;
}

/* Checks what the driver reports about a pointer. */
static quire_result check_pointer(const qi_cuda *cuda, const quire_cuda_import *import)
{
    const uint64_t at = import->pointer;
    uint32_t type = 0;
    int device = cuda->device;
    if (!cuda->f.PointerGetAttribute)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
    if (qi_cuda_is_lost(code))
        return qi_cuda_fail(&cuda->f, code, "cuPointerGetAttribute");
    if (code || type != QI_CU_MEMORYTYPE_DEVICE)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, code,
                                  "0x%llx is not an address of device memory that the driver knows",
                                  (unsigned long long)at);
    code = cuda->f.PointerGetAttribute(&device, QI_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
    if (!code && device >= 0 && device != cuda->device)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "0x%llx is memory of device %d, and '%s' is device %d",
                                  (unsigned long long)at, device, cuda->name, cuda->device);
    return check_extent(cuda, import);
}

/* The memory stays the caller's. */
static quire_result import_pointer(qi_cuda *cuda, const quire_cuda_import *import,
                                   qi_cuda_page *page)
{
    quire_result result = check_pointer(cuda, import);
    if (result)
        return result;
    page->type = QI_CUDA_PAGE_BORROWED;
    page->address = import->pointer;
    return QUIRE_SUCCESS;
}

/* ---- all of these ----------------------------------------------------------------------- */

static quire_result import_external(qi_cuda *cuda, const quire_cuda_import *import,
                                    qi_cuda_page *page)
{
    int descriptor = -1;
    if (!cuda->f.ImportExternalMemory || !cuda->f.ExternalMemoryGetMappedBuffer ||
        !cuda->f.DestroyExternalMemory)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver imports no memory of other APIs");
    quire_result result = qi_cuda_copy_descriptor(import->descriptor, &descriptor);
    return result ? result : qi_cuda_external_import(cuda, import, descriptor, page);
}

/* The core passes a description only through quire_page_adopt, whose callers have checked it. */
quire_result qi_cuda_import_page(qi_cuda *cuda, const quire_page_request *request,
                                 qi_cuda_page *page)
{
    const quire_cuda_import *import = request->description;
    page->padded = request->size; /* the caller names whole pages: nothing is rounded */
    if (import->type == QUIRE_CUDA_IMPORT_POINTER)
        return import_pointer(cuda, import, page);
    if (import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD)
        return import_external(cuda, import, page);
    if (import->type == QUIRE_CUDA_IMPORT_IPC)
        return qi_cuda_ipc_import(cuda, import, page);
    if (cuda->kinds[page->kind].is_virtual)
        return import_handle(cuda, request, page);
    return import_shared(cuda, request, import->descriptor, page);
}

/* ---- public ----------------------------------------------------------------------------- */

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
    case QUIRE_CUDA_IMPORT_IPC:
        if (!import->ipc)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null legacy handle");
        return QUIRE_SUCCESS;
    }
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown import type %u",
                        (uint64_t)import->type);
}

/* Pages of a kind accept only memory of the same nature, in whole granules of the kind. */
static quire_result check_kind(const qi_cuda_kind *kind, const quire_cuda_import *import)
{
    bool is_pool = kind->page_kind == QUIRE_CUDA_TILES;
    bool is_device = kind->description.flags & QUIRE_DEVICE_LOCAL;
    bool is_locked = kind->page_kind == QUIRE_CUDA_PINNED || kind->page_kind == QUIRE_CUDA_COMBINED;
    bool is_imported = import->type == QUIRE_CUDA_IMPORT_POINTER ||
                       import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD ||
                       import->type == QUIRE_CUDA_IMPORT_IPC;
    bool fits = is_imported                            ? is_device
                : import->type == QUIRE_CUDA_IMPORT_FD ? kind->is_virtual || is_locked
                                                       : kind->is_virtual;
    if (!fits || is_pool)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "import type %u cannot make pages of page kind %u",
                            (uint64_t)import->type, (uint64_t)kind->page_kind);
    if (is_imported)
        return QUIRE_SUCCESS;
    uint64_t unit = kind->is_virtual ? kind->granularity : (uint64_t)sysconf(_SC_PAGESIZE);
    if (import->size % unit)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an import of %u byte%s: the size must be a multiple of %u",
                            import->size, unit);
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_import_range(quire_memory *memory, const quire_cuda_import *import,
                                     quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !import || !allocation)
        return qi_fail_null("quire_cuda_import_range", !memory   ? "memory"
                                                       : !import ? "import"
                                                                 : "allocation");
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
