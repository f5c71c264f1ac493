/*
 * elastic.c - the records of elastic pages, which grow and shrink in place. resize.c changes their
 * size.
 */
#include "backends/cuda/page.h"
#include "src/base/bits.h"
#include "src/base/result.h"

static quire_result check(const qi_cuda *cuda, const quire_page_request *request)
{
    if (!qi_cuda_kind_is_elastic(&cuda->kinds[request->kind]))
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "pages of memory kind %u cannot grow: that requires virtual memory "
            "management and pages of any number of handles",
            request->kind);
    if (request->description)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "an adopted page cannot grow");
    if (request->exportable)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "a page that grows cannot be exported: an exported page is one handle, "
            "which keeps its size");
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_elastic_create(qi_cuda *cuda, const quire_page_request *request,
                                    qi_cuda_page *page)
{
    const qi_cuda_kind *kind = &cuda->kinds[request->kind];
    uint64_t most = 0;
    quire_result result = check(cuda, request);
    if (result)
        return result;
    if (qi_align_up_overflows(request->max_size, kind->granularity, &most))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an address range of %llu bytes overflows",
                                  (unsigned long long)request->max_size);
    qi_cuda_elastic *elastic = qi_host_allocate(&cuda->host, 1, sizeof *elastic);
    if (!elastic)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for the record of a page that grows");
    if (pthread_mutex_init(&elastic->resize_mutex, NULL)) {
        qi_host_release(&cuda->host, elastic, 1, sizeof *elastic);
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no mutex for a page that grows");
    }
    elastic->max_bytes = most;
    elastic->access_count = qi_cuda_list_access(cuda, kind, elastic->access);
    page->elastic = elastic;
    return QUIRE_SUCCESS;
}

void qi_cuda_elastic_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!page->elastic)
        return;
    pthread_mutex_destroy(&page->elastic->resize_mutex);
    qi_host_release(&cuda->host, page->elastic, 1, sizeof *page->elastic);
    page->elastic = NULL;
}
