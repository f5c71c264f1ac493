/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * dma_buf.c - pages, and ranges of elastic pages, as dma-bufs for the drivers of other hardware.
 * The driver makes one of a gapless mapping, also over several handles.
 */
#include <unistd.h>

#include "backends/cuda/device.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Exports addresses of a page: `size` bytes from `begin` on. */
static quire_result export_range(qi_cuda *cuda, const qi_cuda_page *page, uint64_t begin,
                                 uint64_t size, int *descriptor)
{
    if (!cuda->capabilities.dma_buf || page->host || !page->address ||
        page->type == QI_CUDA_PAGE_BORROWED || page->type == QI_CUDA_PAGE_POOLED ||
        page->type == QI_CUDA_PAGE_OPENED)
        return qi_fail(
            QUIRE_ERROR_UNSUPPORTED,
            "the page cannot be a dma-buf: that requires support of driver and device, and a "
            "device-local page that quire created and not of a pool");
    if (qi_padding(page->address, (uint64_t)sysconf(_SC_PAGESIZE)))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the page lies at %x: a dma-buf must begin at a page of the host",
                            page->address);
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemGetHandleForAddressRange(
        descriptor, page->address + begin, size, QI_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    qi_cuda_leave(cuda);
    if (!code)
        return QUIRE_SUCCESS;
    *descriptor = -1;
    return qi_cuda_fail(&cuda->f, code, "cuMemGetHandleForAddressRange of %s", qi_bytes(size).text);
}

quire_result quire_cuda_export_dma_buf(quire_memory *memory, quire_allocation allocation,
                                       int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail_null("quire_cuda_export_dma_buf", !memory ? "memory" : "descriptor");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    if (page->elastic)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the page cannot be a dma-buf: it is elastic, and a dma-buf keeps its size; "
                       "quire_cuda_export_dma_buf_range exports the chunks of an allocation");
    return export_range(cuda, page, 0, page->padded, descriptor);
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* Whether all chunks of a stretch have memory: those of an allocation stay while it lives. */
static quire_result check_chunks(qi_cuda *cuda, const qi_cuda_page *page, uint64_t begin,
                                 uint64_t end)
{
    const uint64_t size = page->elastic->chunk_size;
    uint64_t at = begin;
    pthread_mutex_lock(&cuda->mutex);
    while (at < end && page->elastic->chunks[at / size])
        at += size;
    pthread_mutex_unlock(&cuda->mutex);
    return at == end ? QUIRE_SUCCESS
                     : qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                                    "a dma-buf of a range that has no memory at %u of its page: "
                                    "quire_back_range gives it some",
                                    at);
}

/* Checks that the range lies in an allocation that is awake. A size of 0 means up to its end. */
static quire_result check_range(const quire_memory *memory, const quire_view *range, uint64_t *size)
{
    quire_allocation_info info;
    quire_result result = quire_allocation_get_info(memory, range->allocation, &info);
    if (result)
        return result;
    if (info.asleep)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "allocation %x is asleep: quire_memory_wake gives it memory",
                            range->allocation.id);
    *size = range->size || range->offset > info.requested ? range->size
                                                          : info.requested - range->offset;
    if (*size && qi_range_fits(range->offset, *size, info.requested))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                        "%u byte%s at offset %u of an allocation that has %u byte%s", range->size,
                        range->offset, info.requested);
}

quire_result quire_cuda_export_dma_buf_range(quire_memory *memory, const quire_view *range,
                                             quire_cuda_dma_buf *exported)
{
    uint64_t size = 0;
    quire_native native;
    qi_cuda *cuda = NULL;
    if (exported)
        *exported = (quire_cuda_dma_buf){.descriptor = -1};
    if (!memory || !range || !exported)
        return qi_fail_null("quire_cuda_export_dma_buf_range", !memory  ? "memory"
                                                               : !range ? "range"
                                                                        : "exported");
    quire_result result = check_range(memory, range, &size);
    if (!result)
        result = qi_cuda_find_native(memory, range->allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    const uint64_t unit = page->elastic ? page->elastic->chunk_size : page->padded;
    const uint64_t first = native.offset + range->offset, begin = first / unit * unit;
    const uint64_t end = (first + size + unit - 1) / unit * unit;
    if (page->elastic)
        result = check_chunks(cuda, page, begin, end);
    if (!result)
        result = export_range(cuda, page, begin, end - begin, &exported->descriptor);
    if (result)
        return result;
    exported->address = page->address + begin;
    exported->size = end - begin;
    exported->offset = first - begin;
    return QUIRE_SUCCESS;
}
