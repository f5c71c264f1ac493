/*
 * export.c - the public calls that hand pages to other processes and APIs, and the calls on
 * allocation handles.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/page.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- exporting -------------------------------------------------------------------------- */

/* Finds the page of an allocation. UNSUPPORTED unless it can be exported as `type`. */
static quire_result find_exportable(quire_memory *memory, quire_allocation allocation,
                                    quire_cuda_handle_types type, qi_cuda **cuda,
                                    qi_cuda_page **page)
{
    quire_native native;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, cuda);
    if (result)
        return result;
    *page = qi_cuda_page_of(&native.page);
    if ((*page)->types & type)
        return QUIRE_SUCCESS;
    return qi_fail_with(
        QUIRE_ERROR_UNSUPPORTED,
        "the page cannot be exported as handle type %u: it was created for types %x", type,
        (*page)->types);
}

/* Only pages of one chunk are exportable, so the first chunk is the page. */
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

/* The memfd of a shared page is duplicated; the driver creates every other descriptor. */
quire_result quire_cuda_export_fd(quire_memory *memory, quire_allocation allocation,
                                  int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail_null("quire_cuda_export_fd", !memory ? "memory" : "descriptor");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    quire_result result = find_exportable(memory, allocation, QUIRE_CUDA_FD, &cuda, &page);
    if (result)
        return result;
    if (page->type == QI_CUDA_PAGE_SHARED)
        return qi_cuda_copy_descriptor(page->descriptor, descriptor);
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
        return qi_fail_null("quire_cuda_export_fabric", !memory ? "memory" : "fabric");
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

/* Exports the whole page: the driver accepts only one gapless mapping. */
static quire_result export_dma_buf(qi_cuda *cuda, const qi_cuda_page *page, int *descriptor)
{
    if (page->elastic)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the page cannot be a dma-buf: it grows, and a dma-buf keeps its size");
    if (!cuda->capabilities.dma_buf || page->host || !page->address ||
        page->type == QI_CUDA_PAGE_BORROWED || page->type == QI_CUDA_PAGE_POOLED ||
        page->type == QI_CUDA_PAGE_OPENED)
        return qi_fail(
            QUIRE_ERROR_UNSUPPORTED,
            "the page cannot be a dma-buf: that requires support of driver and device, and a "
            "device-local page that quire created and not of a pool");
    if (qi_padding(page->address, (uint64_t)sysconf(_SC_PAGESIZE)))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the page lies at %x: a dma-buf must begin at a page of the host",
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
        return qi_fail_null("quire_cuda_export_dma_buf", !memory ? "memory" : "descriptor");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    return result ? result : export_dma_buf(cuda, qi_cuda_page_of(&native.page), descriptor);
}

/* ---- public: handles -------------------------------------------------------------------- */

/* The driver answers INVALID_VALUE for addresses that it did not map as virtual memory. */
quire_result quire_cuda_retain_handle(quire_device *device, uint64_t address, uint64_t *handle)
{
    if (handle)
        *handle = 0;
    if (!handle)
        return qi_fail_null("quire_cuda_retain_handle", "handle");
    if (!address)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_retain_handle: the address is 0");
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (!cuda->capabilities.virtual_memory || !cuda->f.MemRetainAllocationHandle)
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
    if (!cuda->capabilities.virtual_memory)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no virtual memory management");
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemRelease(handle);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemRelease") : QUIRE_SUCCESS;
}
