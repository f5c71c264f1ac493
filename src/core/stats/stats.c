/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stats.c - adds up the statistics of memories, pages, scopes and names under the locks of all
 * shards, so that the sums belong to one moment. The counters of backend calls and of host memory
 * are atomic and may be newer.
 */
#include "src/core/stats/stats.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/state/memory.h"
#include "src/core/state/peaks.h"
#include "src/space/space.h"

/* The share of `whole` that is not used; 0 if `whole` is 0. */
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
    out->asleep_bytes += stats->asleep_bytes;
    out->asleep_count += stats->asleep_count;
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

/*
 * Requires the locks of all shards, without which no page is created or destroyed. Takes the lock
 * of the pages. Returns the sum above and what is derived from it.
 */
static quire_memory_stats sum_all(quire_memory *memory)
{
    quire_memory_stats out = present(memory);
    qi_peaks_read(memory, &out);
    out.fragmentation.reserved = lost_share(out.peak_live_bytes, out.peak_reserved_bytes);
    return out;
}

quire_memory_stats qi_stats_get(quire_memory *memory)
{
    qi_shards_acquire(memory);
    quire_memory_stats stats = sum_all(memory);
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

/* ---- pages -------------------------------------------------------------------------------- */

static bool find_largest(void *user, const quire_space_item *item)
{
    uint64_t *largest = user;
    if (item->is_free && item->size > *largest)
        *largest = item->size;
    return true;
}

quire_result qi_page_get_info(quire_memory *memory, uint32_t number, quire_page_info *info)
{
    const qi_page *page = qi_page_acquire(memory, number); /* with its shard's lock */
    if (!page)
        return qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE, "memory '%t' has no page %u", memory->name,
                              number);
    *info = (quire_page_info){
        .page = number,
        .dedicated = page->dedicated,
        .mappable = (memory->flags & QUIRE_HOST_VISIBLE) != 0,
        .size = page->native.bytes,
        .address = page->native.native.address,
        .live_bytes = page->tally->live_bytes,
        .free_bytes = page->native.bytes - page->tally->live_bytes,
        .allocation_count = page->tally->allocation_count - page->objects,
        .peak_live_bytes = page->tally->peak_live_bytes > page->tally->live_bytes
                               ? page->tally->peak_live_bytes
                               : page->tally->live_bytes,
    };
    /* with one region the fit knows the answer; otherwise the ranges of the region are visited */
    quire_space *space = page->shard->space;
    if (!page->dedicated && space->fit->max_regions == 1)
        info->largest_free = space->fit->largest_free(space);
    else if (!page->dedicated)
        qi_space_walk_region(space, page->region, find_largest, &info->largest_free);
    qi_lock_release(&page->shard->lock);
    return QUIRE_SUCCESS;
}

/* ---- scopes ------------------------------------------------------------------------------- */

/*
 * Every access to the stack of scopes, and to the peaks, holds the locks of all shards; the lock of
 * the pages protects their peaks.
 */

/* Requires the lock of the pages. Restarts their peaks at the present values. */
static void begin_page_peaks(quire_memory_stats *stats)
{
    stats->peak_reserved_bytes = stats->reserved_bytes;
    stats->peak_page_count = stats->page_count;
}

/* Requires the lock of the pages. Restores the peaks from before the scope if they are higher. */
static void end_page_peaks(quire_memory_stats *stats, const quire_memory_stats *before)
{
    qi_raise(&stats->peak_reserved_bytes, before->peak_reserved_bytes);
    qi_raise(&stats->peak_page_count, before->peak_page_count);
}

quire_result qi_stats_push(quire_memory *memory)
{
    qi_stats_scope *scope = qi_host_allocate(&memory->host, 1, sizeof *scope);
    if (!scope)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a statistics scope");
    qi_shards_acquire(memory);
    scope->begun = sum_all(memory);
    qi_peaks_restart(memory);
    qi_lock_acquire(&memory->pages.lock);
    begin_page_peaks(&memory->pages.stats);
    qi_lock_release(&memory->pages.lock);
    scope->outer = memory->stats_scopes;
    memory->stats_scopes = scope;
    qi_shards_release(memory);
    return QUIRE_SUCCESS;
}

/* Subtracts the counters that only grow, as they were at the push. */
static void subtract(quire_memory_stats *stats, const quire_memory_stats *begun)
{
    stats->allocations -= begun->allocations;
    stats->frees -= begun->frees;
    stats->failures -= begun->failures;
    stats->pages_created -= begun->pages_created;
    stats->pages_destroyed -= begun->pages_destroyed;
    stats->pages_over_budget -= begun->pages_over_budget;
    stats->backend_calls -= begun->backend_calls;
    stats->backend_nanoseconds -= begun->backend_nanoseconds;
    stats->full_passes -= begun->full_passes;
    stats->full_pass_hits -= begun->full_pass_hits;
}

/* Removes the innermost scope and returns it with its statistics; NULL if there is none. */
static qi_stats_scope *remove_scope(quire_memory *memory, quire_memory_stats *stats)
{
    qi_shards_acquire(memory);
    qi_stats_scope *scope = memory->stats_scopes;
    if (scope) {
        *stats = sum_all(memory);
        subtract(stats, &scope->begun);
        qi_peaks_restore(memory, &scope->begun);
        qi_lock_acquire(&memory->pages.lock);
        end_page_peaks(&memory->pages.stats, &scope->begun);
        qi_lock_release(&memory->pages.lock);
        memory->stats_scopes = scope->outer;
    }
    qi_shards_release(memory);
    return scope;
}

quire_result qi_stats_pop(quire_memory *memory, quire_memory_stats *stats)
{
    qi_stats_scope *scope = remove_scope(memory, stats);
    if (!scope)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "memory '%s' has no statistics scope to pop: a push must come first",
                            memory->name);
    scope->outer = NULL;
    qi_stats_scopes_finish(scope, &memory->host);
    return QUIRE_SUCCESS;
}

void qi_stats_scopes_finish(qi_stats_scope *innermost, qi_host *host)
{
    while (innermost) {
        qi_stats_scope *outer = innermost->outer;
        qi_host_release(host, innermost, 1, sizeof *innermost);
        innermost = outer;
    }
}

/* ---- names -------------------------------------------------------------------------------- */

/*
 * A new limit starts with the sum over the allocations that exist. From then on allocations and
 * frees keep its account (slot/name_limit.h).
 */

/* Requires the locks of all shards. Sums over the allocations whose names start with the prefix. */
static quire_name_usage sum_of(const quire_memory *memory, const char *prefix)
{
    quire_name_usage sum = {0};
    size_t length = strlen(prefix);
    uint32_t top = qi_slots_top(&memory->slots);
    for (uint32_t i = 0; i < top; i++) {
        if (qi_slot_phase(&memory->slots, i) == QI_PHASE_FREE)
            continue;
        const qi_slot *record = qi_memory_slot(memory, i);
        if (!record->meta || !qi_name_begins(record->meta->name, prefix, length))
            continue;
        sum.held_bytes += qi_name_held_by(record);
        sum.requested_bytes += record->requested;
        sum.allocation_count++;
    }
    return sum;
}

static quire_name_usage usage_of(const qi_name_limit *limit)
{
    return (quire_name_usage){
        .limit = qi_atomic_load_u64(&limit->held.limit),
        .held_bytes = qi_account_used(&limit->held),
        .requested_bytes = qi_atomic_load_u64(&limit->requested),
        .allocation_count = qi_atomic_load_u64(&limit->count),
    };
}

bool qi_names_agree(const quire_memory *memory)
{
    for (const qi_name_limit *limit = memory->names.first; limit; limit = limit->next) {
        quire_name_usage sum = sum_of(memory, limit->prefix), kept = usage_of(limit);
        if (sum.held_bytes != kept.held_bytes || sum.requested_bytes != kept.requested_bytes ||
            sum.allocation_count != kept.allocation_count)
            return false;
    }
    return true;
}

/*
 * Requires the locks of all shards. Sets the limit; uses `made` if the prefix had none. Returns the
 * record that the caller releases, or NULL.
 */
static qi_name_limit *set(quire_memory *memory, const char *prefix, uint64_t bytes,
                          qi_name_limit *made)
{
    qi_name_limit **link = qi_name_limit_find(&memory->names, prefix), *limit = *link;
    if (!bytes) {
        *link = limit ? limit->next : NULL;
        return limit;
    }
    if (!limit) {
        quire_name_usage sum = sum_of(memory, prefix);
        qi_atomic_init_u64(&made->requested, sum.requested_bytes);
        qi_atomic_init_u64(&made->count, sum.allocation_count);
        qi_atomic_init_u64(&made->held.used, sum.held_bytes);
        *link = limit = made;
        made = NULL;
    }
    qi_account_set_limit(&limit->held, bytes);
    return made;
}

quire_result qi_name_limit_set(quire_memory *memory, const char *prefix, uint64_t bytes)
{
    qi_name_limit *made = bytes ? qi_name_limit_create(&memory->host, prefix) : NULL;
    if (bytes && !made)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the limit of a name");
    qi_shards_acquire(memory);
    qi_name_limit *left = set(memory, prefix, bytes, made);
    qi_shards_release(memory);
    if (left)
        qi_name_limit_release(left, &memory->host);
    return QUIRE_SUCCESS;
}

quire_name_usage qi_name_usage_of(quire_memory *memory, const char *prefix)
{
    qi_shards_acquire(memory);
    const qi_name_limit *limit = *qi_name_limit_find(&memory->names, prefix);
    quire_name_usage usage = limit ? usage_of(limit) : sum_of(memory, prefix);
    qi_shards_release(memory);
    return usage;
}
