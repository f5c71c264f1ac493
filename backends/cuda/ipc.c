/*
 * ipc.c - pages of cuMemAlloc for other processes, by the driver's legacy handles.
 *
 * A handle names the whole block that cuMemAlloc returned. Pages of device memory begin with their
 * block, so that offsets in the page are offsets in the block.
 */
#include <string.h>

#include "backends/cuda/page.h"
#include "src/base/result.h"

/* ---- export ----------------------------------------------------------------------------- */

/* Says why the page has no legacy handle. */
static quire_result check_exportable(const qi_cuda *cuda, const qi_cuda_page *page)
{
    switch (page->type) {
    case QI_CUDA_PAGE_VIRTUAL:
    case QI_CUDA_PAGE_TILES:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a page of virtual memory management has no legacy handle: export a "
                       "descriptor");
    case QI_CUDA_PAGE_POOLED:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "a page of a memory pool has no legacy handle");
    case QI_CUDA_PAGE_OPENED:
    case QI_CUDA_PAGE_BORROWED:
    case QI_CUDA_PAGE_EXTERNAL:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the page is memory that quire did not allocate: only its owner can export "
                       "it");
    default:
        break;
    }
    if (page->type != QI_CUDA_PAGE_ALLOCATED ||
        cuda->kinds[page->kind].page_kind == QUIRE_CUDA_MANAGED)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "only device-local pages of cuMemAlloc have legacy handles");
    return cuda->f.IpcGetMemHandle
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no legacy handles");
}

quire_result quire_cuda_export_ipc(quire_memory *memory, quire_allocation allocation, void *ipc)
{
    if (ipc)
        memset(ipc, 0, QUIRE_CUDA_IPC_SIZE);
    if (!memory || !ipc)
        return qi_fail_null("quire_cuda_export_ipc", !memory ? "memory" : "ipc");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    qi_cu_ipc_handle handle;
    result = check_exportable(cuda, page);
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.IpcGetMemHandle(&handle, page->block);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuIpcGetMemHandle");
    memcpy(ipc, handle.reserved, QUIRE_CUDA_IPC_SIZE);
    return QUIRE_SUCCESS;
}

/* ---- import ----------------------------------------------------------------------------- */

/* The driver says "invalid context" to the process that made the handle, and to a second context of
   a device; the context itself is valid here. */
static quire_result fail_open(const qi_cuda *cuda, qi_cu_result code)
{
    if (code != QI_CUDA_ERROR_INVALID_CONTEXT)
        return qi_cuda_fail(&cuda->f, code, "cuIpcOpenMemHandle");
    return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code,
                              "the legacy handle is of this process, which cannot open it, or "
                              "another context of '%s' opens the handles of its process",
                              cuda->name);
}

/* Not every driver tells the size of a block of another process. */
static quire_result check_size(const qi_cuda *cuda, const qi_cuda_page *page)
{
    qi_cu_ptr base = 0;
    size_t size = 0;
    if (!cuda->f.MemGetAddressRange || cuda->f.MemGetAddressRange(&base, &size, page->block))
        return QUIRE_SUCCESS;
    uint64_t rest = size - (page->block - base);
    return page->padded <= rest
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                    "an import of %llu bytes: the block has %llu",
                                    (unsigned long long)page->padded, (unsigned long long)rest);
}

quire_result qi_cuda_ipc_import(qi_cuda *cuda, const quire_cuda_import *import, qi_cuda_page *page)
{
    qi_cu_ipc_handle handle;
    page->type = QI_CUDA_PAGE_OPENED;
    if (!cuda->f.IpcOpenMemHandle || !cuda->f.IpcCloseMemHandle)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "the driver opens no legacy handles");
    memcpy(handle.reserved, import->ipc, sizeof handle.reserved);
    qi_cu_result code =
        cuda->f.IpcOpenMemHandle(&page->block, handle, QI_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (code) {
        page->block = 0;
        return fail_open(cuda, code);
    }
    page->address = page->block;
    return check_size(cuda, page);
}

bool qi_cuda_ipc_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->block ? cuda->f.IpcCloseMemHandle(page->block) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->block = 0;
    return true;
}
