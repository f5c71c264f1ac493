/*
 * resize.c - changes the size of an elastic page. Addresses are reserved for the maximum size and
 * mapped as far as they are used.
 *
 * Growing maps further chunks behind the mapped ones: as many as the chunk size requires, or one if
 * the settings name no chunk size. Access is set once for all of them, because that call is the
 * expensive one. Kept chunks save creating handles.
 *
 * A mapping can only be undone as a whole. A page that shrinks therefore releases the chunks that
 * lie completely behind its new end. The chunk in which the new end lies stays mapped, and the next
 * growth uses the rest of it without a call of the driver.
 */
#include "backends/cuda/array.h"
#include "src/base/result.h"

/* ---- the record ------------------------------------------------------------------------- */

/*
 * Publishes the mapped bytes. Takes qi_cuda.mutex, which readers such as quire_cuda_get_range take.
 */
static void set_mapped(qi_cuda *cuda, qi_cuda_page *page, uint64_t padded, uint32_t count,
                       qi_cuda_chunk **end)
{
    pthread_mutex_lock(&cuda->mutex);
    page->padded = padded;
    page->chunk_count = count;
    pthread_mutex_unlock(&cuda->mutex);
    page->elastic->end = end;
}

static void set_requested(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    pthread_mutex_lock(&cuda->mutex);
    page->requested = size;
    pthread_mutex_unlock(&cuda->mutex);
}

/* ---- larger ----------------------------------------------------------------------------- */

/* Releases the chunks after the page's end. No work on the device uses them. */
static bool release_rest(qi_cuda *cuda, const qi_cuda_page *page)
{
    return qi_cuda_virtual_release_chunks(cuda, page->elastic->end, page->reserved + page->padded);
}

/* Maps the bytes up to `padded`. In the context. */
static quire_result extend(qi_cuda *cuda, qi_cuda_page *page, uint64_t padded)
{
    qi_cuda_chunk **end = NULL;
    uint32_t count = 0;
    if (!release_rest(cuda, page))
        return quire_backend_fail(
            QUIRE_ERROR_BACKEND_FAILURE, 0,
            "the driver does not take back chunks that an earlier resize of the "
            "page could not release");
    quire_result result = qi_cuda_virtual_extend(cuda, page, padded - page->padded, &end, &count);
    if (result)
        release_rest(cuda, page); /* the next change retries what remains */
    else
        set_mapped(cuda, page, padded, page->chunk_count + count, end);
    return result;
}

/* Retries deferred arrays and pages first: their memory may be what the growth needs. */
static quire_result grow(qi_cuda *cuda, qi_cuda_page *page, uint64_t to)
{
    uint64_t padded = 0;
    quire_result result = qi_cuda_round_size(cuda, page->kind, to, &padded);
    if (result || padded <= page->padded)
        return result;
    result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cuda_retry_deferred_arrays(cuda, false);
    qi_cuda_retry_deferred_pages(cuda, false);
    result = extend(cuda, page, padded);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- smaller ---------------------------------------------------------------------------- */

/* Cannot fail. If work must be awaited and cannot be now (await.c), everything stays mapped and the
   next change of the size releases it. */
static void shrink(qi_cuda *cuda, qi_cuda_page *page, uint64_t to)
{
    qi_cuda_chunk **end = &page->chunks;
    uint64_t padded = 0;
    uint32_t count = 0;
    for (; padded < to; end = &(*end)->next) {
        padded += (*end)->size;
        count++;
    }
    if (!*end || qi_cuda_push(cuda))
        return;
    if (padded == page->padded || qi_cuda_await_work(cuda, page)) {
        set_mapped(cuda, page, padded, count, end);
        release_rest(cuda, page);
    }
    qi_cuda_leave(cuda);
}

/* ---- entry of the backend table --------------------------------------------------------- */

quire_result qi_cuda_page_resize(void *state, const quire_native_page *native, uint64_t from,
                                 uint64_t to)
{
    qi_cuda *cuda = state;
    qi_cuda_page *page = qi_cuda_page_of(native);
    quire_result result = QUIRE_SUCCESS;
    if (qi_cuda_has_forked(cuda)) /* a thread of the parent may hold resize_mutex */
        return to > from ? qi_cuda_check_process(cuda) : QUIRE_SUCCESS;
    pthread_mutex_lock(&page->elastic->resize_mutex);
    if (to > from)
        result = grow(cuda, page, to);
    else
        shrink(cuda, page, to);
    if (!result)
        set_requested(cuda, page, to);
    pthread_mutex_unlock(&page->elastic->resize_mutex);
    return result;
}
