/*
 * stats_scope.c - opens and closes statistics scopes (see stats_scope.h). Every access to the stack
 * of scopes, and to the peaks, holds the locks of all shards; the lock of the pages protects their
 * peaks.
 */
#include "src/core/stats/stats_scope.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/page/drain.h"
#include "src/core/state/memory.h"
#include "src/core/stats/stats.h"

static size_t size_of(uint32_t shard_count)
{
    return sizeof(qi_stats_scope) + shard_count * sizeof(qi_peaks);
}

/* Restarts the peaks at the present values and returns what they were. */
static qi_peaks begin_peaks(quire_memory_stats *stats)
{
    qi_shard_keep_peaks(stats); /* peaks are raised late (state/shard.h): bring them up to date */
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

/* Restores the peaks from before the scope where they are higher. */
static void end_peaks(quire_memory_stats *stats, const qi_peaks *before)
{
    qi_raise(&stats->peak_live_bytes, before->live_bytes);
    qi_raise(&stats->peak_requested_bytes, before->requested_bytes);
    qi_raise(&stats->peak_reserved_bytes, before->reserved_bytes);
    qi_raise(&stats->peak_allocation_count, before->allocation_count);
    qi_raise(&stats->peak_page_count, before->page_count);
}

quire_result qi_stats_push(quire_memory *memory)
{
    qi_stats_scope *scope = qi_host_allocate(&memory->host, 1, size_of(memory->shard_count));
    if (!scope)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a statistics scope");
    scope->shard_count = memory->shard_count;
    qi_shards_acquire(memory);
    scope->begun = qi_stats_of(memory);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        scope->shards[i] = begin_peaks(&memory->shards[i].stats);
    qi_lock_acquire(&memory->pages.lock);
    scope->pages = begin_peaks(&memory->pages.stats);
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
    stats->backend_calls -= begun->backend_calls;
    stats->backend_nanoseconds -= begun->backend_nanoseconds;
    stats->full_passes -= begun->full_passes;
    stats->full_pass_hits -= begun->full_pass_hits;
}

/* Removes the innermost scope and returns it with its statistics; NULL where there is none. */
static qi_stats_scope *remove_scope(quire_memory *memory, quire_memory_stats *stats)
{
    qi_shards_acquire(memory);
    qi_stats_scope *scope = memory->stats_scopes;
    if (scope) {
        *stats = qi_stats_of(memory);
        subtract(stats, &scope->begun);
        for (uint32_t i = 0; i < memory->shard_count; i++)
            end_peaks(&memory->shards[i].stats, &scope->shards[i]);
        qi_lock_acquire(&memory->pages.lock);
        end_peaks(&memory->pages.stats, &scope->pages);
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
        qi_host_release(host, innermost, 1, size_of(innermost->shard_count));
        innermost = outer;
    }
}
