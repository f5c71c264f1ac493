/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/onnxruntime.h - ONNX Runtime on a host memory of quire: an OrtAllocator for the CPU, which
 * a program registers with its environment. docs/adapters/onnxruntime.md shows how.
 *
 *     struct OrtAllocator *allocator = NULL;
 *     quire_onnxruntime_create(OrtGetApiBase(), NULL, &allocator);
 *     api->RegisterAllocator(env, allocator);
 *     api->AddSessionConfigEntry(session_options, "session.use_env_allocators", "1");
 *
 * This is a separate library, libquire_onnxruntime. It is built without the headers of ONNX Runtime
 * and calls the runtime of the program through its table of functions: 1.18 or later.
 *
 * Thread-safety: any thread may call any function on a live allocator, except
 * quire_onnxruntime_destroy, which requires that no other call runs or follows.
 */
#ifndef QUIRE_ONNXRUNTIME_H
#define QUIRE_ONNXRUNTIME_H

#include "quire/insight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* of onnxruntime_c_api.h */
struct OrtAllocator;
struct OrtApiBase;

typedef struct quire_onnxruntime_options {
    const char *name; /* of the memory, copied; NULL: "ONNX Runtime" */
    /* Bytes of a page, or of a chunk of an elastic memory, then rounded down to a power of two; 0:
       2 MiB, and a chunk has 256 KiB, or more on a machine with more than 64 GiB. */
    uint64_t page_size;
    /* 0: an elastic memory (quire_memory_options), which reserves the least. Other numbers: pages
       in that many shards (quire_memory_options.shards), for threads that run sessions at the same
       time. */
    uint32_t shards;
    bool huge_pages; /* advise the kernel to use transparent huge pages */
    /* Do not call malloc_trim of the GNU C library, as the allocator does before the first weights
       and when the memory has grown by an eighth. Without the calls the heap keeps resident what
       the runtime freed to it while it created sessions. */
    bool keep_heap;
    /* Maximum bytes of pages; 0: none. A request beyond it gets NULL, which ONNX Runtime does not
       expect everywhere: see docs/adapters/onnxruntime.md. */
    uint64_t limit;
    uint64_t retained_empty_bytes; /* of pages without allocations; 0: as in quire_page_policy,
                                      1: keep none */
    /* A file for a trace of all allocations and frees (docs/formats.md), which it replaces; NULL:
       none. */
    const char *trace_file;
    uint64_t unused[4]; /* must be zero */
} quire_onnxruntime_options;

typedef struct quire_onnxruntime_stats {
    uint64_t requested_bytes; /* of what is allocated now, as the runtime requested */
    uint64_t allocation_count;
    uint64_t allocations; /* counts since creation */
    uint64_t reserves; /* part of allocations: made while sessions are created, such as weights */
    uint64_t frees;
    uint64_t bad_frees;      /* of pointers that are not allocations; they change nothing */
    uint64_t max_allocation; /* bytes of the largest request that was served */
    /* The statistics of the memory. Freed blocks of at most 32 KiB that threads keep for reuse
       count as live there. */
    quire_memory_stats memory;
    uint64_t unused[4];
} quire_onnxruntime_stats;

/*
 * Creates an allocator with a memory of its own. `base` is what OrtGetApiBase returns. NULL options
 * mean {0}. The allocator is of the type OrtDeviceAllocator. It offers what the API of the runtime
 * knows: Reserve; from 1.23 on GetStats; from 1.25 on Shrink, which releases empty pages.
 *
 * The program registers the allocator with OrtApi.RegisterAllocator. ONNX Runtime has one allocator
 * for the CPU in an environment. A session keeps the one that is registered when it is created, so
 * that a program that registers another one before each session has statistics of each.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the runtime is older than 1.18, or not 1.x),
 * BACKEND_FAILURE (the runtime failed), BAD_FILE (the trace), OUT_OF_HOST_MEMORY, and those of
 * quire_memory_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_onnxruntime_create(const struct OrtApiBase *base, const quire_onnxruntime_options *options,
                         struct OrtAllocator **allocator);

/*
 * Destroys an allocator. Before that, release the sessions and values that use it, and call
 * OrtApi.UnregisterAllocator or release the environment.
 * Errors: INVALID_ARGUMENT (also for an allocator that quire_onnxruntime_create has not made), BUSY
 * (what it has allocated is not freed; the sentence has count and bytes).
 */
QUIRE_API quire_result quire_onnxruntime_destroy(struct OrtAllocator **allocator);

/* Writes the statistics. Errors: INVALID_ARGUMENT, also for a foreign allocator. */
QUIRE_API QUIRE_MUST_USE quire_result
quire_onnxruntime_get_stats(const struct OrtAllocator *allocator, quire_onnxruntime_stats *stats);

/*
 * Writes the memory, for stats scopes, reports, walks and pictures (quire/insight.h). Destroy or
 * free nothing in it. A hook that the program sets ends the calls of malloc_trim.
 * Errors: INVALID_ARGUMENT, also for a foreign allocator.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_onnxruntime_get_memory(const struct OrtAllocator *allocator, quire_memory **memory);

/* Releases empty pages and the blocks that threads keep for reuse. Writes the released bytes of
   pages to *released, which may be NULL. Errors: INVALID_ARGUMENT, also for a foreign allocator. */
QUIRE_API QUIRE_MUST_USE quire_result quire_onnxruntime_trim(struct OrtAllocator *allocator,
                                                             uint64_t *released);

#ifdef __cplusplus
}
#endif

#endif
