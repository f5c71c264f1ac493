/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_allocator.c - a bit of the pointer tells a free what it has: a small block, which goes into
 * the cache of the thread, or a large allocation, which the memory finds by its address. Also
 * creation, and statistics.
 */
#include "src/adapters/host_allocator/host_allocator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "quire/backend.h"
#include "quire/host.h"
#include "src/adapters/host_allocator/record.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

/* Of an elastic memory: four times the bytes of the machine, at least those with which its chunks
   have 256 KiB, and at most what granules of HOST_BLOCK_UNIT bytes can number, less 1 GiB. */
#define MIN_ADDRESSES (256 * KIB * MIB)
#define MAX_ADDRESSES (511 * KIB * MIB)

/* ---- creating and destroying -------------------------------------------------------------- */

/* The caches hold memory that nobody uses. The memory calls this before it refuses a request. */
static bool empty_caches(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    host_allocator *allocator = user;
    (void)memory;
    (void)report;
    return host_caches_empty(&allocator->caches);
}

static uint64_t addresses(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t wanted = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page * 4 : 0;
    if (wanted < MIN_ADDRESSES)
        return MIN_ADDRESSES;
    return wanted < MAX_ADDRESSES ? wanted : MAX_ADDRESSES;
}

/* The size of a page, or of a chunk of an elastic memory, which is a power of two. */
static quire_page_policy pages_of(const host_allocator_options *options, bool elastic)
{
    quire_page_policy pages = {.page_size = options->page_size,
                               .retained_empty_bytes = options->retained_empty_bytes};
    if (!elastic && !pages.page_size)
        pages.page_size = 2 * MIB;
    while (elastic && pages.page_size & (pages.page_size - 1))
        pages.page_size &= pages.page_size - 1;
    return pages;
}

/*
 * Creates the memory. Without a number of shards it is elastic, which reserves the least
 * (docs/adapters/pytorch_cpu.md). Its addresses may be unavailable, as under `ulimit -v`; its first
 * page shows it.
 */
static quire_result create_memory(host_allocator *allocator, const host_allocator_options *options,
                                  bool elastic)
{
    quire_result result = quire_memory_create(
        allocator->device,
        &(quire_memory_options){.name = options->name ? options->name : "host allocator",
                                .kind.required = QUIRE_HOST_VISIBLE | QUIRE_HOST_CACHED,
                                .elastic = elastic,
                                .address_space = elastic ? addresses() : 0,
                                .find_by_address = true,
                                .fit = {.granule = HOST_BLOCK_UNIT},
                                .shards = elastic ? 0 : options->shards,
                                .pages = pages_of(options, elastic),
                                .on_out_of_memory = {empty_caches, allocator}},
        &allocator->memory);
    if (result || !elastic)
        return result;
    result = quire_memory_preallocate(allocator->memory, 1);
    if (result)
        quire_memory_destroy_all(&allocator->memory);
    return result ? result : quire_memory_preallocate(allocator->memory, 0);
}

static quire_result open_memory(host_allocator *allocator, const host_allocator_options *options)
{
    quire_result result = quire_host_open(
        &(quire_host_options){.huge_pages = options->huge_pages ? QUIRE_HOST_HUGE_ADVISE
                                                                : QUIRE_HOST_HUGE_NONE},
        &allocator->device);
    if (result)
        return result;
    if (!options->shards)
        result = create_memory(allocator, options, true);
    if (options->shards || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY)
        result = create_memory(allocator, options, false);
    return result ? result : quire_memory_set_limit(allocator->memory, options->limit);
}

static quire_result open_all(host_allocator *allocator, const host_allocator_options *options)
{
    quire_result result = host_marks_create(&allocator->marks);
    if (!result)
        result = open_memory(allocator, options);
    if (!result)
        result = host_fork_add(allocator);
    if (!result && options->trace_file && *options->trace_file)
        result = host_trace_start(&allocator->trace, options->trace_file);
    return result;
}

quire_result host_allocator_create(const host_allocator_options *options,
                                   host_allocator **allocator)
{
    if (!allocator)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "allocator is NULL");
    *allocator = NULL;
    static const host_allocator_options defaults;
    if (!options)
        options = &defaults;
    host_allocator *made = aligned_alloc(_Alignof(host_allocator), sizeof *made);
    if (!made)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for an allocator");
    *made = (host_allocator){0};
    uint64_t cached = options->cached_bytes ? options->cached_bytes : HOST_ALLOCATOR_CACHED_BYTES;
    quire_result result = host_caches_create(made, cached);
    if (result) {
        free(made);
        return result;
    }
    pthread_mutex_init(&made->trace.mutex, NULL);
    *allocator = made;
    if ((result = open_all(made, options)))
        host_allocator_destroy(allocator);
    return result;
}

void host_allocator_destroy(host_allocator **allocator)
{
    if (!allocator || !*allocator)
        return;
    host_allocator *old = *allocator;
    *allocator = NULL;
    host_fork_remove(old);
    if (host_trace_is_open(&old->trace))
        (void)!host_trace_stop(&old->trace);
    if (old->memory)
        quire_memory_destroy_all(&old->memory);
    if (old->device)
        quire_device_destroy(&old->device);
    host_caches_destroy(&old->caches);
    host_marks_destroy(&old->marks);
    pthread_mutex_destroy(&old->trace.mutex);
    free(old);
}

quire_memory *host_allocator_memory(host_allocator *allocator)
{
    return allocator ? allocator->memory : NULL;
}

/* ---- allocating --------------------------------------------------------------------------- */

/* Returns a pointer into the memory, or NULL. *allocation is {0} then. */
static void *allocate_range(host_allocator *allocator, uint64_t size, uint64_t alignment,
                            quire_allocation *allocation)
{
    quire_allocation_info info;
    quire_allocation_options options = {
        .size = size, .alignment = alignment, .mapped = true, .info = &info};
    return quire_allocate(allocator->memory, &options, allocation) ? NULL : info.host;
}

/* Returns a block that the memory allocates, or NULL. */
static host_block *make_block(host_allocator *allocator, uint32_t size_class)
{
    quire_allocation allocation;
    host_block *block =
        allocate_range(allocator, host_block_size(size_class), HOST_BLOCK_UNIT, &allocation);
    if (!block)
        return NULL;
    host_mark *mark = host_marks_add(&allocator->marks, block);
    if (!mark) {
        quire_free(allocator->memory, allocation);
        return NULL;
    }
    block->mark = mark;
    block->allocation = allocation;
    block->size_class = size_class;
    return block;
}

static void *allocate_small(host_allocator *allocator, uint64_t size)
{
    uint32_t size_class = host_block_class(size);
    host_cache *cache = host_cache_of_thread(&allocator->caches);
    host_block *block = host_cache_take(cache, size_class, size);
    if (!block) {
        block = make_block(allocator, size_class);
        if (!block)
            return NULL;
        host_cache_count_block(cache, size_class, size);
    }
    block->requested = size;
    block->number = 0;
    if (host_trace_is_open(&allocator->trace))
        block->number = host_trace_allocated(&allocator->trace, size, HOST_ALLOCATOR_ALIGNMENT);
    atomic_store_explicit(block->mark, HOST_MARK_LIVE, memory_order_release);
    return host_block_bytes(block);
}

static void *allocate_large(host_allocator *allocator, uint64_t size, uint64_t alignment)
{
    quire_allocation allocation;
    void *pointer = allocate_range(
        allocator, size, alignment < HOST_BLOCK_UNIT ? HOST_BLOCK_UNIT : alignment, &allocation);
    if (pointer && host_trace_is_open(&allocator->trace))
        (void)!quire_allocation_set_user_data(
            allocator->memory, allocation,
            host_trace_allocated(&allocator->trace, size, alignment));
    return pointer;
}

void *host_allocator_allocate(host_allocator *allocator, uint64_t size, uint64_t alignment)
{
    if (!allocator || alignment & (alignment - 1)) {
        (void)!quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  allocator ? "alignment is %" PRIu64 ", not a power of two"
                                            : "allocator is NULL",
                                  alignment);
        return NULL;
    }
    if (!size)
        return NULL;
    if (alignment < HOST_ALLOCATOR_ALIGNMENT)
        alignment = HOST_ALLOCATOR_ALIGNMENT;
    return size <= HOST_BLOCK_MAX && alignment == HOST_ALLOCATOR_ALIGNMENT
               ? allocate_small(allocator, size)
               : allocate_large(allocator, size, alignment);
}

/* ---- freeing ------------------------------------------------------------------------------ */

static quire_result refuse(const void *pointer, const char *reason)
{
    return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "%p %s", pointer, reason);
}

static quire_result free_small(host_allocator *allocator, void *pointer)
{
    host_mark *mark = host_marks_find(&allocator->marks, pointer);
    uint8_t state = HOST_MARK_LIVE;
    if (!mark || !atomic_compare_exchange_strong_explicit(
                     mark, &state, HOST_MARK_FREED, memory_order_acq_rel, memory_order_relaxed))
        return refuse(pointer, mark && state == HOST_MARK_FREED
                                   ? "was freed before"
                                   : "is not the start of an allocation of this allocator");
    host_block *block = host_block_of(pointer);
    if (block->mark != mark) {
        atomic_store_explicit(mark, HOST_MARK_LIVE, memory_order_release);
        return refuse(pointer, "has an overwritten header, so that it stays allocated");
    }
    if (block->number)
        host_trace_freed(&allocator->trace, block->number);
    host_cache *cache = host_cache_of_thread(&allocator->caches);
    host_block *surplus = host_cache_put(cache, block);
    if (surplus)
        host_blocks_release(cache, surplus);
    return QUIRE_SUCCESS;
}

static quire_result free_large(host_allocator *allocator, void *pointer)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    quire_allocation allocation;
    quire_allocation_info info;
    if (host_trace_is_open(&allocator->trace) &&
        !quire_memory_find(allocator->memory, address, &allocation) &&
        !quire_allocation_get_info(allocator->memory, allocation, &info) && info.address == address)
        host_trace_freed(&allocator->trace, info.user_data);
    return quire_free_at_address(allocator->memory, address, NULL);
}

quire_result host_allocator_free(host_allocator *allocator, void *pointer)
{
    if (!allocator)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "allocator is NULL");
    if (!pointer)
        return QUIRE_SUCCESS;
    if ((uintptr_t)pointer % HOST_ALLOCATOR_ALIGNMENT)
        return refuse(pointer, "is not the start of an allocation of this allocator");
    return host_block_is_at(pointer) ? free_small(allocator, pointer)
                                     : free_large(allocator, pointer);
}

quire_result host_allocator_trim(host_allocator *allocator, uint64_t *released)
{
    if (released)
        *released = 0;
    if (!allocator)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "allocator is NULL");
    host_caches_empty(&allocator->caches);
    return quire_memory_trim(allocator->memory, 0, released);
}

/* ---- trace -------------------------------------------------------------------------------- */

quire_result host_allocator_start_trace(host_allocator *allocator, const char *path)
{
    if (!allocator || !path || !*path)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  allocator ? "path is NULL or empty" : "allocator is NULL");
    return host_trace_start(&allocator->trace, path);
}

quire_result host_allocator_stop_trace(host_allocator *allocator)
{
    if (!allocator)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "allocator is NULL");
    return host_trace_stop(&allocator->trace);
}

/* ---- statistics --------------------------------------------------------------------------- */

quire_result host_allocator_get_stats(host_allocator *allocator, host_allocator_stats *stats)
{
    if (!allocator || !stats)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  allocator ? "stats is NULL" : "allocator is NULL");
    *stats = (host_allocator_stats){0};
    quire_memory_stats memory;
    quire_result result = quire_memory_get_stats(allocator->memory, &memory);
    if (result)
        return result;
    host_cache_sums sums;
    host_caches_sum(&allocator->caches, &sums);
    const host_counts *small = &sums.counts;
    const uint64_t blocks = small->blocks_made - small->blocks_released;
    *stats = (host_allocator_stats){
        .requested_bytes = memory.requested_bytes - small->block_bytes + small->requested,
        .allocation_count = memory.allocation_count - blocks + (small->allocations - small->frees),
        .allocations = memory.allocations - small->blocks_made + small->allocations,
        .frees = memory.frees - small->blocks_released + small->frees,
        .cache_hits = small->hits,
        .cached_bytes = sums.bytes,
        .cached_count = sums.count,
        .thread_count = sums.thread_count,
        .memory = memory,
    };
    return QUIRE_SUCCESS;
}

/* ---- statistics as JSON ------------------------------------------------------------------- */

typedef struct field {
    const char *name;
    uint64_t value;
} field;

/* Writes fields separated by commas. Returns false if the sink does. */
static bool write_fields(quire_sink sink, void *user, const field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[96];
        int length = snprintf(text, sizeof text, "%s\"%s\": %" PRIu64, i ? ", " : "",
                              fields[i].name, fields[i].value);
        if (!sink(user, text, (size_t)length))
            return false;
    }
    return true;
}

#define FIELD(stats, name)                                                                         \
    {                                                                                              \
#name, (stats).name                                                                        \
    }
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TEXT(text) text, sizeof(text) - 1

quire_result host_allocator_write_stats(host_allocator *allocator, quire_sink sink, void *user)
{
    if (!sink)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "sink is NULL");
    host_allocator_stats s;
    quire_result result = host_allocator_get_stats(allocator, &s);
    if (result)
        return result;
    const field own[] = {
        FIELD(s, requested_bytes), FIELD(s, allocation_count), FIELD(s, allocations),
        FIELD(s, frees),           FIELD(s, cache_hits),       FIELD(s, cached_bytes),
        FIELD(s, cached_count),    FIELD(s, thread_count),
    };
    const field memory[] = {
        FIELD(s.memory, live_bytes),
        FIELD(s.memory, requested_bytes),
        FIELD(s.memory, reserved_bytes),
        FIELD(s.memory, free_bytes),
        FIELD(s.memory, empty_bytes),
        FIELD(s.memory, largest_free),
        FIELD(s.memory, allocation_count),
        FIELD(s.memory, page_count),
        FIELD(s.memory, peak_live_bytes),
        FIELD(s.memory, peak_requested_bytes),
        FIELD(s.memory, peak_reserved_bytes),
        FIELD(s.memory, peak_allocation_count),
        FIELD(s.memory, peak_page_count),
        FIELD(s.memory, allocations),
        FIELD(s.memory, frees),
        FIELD(s.memory, failures),
        FIELD(s.memory, pages_created),
        FIELD(s.memory, pages_destroyed),
        FIELD(s.memory, backend_calls),
        FIELD(s.memory, backend_nanoseconds),
        FIELD(s.memory, metadata_bytes),
        FIELD(s.memory, metadata_peak),
    };
    return sink(user, TEXT("{")) && write_fields(sink, user, own, COUNT(own)) &&
                   sink(user, TEXT(", \"memory\": {")) &&
                   write_fields(sink, user, memory, COUNT(memory)) && sink(user, TEXT("}}"))
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_BAD_FILE, 0, "the sink refused the text");
}

quire_result host_allocator_write_snapshot(host_allocator *allocator, quire_sink sink, void *user)
{
    if (!allocator)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "allocator is NULL");
    return quire_memory_write_json(allocator->memory, sink, user);
}
