/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * onnxruntime.c - see quire/onnxruntime.h. An OrtAllocator over a host_allocator.
 */
#include "quire/onnxruntime.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "quire/backend.h"
#include "src/adapters/host_allocator/host_allocator.h"
#include "src/adapters/onnxruntime/abi.h"

#define MEMBER(name, number, result, parameters) result(*name) parameters;
typedef struct functions {
    ORT_FUNCTIONS(MEMBER)
    ORT_PAIR_FUNCTIONS(MEMBER)
} functions;

typedef struct adapter {
    ort_allocator abi; /* first member: the runtime passes its address */
    host_allocator *host;
    ort_memory_info *info;
    bool keeps_heap;
    functions runtime;
    _Atomic uint64_t reserves;
    _Atomic uint64_t bad_frees;
    _Atomic uint64_t max_allocation;
    _Atomic uint64_t trimmed_at; /* bytes of pages at the last heap trim */
} adapter;

/* ---- the heap of the C library --------------------------------------------------------------- */

/*
 * While ONNX Runtime creates a session it frees about as much as it keeps to the heap of the C
 * library, which keeps it resident. Chunks of the runtime's own arena come from there, pages of
 * quire do not, so that the process would hold both. The adapter therefore returns free pages of
 * the heap to the system: before the first weights, and when the memory has grown by an eighth
 * since the last time. A program in a steady state does not pay for it, and a growing one pays a
 * logarithmic number of times.
 */
static void trim_heap(adapter *a)
{
    quire_memory_stats stats;
    uint64_t last = atomic_load_explicit(&a->trimmed_at, memory_order_relaxed);
    if (a->keeps_heap || quire_memory_get_stats(host_allocator_memory(a->host), &stats) ||
        stats.reserved_bytes <= last + last / 8)
        return;
    atomic_store_explicit(&a->trimmed_at, stats.reserved_bytes, memory_order_relaxed);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void on_growth(void *user, quire_memory *memory, const quire_event *event)
{
    (void)memory;
    (void)event;
    trim_heap(user);
}

/* ---- the functions of OrtAllocator ----------------------------------------------------------- */

static void *ort_alloc(ort_allocator *self, size_t size)
{
    adapter *a = (adapter *)self;
    void *pointer = host_allocator_allocate(a->host, size, 0);
    uint64_t max = atomic_load_explicit(&a->max_allocation, memory_order_relaxed);
    while (pointer && size > max &&
           !atomic_compare_exchange_weak_explicit(&a->max_allocation, &max, size,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return pointer;
}

static void *ort_reserve(ort_allocator *self, size_t size)
{
    adapter *a = (adapter *)self;
    if (!atomic_load_explicit(&a->trimmed_at, memory_order_relaxed))
        trim_heap(a);
    void *pointer = ort_alloc(self, size);
    if (pointer)
        atomic_fetch_add_explicit(&a->reserves, 1, memory_order_relaxed);
    return pointer;
}

static void ort_free(ort_allocator *self, void *pointer)
{
    adapter *a = (adapter *)self;
    if (host_allocator_free(a->host, pointer))
        atomic_fetch_add_explicit(&a->bad_frees, 1, memory_order_relaxed);
}

static const ort_memory_info *ort_info(const ort_allocator *self)
{
    return ((const adapter *)self)->info;
}

/* The keys are those that the header of ONNX Runtime lists for this function. */
static ort_status *ort_get_stats(const ort_allocator *self, ort_pairs **pairs)
{
    const functions *runtime = &((const adapter *)self)->runtime;
    quire_onnxruntime_stats stats;
    quire_memory_info memory;
    *pairs = NULL;
    if (quire_onnxruntime_get_stats(self, &stats) ||
        quire_memory_get_info(host_allocator_memory(((const adapter *)self)->host), &memory))
        return runtime->create_status(ORT_CODE_FAIL, quire_last_error());
    const struct {
        const char *key;
        uint64_t value;
    } entries[] = {
        {"Limit", memory.limit ? memory.limit : UINT64_MAX}, /* -1: no limit */
        {"InUse", stats.requested_bytes},
        {"RequestedInUse", stats.requested_bytes},
        {"TotalAllocated", stats.memory.reserved_bytes},
        {"MaxInUse", stats.memory.peak_requested_bytes},
        {"NumAllocs", stats.allocations},
        {"NumReserves", stats.reserves},
        {"NumArenaExtensions", stats.memory.pages_created},
        {"NumArenaShrinkages", stats.memory.pages_destroyed},
        {"MaxAllocSize", stats.max_allocation},
    };
    runtime->create_pairs(pairs);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char text[24]; /* the runtime copies it and reads it as a signed number */
        snprintf(text, sizeof text, "%" PRId64, (int64_t)entries[i].value);
        runtime->add_pair(*pairs, entries[i].key, text);
    }
    return NULL;
}

static ort_status *ort_shrink(ort_allocator *self)
{
    const adapter *a = (const adapter *)self;
    if (host_allocator_trim(a->host, NULL))
        return a->runtime.create_status(ORT_CODE_FAIL, quire_last_error());
    return NULL;
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Writes the API version to use. Asking the runtime for a newer version than its own would make it
   print an error, so the version is read from its name. */
static quire_result read_version(const ort_api_base *base, uint32_t *version)
{
    const char *text = base->get_version_string();
    unsigned major = 0, minor = 0;
    if (!text || sscanf(text, "%u.%u", &major, &minor) != 2 || major != 1 ||
        minor < ORT_API_RESERVE)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "this is ONNX Runtime '%s'; the allocator needs 1.%d or a later 1.x", text ? text : "",
            ORT_API_RESERVE);
    *version = minor < ORT_API_SHRINK ? minor : ORT_API_SHRINK;
    return QUIRE_SUCCESS;
}

static quire_result load_functions(adapter *a, const ort_api_base *base)
{
    const uint32_t version = a->abi.version;
    const ort_function *table = base->get_api(version);
    if (!table)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "ONNX Runtime %s has no API of version %" PRIu32,
                                  base->get_version_string(), version);
#define LOAD(name, number, result, parameters)                                                     \
    a->runtime.name = (result(*) parameters)table[number];
    ORT_FUNCTIONS(LOAD)
    if (version >= ORT_API_STATS) {
        ORT_PAIR_FUNCTIONS(LOAD)
    }
#undef LOAD
    return QUIRE_SUCCESS;
}

static quire_result create_info(adapter *a)
{
    ort_status *status =
        a->runtime.create_cpu_memory_info(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &a->info);
    if (!status)
        return QUIRE_SUCCESS;
    quire_result result = quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                             "ONNX Runtime cannot describe the CPU: %s",
                                             a->runtime.get_error_message(status));
    a->runtime.release_status(status);
    return result;
}

static void fill_table(ort_allocator *abi)
{
    abi->alloc = ort_alloc;
    abi->free = ort_free;
    abi->info = ort_info;
    abi->reserve = ort_reserve;
    abi->get_stats = abi->version >= ORT_API_STATS ? ort_get_stats : NULL;
    abi->shrink = abi->version >= ORT_API_SHRINK ? ort_shrink : NULL;
}

static quire_result open_host(adapter *a, const quire_onnxruntime_options *options)
{
    const host_allocator_options host = {
        .name = options->name ? options->name : "ONNX Runtime",
        .page_size = options->page_size,
        .shards = options->shards,
        .limit = options->limit,
        .retained_empty_bytes = options->retained_empty_bytes,
        .huge_pages = options->huge_pages,
        .trace_file = options->trace_file,
    };
    for (size_t i = 0; i < sizeof options->unused / sizeof *options->unused; i++) {
        if (options->unused[i])
            return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                      "quire_onnxruntime_create: options.unused[%zu] is not 0", i);
    }
    a->keeps_heap = options->keep_heap;
    quire_result result = host_allocator_create(&host, &a->host);
    return result ? result
                  : quire_memory_set_hook(
                        host_allocator_memory(a->host),
                        &(quire_hook){.event = on_growth,
                                      .user = a,
                                      .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_RESIZED});
}

static void destroy(adapter *a)
{
    if (a->info)
        a->runtime.release_memory_info(a->info);
    host_allocator_destroy(&a->host);
    free(a);
}

quire_result quire_onnxruntime_create(const struct OrtApiBase *base,
                                      const quire_onnxruntime_options *options,
                                      struct OrtAllocator **allocator)
{
    const quire_onnxruntime_options defaults = {.name = NULL};
    if (allocator)
        *allocator = NULL;
    if (!base || !allocator)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "quire_onnxruntime_create: %s is null",
                                  base ? "allocator" : "base");
    adapter *a = calloc(1, sizeof *a);
    if (!a)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for an allocator of ONNX Runtime");
    quire_result result = read_version(base, &a->abi.version);
    if (!result)
        result = load_functions(a, base);
    if (!result)
        result = create_info(a);
    if (!result)
        result = open_host(a, options ? options : &defaults);
    if (result) {
        destroy(a);
        return result;
    }
    fill_table(&a->abi);
    *allocator = &a->abi;
    return QUIRE_SUCCESS;
}

/* ---- functions on an allocator --------------------------------------------------------------- */

/* Fails unless quire_onnxruntime_create made the allocator. */
static quire_result check(const char *function, const ort_allocator *allocator, const void *output)
{
    if (!allocator || !output)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "%s: %s is null", function,
                                  allocator ? "the output" : "allocator");
    if (allocator->alloc != ort_alloc)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "%s: quire_onnxruntime_create has not made this allocator",
                                  function);
    return QUIRE_SUCCESS;
}

quire_result quire_onnxruntime_get_stats(const struct OrtAllocator *allocator,
                                         quire_onnxruntime_stats *stats)
{
    host_allocator_stats host;
    if (stats)
        *stats = (quire_onnxruntime_stats){.requested_bytes = 0};
    quire_result result = check("quire_onnxruntime_get_stats", allocator, stats);
    if (result)
        return result;
    const adapter *a = (const adapter *)allocator;
    result = host_allocator_get_stats(a->host, &host);
    if (result)
        return result;
    *stats = (quire_onnxruntime_stats){
        .requested_bytes = host.requested_bytes,
        .allocation_count = host.allocation_count,
        .allocations = host.allocations,
        .reserves = atomic_load_explicit(&a->reserves, memory_order_relaxed),
        .frees = host.frees,
        .bad_frees = atomic_load_explicit(&a->bad_frees, memory_order_relaxed),
        .max_allocation = atomic_load_explicit(&a->max_allocation, memory_order_relaxed),
        .memory = host.memory,
    };
    return QUIRE_SUCCESS;
}

quire_result quire_onnxruntime_get_memory(const struct OrtAllocator *allocator,
                                          quire_memory **memory)
{
    if (memory)
        *memory = NULL;
    quire_result result = check("quire_onnxruntime_get_memory", allocator, memory);
    if (!result)
        *memory = host_allocator_memory(((const adapter *)allocator)->host);
    return result;
}

quire_result quire_onnxruntime_trim(struct OrtAllocator *allocator, uint64_t *released)
{
    if (released)
        *released = 0;
    quire_result result = check("quire_onnxruntime_trim", allocator, allocator);
    return result ? result : host_allocator_trim(((adapter *)allocator)->host, released);
}

quire_result quire_onnxruntime_destroy(struct OrtAllocator **allocator)
{
    quire_onnxruntime_stats stats;
    if (allocator && !*allocator)
        return QUIRE_SUCCESS;
    quire_result result =
        check("quire_onnxruntime_destroy", allocator ? *allocator : NULL, allocator);
    if (!result)
        result = quire_onnxruntime_get_stats(*allocator, &stats);
    if (result)
        return result;
    if (stats.allocation_count)
        return quire_backend_fail(QUIRE_ERROR_BUSY, 0,
                                  "ONNX Runtime still uses %" PRIu64 " allocations of %" PRIu64
                                  " bytes",
                                  stats.allocation_count, stats.requested_bytes);
    destroy((adapter *)*allocator);
    *allocator = NULL;
    return QUIRE_SUCCESS;
}
