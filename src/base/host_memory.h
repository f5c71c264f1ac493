/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_memory.h - host memory for the library's own records, from the caller's callbacks.
 *
 * host_memory.c is the only file that calls malloc. Each device, memory and space owns a qi_host,
 * which counts the bytes it holds: statistics report the count, and tests prove with it that
 * nothing leaks. Thread-safe: the counters are atomic, and the callbacks must be thread-safe.
 */
#ifndef QUIRE_SRC_BASE_HOST_MEMORY_H
#define QUIRE_SRC_BASE_HOST_MEMORY_H

#include "quire/base.h"
#include "src/base/atomic.h"

typedef struct qi_host {
    quire_host_memory callbacks;
    qi_atomic_u64 bytes; /* held now */
    qi_atomic_u64 peak;  /* maximum held so far */
} qi_host;

enum { QI_CACHE_LINE = 64 };

/* Checks the callbacks (null or {0} means malloc) and resets the counters. */
QUIRE_MUST_USE quire_result qi_host_init(qi_host *host, const quire_host_memory *callbacks);

/*
 * Allocates `count` zeroed elements of `size` bytes, aligned to a cache line, or to 16 bytes if the
 * total is smaller than a cache line. Returns null if count is 0, the callbacks fail, or the total
 * overflows. The caller records the error.
 */
void *qi_host_allocate(qi_host *host, uint64_t count, size_t size);

/* Releases what qi_host_allocate returned for the same count and size. Null is allowed. */
void qi_host_release(qi_host *host, void *pointer, uint64_t count, size_t size);

/*
 * Replaces an array by a larger or smaller one, copies the common part and zeroes the rest. On
 * failure returns null and keeps the old array.
 */
void *qi_host_resize(qi_host *host, void *pointer, uint64_t old_count, uint64_t new_count,
                     size_t size);

/* Copies a text; null on failure. Release it with qi_host_release_text, which allows null. */
char *qi_host_copy_text(qi_host *host, const char *text);
void qi_host_release_text(qi_host *host, char *text);

#endif
