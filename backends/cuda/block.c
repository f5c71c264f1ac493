/*
 * block.c - pages that the driver allocates as a whole: cuMemAlloc, managed and page-locked memory,
 * and pools (pool.c). An exportable page-locked page is a memfd instead (shared.c).
 *
 * The driver aligns its allocations to at least 256 bytes. A device with a kind of cuMemAlloc
 * promises only that, and the core aligns within the pages. Pages of other devices honour the
 * alignment of the request: if the driver's address does not, the allocation is repeated with the
 * alignment added to its size, and the page begins inside it.
 */
#include <sys/mman.h>

#include "backends/cuda/page.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- device and managed memory ---------------------------------------------------------- */

/* A block of a lost device counts as freed. */
static qi_cu_result free_block(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->block ? cuda->f.MemFree(page->block) : QI_CUDA_SUCCESS;
    if (!code || qi_cuda_is_lost(code))
        page->block = 0;
    return code;
}

static qi_cu_result allocate_once(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_MANAGED)
        return cuda->f.MemAllocManaged(&page->block, size, QI_CU_MEM_ATTACH_GLOBAL);
    return cuda->f.MemAlloc(&page->block, size);
}

static qi_cu_result allocate(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    qi_cu_result code = allocate_once(cuda, page, size);
    return qi_cuda_make_room(cuda, code) ? allocate_once(cuda, page, size) : code;
}

/* Frees the first attempt before the second, so that the two never exist together. */
static quire_result create_block(qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    page->type = QI_CUDA_PAGE_ALLOCATED;
    qi_cu_result code = allocate(cuda, page, page->padded);
    if (!code && qi_padding(page->block, alignment)) {
        code = free_block(cuda, page);
        if (!code)
            code = allocate(cuda, page, page->padded + alignment);
    }
    if (code)
        return qi_cuda_fail(&cuda->f, code, "allocating %s of memory kind %u",
                            qi_bytes(page->padded).text, page->kind);
    page->address = page->block + qi_padding(page->block, alignment);
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_MANAGED)
        page->host = (void *)(uintptr_t)page->address;
    return QUIRE_SUCCESS;
}

/* ---- page-locked memory ----------------------------------------------------------------- */

static qi_cu_result free_locked(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->locked ? cuda->f.MemFreeHost(page->locked) : QI_CUDA_SUCCESS;
    if (!code || qi_cuda_is_lost(code))
        page->locked = NULL;
    return code;
}

/* The device address of the memory goes to page->address. */
static qi_cu_result allocate_locked(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    unsigned flags = QI_CU_MEMHOSTALLOC_PORTABLE | QI_CU_MEMHOSTALLOC_DEVICEMAP;
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_COMBINED)
        flags |= QI_CU_MEMHOSTALLOC_WRITECOMBINED;
    qi_cu_result code = cuda->f.MemHostAlloc(&page->locked, size, flags);
    if (!code)
        code = cuda->f.MemHostGetDevicePointer(&page->address, page->locked, 0);
    return code;
}

static quire_result create_locked(qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    page->type = QI_CUDA_PAGE_LOCKED;
    qi_cu_result code = allocate_locked(cuda, page, page->padded);
    if (!code && qi_padding(page->address, alignment)) {
        code = free_locked(cuda, page);
        if (!code)
            code = allocate_locked(cuda, page, page->padded + alignment);
    }
    if (code)
        return qi_cuda_fail(&cuda->f, code, "page-locking %s of host memory",
                            qi_bytes(page->padded).text);
    uint64_t padding = qi_padding(page->address, alignment);
    page->address += padding;
    page->host = (char *)page->locked + padding;
    return QUIRE_SUCCESS;
}

/* ---- all of these ----------------------------------------------------------------------- */

quire_result qi_cuda_block_create(qi_cuda *cuda, const quire_page_request *request,
                                  qi_cuda_page *page)
{
    bool is_locked = cuda->kinds[page->kind].page_kind == QUIRE_CUDA_PINNED ||
                     cuda->kinds[page->kind].page_kind == QUIRE_CUDA_COMBINED;
    uint64_t alignment = cuda->page_alignment ? cuda->page_alignment : request->alignment;
    if (is_locked)
        return request->exportable ? qi_cuda_shared_create(cuda, request, page)
                                   : create_locked(cuda, alignment, page);
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_POOL)
        return qi_cuda_pool_page_create(cuda, request, page);
    if (request->exportable)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memory kind %u cannot be exported", page->kind);
    return create_block(cuda, alignment, page);
}

/* A borrowed page has none of the parts, so nothing is released for it. */
bool qi_cuda_block_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    if (page->type == QI_CUDA_PAGE_POOLED)
        return qi_cuda_pool_page_destroy(cuda, page);
    if (page->type == QI_CUDA_PAGE_OPENED)
        return qi_cuda_ipc_destroy(cuda, page);
    qi_cu_result code = free_block(cuda, page);
    if (!code)
        code = free_locked(cuda, page);
    if (!code && page->is_registered)
        code = cuda->f.MemHostUnregister(page->bytes);
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->is_registered = false;
    if (page->bytes)
        munmap(page->bytes, page->padded);
    qi_cuda_page_close_descriptor(page);
    page->bytes = NULL;
    return true;
}
