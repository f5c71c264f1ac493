/*
 * host_page.c - pages of the host backend: mappings of this process.
 *
 * A page is mapped for the backend itself as long as it lives, whatever its kind: the mapping is
 * the memory. Whether the caller gets its address is decided by the kind alone. Nothing is touched
 * when a page is made, so that it costs address space until it is used; MAP_NORESERVE keeps the
 * system from counting it against RAM.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backends/host/host.h"
#include "src/base/bits.h"
#include "src/base/memfd.h"
#include "src/base/result.h"

/* log2 of the huge page's size where the kernel's ABI wants it, for mmap and memfd_create alike. */
#define HUGE_2_MIB (21 << 26)

/* The system's reserve of them. */
#define HUGE_FOLDER "/sys/kernel/mm/hugepages/hugepages-2048kB/"

/* Addresses looked for at most; one is taken by another thread in between once in a while. */
enum { MAX_TRIES = 100 };

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

char *qi_host_page_bytes(const quire_native_page *page)
{
    return qi_host_page_of(page)->bytes;
}

int qi_host_page_descriptor(const quire_native_page *page)
{
    return qi_host_page_of(page)->descriptor;
}

quire_result qi_host_fail_errno(const char *what, uint64_t size)
{
    int code = errno;
    quire_result result = code == EPERM || code == EACCES ? QUIRE_ERROR_NOT_PERMITTED
                                                          : QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    return quire_backend_fail(result, code, "%s of %s: %s", what, qi_bytes(size).text,
                              strerror(code));
}

/* ---- mappings ----------------------------------------------------------------------------- */

/*
 * Until a page has its final mapping nothing is unmapped but what is certainly ours: where a
 * mapping over a reservation (MAP_FIXED) fails, the reservation may be gone already, as for huge
 * pages that the system does not have, and the addresses be another thread's.
 */

/* Untouched addresses with room for `size` bytes at a multiple of `alignment`, *start. */
static char *reserve(uint64_t size, uint64_t alignment, int protection, uint64_t *reserved,
                     char **start)
{
    if (qi_add_overflows(size, alignment, reserved) || *reserved > SIZE_MAX) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    char *base =
        mmap(NULL, *reserved, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED)
        *start = base + qi_padding((uintptr_t)base, alignment);
    return base;
}

char *qi_host_map_anonymous(uint64_t size, uint64_t alignment, int protection)
{
    uint64_t reserved = 0;
    char *start = NULL;
    char *base = reserve(size, alignment, protection, &reserved, &start);
    if (base == MAP_FAILED)
        return MAP_FAILED;
    char *end = start + size;
    if (start > base)
        munmap(base, (size_t)(start - base));
    if (end < base + reserved)
        munmap(end, (size_t)(base + reserved - end));
    return start;
}

/*
 * Threads that look at the same time are shown the same addresses, and can take them from each
 * other for as long as they keep step: each waits for a time of its own, up to a millisecond or so.
 */
static void step_aside(int tries)
{
    uint64_t here = (uintptr_t)&tries >> 12; /* differs from thread to thread */
    uint64_t mixed = (here + (uint64_t)tries) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    long most = tries < 10 ? 1000L << tries : 1000L << 10; /* nanoseconds */
    nanosleep(&(struct timespec){.tv_nsec = (long)(mixed % (uint64_t)most)}, NULL);
}

/*
 * Anything else: first where the system likes, which for huge pages is a multiple of their size;
 * then at addresses that were just seen free. Another thread may take these before us: then others
 * are looked for. Kernels before 4.17 do not know MAP_FIXED_NOREPLACE and take the address as a
 * wish.
 */
static char *map_where_free(uint64_t size, uint64_t alignment, int flags, int descriptor)
{
    char *start = NULL;
    for (int i = 0; i < MAX_TRIES; i++) {
        char *bytes = mmap(start, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
        if (bytes != MAP_FAILED && !qi_padding((uintptr_t)bytes, alignment))
            return bytes;
        if (bytes != MAP_FAILED)
            munmap(bytes, size);
        else if (errno != EEXIST)
            return MAP_FAILED;
        else
            step_aside(i);
        uint64_t reserved = 0;
        char *base = reserve(size, alignment, PROT_NONE, &reserved, &start);
        if (base == MAP_FAILED)
            return MAP_FAILED;
        munmap(base, reserved);
        flags |= MAP_FIXED_NOREPLACE;
    }
    errno = EAGAIN;
    return MAP_FAILED;
}

/* Of memfd_create, for pages of this device. */
static unsigned descriptor_flags(quire_host_huge_pages huge_pages)
{
    return huge_pages == QUIRE_HOST_HUGE_RESERVED ? MFD_HUGETLB | HUGE_2_MIB : 0;
}

static int make_descriptor(const qi_host_device *device, const char *label, uint64_t size)
{
    char name[64] = "quire";
    if (label && *label)
        strncat(name, label, sizeof name - sizeof "quire");
    return qi_memfd_make(name, size, descriptor_flags(device->huge_pages));
}

static quire_result map_page(const qi_host_device *device, const quire_page_request *request,
                             qi_host_page *page)
{
    uint64_t alignment = device->profile.limits.page_alignment; /* what the device promises */
    alignment = request->alignment > alignment ? request->alignment : alignment;
    alignment = QI_HOST_PAGE_ALIGNMENT > alignment ? QI_HOST_PAGE_ALIGNMENT : alignment;
    if (request->max_size)
        return qi_host_map_growing(device, request, alignment, page);
    bool reserved = device->huge_pages == QUIRE_HOST_HUGE_RESERVED;
    if (device->backing == QUIRE_HOST_MEMFD) {
        page->descriptor = make_descriptor(device, request->label, page->mapped);
        if (page->descriptor < 0)
            return qi_host_fail_errno("memfd", page->mapped);
        int flags = MAP_SHARED | (reserved ? 0 : MAP_NORESERVE);
        page->bytes = map_where_free(page->mapped, alignment, flags, page->descriptor);
    } else if (reserved) {
        /* without MAP_NORESERVE: else the first touch could end the process */
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_2_MIB;
        page->bytes = map_where_free(page->mapped, alignment, flags, -1);
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
        madvise(page->bytes, page->mapped, MADV_HUGEPAGE); /* advice: a refusal changes nothing */
    return QUIRE_SUCCESS;
}

/* ---- what the system offers --------------------------------------------------------------- */

/* A lack that may have passed when a page is made is left to the page. */
static quire_result refuse_without(const char *what)
{
    int code = errno;
    if (code == EMFILE || code == ENFILE || code == ENOMEM)
        return QUIRE_SUCCESS;
    return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code, "the system offers no %s: %s", what,
                              strerror(code));
}

/* Whether a file of the kernel's says 0; false when it cannot be read. */
static bool says_zero(const char *path)
{
    char text[32];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    return !strcmp(text, "0\n");
}

quire_result qi_host_check_system(quire_host_backing backing, quire_host_huge_pages huge_pages)
{
    bool reserved = huge_pages == QUIRE_HOST_HUGE_RESERVED;
    if (backing == QUIRE_HOST_MEMFD) {
        int descriptor = qi_memfd_make("quire", 0, descriptor_flags(huge_pages));
        if (descriptor < 0)
            return refuse_without(reserved ? "memfd of huge pages of 2 MiB" : "memfd");
        close(descriptor);
    } else if (reserved) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_2_MIB | MAP_NORESERVE;
        void *bytes = mmap(NULL, QI_HOST_HUGE_PAGE, PROT_NONE, flags, -1, 0);
        if (bytes == MAP_FAILED)
            return refuse_without("huge pages of 2 MiB");
        munmap(bytes, QI_HOST_HUGE_PAGE);
    }
    if (reserved && says_zero(HUGE_FOLDER "nr_hugepages") &&
        says_zero(HUGE_FOLDER "nr_overcommit_hugepages"))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the system reserves no huge pages of 2 MiB: " HUGE_FOLDER
                                  "nr_hugepages is 0");
    return QUIRE_SUCCESS;
}

/* ---- heaps -------------------------------------------------------------------------------- */

quire_result qi_host_take_from_heap(qi_host_device *device, uint32_t heap, uint64_t size)
{
    uint64_t limit = device->profile.heaps[heap].size;
    uint64_t used = qi_atomic_load_u64(&device->heap_used[heap]);
    do {
        if (size > limit - used)
            return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                      "heap %u of '%s' has %s of %s left, %s wanted", heap,
                                      device->name, qi_bytes(limit - used).text,
                                      qi_bytes(limit).text, qi_bytes(size).text);
    } while (!qi_atomic_exchange_if_u64(&device->heap_used[heap], &used, used + size));
    return QUIRE_SUCCESS;
}

/* ---- the table's entries ------------------------------------------------------------------ */

quire_result qi_host_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *out)
{
    qi_host_device *device = state;
    const quire_kind *kind = &device->profile.kinds[request->kind];
    uint64_t unit =
        device->huge_pages == QUIRE_HOST_HUGE_RESERVED ? QI_HOST_HUGE_PAGE : device->system_page;
    uint64_t mapped = 0;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    if (qi_align_up_overflows(request->size, unit, &mapped))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0, "a page of %llu bytes",
                                  (unsigned long long)request->size);
    qi_host_page *page = qi_host_allocate(&device->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    *page = (qi_host_page){
        .mapped = mapped, .size = request->size, .heap = kind->heap, .descriptor = -1};
    result = qi_host_take_from_heap(device, kind->heap, request->size);
    if (!result) {
        result = map_page(device, request, page);
        if (result)
            qi_atomic_sub_u64(&device->heap_used[kind->heap], request->size);
    }
    if (result) {
        qi_host_release(&device->host, page, 1, sizeof *page);
        return result;
    }
    bool visible = kind->flags & QUIRE_HOST_VISIBLE;
    *out = (quire_native_page){
        .handle = (uintptr_t)page,
        .address = visible ? (uintptr_t)page->bytes : 0,
        .size = request->max_size ? request->max_size : request->size,
    };
    return QUIRE_SUCCESS;
}

void qi_host_page_destroy(void *state, const quire_native_page *native)
{
    qi_host_device *device = state;
    qi_host_page *page = qi_host_page_of(native);
    munmap(page->bytes, page->reserved ? page->reserved : page->mapped);
    if (page->descriptor >= 0)
        close(page->descriptor);
    qi_atomic_sub_u64(&device->heap_used[page->heap], page->size);
    qi_host_release(&device->host, page, 1, sizeof *page);
}

quire_result qi_host_page_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    *pointer = qi_host_page_of(page)->bytes;
    return QUIRE_SUCCESS;
}

void qi_host_page_unmap(void *state, const quire_native_page *page)
{
    (void)state; /* the mapping is the memory, and goes with the page */
    (void)page;
}

quire_result qi_host_page_sync(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size)
{
    (void)state; /* host memory is coherent whatever the profile says */
    (void)page;
    (void)offset;
    (void)size;
    return QUIRE_SUCCESS;
}

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

/* The first byte of an end: of a page, or host memory. */
static char *end_of(const quire_native_page *page, uint64_t offset, const void *host)
{
    return page ? qi_host_page_of(page)->bytes + offset : (char *)(uintptr_t)host;
}

void qi_host_copy_rows(const quire_copy_job *job)
{
    char *to = end_of(job->to, job->to_offset, job->host_to);
    const char *from = end_of(job->from, job->from_offset, job->host_from);
    for (uint64_t slice = 0; slice < job->slices; slice++)
        for (uint64_t row = 0; row < job->rows; row++)
            memcpy(to + slice * job->to_slice + row * job->to_row,
                   from + slice * job->from_slice + row * job->from_row, job->size);
}

/* Pages of all host devices are of this process. */
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
