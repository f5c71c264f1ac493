/*
 * refusal.c - see refusal.h.
 */
#include "src/core/allocate/oom_report.h"

#include <stdio.h>

#include "src/core/state/event.h"
#include "src/core/state/memory.h"

/* Bytes of a name, so that a long one leaves room for the rest. */
enum { MAX_SHOWN = 128 };

void qi_oom_count(quire_memory *memory)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    shard->stats.failures++;
    qi_lock_release(&shard->lock);
}

/* What was tried, in words. */
static const char *tried_text(unsigned tried, char *text, size_t size)
{
    static const char *const words[] = {"empty pages given back", "a smaller page", "other shards",
                                        "a full pass", "the caller's callback"};
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tried & 1u << i && length < size) {
            int more = snprintf(text + length, size - length, "%s%s",
                                length ? ", " : "; tried: ", words[i]);
            length += more > 0 ? (size_t)more : 0;
        }
    return text;
}

/* Keeps the thread's last error. */
static void remember(quire_memory *memory, uint64_t size, uint64_t alignment, quire_result result)
{
    qi_shard *shard = qi_shard_mine(memory);
    uint64_t number = qi_atomic_add_u64(&memory->oom_reports, 1) + 1;
    qi_lock_acquire(&shard->lock);
    if (number > shard->last_oom.number) {
        shard->last_oom.number = number;
        shard->last_oom.code = result;
        shard->last_oom.size = size;
        shard->last_oom.alignment = alignment;
        snprintf(shard->last_oom.text, sizeof shard->last_oom.text, "%s", quire_last_error());
    }
    qi_lock_release(&shard->lock);
}

quire_result qi_oom_report(quire_memory *memory, const char *name, uint64_t size,
                           uint64_t alignment, unsigned tried, quire_result result)
{
    char why[QI_ERROR_TEXT / 2], words[160];
    const char *quote = name ? "'" : "";
    snprintf(why, sizeof why, "%s", quire_last_error());
    int64_t native = quire_last_native_code();
    qi_oom_count(memory);
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(memory, &stats));
    result = quire_backend_fail(
        result, native,
        "cannot allocate %s%.*s%s%s%s at alignment %llu%s: %s; memory '%s' (kind %u, %s): %llu "
        "page%s, largest free range %s of %s free%s",
        quote, MAX_SHOWN, name ? name : "", quote, name ? " (" : "", qi_bytes(size).text,
        (unsigned long long)alignment, name ? ")" : "", why, memory->name, memory->kind,
        qi_flags(memory->flags).text, (unsigned long long)stats.page_count,
        qi_plural(stats.page_count), qi_bytes(stats.largest_free).text,
        qi_bytes(stats.free_bytes).text, tried_text(tried, words, sizeof words));
    remember(memory, size, alignment, result);
    qi_event_refusal(memory, size, result);
    return result;
}

void qi_oom_last(quire_memory *memory, qi_oom_record *last)
{
    last->number = 0;
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        qi_shard *shard = &memory->shards[i];
        qi_lock_acquire(&shard->lock);
        if (shard->last_oom.number > last->number)
            *last = shard->last_oom;
        qi_lock_release(&shard->lock);
    }
}
