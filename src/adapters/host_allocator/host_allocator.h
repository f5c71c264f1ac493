/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_allocator.h - malloc and free by pointer on a host memory of quire, for the adapters of
 * frameworks that free by pointer (docs/adapters/pytorch_cpu.md).
 *
 * Small requests, up to 32 KiB, are served from a cache of freed blocks
 * that each thread has. Larger ones are allocations of the memory, found by their address.
 *
 * Thread-safety: any thread may call any function on a live allocator, also free what another
 * thread has allocated, except host_allocator_destroy, which requires that no other call runs or
 * follows. A process may fork at any time; the child can use the allocator, and what was allocated
 * before the fork. Not async-signal-safe.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_HOST_ALLOCATOR_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_HOST_ALLOCATOR_H

#include "quire/quire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct host_allocator host_allocator;

enum {
    HOST_ALLOCATOR_ALIGNMENT = 64,          /* bytes, of every pointer at least */
    HOST_ALLOCATOR_CACHED_BYTES = 256 << 10 /* default of cached_bytes */
};

typedef struct host_allocator_options {
    const char *name; /* of the memory, copied; NULL: "host allocator" */
    /* Bytes of a page, or of a chunk of an elastic memory, then rounded down to a power of two; 0:
       2 MiB, and a chunk has 256 KiB, or more on a machine with more than 64 GiB. */
    uint64_t page_size;
    /* 0: the memory is elastic (quire_memory_options), which reserves the least. With other
       numbers, and if the system has no addresses for such a page, the memory has pages in that
       many shards (quire_memory_options.shards), for threads that allocate large ranges at the same
       time. */
    uint32_t shards;
    uint64_t limit;                /* maximum bytes of pages; 0: none */
    uint64_t retained_empty_bytes; /* of pages without allocations; 0: as in quire_page_policy,
                                      1: keep none */
    /* Maximum bytes of freed blocks in the cache of a thread; 0: HOST_ALLOCATOR_CACHED_BYTES; 1: no
       block is kept. */
    uint64_t cached_bytes;
    bool huge_pages;        /* advise the kernel to use transparent huge pages */
    const char *trace_file; /* as host_allocator_start_trace, from the start on; NULL or "": none */
} host_allocator_options;

typedef struct host_allocator_stats {
    uint64_t requested_bytes; /* of what is allocated now, as the callers requested */
    uint64_t allocation_count;
    uint64_t allocations; /* counts since creation */
    uint64_t frees;
    uint64_t cache_hits;   /* allocations served from a cache */
    uint64_t cached_bytes; /* of freed blocks in caches now; part of memory.requested_bytes */
    uint64_t cached_count;
    uint64_t thread_count; /* live threads with a cache */
    /* The statistics of the memory. Blocks in caches count as live there, and a small block counts
       with its header and rounding. memory.peak_requested_bytes is thus an upper bound of the
       peak of requested_bytes. */
    quire_memory_stats memory;
} host_allocator_stats;

/*
 * Reads options from environment variables; a variable that is not set or empty leaves the option
 * as it is. PREFIX is `prefix`, such as "QUIRE_TORCH_CPU":
 *   PREFIX_PAGE_SIZE, PREFIX_LIMIT, PREFIX_RETAIN, PREFIX_CACHE: bytes, with an optional suffix
 *   k, m or g (powers of 1024); PREFIX_SHARDS: a number; PREFIX_HUGE_PAGES: 0 or 1;
 *   PREFIX_TRACE: a path.
 * The path in the options is that of the environment and is not copied. For each other variable
 * that begins with PREFIX_ and is not empty it writes a line to stderr.
 * Errors: INVALID_ARGUMENT (the sentence names the variable); the options are unchanged then.
 */
QUIRE_MUST_USE quire_result host_allocator_read_environment(const char *prefix,
                                                            host_allocator_options *options);

/*
 * Creates an allocator with a device and a memory of its own. NULL options mean {0}.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY (also if the process has no thread-specific key left
 * or cannot register fork handlers), BAD_FILE (the trace file cannot be written), and those of
 * quire_host_open and quire_memory_create. *allocator is NULL then.
 */
QUIRE_MUST_USE quire_result host_allocator_create(const host_allocator_options *options,
                                                  host_allocator **allocator);

/* Destroys the allocator with everything that is allocated, and closes the trace. Never fails;
   *allocator becomes NULL. NULL and a pointer to NULL do nothing. */
void host_allocator_destroy(host_allocator **allocator);

/*
 * Returns `size` bytes at a multiple of `alignment`, a power of two (0 or less than 64: 64). The
 * contents are undefined. Size 0 returns NULL without an error. Returns NULL if the request is
 * refused; quire_last_error has the sentence. Before a refusal for lack of memory the caches of
 * all threads are emptied. quire_last_error is unchanged on success.
 */
void *host_allocator_allocate(host_allocator *allocator, uint64_t size, uint64_t alignment);

/*
 * Frees what host_allocator_allocate returned. NULL does nothing. Any other value is allowed, and
 * if threads free the same allocation at the same time, one succeeds. Errors: INVALID_ARGUMENT (the
 * pointer is not the start of an allocation, or was freed, or the header in front of it was
 * overwritten), OUT_OF_RANGE (a multiple of 128 that is not in the memory, or was freed). Nothing
 * changes then.
 */
quire_result host_allocator_free(host_allocator *allocator, void *pointer);

/* Empties the caches of all threads and releases empty pages. Writes the released bytes of pages
   to *released, which may be NULL. Errors: INVALID_ARGUMENT. */
QUIRE_MUST_USE quire_result host_allocator_trim(host_allocator *allocator, uint64_t *released);

/* The memory: for statistics scopes, walks, reports and limits. Destroy or free nothing in it. */
quire_memory *host_allocator_memory(host_allocator *allocator);

/* Writes the statistics. Exact while no other thread allocates or frees. Errors:
   INVALID_ARGUMENT. */
QUIRE_MUST_USE quire_result host_allocator_get_stats(host_allocator *allocator,
                                                     host_allocator_stats *stats);

/*
 * Writes the statistics as one JSON object on one line: the fields of host_allocator_stats, and
 * those of its `memory`, but unused ones. The
 * snapshot is the JSON of quire_memory_write_json (docs/formats.md), with the blocks in caches.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE (the sink returned false).
 */
QUIRE_MUST_USE quire_result host_allocator_write_stats(host_allocator *allocator, quire_sink sink,
                                                       void *user);
QUIRE_MUST_USE quire_result host_allocator_write_snapshot(host_allocator *allocator,
                                                          quire_sink sink, void *user);

/*
 * Records every allocation and free to a file as a trace (docs/formats.md), until it is stopped or
 * the allocator is destroyed. Each row is written at once. Frees of what was allocated before are
 * left out. A forked child records nothing. The file is replaced.
 * Errors of start: INVALID_ARGUMENT, WRONG_STATE (a trace is being recorded), BAD_FILE. Of stop:
 * INVALID_ARGUMENT, WRONG_STATE (no trace is being recorded), BAD_FILE (a row was not written).
 */
QUIRE_MUST_USE quire_result host_allocator_start_trace(host_allocator *allocator, const char *path);
QUIRE_MUST_USE quire_result host_allocator_stop_trace(host_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
