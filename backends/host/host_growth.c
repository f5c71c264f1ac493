/*
 * host_growth.c - pages of the host backend that grow and shrink at their end: addresses without
 * access, of which the front is made usable. What goes loses its bytes and costs nothing any more.
 */
#include <sys/mman.h>

#include "backends/host/host.h"
#include "src/base/bits.h"
#include "src/base/result.h"

bool qi_host_can_grow(const qi_host_device *device)
{
    return device->backing == QUIRE_HOST_ANONYMOUS &&
           device->huge_pages != QUIRE_HOST_HUGE_RESERVED;
}

static quire_result make_usable(const qi_host_device *device, char *bytes, uint64_t size)
{
    if (mprotect(bytes, size, PROT_READ | PROT_WRITE))
        return qi_host_fail_errno("mapping", size);
    if (device->huge_pages == QUIRE_HOST_HUGE_ADVISE)
        madvise(bytes, size, MADV_HUGEPAGE); /* advice: a refusal changes nothing */
    return QUIRE_SUCCESS;
}

quire_result qi_host_map_growing(const qi_host_device *device, const quire_page_request *request,
                                 uint64_t alignment, qi_host_page *page)
{
    if (!qi_host_can_grow(device))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memfds and of reserved huge pages cannot grow");
    if (qi_align_up_overflows(request->max_size, device->system_page, &page->reserved))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an address range of %llu bytes",
                                  (unsigned long long)request->max_size);
    page->bytes = qi_host_map_anonymous(page->reserved, alignment, PROT_NONE);
    if (page->bytes == MAP_FAILED)
        return qi_host_fail_errno("an address range", page->reserved);
    quire_result result = make_usable(device, page->bytes, page->mapped);
    if (result)
        munmap(page->bytes, page->reserved);
    return result;
}

static quire_result grow(qi_host_device *device, qi_host_page *page, uint64_t to)
{
    uint64_t mapped = to + qi_padding(to, device->system_page), more = to - page->size;
    quire_result result = qi_host_check_lost(device);
    if (!result)
        result = qi_host_take_from_heap(device, page->heap, more);
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

static void shrink(qi_host_device *device, qi_host_page *page, uint64_t to)
{
    uint64_t mapped = to + qi_padding(to, device->system_page), rest = page->mapped - mapped;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    char *end = page->bytes + mapped;
    /* where the system has no record for another mapping the bytes go all the same */
    if (rest && mmap(end, rest, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        madvise(end, rest, MADV_DONTNEED);
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
