/*
 * copy.c - copies between the host and pages, and fills, that complete before they return. Pages
 * that the host reaches are copied by the host.
 *
 * The driver's copies run in the context's default stream, after the work of its blocking streams,
 * as cuMemcpy does. A copy to the device may return when the driver has read the bytes, and a fill
 * before it has run; quire therefore waits for the stream. While a capture makes the default stream
 * unusable, they are NOT_PERMITTED.
 */
#include <string.h>

#include "backends/cuda/page.h"
#include "src/base/result.h"

/* Returns true if the default stream is to be awaited again: while another thread captures a graph
   in a stream that waits for it, which a pause outlasts, and once after any other error. */
static bool waits_again(qi_cu_result code, uint32_t *pauses)
{
    if (!code)
        return false;
    return qi_cuda_result(code) == QUIRE_ERROR_NOT_PERMITTED ? qi_cuda_pause(pauses, NULL)
                                                             : !(*pauses)++;
}

qi_cu_result qi_cuda_finish_default(const qi_cuda *cuda, qi_cu_result code)
{
    uint32_t pauses = 0;
    qi_cu_result waited;
    do
        waited = cuda->f.StreamSynchronize(NULL);
    while (waits_again(waited, &pauses));
    qi_cuda_leave(cuda);
    return code ? code : waited;
}

static quire_result finish(const qi_cuda *cuda, qi_cu_result code, const char *what, uint64_t size)
{
    code = qi_cuda_finish_default(cuda, code);
    return code ? qi_cuda_fail(&cuda->f, code, "%s of %s", what, qi_bytes(size).text)
                : QUIRE_SUCCESS;
}

quire_result qi_cuda_copy_to_page(void *state, const quire_native_page *native, uint64_t offset,
                                  const void *data, uint64_t size)
{
    const qi_cuda *cuda = state;
    const qi_cuda_page *page = qi_cuda_page_of(native);
    if (page->host) {
        memcpy((char *)page->host + offset, data, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    return finish(cuda, cuda->f.MemcpyHtoD(page->address + offset, data, size), "a copy to a page",
                  size);
}

quire_result qi_cuda_copy_from_page(void *state, const quire_native_page *native, uint64_t offset,
                                    void *data, uint64_t size)
{
    const qi_cuda *cuda = state;
    const qi_cuda_page *page = qi_cuda_page_of(native);
    if (page->host) {
        memcpy(data, (const char *)page->host + offset, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemcpyDtoH(data, page->address + offset, size);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "a copy of %s from a page", qi_bytes(size).text)
                : QUIRE_SUCCESS;
}

quire_result qi_cuda_fill_page(void *state, const quire_native_page *native, uint64_t offset,
                               uint64_t size, uint8_t value)
{
    const qi_cuda *cuda = state;
    const qi_cuda_page *page = qi_cuda_page_of(native);
    if (page->host) {
        memset((char *)page->host + offset, value, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    return finish(cuda, cuda->f.MemsetD8(page->address + offset, value, size), "a fill", size);
}
