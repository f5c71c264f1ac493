/*
 * page_destroy.c - destroys pages. A page whose destruction the driver refuses half way, or a
 * capture puts off, is deferred and retried later: the core cannot keep it, because its
 * page_destroy cannot fail.
 */
#include <sys/mman.h>

#include "backends/cuda/page.h"
#include "src/base/log.h"
#include "src/base/result.h"

static void release_record(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cuda_elastic_destroy(cuda, page);
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
        return qi_cuda_virtual_destroy(cuda, page);
    case QI_CUDA_PAGE_EXTERNAL:
        return qi_cuda_external_destroy(cuda, page);
    default:
        return qi_cuda_block_destroy(cuda, page);
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
