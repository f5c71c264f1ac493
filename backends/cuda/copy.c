/*
 * copy.c - copies between the host and pages that it cannot reach, and fills with zeros.
 *
 * They go through the context's default stream: after the work of its blocking streams, as cuMemcpy
 * does. A copy to the device may return when the driver has the bytes and the device not yet; so
 * may a fill: the stream is waited for.
 */
#include <string.h>

#include "backends/cuda/cuda.h"
#include "src/base/result.h"

static quire_result finish(const qi_cuda *cuda, qi_cu_result code, const char *what, uint64_t size)
{
    if (!code)
        code = cuda->f.StreamSynchronize(NULL);
    qi_cuda_leave(cuda);
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
    quire_result result = qi_cuda_enter(cuda);
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
    quire_result result = qi_cuda_enter(cuda);
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
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    return finish(cuda, cuda->f.MemsetD8(page->address + offset, value, size), "a fill", size);
}
