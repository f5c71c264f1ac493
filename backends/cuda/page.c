/*
 * page.c - pages as the core asks for them: made as their kind is made, given back, and gone on
 * with where giving back failed half way.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/growth.h"
#include "src/base/bits.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- records ------------------------------------------------------------------------------ */

void qi_cuda_close(qi_cuda_page *page)
{
    if (page->descriptor >= 0)
        close(page->descriptor);
    page->descriptor = -1;
}

static void release_record(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cuda_growth_end(cuda, page);
    qi_host_release(&cuda->host, page, 1, sizeof *page);
}

/* The records alone, with what is this process's: of what the driver has nothing is given back. */
static void forget(qi_cuda *cuda, qi_cuda_page *page)
{
    while (page->chunks) {
        qi_cuda_chunk *chunk = page->chunks;
        page->chunks = chunk->next;
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    }
    if (page->bytes)
        munmap(page->bytes, page->padded);
    qi_cuda_close(page);
    release_record(cuda, page);
}

/* ---- the end of a page -------------------------------------------------------------------- */

/* cuMemFree waits by itself, and so does the end of each array; nothing else does. */
bool qi_cuda_await_work(qi_cuda *cuda, const qi_cuda_page *page)
{
    if (!page->was_used || cuda->settings.unsynchronized || page->make == QI_CUDA_ALLOCATED ||
        page->make == QI_CUDA_BORROWED || page->make == QI_CUDA_POOL)
        return true;
    qi_cu_result code = cuda->f.CtxSynchronize();
    return !code || qi_cuda_is_lost(code);
}

static bool parts_down(qi_cuda *cuda, qi_cuda_page *page)
{
    switch (page->make) {
    case QI_CUDA_VIRTUAL:
    case QI_CUDA_POOL:
        return qi_cuda_virtual_take_down(cuda, page);
    case QI_CUDA_EXTERNAL:
        return qi_cuda_external_take_down(cuda, page);
    default:
        return qi_cuda_block_take_down(cuda, page);
    }
}

/* True: it is gone, with its record. False: the driver failed half way; the rest can wait. */
static bool take_down(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!qi_cuda_await_work(cuda, page))
        return false;
    page->was_used = false;
    bool is_done = parts_down(cuda, page);
    if (is_done)
        release_record(cuda, page);
    return is_done;
}

static void put_off(qi_cuda *cuda, qi_cuda_page *page)
{
    pthread_mutex_lock(&cuda->mutex);
    page->next = cuda->unfinished;
    cuda->unfinished = page;
    pthread_mutex_unlock(&cuda->mutex);
}

void qi_cuda_finish_pages(qi_cuda *cuda, bool last)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_page *page = cuda->unfinished, *next = NULL;
    cuda->unfinished = NULL;
    pthread_mutex_unlock(&cuda->mutex);
    for (; page; page = next) {
        next = page->next;
        if (!qi_cuda_has_forked(cuda) && take_down(cuda, page))
            continue;
        if (!last) {
            put_off(cuda, page);
            continue;
        }
        if (!qi_cuda_has_forked(cuda))
            qi_log(&cuda->log, QUIRE_LOG_ERROR,
                   "device '%s': the driver refused to take a page of %s back", cuda->name,
                   qi_bytes(page->padded).text);
        forget(cuda, page);
    }
}

void qi_cuda_page_destroy(void *state, const quire_native_page *native)
{
    qi_cuda *cuda = state;
    qi_cuda_page *page = qi_cuda_page_of(native);
    if (qi_cuda_has_forked(cuda)) {
        forget(cuda, page);
        return;
    }
    qi_cu_result code = cuda->f.CtxPushCurrent(cuda->context);
    bool is_lost = qi_cuda_is_lost(code) || code == QI_CUDA_ERROR_INVALID_CONTEXT;
    page->was_used &=
        !is_lost; /* nothing runs any more; handles and addresses may still be there */
    if ((code && !is_lost) || !take_down(cuda, page))
        put_off(cuda, page);
    if (!code)
        qi_cuda_leave(cuda);
}

/* ---- making ------------------------------------------------------------------------------- */

/* Some drivers promise host memory that there is not. */
quire_result qi_cuda_round_size(const qi_cuda *cuda, uint32_t kind, uint64_t size, uint64_t *padded)
{
    const qi_cuda_kind *of = &cuda->kinds[kind];
    uint64_t most = of->description.heap ? cuda->host_bytes : cuda->device_bytes;
    if (size > most || qi_align_up_overflows(size, of->granularity, padded))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "%s asked: the heap of memory kind %u has %s in all",
                                  qi_bytes(size).text, kind, qi_bytes(most).text);
    return QUIRE_SUCCESS;
}

static quire_result make(qi_cuda *cuda, const quire_page_request *request, qi_cuda_page *page)
{
    quire_result result = QUIRE_SUCCESS;
    if (request->max_size)
        result = qi_cuda_growth_make(cuda, request, page);
    if (!result && request->description)
        return qi_cuda_adopt(cuda, request, page);
    if (!result)
        result = qi_cuda_round_size(cuda, request->kind, request->size, &page->padded);
    if (result)
        return result;
    return cuda->kinds[request->kind].is_virtual ? qi_cuda_virtual_make(cuda, request, page)
                                                 : qi_cuda_block_make(cuda, request, page);
}

/* In the context. What a failure leaves is taken down at once, or later. */
static quire_result make_page(qi_cuda *cuda, const quire_page_request *request, qi_cuda_page **out)
{
    qi_cuda_page *page = qi_host_allocate(&cuda->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    page->kind = request->kind;
    page->requested = request->size;
    page->descriptor = -1;
    quire_result result = make(cuda, request, page);
    if (result && !take_down(cuda, page))
        put_off(cuda, page);
    if (result)
        return result;
    page->was_used = true;
    *out = page;
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *out)
{
    qi_cuda *cuda = state;
    qi_cuda_page *page = NULL;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cuda_finish_arrays(cuda, false);
    qi_cuda_finish_pages(cuda, false);
    result = make_page(cuda, request, &page);
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
    (void)state; /* the host's address is the page's as long as it lives */
    (void)native;
}
