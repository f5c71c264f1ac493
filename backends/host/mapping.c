/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mapping.c - aligned address space for host pages. Anonymous memory is mapped too large and cut at
 * both edges. Memfds and huge pages are mapped where the system chooses, or, if that is not
 * aligned, at addresses that a reservation found to be free.
 *
 * Rule: until a page has its final mapping, this file unmaps only addresses that certainly belong
 * to it. It never maps over a reservation (MAP_FIXED): a failing mmap can remove the reservation
 * first, as it does for huge pages that the system lacks, and another thread may then own the
 * addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backends/host/host.h"
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"

/*
 * log2 of 2 MiB in the bits that the kernel's ABI reserves for it, in mmap and memfd_create alike.
 */
#define HUGE_2_MIB (21 << 26)

/* Counters of the system's reserve of 2 MiB pages. */
#define HUGE_FOLDER "/sys/kernel/mm/hugepages/hugepages-2048kB/"

/* Attempts to find free addresses. An attempt fails when another thread takes them first. */
enum { MAX_TRIES = 100 };

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

quire_result qi_host_fail_errno(const char *what, uint64_t size)
{
    int code = errno;
    quire_result result = code == EPERM || code == EACCES ? QUIRE_ERROR_NOT_PERMITTED
                                                          : QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    return quire_backend_fail(result, code, "%s of %s: %s", what, qi_bytes(size).text,
                              strerror(code));
}

/* ---- anonymous memory ------------------------------------------------------------------- */

/*
 * Maps *reserved bytes, enough for `size` bytes at a multiple of `alignment`, and returns the base.
 * *start is the first such multiple. MAP_NORESERVE: untouched bytes do not count against RAM.
 */
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

/* Maps `alignment` bytes more than requested and unmaps the edges. */
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

/* ---- memfds and reserved huge pages ----------------------------------------------------- */

int qi_host_huge_flags(void)
{
    return MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_2_MIB;
}

/*
 * Sleeps for a time that differs between threads, up to about 1 ms. Threads that search at the same
 * time find the same addresses and would otherwise keep taking them from each other.
 */
static void back_off(int tries)
{
    uint64_t here = (uintptr_t)&tries >> 12; /* each thread has its own stack */
    uint64_t mixed = (here + (uint64_t)tries) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    long max = tries < 10 ? 1000L << tries : 1000L << 10; /* nanoseconds */
    nanosleep(&(struct timespec){.tv_nsec = (long)(mixed % (uint64_t)max)}, NULL);
}

/*
 * The first attempt lets the system choose; for huge pages it chooses a multiple of their size.
 * Later attempts reserve aligned addresses, unmap them, and map exactly there. EEXIST means that
 * another thread took them in between; the next attempt uses others. Kernels before 4.17 ignore
 * MAP_FIXED_NOREPLACE and treat the address as a hint, which the alignment check covers.
 */
char *qi_host_map_at_free_address(uint64_t size, uint64_t alignment, int flags, int descriptor)
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
            back_off(i);
        uint64_t reserved = 0;
        char *base = reserve(size, alignment, PROT_NONE, &reserved, &start);
        if (base == MAP_FAILED)
            return MAP_FAILED;
        munmap(base, reserved);
        flags |= MAP_FIXED_NOREPLACE;
    }
    errno = EAGAIN; /* every attempt lost its addresses to another thread */
    return MAP_FAILED;
}

/* Flags of memfd_create. */
static unsigned descriptor_flags(quire_host_huge_pages huge_pages)
{
    return huge_pages == QUIRE_HOST_HUGE_RESERVED ? MFD_HUGETLB | HUGE_2_MIB : 0;
}

int qi_host_create_memfd(const qi_host_device *device, const char *label, uint64_t size)
{
    char name[64] = "quire";
    if (label && *label)
        strncat(name, label, sizeof name - sizeof "quire");
    return qi_memfd_make(name, size, descriptor_flags(device->huge_pages));
}

/* ---- checks when a device is opened ----------------------------------------------------- */

/*
 * Fails with errno, unless the cause is temporary: no free descriptor or no free memory. Page
 * creation reports those causes if they last.
 */
static quire_result fail_missing(const char *what)
{
    int code = errno;
    if (code == EMFILE || code == ENFILE || code == ENOMEM)
        return QUIRE_SUCCESS;
    return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code, "the system offers no %s: %s", what,
                              strerror(code));
}

/* Returns true if a counter file of the kernel contains 0, false if it cannot be read. */
static bool reads_zero(const char *path)
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
            return fail_missing(reserved ? "memfd of huge pages of 2 MiB" : "memfd");
        close(descriptor);
    } else if (reserved) {
        int flags = qi_host_huge_flags() | MAP_NORESERVE; /* takes no page of the reserve */
        void *bytes = mmap(NULL, QI_HOST_HUGE_PAGE, PROT_NONE, flags, -1, 0);
        if (bytes == MAP_FAILED)
            return fail_missing("huge pages of 2 MiB");
        munmap(bytes, QI_HOST_HUGE_PAGE);
    }
    if (reserved && reads_zero(HUGE_FOLDER "nr_hugepages") &&
        reads_zero(HUGE_FOLDER "nr_overcommit_hugepages"))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the system reserves no huge pages of 2 MiB: " HUGE_FOLDER
                                  "nr_hugepages is 0");
    return QUIRE_SUCCESS;
}
