/*
 * page.c - creates pages as their memory kind requires, and maps them.
 */
#include "backends/cuda/array.h"
#include "src/base/result.h"

/* ---- creation --------------------------------------------------------------------------- */

/* Fills in page->padded and the parts of the page. On failure the page holds what was created. */
static quire_result create(qi_cuda *cuda, const quire_page_request *request, qi_cuda_page *page)
{
    quire_result result = QUIRE_SUCCESS;
    if (request->max_size)
        result = qi_cuda_elastic_create(cuda, request, page);
    if (!result && request->description)
        return qi_cuda_import_page(cuda, request, page); /* existing memory: no rounding */
    if (!result)
        result = qi_cuda_round_size(cuda, request->kind, request->size, &page->padded);
    if (result)
        return result;
    return cuda->kinds[request->kind].is_virtual ? qi_cuda_virtual_create(cuda, request, page)
                                                 : qi_cuda_block_create(cuda, request, page);
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
    quire_result result = create(cuda, request, page);
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

/* ---- mapping ---------------------------------------------------------------------------- */

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
