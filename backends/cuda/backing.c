/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.c - elastic pages: a page reserves addresses for its maximum size and has one chunk of
 * memory, a handle of the driver, for each stretch of chunk_size bytes that is backed.
 *
 * Backing creates and maps the chunks of a span and sets access once for all of them, because that
 * call is the expensive one. A chunk that loses its place may be kept, and serves the next that
 * gets one: moving memory within a page, or between pages, creates no handle.
 *
 * The driver undoes a mapping only as a whole, and a handle likewise; hence one handle for a chunk.
 */
#include "backends/cuda/backing.h"

#include "backends/cuda/device.h"
#include "backends/cuda/stream.h"
#include "backends/cuda/virtual.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- runs --------------------------------------------------------------------------------- */

/* A run is a stretch of chunks side by side, all of them backed or all of them leftovers. Requires
   the mutex. */
typedef struct run {
    uint64_t first, end; /* numbers of chunks */
} run;

static run run_of(const qi_cuda_elastic *elastic, const quire_span *span)
{
    const uint64_t first = span->offset / elastic->chunk_size;
    return (run){first, first + span->size / elastic->chunk_size};
}

/* Finds the first run at or after r->first that ends at or before `end`. Returns false if there is
   none. */
static bool find_run(const qi_cuda_elastic *elastic, bool is_backed, uint64_t end, run *r)
{
    qi_cuda_chunk *const *chunks = elastic->chunks;
    while (r->first < end && (!chunks[r->first] || chunks[r->first]->is_backed != is_backed))
        r->first++;
    r->end = r->first;
    while (r->end < end && chunks[r->end] && chunks[r->end]->is_backed == is_backed)
        r->end++;
    return r->first < r->end;
}

/* Makes a list of the run's chunks. */
static qi_cuda_chunk *list_of(const qi_cuda_elastic *elastic, run r)
{
    for (uint64_t i = r.first; i < r.end; i++)
        elastic->chunks[i]->next = i + 1 < r.end ? elastic->chunks[i + 1] : NULL;
    return elastic->chunks[r.first];
}

static qi_cu_ptr address_of(const qi_cuda_page *page, uint64_t chunk)
{
    return page->reserved + chunk * page->elastic->chunk_size;
}

/* Publishes the backed bytes. Takes qi_cuda.mutex, which readers such as quire_cuda_get_range
   take. */
static void set_count(qi_cuda *cuda, qi_cuda_page *page, uint64_t count)
{
    pthread_mutex_lock(&cuda->mutex);
    page->chunk_count = (uint32_t)count;
    page->requested = page->padded = count * page->elastic->chunk_size;
    pthread_mutex_unlock(&cuda->mutex);
}

/* ---- taking memory ------------------------------------------------------------------------ */

static void make_leftovers(qi_cuda_elastic *elastic, run r)
{
    for (uint64_t i = r.first; i < r.end; i++)
        if (elastic->chunks[i] && elastic->chunks[i]->is_backed) {
            elastic->chunks[i]->is_backed = false;
            elastic->leftovers++;
        }
}

static void release_moving(qi_cuda *cuda, qi_cuda_elastic *elastic)
{
    for (qi_cuda_chunk *chunk = elastic->moving, *next = NULL; chunk; chunk = next) {
        next = chunk->next;
        qi_cuda_chunk_release(cuda, chunk);
    }
    elastic->moving = NULL;
}

/* Unmaps the leftovers of a run, as far as the driver does. No work uses them. They move, or are
   released by the caller. */
static void take_leftovers(const qi_cuda *cuda, const qi_cuda_page *page, run within)
{
    qi_cuda_elastic *elastic = page->elastic;
    for (run r = within; find_run(elastic, false, within.end, &r); r.first = r.end) {
        qi_cuda_chunks_unmap(cuda, list_of(elastic, r), address_of(page, r.first));
        for (uint64_t i = r.first; i < r.end; i++) {
            qi_cuda_chunk *chunk = elastic->chunks[i];
            if (chunk->is_mapped)
                continue;
            elastic->chunks[i] = NULL;
            elastic->leftovers--;
            chunk->next = elastic->moving;
            elastic->moving = chunk;
        }
    }
}

/* Also retries to release handles. */
static void retry_leftovers(qi_cuda *cuda, const qi_cuda_page *page)
{
    if (page->elastic->leftovers)
        take_leftovers(cuda, page, (run){0, page->elastic->count});
    qi_cuda_retry_kept(cuda);
}

void qi_cuda_elastic_unback(qi_cuda *cuda, qi_cuda_page *page, const quire_span *spans,
                            uint32_t count, bool moves)
{
    qi_cuda_elastic *elastic = page->elastic;
    pthread_mutex_lock(&elastic->mutex);
    const uint64_t before = elastic->leftovers;
    for (uint32_t i = 0; i < count; i++)
        make_leftovers(elastic, run_of(elastic, &spans[i]));
    set_count(cuda, page, page->chunk_count - (elastic->leftovers - before));
    if (!qi_cuda_push(cuda)) {
        if (qi_cuda_await_work(cuda, page)) {
            qi_cuda_retry_kept(cuda);
            for (uint32_t i = 0; i < count; i++)
                take_leftovers(cuda, page, run_of(elastic, &spans[i]));
            if (before)
                take_leftovers(cuda, page, (run){0, elastic->count});
        }
        if (!moves)
            release_moving(cuda, elastic);
        qi_cuda_leave(cuda);
    }
    pthread_mutex_unlock(&elastic->mutex);
}

bool qi_cuda_elastic_unback_all(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!page->elastic)
        return true;
    make_leftovers(page->elastic, (run){0, page->elastic->count});
    retry_leftovers(cuda, page);
    release_moving(cuda, page->elastic);
    return !page->elastic->leftovers;
}

/* ---- giving memory ------------------------------------------------------------------------ */

/* A leftover in the run serves again. On failure all chunks of the run are leftovers. */
static quire_result back_run(qi_cuda *cuda, const qi_cuda_page *page, run r)
{
    qi_cuda_elastic *elastic = page->elastic;
    const uint64_t size = (r.end - r.first) * elastic->chunk_size;
    for (uint64_t i = r.first; i < r.end; i++) {
        if (elastic->chunks[i])
            continue;
        quire_result result = QUIRE_SUCCESS;
        elastic->chunks[i] = elastic->moving;
        if (elastic->moving)
            elastic->moving = elastic->moving->next;
        else
            result = qi_cuda_chunk_acquire(cuda, page->kind, elastic->chunk_size, 0,
                                           &elastic->chunks[i]);
        if (result)
            return result;
        elastic->chunks[i]->is_backed = false; /* a kept one had a place before */
        elastic->leftovers++;
    }
    qi_cuda_chunk *list = list_of(elastic, r);
    quire_result result = qi_cuda_chunks_map(cuda, list, address_of(page, r.first));
    if (!result)
        result = qi_cuda_chunks_open(cuda, page, list, address_of(page, r.first), size);
    if (result)
        return result;
    for (uint64_t i = r.first; i < r.end; i++)
        elastic->chunks[i]->is_backed = true;
    elastic->leftovers -= r.end - r.first;
    return QUIRE_SUCCESS;
}

/* Requires the mutex. The heap is checked before the driver is called. */
static quire_result back(qi_cuda *cuda, qi_cuda_page *page, const quire_span *spans, uint32_t count)
{
    const qi_cuda_elastic *elastic = page->elastic;
    uint64_t bytes = page->padded, padded = 0;
    uint32_t done = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += spans[i].size;
    quire_result result = qi_cuda_round_size(cuda, page->kind, bytes, &padded);
    if (result)
        return result;
    retry_leftovers(cuda, page);
    for (; done < count && !result; done++)
        result = back_run(cuda, page, run_of(elastic, &spans[done]));
    if (!result)
        set_count(cuda, page, bytes / elastic->chunk_size);
    for (uint32_t i = 0; result && i < done; i++) {
        make_leftovers(page->elastic, run_of(elastic, &spans[i]));
        take_leftovers(cuda, page, run_of(elastic, &spans[i]));
    }
    return result;
}

quire_result qi_cuda_elastic_back(qi_cuda *cuda, qi_cuda_page *page, const quire_span *spans,
                                  uint32_t count)
{
    pthread_mutex_lock(&page->elastic->mutex);
    quire_result result = back(cuda, page, spans, count);
    release_moving(cuda, page->elastic);
    pthread_mutex_unlock(&page->elastic->mutex);
    return result;
}

qi_cu_result qi_cuda_elastic_access(const qi_cuda *cuda, const qi_cuda_page *page,
                                    const qi_cu_access_desc *list, uint32_t count)
{
    const qi_cuda_elastic *elastic = page->elastic;
    qi_cu_result code = QI_CUDA_SUCCESS;
    for (run r = {0}; !code && find_run(elastic, true, elastic->count, &r); r.first = r.end)
        code = qi_cuda_chunks_access(cuda, list_of(elastic, r), address_of(page, r.first),
                                     (r.end - r.first) * elastic->chunk_size, list, count);
    return code;
}

/* ---- creating and destroying -------------------------------------------------------------- */

static quire_result check(const qi_cuda *cuda, const quire_page_request *request)
{
    const qi_cuda_kind *kind = &cuda->kinds[request->kind];
    if (!qi_cuda_kind_is_elastic(kind))
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "pages of memory kind %u cannot be elastic: that requires virtual memory "
            "management and pages of any number of handles",
            request->kind);
    if (request->description)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "an adopted page cannot be elastic");
    if (request->exportable)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "an elastic page cannot be exported: an exported page is one handle, "
            "which keeps its size");
    return QUIRE_SUCCESS;
}

/* Creates page->elastic. */
static quire_result make_record(qi_cuda *cuda, const quire_page_request *request,
                                qi_cuda_page *page)
{
    qi_cuda_elastic *elastic = qi_host_allocate(&cuda->host, 1, sizeof *elastic);
    if (!elastic)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for the record of an elastic page");
    elastic->chunk_size = request->chunk;
    elastic->count = request->max_size / request->chunk;
    elastic->access_count = qi_cuda_list_access(cuda, &cuda->kinds[request->kind], elastic->access);
    elastic->chunks = qi_host_allocate(&cuda->host, elastic->count, sizeof *elastic->chunks);
    if (elastic->chunks && !pthread_mutex_init(&elastic->mutex, NULL)) {
        page->elastic = elastic;
        return QUIRE_SUCCESS;
    }
    if (elastic->chunks)
        qi_host_release(&cuda->host, elastic->chunks, elastic->count, sizeof *elastic->chunks);
    qi_host_release(&cuda->host, elastic, 1, sizeof *elastic);
    return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                              "no host memory for the chunks of an elastic page");
}

quire_result qi_cuda_elastic_create(qi_cuda *cuda, const quire_page_request *request,
                                    qi_cuda_page *page)
{
    const quire_span first = {0, request->size};
    quire_result result = check(cuda, request);
    if (!result)
        result = make_record(cuda, request, page);
    if (!result)
        result = qi_cuda_virtual_reserve(cuda, request->alignment, page);
    if (!result && first.size)
        result = qi_cuda_elastic_back(cuda, page, &first, 1);
    return result;
}

void qi_cuda_elastic_release(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cuda_elastic *elastic = page->elastic;
    if (!elastic)
        return;
    while (elastic->moving) {
        qi_cuda_chunk *chunk = elastic->moving;
        elastic->moving = chunk->next;
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    }
    for (uint64_t i = 0; i < elastic->count; i++)
        if (elastic->chunks[i])
            qi_host_release(&cuda->host, elastic->chunks[i], 1, sizeof *elastic->chunks[i]);
    qi_host_release(&cuda->host, elastic->chunks, elastic->count, sizeof *elastic->chunks);
    pthread_mutex_destroy(&elastic->mutex);
    qi_host_release(&cuda->host, elastic, 1, sizeof *elastic);
    page->elastic = NULL;
}
