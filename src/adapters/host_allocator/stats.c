/*
 * stats.c - the statistics of an allocator, also as JSON.
 */
#include <inttypes.h>
#include <stdio.h>

#include "quire/backend.h"
#include "src/adapters/host_allocator/allocator.h"
#include "src/adapters/host_allocator/host_allocator.h"

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

/* ---- JSON ------------------------------------------------------------------------------------ */

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
