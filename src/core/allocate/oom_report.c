/*
 * oom_report.c - writes the report of a refused allocation, and keeps the last one of each shard.
 */
#include "src/core/allocate/oom_report.h"

#include <stdio.h>

#include "src/core/device/backend_call.h"
#include "src/core/state/event.h"
#include "src/core/stats/stats.h"

/* Bytes of the name that are shown: a long name leaves room for the rest of the report. */
enum { MAX_SHOWN = 128 };

void qi_oom_count(quire_memory *memory)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    shard->stats.failures++;
    qi_lock_release(&shard->lock);
}

/* Requires no lock. Stores the thread's last error as the shard's last report. */
static void remember(quire_memory *memory, const qi_oom_request *request, quire_result result)
{
    qi_shard *shard = qi_shard_mine(memory);
    uint64_t number = qi_atomic_add_u64(&memory->oom_reports, 1) + 1;
    qi_lock_acquire(&shard->lock);
    if (number > shard->last_oom.number) {
        shard->last_oom.number = number;
        shard->last_oom.code = result;
        shard->last_oom.size = request->size;
        shard->last_oom.alignment = request->alignment;
        snprintf(shard->last_oom.text, sizeof shard->last_oom.text, "%s", qi_error_sentence());
    }
    qi_lock_release(&shard->lock);
}

/* What the free bytes say about the refusal: empty if a free range is large enough. */
static const char *cause_of(const qi_oom_request *request, const quire_memory_stats *stats)
{
    if (request->is_dedicated || request->size <= stats->largest_free)
        return "";
    return request->size <= stats->free_bytes ? " is fragmented" : " is exhausted";
}

/* "'name' (64 KiB at alignment 512)", or without the name "64 KiB at alignment 512". */
static void describe(const qi_oom_request *request, char *text, size_t size)
{
    char alignment[48] = "";
    const char *name = request->name;
    if (request->alignment > 1)
        snprintf(alignment, sizeof alignment, " at alignment %llu",
                 (unsigned long long)request->alignment);
    if (name)
        snprintf(text, size, "'%.*s' (%s%s)", MAX_SHOWN, name, qi_bytes(request->size).text,
                 alignment);
    else
        snprintf(text, size, "%s%s", qi_bytes(request->size).text, alignment);
}

/*
 * The reason is copied first, because the report replaces it as the thread's last error. It gets at
 * most half of the text, so that there is room for the state of the memory.
 */
quire_result qi_oom_report(quire_memory *memory, const qi_oom_request *request, quire_result result)
{
    char why[QI_ERROR_TEXT / 2], what[MAX_SHOWN + 96];
    snprintf(why, sizeof why, "%s", qi_error_sentence());
    describe(request, what, sizeof what);
    int64_t native = qi_error_native_code();
    qi_oom_count(memory);
    const quire_memory_stats stats = qi_stats_present(memory);
    result = qi_backend_fail(
        result, native,
        "cannot allocate %s: %s; memory '%s' (kind %u, %s)%s: largest free range %s of %s free in "
        "%llu page%s%s",
        what, why, memory->name, memory->kind, qi_flags(memory->flags).text,
        cause_of(request, &stats), qi_bytes(stats.largest_free).text,
        qi_bytes(stats.free_bytes).text, (unsigned long long)stats.page_count,
        qi_plural(stats.page_count), request->tried);
    remember(memory, request, result);
    qi_event_refusal(memory, request->size, result);
    return result;
}

void qi_oom_last(quire_memory *memory, qi_oom_record *last)
{
    last->number = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[i];
        qi_lock_acquire(&shard->lock);
        if (shard->last_oom.number > last->number)
            *last = shard->last_oom;
        qi_lock_release(&shard->lock);
    }
}
