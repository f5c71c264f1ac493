/*
 * stats_scope.c - opens and closes statistics scopes (see stats_scope.h). Every access to the stack
 * of scopes, and to the peaks, holds the locks of all shards; the lock of the pages protects their
 * peaks.
 */
#include "src/core/stats/stats_scope.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/page/range.h"
#include "src/core/state/memory.h"
#include "src/core/state/peaks.h"
#include "src/core/stats/stats.h"

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
    scope->begun = qi_stats_of(memory);
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

/* Removes the innermost scope and returns it with its statistics; NULL where there is none. */
static qi_stats_scope *remove_scope(quire_memory *memory, quire_memory_stats *stats)
{
    qi_shards_acquire(memory);
    qi_stats_scope *scope = memory->stats_scopes;
    if (scope) {
        *stats = qi_stats_of(memory);
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
