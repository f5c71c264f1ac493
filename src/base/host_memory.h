/*
 * host_memory.h - host memory for the library's own records, taken from the caller's callbacks.
 *
 * host_memory.c is the only place that calls malloc. Each device, memory and space has its own
 * qi_host, which counts what it holds: the metadata figures of the public statistics, and the proof
 * in tests that nothing is lost. Thread-safe; the counters are atomic.
 */
#ifndef QUIRE_SRC_BASE_HOST_MEMORY_H
#define QUIRE_SRC_BASE_HOST_MEMORY_H

#include "quire/base.h"
#include "src/base/atomic.h"

typedef struct qi_host {
    quire_host_memory callbacks;
    qi_atomic_u64 bytes; /* held now */
    qi_atomic_u64 peak;  /* most ever held */
} qi_host;

enum { QI_CACHE_LINE = 64 };

/* Checks the callbacks (NULL or {0}: malloc) and resets the counters. */
QUIRE_MUST_USE quire_result qi_host_init(qi_host *host, const quire_host_memory *callbacks);

/*
 * `count` elements of `size` bytes, aligned to a cache line (less than one altogether: to 16 bytes)
 * and zeroed, or NULL when the callbacks or the arithmetic fail. A count of 0 gives NULL. The
 * caller sets the error.
 */
void *qi_host_allocate(qi_host *host, uint64_t count, size_t size);

/* Gives back what qi_host_allocate returned for the same count and size; accepts NULL. */
void qi_host_release(qi_host *host, void *pointer, uint64_t count, size_t size);

/*
 * A larger or smaller array with the common part kept and the rest zeroed; on failure NULL, and the
 * old array stays.
 */
void *qi_host_resize(qi_host *host, void *pointer, uint64_t old_count, uint64_t new_count,
                     size_t size);

/* A copy of a text; NULL on failure. Given back by qi_host_release_text, which accepts NULL. */
char *qi_host_copy_text(qi_host *host, const char *text);
void qi_host_release_text(qi_host *host, char *text);

#endif
