/*
 * growth.c - pages that grow in place: addresses are reserved for the most that they may come to,
 * and mapped as far as they are used.
 *
 * Growing maps further chunks behind those that are there, as many as the chunk size asks for (one
 * where the settings name none), with access set once for all of them: that is the expensive call,
 * and kept handles spare the other one. A mapping can only be undone whole, so that a page that
 * becomes smaller gives back the chunks that lie behind its new end altogether. One that the new
 * end lies in stays mapped, and the next growth uses it first, without a call of the driver.
 */
#include "backends/cuda/growth.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the record --------------------------------------------------------------------------- */

static quire_result check(const qi_cuda *cuda, const quire_page_request *request)
{
    if (!qi_cuda_kind_grows(&cuda->kinds[request->kind]))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memory kind %u do not grow: only those that virtual "
                                  "memory management makes of any number of handles do",
                                  request->kind);
    if (request->description)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "a page of memory that is there already does not grow");
    if (request->exportable)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "a page that grows cannot be exported: that is done by one handle, "
            "which keeps its size");
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_growth_make(qi_cuda *cuda, const quire_page_request *request,
                                 qi_cuda_page *page)
{
    const qi_cuda_kind *kind = &cuda->kinds[request->kind];
    uint64_t most = 0;
    quire_result result = check(cuda, request);
    if (result)
        return result;
    if (qi_align_up_overflows(request->max_size, kind->granularity, &most))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "there are no addresses for %llu bytes",
                                  (unsigned long long)request->max_size);
    qi_cuda_growth *growth = qi_host_allocate(&cuda->host, 1, sizeof *growth);
    if (!growth)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for the record of a page that grows");
    if (pthread_mutex_init(&growth->changing, NULL)) {
        qi_host_release(&cuda->host, growth, 1, sizeof *growth);
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no mutex for a page that grows");
    }
    growth->most = most;
    growth->access_count = qi_cuda_list_access(cuda, kind, growth->access);
    page->growth = growth;
    return QUIRE_SUCCESS;
}

void qi_cuda_growth_end(qi_cuda *cuda, qi_cuda_page *page)
{
    if (!page->growth)
        return;
    pthread_mutex_destroy(&page->growth->changing);
    qi_host_release(&cuda->host, page->growth, 1, sizeof *page->growth);
    page->growth = NULL;
}

/* What others may look at meanwhile. */
static void set_mapped(qi_cuda *cuda, qi_cuda_page *page, uint64_t padded, uint32_t count,
                       qi_cuda_chunk **end)
{
    pthread_mutex_lock(&cuda->mutex);
    page->padded = padded;
    page->chunk_count = count;
    pthread_mutex_unlock(&cuda->mutex);
    page->growth->end = end;
}

static void set_requested(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    pthread_mutex_lock(&cuda->mutex);
    page->requested = size;
    pthread_mutex_unlock(&cuda->mutex);
}

/* ---- larger ------------------------------------------------------------------------------- */

/* What hangs behind the page's end; nobody works on it. */
static bool drop_rest(qi_cuda *cuda, const qi_cuda_page *page)
{
    return qi_cuda_virtual_drop(cuda, page->growth->end, page->reserved + page->padded);
}

/* In the context. */
static quire_result extend(qi_cuda *cuda, qi_cuda_page *page, uint64_t padded)
{
    qi_cuda_chunk **end = NULL;
    uint32_t count = 0;
    if (!drop_rest(cuda, page))
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                  "the driver does not take back what an earlier change of the "
                                  "page's size left behind it");
    quire_result result = qi_cuda_virtual_extend(cuda, page, padded - page->padded, &end, &count);
    if (result)
        drop_rest(cuda, page); /* what stays is gone on with by the next change, or by the end */
    else
        set_mapped(cuda, page, padded, page->chunk_count + count, end);
    return result;
}

static quire_result grow(qi_cuda *cuda, qi_cuda_page *page, uint64_t to)
{
    uint64_t padded = 0;
    quire_result result = qi_cuda_round_size(cuda, page->kind, to, &padded);
    if (result || padded <= page->padded)
        return result;
    result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cuda_finish_arrays(cuda, false);
    qi_cuda_finish_pages(cuda, false);
    result = extend(cuda, page, padded);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- smaller ------------------------------------------------------------------------------ */

/* Where work cannot be waited for (a stream is being captured, say) all stays mapped, and the next
   change of size sees to it. */
static void shrink(qi_cuda *cuda, qi_cuda_page *page, uint64_t to)
{
    qi_cuda_chunk **end = &page->chunks;
    uint64_t padded = 0;
    uint32_t count = 0;
    for (; padded < to; end = &(*end)->next) {
        padded += (*end)->size;
        count++;
    }
    if (!*end || cuda->f.CtxPushCurrent(cuda->context))
        return;
    if (padded == page->padded || qi_cuda_await_work(cuda, page)) {
        set_mapped(cuda, page, padded, count, end);
        drop_rest(cuda, page);
    }
    qi_cuda_leave(cuda);
}

/* ---- both --------------------------------------------------------------------------------- */

quire_result qi_cuda_page_resize(void *state, const quire_native_page *native, uint64_t from,
                                 uint64_t to)
{
    qi_cuda *cuda = state;
    qi_cuda_page *page = qi_cuda_page_of(native);
    quire_result result = QUIRE_SUCCESS;
    if (qi_cuda_has_forked(cuda)) /* `changing` may be held by a thread that is not here */
        return to > from ? qi_cuda_check_process(cuda) : QUIRE_SUCCESS;
    pthread_mutex_lock(&page->growth->changing);
    if (to > from)
        result = grow(cuda, page, to);
    else
        shrink(cuda, page, to);
    if (!result)
        set_requested(cuda, page, to);
    pthread_mutex_unlock(&page->growth->changing);
    return result;
}
