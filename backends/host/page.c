/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - a host page is its mapping, which exists from its creation to its destruction. The
 * memory kind alone decides whether the caller gets the address. Creating a page touches none of
 * its bytes, so an unused page costs address space only. Also backs elastic pages, and copies and
 * fills bytes of pages.
 *
 * A page of a host-visible kind that is not coherent has a second mapping, the bytes that the host
 * sees. Only flush and invalidate copy between the two, so that a program that forgets one reads
 * old bytes, as on a device with a cache. The heap is charged for one of them.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/host/host.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- elastic pages ------------------------------------------------------------------------ */

/*
 * All addresses are reserved without access. Backed chunks are readable and writable. Taking their
 * memory discards the bytes, so that they cost nothing.
 *
 * A bit for each chunk says whether it is charged to the heap. In the child of a fork it tells what
 * of a span a vanished thread had charged.
 */

/* Sets or clears the bits of a span's chunks. Returns the bytes of those that changed. */
static uint64_t mark(qi_host_page *page, const quire_span *span, bool is_backed)
{
    const uint64_t first = span->offset / page->chunk, end = first + span->size / page->chunk;
    uint64_t changed = 0;
    for (uint64_t i = first; i < end; i++) {
        const uint64_t bit = UINT64_C(1) << i % 64;
        changed += !(page->backed[i / 64] & bit) == is_backed;
        page->backed[i / 64] = is_backed ? page->backed[i / 64] | bit : page->backed[i / 64] & ~bit;
    }
    return changed * page->chunk;
}

/* Gives access to a span. On failure it stays inaccessible. */
static quire_result open_span(const qi_host_device *device, const qi_host_page *page,
                              const quire_span *span)
{
    char *bytes = page->bytes + span->offset;
    if (mprotect(bytes, span->size, PROT_READ | PROT_WRITE))
        return qi_host_fail_errno("mapping", span->size);
    if (device->huge_pages == QUIRE_HOST_HUGE_ADVISE)
        madvise(bytes, span->size, MADV_HUGEPAGE); /* a hint: its failure is harmless */
    return QUIRE_SUCCESS;
}

/* mmap fails if the process has too many mappings. The span then stays accessible, and madvise
   discards its bytes. */
static void close_span(const qi_host_page *page, const quire_span *span)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    char *bytes = page->bytes + span->offset;
    if (mmap(bytes, span->size, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        madvise(bytes, span->size, MADV_DONTNEED);
    if (page->host_bytes != page->bytes)
        madvise(page->host_bytes + span->offset, span->size, MADV_DONTNEED);
}

static quire_result open_spans(const qi_host_device *device, const qi_host_page *page,
                               const quire_span *spans, uint32_t count)
{
    quire_result result = QUIRE_SUCCESS;
    uint32_t opened = 0;
    for (; opened < count && !result; opened += !result)
        result = open_span(device, page, &spans[opened]);
    for (uint32_t i = 0; result && i < opened; i++)
        close_span(page, &spans[i]);
    return result;
}

/* The heap is charged before the bytes become usable, so that it never exceeds its size. */
quire_result qi_host_page_back(void *state, const quire_native_page *native,
                               const quire_span *spans, uint32_t count)
{
    qi_host_device *device = state;
    qi_host_page *page = qi_host_page_of(native);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += spans[i].size;
    quire_result result = qi_host_check_lost(device);
    if (!result)
        result = qi_host_charge_heap(device, page->heap, bytes);
    if (result)
        return result;
    result = open_spans(device, page, spans, count);
    if (result)
        qi_atomic_sub_u64(&device->heap_used[page->heap], bytes);
    for (uint32_t i = 0; i < count && !result; i++)
        mark(page, &spans[i], true);
    return result;
}

void qi_host_page_unback(void *state, const quire_native_page *native, const quire_span *spans,
                         uint32_t count, bool moves)
{
    (void)moves; /* private memory cannot move */
    qi_host_device *device = state;
    qi_host_page *page = qi_host_page_of(native);
    for (uint32_t i = 0; i < count; i++) {
        close_span(page, &spans[i]);
        qi_atomic_sub_u64(&device->heap_used[page->heap], mark(page, &spans[i], false));
    }
}

/* Makes the bits of an elastic page. */
static quire_result make_bits(qi_host_device *device, const quire_page_request *request,
                              qi_host_page *page)
{
    if (!qi_host_can_resize(device))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memfds and of reserved huge pages cannot be elastic");
    page->chunk = request->chunk;
    page->words = (request->max_size / request->chunk + 63) / 64;
    page->backed = qi_host_allocate(&device->host, page->words, sizeof *page->backed);
    return page->backed ? QUIRE_SUCCESS
                        : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                             "no host memory for the chunks of a page");
}

/* Reserves the addresses and opens the first bytes. Sets page->bytes. On failure nothing is
   reserved. */
static quire_result map_elastic(const qi_host_device *device, const quire_page_request *request,
                                uint64_t alignment, qi_host_page *page)
{
    const quire_span first = {0, request->size};
    page->bytes = qi_host_map_anonymous(page->mapped, alignment, PROT_NONE);
    if (page->bytes == MAP_FAILED)
        return qi_host_fail_errno("an address range", page->mapped);
    quire_result result = first.size ? open_span(device, page, &first) : QUIRE_SUCCESS;
    if (result)
        munmap(page->bytes, page->mapped);
    else
        mark(page, &first, true);
    return result;
}

/* Bytes that the page has. */
static uint64_t charged(const qi_host_page *page)
{
    uint64_t chunks = 0;
    for (uint64_t i = 0; i < page->words; i++)
        chunks += qi_count_bits(page->backed[i]);
    return page->backed ? chunks * page->chunk : page->size;
}

/* ---- pages -------------------------------------------------------------------------------- */

/* Every page has the alignment that the limits promise. */
static uint64_t alignment_of(const qi_host_device *device, const quire_page_request *request)
{
    uint64_t alignment = device->profile.limits.page_alignment;
    alignment = request->alignment > alignment ? request->alignment : alignment;
    return QI_HOST_PAGE_ALIGNMENT > alignment ? QI_HOST_PAGE_ALIGNMENT : alignment;
}

/* Maps page->mapped bytes as the device's backing requires. Sets page->bytes and, for a memfd,
   page->descriptor. On failure the page owns nothing. */
static quire_result map_page(const qi_host_device *device, const quire_page_request *request,
                             qi_host_page *page)
{
    uint64_t alignment = alignment_of(device, request);
    if (request->max_size)
        return map_elastic(device, request, alignment, page);
    bool reserved = device->huge_pages == QUIRE_HOST_HUGE_RESERVED;
    if (device->backing == QUIRE_HOST_MEMFD) {
        page->descriptor = qi_host_create_memfd(device, request->label, page->mapped);
        if (page->descriptor < 0)
            return qi_host_fail_errno("memfd", page->mapped);
        int flags = MAP_SHARED | (reserved ? 0 : MAP_NORESERVE);
        page->bytes = qi_host_map_at_free_address(page->mapped, alignment, flags, page->descriptor);
    } else if (reserved) {
        /* without MAP_NORESERVE, so that an exhausted reserve fails here and not as SIGBUS later */
        page->bytes =
            qi_host_map_at_free_address(page->mapped, alignment, qi_host_huge_flags(), -1);
    } else {
        page->bytes = qi_host_map_anonymous(page->mapped, alignment, PROT_READ | PROT_WRITE);
    }
    if (page->bytes == MAP_FAILED) {
        quire_result result = qi_host_fail_errno("mapping", page->mapped);
        if (page->descriptor >= 0)
            close(page->descriptor);
        return result;
    }
    if (device->huge_pages == QUIRE_HOST_HUGE_ADVISE)
        madvise(page->bytes, page->mapped, MADV_HUGEPAGE); /* a hint: its failure is harmless */
    return QUIRE_SUCCESS;
}

static void unmap_page(const qi_host_page *page)
{
    if (page->host_bytes != page->bytes)
        munmap(page->host_bytes, page->mapped);
    munmap(page->bytes, page->mapped);
    if (page->descriptor >= 0)
        close(page->descriptor);
}

/* Sets page->host_bytes. All addresses of an elastic page are usable there from the start. On
   failure nothing is mapped. */
static quire_result map_host_bytes(const qi_host_device *device, const quire_page_request *request,
                                   qi_host_page *page)
{
    const quire_memory_flags flags = device->profile.kinds[request->kind].flags;
    page->host_bytes = page->bytes;
    if ((flags & (QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT)) != QUIRE_HOST_VISIBLE)
        return QUIRE_SUCCESS;
    const uint64_t size = page->mapped;
    char *mapped =
        qi_host_map_anonymous(size, alignment_of(device, request), PROT_READ | PROT_WRITE);
    if (mapped == MAP_FAILED) {
        quire_result result = qi_host_fail_errno("mapping", size);
        unmap_page(page);
        return result;
    }
    page->host_bytes = mapped;
    return QUIRE_SUCCESS;
}

/* ---- entries of the backend table --------------------------------------------------------- */

static void release_record(qi_host_device *device, qi_host_page *page)
{
    if (page->backed)
        qi_host_release(&device->host, page->backed, page->words, sizeof *page->backed);
    qi_host_release(&device->host, page, 1, sizeof *page);
}

/* Charges the heap and maps the page. On failure it undoes both. */
static quire_result charge_and_map(qi_host_device *device, const quire_page_request *request,
                                   qi_host_page *page)
{
    quire_result result = qi_host_charge_heap(device, page->heap, request->size);
    if (result)
        return result;
    result = map_page(device, request, page);
    if (!result)
        result = map_host_bytes(device, request, page);
    if (result)
        qi_atomic_sub_u64(&device->heap_used[page->heap], request->size);
    return result;
}

quire_result qi_host_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *out)
{
    qi_host_device *device = state;
    const quire_kind *kind = &device->profile.kinds[request->kind];
    uint64_t unit =
        device->huge_pages == QUIRE_HOST_HUGE_RESERVED ? QI_HOST_HUGE_PAGE : device->system_page;
    const uint64_t size = request->max_size ? request->max_size : request->size;
    uint64_t mapped = 0;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    if (qi_align_up_overflows(size, unit, &mapped))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0, "a page of %llu bytes",
                                  (unsigned long long)size);
    qi_host_page *page = qi_host_allocate(&device->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    *page = (qi_host_page){
        .mapped = mapped, .size = request->size, .heap = kind->heap, .descriptor = -1};
    if (request->max_size)
        result = make_bits(device, request, page);
    if (!result)
        result = charge_and_map(device, request, page);
    if (result) {
        release_record(device, page);
        return result;
    }
    bool visible = kind->flags & QUIRE_HOST_VISIBLE;
    *out = (quire_native_page){
        .handle = (uintptr_t)page,
        .address = visible ? (uintptr_t)page->bytes : 0,
        .size = size,
        .is_zero = true, /* new mappings are */
    };
    return QUIRE_SUCCESS;
}

void qi_host_page_destroy(void *state, const quire_native_page *native)
{
    qi_host_device *device = state;
    qi_host_page *page = qi_host_page_of(native);
    unmap_page(page);
    qi_atomic_sub_u64(&device->heap_used[page->heap], charged(page));
    release_record(device, page);
}

quire_result qi_host_page_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    *pointer = qi_host_page_of(page)->host_bytes;
    return QUIRE_SUCCESS;
}

void qi_host_page_unmap(void *state, const quire_native_page *page)
{
    (void)state; /* the mapping lasts until the page is destroyed */
    (void)page;
}

/* The core calls this and the next only for kinds that are not coherent. */
quire_result qi_host_page_flush(void *state, const quire_native_page *native, uint64_t offset,
                                uint64_t size)
{
    (void)state;
    const qi_host_page *page = qi_host_page_of(native);
    memcpy(page->bytes + offset, page->host_bytes + offset, size);
    return QUIRE_SUCCESS;
}

quire_result qi_host_page_invalidate(void *state, const quire_native_page *native, uint64_t offset,
                                     uint64_t size)
{
    (void)state;
    const qi_host_page *page = qi_host_page_of(native);
    memcpy(page->host_bytes + offset, page->bytes + offset, size);
    return QUIRE_SUCCESS;
}

/* ---- copies and fills --------------------------------------------------------------------- */

/*
 * They complete before they return. Every host page is mapped, so each one is a memcpy or memset,
 * also between two host devices of this process.
 */

quire_result qi_host_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        memcpy(qi_host_page_of(page)->bytes + offset, data, size);
    return result;
}

quire_result qi_host_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        memcpy(data, qi_host_page_of(page)->bytes + offset, size);
    return result;
}

/* The first byte of one end of a copy: in a page, or in host memory if the page is NULL. */
static char *address_of(const quire_native_page *page, uint64_t offset, const void *host)
{
    return page ? qi_host_page_of(page)->bytes + offset : (char *)(uintptr_t)host;
}

void qi_host_copy_rows(const quire_copy_job *job)
{
    char *to = address_of(job->to, job->to_offset, job->host_to);
    const char *from = address_of(job->from, job->from_offset, job->host_from);
    for (uint64_t slice = 0; slice < job->slices; slice++)
        for (uint64_t row = 0; row < job->rows; row++)
            memcpy(to + slice * job->to_slice + row * job->to_row,
                   from + slice * job->from_slice + row * job->from_row, job->size);
}

/* Also serves as copy_peer: pages of other host devices are mapped in this process too. */
quire_result qi_host_copy_pages(void *state, const quire_copy_job *job)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        qi_host_copy_rows(job);
    return result;
}

quire_result qi_host_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        memset(qi_host_page_of(page)->bytes + offset, value, size);
    return result;
}
