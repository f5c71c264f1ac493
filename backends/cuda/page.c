/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - each page is created as its memory kind requires, and its type says how it is destroyed.
 * Destruction goes step by step: if the driver refuses one, the page is deferred and the rest is
 * retried later, because the core cannot keep the page.
 */
#include "backends/cuda/page.h"

#include <sys/mman.h>

#include "backends/cuda/array.h"
#include "backends/cuda/backing.h"
#include "backends/cuda/device.h"
#include "backends/cuda/pool.h"
#include "backends/cuda/share.h"
#include "backends/cuda/stream.h"
#include "backends/cuda/virtual.h"
#include "src/base/bits.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- pages that the driver allocates as a whole ------------------------------------------- */

/*
 * cuMemAlloc, managed and page-locked memory. The pool's pages are in pool.c; an exportable
 * page-locked page is a memfd instead (share.c).
 *
 * The driver aligns its allocations to at least 256 bytes. A device with a kind of cuMemAlloc
 * promises only that, and the core aligns within the pages. Pages of other devices honour the
 * alignment of the request: if the driver's address does not, the allocation is repeated with the
 * alignment added to its size, and the page begins inside it.
 */

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

static quire_result allocate_whole(qi_cuda *cuda, const quire_page_request *request,
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

/* For pages of all types but chunks and external memory. False: the rest can be retried. A borrowed
   page has none of the parts, so nothing is released for it. */
static bool free_whole(qi_cuda *cuda, qi_cuda_page *page)
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

/* ---- destruction -------------------------------------------------------------------------- */

/*
 * A page whose destruction the driver refuses half way, or that a capture forbids, is retried
 * later: the core cannot keep it, because its page_destroy cannot fail.
 */

static void release_record(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cuda_elastic_release(cuda, page);
    qi_host_release(&cuda->host, page, 1, sizeof *page);
}

/* Releases the record with everything that belongs to this process. What the driver holds is not
   released: it refused, or belongs to the parent of a fork. */
static void release_records(qi_cuda *cuda, qi_cuda_page *page)
{
    while (page->chunks) {
        qi_cuda_chunk *chunk = page->chunks;
        page->chunks = chunk->next;
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    }
    if (page->bytes)
        munmap(page->bytes, page->padded);
    qi_cuda_page_close_descriptor(page);
    release_record(cuda, page);
}

static bool destroy_parts(qi_cuda *cuda, qi_cuda_page *page)
{
    switch (page->type) {
    case QI_CUDA_PAGE_VIRTUAL:
    case QI_CUDA_PAGE_TILES:
        return qi_cuda_elastic_unback_all(cuda, page) && qi_cuda_virtual_destroy(cuda, page);
    case QI_CUDA_PAGE_EXTERNAL:
        return qi_cuda_external_destroy(cuda, page);
    default:
        return free_whole(cuda, page);
    }
}

/* Releases the page and its record. False: the driver refused a step, or work cannot be awaited
   now; the rest can be retried. */
static bool destroy_native(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!qi_cuda_await_work(cuda, page))
        return false;
    page->was_used = false;
    bool is_done = destroy_parts(cuda, page);
    if (is_done)
        release_record(cuda, page);
    return is_done;
}

static void defer(qi_cuda *cuda, qi_cuda_page *page)
{
    pthread_mutex_lock(&cuda->mutex);
    page->next = cuda->deferred_pages;
    cuda->deferred_pages = page;
    pthread_mutex_unlock(&cuda->mutex);
}

void qi_cuda_page_discard(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!destroy_native(cuda, page))
        defer(cuda, page);
}

/* Empties the list first, so that threads that retry at the same time share no page. */
void qi_cuda_retry_deferred_pages(qi_cuda *cuda, bool is_last)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_page *page = cuda->deferred_pages, *next = NULL;
    cuda->deferred_pages = NULL;
    pthread_mutex_unlock(&cuda->mutex);
    for (; page; page = next) {
        next = page->next;
        if (!qi_cuda_has_forked(cuda) && destroy_native(cuda, page))
            continue;
        if (!is_last) {
            defer(cuda, page);
            continue;
        }
        if (!qi_cuda_has_forked(cuda))
            qi_log(&cuda->log, QUIRE_LOG_ERROR,
                   "device '%s': the driver refused to release a page of %s", cuda->name,
                   qi_bytes(page->padded).text);
        release_records(cuda, page);
    }
}

/* Works without the context if the device is lost. No work runs then, but chunks and addresses may
   still be released. */
void qi_cuda_page_destroy(void *state, const quire_native_page *native)
{
    qi_cuda *cuda = state;
    qi_cuda_page *page = qi_cuda_page_of(native);
    if (qi_cuda_has_forked(cuda)) {
        release_records(cuda, page);
        return;
    }
    qi_cu_result code = qi_cuda_push(cuda);
    bool is_lost = qi_cuda_is_lost(code) || code == QI_CUDA_ERROR_INVALID_CONTEXT;
    page->was_used &= !is_lost;
    if ((code && !is_lost) || !destroy_native(cuda, page))
        defer(cuda, page);
    if (!code)
        qi_cuda_leave(cuda);
}

/* ---- creation ----------------------------------------------------------------------------- */

/* Fills in page->padded and the parts of the page. On failure the page holds what was created. */
static quire_result create_parts(qi_cuda *cuda, const quire_page_request *request,
                                 qi_cuda_page *page)
{
    if (request->max_size)
        return qi_cuda_elastic_create(cuda, request, page);
    if (request->description)
        return qi_cuda_import_page(cuda, request, page); /* existing memory: no rounding */
    quire_result result = qi_cuda_round_size(cuda, request->kind, request->size, &page->padded);
    if (result)
        return result;
    return cuda->kinds[request->kind].is_virtual ? qi_cuda_virtual_create(cuda, request, page)
                                                 : allocate_whole(cuda, request, page);
}

/* In the context. */
static quire_result create_page(qi_cuda *cuda, const quire_page_request *request,
                                qi_cuda_page **out)
{
    qi_cuda_page *page = qi_host_allocate(&cuda->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    page->kind = request->kind;
    page->requested = request->size;
    page->descriptor = -1;
    quire_result result = create_parts(cuda, request, page);
    if (result) {
        qi_cuda_page_discard(cuda, page);
        return result;
    }
    page->was_used = true;
    *out = page;
    return QUIRE_SUCCESS;
}

/* Retries deferred arrays and pages first: their memory may be what this page needs. */
quire_result qi_cuda_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *out)
{
    qi_cuda *cuda = state;
    qi_cuda_page *page = NULL;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cuda_retry_deferred_arrays(cuda, false);
    qi_cuda_retry_deferred_pages(cuda, false);
    result = create_page(cuda, request, &page);
    qi_cuda_leave(cuda);
    if (result)
        return result;
    *out = (quire_native_page){
        .handle = page->chunks ? page->chunks->handle : page->address,
        .address = page->address,
        .size = request->max_size ? request->max_size : page->padded,
        .data = (uintptr_t)page,
    };
    return QUIRE_SUCCESS;
}

/* ---- mapping ------------------------------------------------------------------------------ */

quire_result qi_cuda_page_map(void *state, const quire_native_page *native, void **pointer)
{
    (void)state;
    *pointer = qi_cuda_page_of(native)->host;
    return QUIRE_SUCCESS;
}

void qi_cuda_page_unmap(void *state, const quire_native_page *native)
{
    (void)state; /* the host pointer is valid until the page is destroyed */
    (void)native;
}

/* ---- backing ------------------------------------------------------------------------------ */

/* Retries deferred arrays and pages first: their memory may be what the spans need. */
quire_result qi_cuda_page_back(void *state, const quire_native_page *native,
                               const quire_span *spans, uint32_t count)
{
    qi_cuda *cuda = state;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cuda_retry_deferred_arrays(cuda, false);
    qi_cuda_retry_deferred_pages(cuda, false);
    result = qi_cuda_elastic_back(cuda, qi_cuda_page_of(native), spans, count);
    qi_cuda_leave(cuda);
    return result;
}

/* In the child of a fork a thread of the parent may hold the page's mutex. */
void qi_cuda_page_unback(void *state, const quire_native_page *native, const quire_span *spans,
                         uint32_t count, bool moves)
{
    qi_cuda *cuda = state;
    if (!qi_cuda_has_forked(cuda))
        qi_cuda_elastic_unback(cuda, qi_cuda_page_of(native), spans, count, moves);
}
