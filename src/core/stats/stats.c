/*
 * stats.c - adds up the statistics of memories and devices (see stats.h).
 *
 * All shard locks are held at the same time, so that the sums belong to one moment. The counters of
 * backend calls and of host memory are atomic and may be newer.
 */
#include "src/core/stats/stats.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/page/range.h"
#include "src/core/state/memory.h"
#include "src/core/state/peaks.h"
#include "src/space/space.h"

/* The share of `whole` that is not used; 0 where `whole` is 0. */
static double lost_share(uint64_t used, uint64_t whole)
{
    return whole ? 1.0 - (double)used / (double)whole : 0.0;
}

/* Requires the shard lock. Adds what the shard counts. */
static void add_shard(quire_memory_stats *out, const qi_shard *shard)
{
    const quire_memory_stats *stats = &shard->stats;
    uint64_t allocations = qi_atomic_load_u64(&shard->allocations);
    out->live_bytes += stats->live_bytes;
    out->requested_bytes += stats->requested_bytes;
    out->allocation_count += stats->allocation_count;
    out->allocations += allocations;
    out->frees += allocations - stats->allocation_count;
    out->failures += stats->failures;
    out->empty_bytes += shard->empty_pages.bytes;
    out->deferred_bytes += stats->deferred_bytes;
    out->deferred_count += stats->deferred_count;
}

/* Requires the shard lock. */
static void add_space(quire_space_stats *spaces, const qi_shard *shard)
{
    quire_space_stats space;
    qi_space_get_stats(shard->space, &space);
    spaces->free_bytes += space.free_bytes;
    spaces->metadata_bytes += space.metadata_bytes;
    spaces->metadata_peak += space.metadata_peak;
    spaces->full_passes += space.full_passes;
    spaces->full_pass_hits += space.full_pass_hits;
    qi_raise(&spaces->largest_free, space.largest_free);
}

/* Requires the lock of the pages. Sets what they count. */
static void add_pages(quire_memory_stats *out, const quire_memory_stats *stats)
{
    out->reserved_bytes = stats->reserved_bytes;
    out->page_count = stats->page_count;
    out->peak_reserved_bytes = stats->peak_reserved_bytes;
    out->peak_page_count = stats->peak_page_count;
    out->pages_created = stats->pages_created;
    out->pages_destroyed = stats->pages_destroyed;
    out->pages_over_budget = stats->pages_over_budget;
}

quire_memory_stats qi_stats_counted(quire_memory *memory)
{
    quire_memory_stats out = {0};
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        add_shard(&out, memory->shards[i]);
    add_pages(&out, &memory->pages.stats);
    return out;
}

/* Requires the locks of all shards. Everything that depends on no peak. */
static quire_memory_stats present(quire_memory *memory)
{
    quire_space_stats space = {0};
    qi_lock_acquire(&memory->pages.lock);
    quire_memory_stats out = qi_stats_counted(memory);
    qi_lock_release(&memory->pages.lock);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        add_space(&space, memory->shards[i]);
    qi_checked_correct(memory, &out);
    out.free_bytes = out.reserved_bytes - out.live_bytes;
    out.largest_free = space.largest_free;
    out.full_passes = space.full_passes;
    out.full_pass_hits = space.full_pass_hits;
    out.backend_calls = qi_atomic_load_u64(&memory->calls.count);
    out.backend_nanoseconds = qi_atomic_load_u64(&memory->calls.nanoseconds);
    out.metadata_bytes = qi_atomic_load_u64(&memory->host.bytes) + space.metadata_bytes;
    out.metadata_peak = qi_atomic_load_u64(&memory->host.peak) + space.metadata_peak;
    out.fragmentation = (quire_fragmentation){
        .free = lost_share(space.largest_free, space.free_bytes),
        .internal = out.live_bytes - out.requested_bytes,
        .split = out.free_bytes - out.empty_bytes,
    };
    return out;
}

quire_memory_stats qi_stats_of(quire_memory *memory)
{
    quire_memory_stats out = present(memory);
    qi_peaks_read(memory, &out);
    out.fragmentation.reserved = lost_share(out.peak_live_bytes, out.peak_reserved_bytes);
    return out;
}

quire_memory_stats qi_stats_get(quire_memory *memory)
{
    qi_shards_acquire(memory);
    quire_memory_stats stats = qi_stats_of(memory);
    qi_shards_release(memory);
    return stats;
}

quire_memory_stats qi_stats_present(quire_memory *memory)
{
    qi_shards_acquire(memory);
    quire_memory_stats stats = present(memory);
    qi_shards_release(memory);
    return stats;
}

qi_stats_room qi_stats_get_room(quire_memory *memory)
{
    if (QI_IS_CHECKED) { /* which corrects the sums */
        const quire_memory_stats stats = qi_stats_present(memory);
        return (qi_stats_room){stats.largest_free, stats.free_bytes, stats.page_count};
    }
    qi_stats_room room = {0};
    uint64_t live = 0;
    qi_shards_acquire(memory);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        live += memory->shards[i]->stats.live_bytes;
        qi_raise(&room.largest_free, qi_space_largest_free(memory->shards[i]->space));
    }
    qi_lock_acquire(&memory->pages.lock);
    room.page_count = memory->pages.stats.page_count;
    room.free_bytes = memory->pages.stats.reserved_bytes - live;
    qi_lock_release(&memory->pages.lock);
    qi_shards_release(memory);
    return room;
}

static void add_memory(quire_device_stats *out, const quire_memory_stats *stats)
{
    out->live_bytes += stats->live_bytes;
    out->allocation_count += stats->allocation_count;
    out->metadata_bytes += stats->metadata_bytes;
    out->requested_bytes += stats->requested_bytes;
    out->free_bytes += stats->free_bytes;
    out->empty_bytes += stats->empty_bytes;
    out->deferred_bytes += stats->deferred_bytes;
    out->allocations += stats->allocations;
    out->frees += stats->frees;
    out->failures += stats->failures;
    out->pages_created += stats->pages_created;
    out->pages_destroyed += stats->pages_destroyed;
    out->pages_over_budget += stats->pages_over_budget;
}

quire_device_stats qi_stats_get_device(quire_device *device)
{
    quire_device_stats out = {0};
    for (uint32_t i = 0; i < QUIRE_MAX_HEAPS; i++)
        out.heap_reserved_bytes[i] = qi_account_used(&device->heaps[i].account);
    out.reserved_bytes = qi_atomic_load_u64(&device->reserved_bytes);
    out.peak_reserved_bytes = qi_atomic_load_u64(&device->peak_reserved_bytes);
    out.page_count = qi_account_used(&device->pages);
    out.backend_calls = qi_atomic_load_u64(&device->calls.count);
    out.backend_nanoseconds = qi_atomic_load_u64(&device->calls.nanoseconds);
    out.metadata_bytes = qi_atomic_load_u64(&device->host.bytes);
    qi_lock_acquire(&device->lock); /* no memory of the list is destroyed while it is read */
    out.memory_count = device->memory_count;
    for (quire_memory *m = device->memories; m; m = m->next_of_device) {
        const quire_memory_stats stats = qi_stats_present(m);
        add_memory(&out, &stats);
    }
    qi_lock_release(&device->lock);
    return out;
}
