/*
 * section.c - see section.h.
 */
#include "src/core/stats/stats_scope.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/stats/stats.h"
#include "src/core/state/memory.h"

static size_t size_of(uint32_t shard_count)
{
    return sizeof(qi_stats_scope) + shard_count * sizeof(qi_peaks);
}

/* What there is now becomes the peak; what it was is told. */
static qi_peaks begin_peaks(quire_memory_stats *stats)
{
    qi_shard_keep_peaks(stats);
    const qi_peaks peaks = {.live_bytes = stats->peak_live_bytes,
                            .requested_bytes = stats->peak_requested_bytes,
                            .reserved_bytes = stats->peak_reserved_bytes,
                            .allocation_count = stats->peak_allocation_count,
                            .page_count = stats->peak_page_count};
    stats->peak_live_bytes = stats->live_bytes;
    stats->peak_requested_bytes = stats->requested_bytes;
    stats->peak_reserved_bytes = stats->reserved_bytes;
    stats->peak_allocation_count = stats->allocation_count;
    stats->peak_page_count = stats->page_count;
    return peaks;
}

static void end_peaks(quire_memory_stats *stats, const qi_peaks *before)
{
    qi_raise(&stats->peak_live_bytes, before->live_bytes);
    qi_raise(&stats->peak_requested_bytes, before->requested_bytes);
    qi_raise(&stats->peak_reserved_bytes, before->reserved_bytes);
    qi_raise(&stats->peak_allocation_count, before->allocation_count);
    qi_raise(&stats->peak_page_count, before->page_count);
}

quire_result quire_memory_push_stats(quire_memory *memory)
{
    if (!memory)
        return qi_refuse_null_memory();
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_stats_scope *section = qi_host_allocate(&memory->host, 1, size_of(memory->shard_count));
    if (!section)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a section's figures");
    section->shard_count = memory->shard_count;
    qi_shards_acquire(memory);
    section->begun = qi_stats_of(memory);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        section->shards[i] = begin_peaks(&memory->shards[i].stats);
    qi_lock_acquire(&memory->pages.lock);
    section->pages = begin_peaks(&memory->pages.stats);
    qi_lock_release(&memory->pages.lock);
    section->outer = memory->stats_scopes;
    memory->stats_scopes = section;
    qi_shards_release(memory);
    return QUIRE_SUCCESS;
}

/* What only grows, without what there was before. */
static void take_from(quire_memory_stats *stats, const quire_memory_stats *begun)
{
    stats->allocations -= begun->allocations;
    stats->frees -= begun->frees;
    stats->failures -= begun->failures;
    stats->pages_created -= begun->pages_created;
    stats->pages_destroyed -= begun->pages_destroyed;
    stats->backend_calls -= begun->backend_calls;
    stats->backend_nanoseconds -= begun->backend_nanoseconds;
    stats->full_passes -= begun->full_passes;
    stats->full_pass_hits -= begun->full_pass_hits;
}

/* The innermost section, with its figures, taken off; NULL where there is none. */
static qi_stats_scope *take_off(quire_memory *memory, quire_memory_stats *stats)
{
    qi_shards_acquire(memory);
    qi_stats_scope *section = memory->stats_scopes;
    if (section) {
        *stats = qi_stats_of(memory);
        take_from(stats, &section->begun);
        for (uint32_t i = 0; i < memory->shard_count; i++)
            end_peaks(&memory->shards[i].stats, &section->shards[i]);
        qi_lock_acquire(&memory->pages.lock);
        end_peaks(&memory->pages.stats, &section->pages);
        qi_lock_release(&memory->pages.lock);
        memory->stats_scopes = section->outer;
    }
    qi_shards_release(memory);
    return section;
}

quire_result quire_memory_pop_stats(quire_memory *memory, quire_memory_stats *stats)
{
    if (stats)
        *stats = (quire_memory_stats){0};
    if (!memory || !stats)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_pop_stats: memory or stats is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_stats_scope *section = take_off(memory, stats);
    if (!section)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "memory '%s' has no section to end: push comes before pop",
                            memory->name);
    section->outer = NULL;
    qi_stats_scopes_finish(section, &memory->host);
    return QUIRE_SUCCESS;
}

void qi_stats_scopes_finish(qi_stats_scope *innermost, qi_host *host)
{
    while (innermost) {
        qi_stats_scope *outer = innermost->outer;
        qi_host_release(host, innermost, 1, size_of(innermost->shard_count));
        innermost = outer;
    }
}
