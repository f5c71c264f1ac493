/*
 * elastic.c - host pages that grow and shrink at their end. The maximum size is reserved as
 * addresses without access; the first `mapped` bytes of them are readable and writable. Shrinking
 * discards the bytes beyond the new end, so that they cost no memory.
 */
#include <sys/mman.h>

#include "backends/host/host.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Gives access to reserved bytes. On failure they stay inaccessible. */
static quire_result make_usable(const qi_host_device *device, char *bytes, uint64_t size)
{
    if (mprotect(bytes, size, PROT_READ | PROT_WRITE))
        return qi_host_fail_errno("mapping", size);
    if (device->huge_pages == QUIRE_HOST_HUGE_ADVISE)
        madvise(bytes, size, MADV_HUGEPAGE); /* a hint: its failure is harmless */
    return QUIRE_SUCCESS;
}

quire_result qi_host_map_elastic(const qi_host_device *device, const quire_page_request *request,
                                 uint64_t alignment, qi_host_page *page)
{
    if (!qi_host_can_resize(device))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memfds and of reserved huge pages cannot grow");
    if (qi_align_up_overflows(request->max_size, device->system_page, &page->address_bytes))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an address range of %llu bytes",
                                  (unsigned long long)request->max_size);
    page->bytes = qi_host_map_anonymous(page->address_bytes, alignment, PROT_NONE);
    if (page->bytes == MAP_FAILED)
        return qi_host_fail_errno("an address range", page->address_bytes);
    quire_result result = make_usable(device, page->bytes, page->mapped);
    if (result)
        munmap(page->bytes, page->address_bytes);
    return result;
}

/* The heap is charged before the bytes become usable, so that it never exceeds its size. */
static quire_result grow(qi_host_device *device, qi_host_page *page, uint64_t to)
{
    uint64_t mapped = to + qi_padding(to, device->system_page), more = to - page->size;
    quire_result result = qi_host_check_lost(device);
    if (!result)
        result = qi_host_charge_heap(device, page->heap, more);
    if (result)
        return result;
    if (mapped > page->mapped)
        result = make_usable(device, page->bytes + page->mapped, mapped - page->mapped);
    if (result) {
        qi_atomic_sub_u64(&device->heap_used[page->heap], more);
        return result;
    }
    page->mapped = mapped;
    page->size = to;
    return QUIRE_SUCCESS;
}

/* Cannot fail. */
static void shrink(qi_host_device *device, qi_host_page *page, uint64_t to)
{
    uint64_t mapped = to + qi_padding(to, device->system_page), rest = page->mapped - mapped;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    char *end = page->bytes + mapped;
    /* mmap fails if the process has too many mappings; madvise discards the bytes in any case */
    if (rest && mmap(end, rest, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        madvise(end, rest, MADV_DONTNEED);
    if (rest && page->host_bytes != page->bytes)
        madvise(page->host_bytes + mapped, rest, MADV_DONTNEED); /* which stay usable */
    qi_atomic_sub_u64(&device->heap_used[page->heap], page->size - to);
    page->mapped = mapped;
    page->size = to;
}

quire_result qi_host_page_resize(void *state, const quire_native_page *native, uint64_t from,
                                 uint64_t to)
{
    qi_host_page *page = qi_host_page_of(native);
    if (to > from)
        return grow(state, page, to);
    shrink(state, page, to);
    return QUIRE_SUCCESS;
}
