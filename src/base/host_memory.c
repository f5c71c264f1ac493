/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_memory.c - calls the caller's callbacks, or malloc, and counts the bytes held.
 */
#include "src/base/host_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* Records of millions of ranges are read at random; huge pages save a fifth of that time. */
enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 8 << 20 };

/*
 * Blocks smaller than a cache line share one with other blocks anyway. They get the alignment of
 * malloc, which is five times as fast as aligned_alloc.
 */
enum { SMALL_ALIGNMENT = 16 };

static size_t alignment_of(size_t size)
{
    return size < QI_CACHE_LINE ? SMALL_ALIGNMENT : QI_CACHE_LINE;
}

static void *libc_allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (size >= HUGE_FROM)
        alignment = HUGE_PAGE;
    if (alignment <= SMALL_ALIGNMENT)
        return malloc(size);
    size_t padded =
        (size + alignment - 1) & ~(alignment - 1); /* aligned_alloc requires a multiple */
    void *pointer = padded < size ? NULL : aligned_alloc(alignment, padded);
#ifdef MADV_HUGEPAGE
    if (pointer && size >= HUGE_FROM)
        madvise(pointer, padded, MADV_HUGEPAGE); /* on failure the block keeps small pages */
#endif
    return pointer;
}

static void libc_release(void *user, void *pointer, size_t size, size_t alignment)
{
    (void)user;
    (void)size;
    (void)alignment;
    free(pointer);
}

quire_result qi_host_init(qi_host *host, const quire_host_memory *callbacks)
{
    static const quire_host_memory libc = {libc_allocate, libc_release, NULL};
    if (callbacks && !callbacks->allocate != !callbacks->release)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "host memory callbacks: give both allocate and release, or none");
    host->callbacks = callbacks && callbacks->allocate ? *callbacks : libc;
    qi_atomic_init_u64(&host->bytes, 0);
    qi_atomic_init_u64(&host->peak, 0);
    return QUIRE_SUCCESS;
}

static bool total_size(uint64_t count, size_t size, size_t *total)
{
    uint64_t bytes = 0;
    if (count == 0 || qi_multiply_overflows(count, size, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    *total = (size_t)bytes;
    return true;
}

/* As qi_host_allocate, but leaves the first `kept` elements unset for the caller to fill. */
static void *allocate_after(qi_host *host, uint64_t kept, uint64_t count, size_t size)
{
    size_t total = 0;
    if (!total_size(count, size, &total))
        return NULL;
    char *pointer = host->callbacks.allocate(host->callbacks.user, total, alignment_of(total));
    if (!pointer)
        return NULL;
    memset(pointer + kept * size, 0, total - kept * size);
    uint64_t held = qi_atomic_add_u64(&host->bytes, total) + total;
    qi_atomic_raise_u64(&host->peak, held);
    return pointer;
}

void *qi_host_allocate(qi_host *host, uint64_t count, size_t size)
{
    return allocate_after(host, 0, count, size);
}

void qi_host_release(qi_host *host, void *pointer, uint64_t count, size_t size)
{
    if (!pointer)
        return;
    size_t total = (size_t)count * size;
    qi_atomic_sub_u64(&host->bytes, total);
    host->callbacks.release(host->callbacks.user, pointer, total, alignment_of(total));
}

void *qi_host_resize(qi_host *host, void *pointer, uint64_t old_count, uint64_t new_count,
                     size_t size)
{
    uint64_t common = old_count < new_count ? old_count : new_count;
    void *resized = allocate_after(host, common, new_count, size);
    if (!resized)
        return NULL;
    if (common)
        memcpy(resized, pointer, (size_t)common * size);
    qi_host_release(host, pointer, old_count, size);
    return resized;
}

char *qi_host_copy_text(qi_host *host, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = qi_host_allocate(host, size, 1);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void qi_host_release_text(qi_host *host, char *text)
{
    if (text)
        qi_host_release(host, text, strlen(text) + 1, 1);
}
