/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * oom_report.c - takes the facts of a refusal at once, and makes words of them when the error is
 * read. The last report of a memory is the one with the highest number in any shard.
 */
#include "src/core/allocate/oom_report.h"

#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/thread.h"
#include "src/core/device/device.h"
#include "src/core/page/sizes.h"
#include "src/core/state/event.h"
#include "src/core/stats/compactable.h"
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

/* ---- the report --------------------------------------------------------------------------- */

/* What is known when the request is refused. `texts` has the name of the request if it has one,
   the name of the memory, and what the reason's words need. */
typedef struct facts {
    qi_oom_request request;
    qi_stats_room room;
    qi_compactable compactable;
    quire_memory_flags flags;
    uint32_t kind;
    bool can_exist;                    /* a page for the request */
    uint32_t memory_name, reason_text; /* where they begin in `texts` */
    qi_error_reason reason;
    char texts[QI_ERROR_TEXT - 320];
} facts;

_Static_assert(sizeof(facts) <= QI_ERROR_TEXT, "the facts replace the sentence");

/* What the free bytes say about the refusal: empty if a free range is large enough, or if no page
   can hold the request. */
static const char *cause_of(const facts *f)
{
    if (!f->can_exist || f->request.is_dedicated || f->request.size <= f->room.largest_free)
        return "";
    return f->request.size <= f->room.free_bytes ? " is fragmented" : " is exhausted";
}

/* "'name' (64 KiB at alignment 512)", or without the name "64 KiB at alignment 512". */
static void describe(const qi_oom_request *request, const char *name, char *text, size_t size)
{
    char alignment[48] = "";
    if (request->alignment > 1)
        snprintf(alignment, sizeof alignment, " at alignment %llu",
                 (unsigned long long)request->alignment);
    if (request->name)
        snprintf(text, size, "'%.*s' (%s%s)", MAX_SHOWN, name, qi_bytes(request->size).text,
                 alignment);
    else
        snprintf(text, size, "%s%s", qi_bytes(request->size).text, alignment);
}

/* ". Tried: A, B", or nothing. */
static void list_steps(uint32_t tried, char *text, size_t size)
{
    static const char *const WORDS[] = {"empty pages given back",
                                        "a smaller page",
                                        "empty pages of other memories",
                                        "a full pass",
                                        "other shards",
                                        "a page beyond the budget",
                                        "the caller's callback"};
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t left = tried; left && length < size; left &= left - 1) {
        int more = snprintf(text + length, size - length, "%s%s",
                            left == tried ? ". Tried: " : ", ", WORDS[qi_lowest_bit(left)]);
        length += more > 0 ? (size_t)more : 0;
    }
}

/* ", of which compaction would free up to 2 (16 MiB)", or nothing. */
static void describe_compaction(const qi_compactable *compactable, char *text, size_t size)
{
    text[0] = '\0';
    if (compactable->pages)
        snprintf(text, size, ", of which compaction would free up to %llu (%s)",
                 (unsigned long long)compactable->pages, qi_bytes(compactable->page_bytes).text);
}

/* The reason gets at most half of the text, so that there is room for the state of the memory. */
static void write_report(const void *known, char *text, size_t size)
{
    const facts *f = known;
    char why[QI_ERROR_TEXT / 2], what[MAX_SHOWN + 96], compaction[80], tried[192];
    qi_error_reason_text(&f->reason, f->texts + f->reason_text, why, sizeof why);
    describe(&f->request, f->texts, what, sizeof what);
    describe_compaction(&f->compactable, compaction, sizeof compaction);
    list_steps(f->request.tried, tried, sizeof tried);
    snprintf(text, size,
             "cannot allocate %s: %s; memory '%s' (kind %u, %s)%s: largest free range %s of %s "
             "free in %llu page%s%s%s",
             what, why, f->texts + f->memory_name, f->kind, qi_flags(f->flags).text, cause_of(f),
             qi_bytes(f->room.largest_free).text, qi_bytes(f->room.free_bytes).text,
             (unsigned long long)f->room.page_count, qi_plural(f->room.page_count), compaction,
             tried);
}

/* Refusals of this thread so far, in all memories. */
static _Thread_local uint64_t thread_refusals;

uint64_t qi_oom_thread_count(void)
{
    return thread_refusals;
}

/* Requires no lock. Stores the facts and the thread's last error as the shard's last report. */
static void remember(quire_memory *memory, const facts *f, quire_result result)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_oom_record *record = &shard->last_oom;
    const qi_oom_request *request = &f->request;
    uint64_t number = qi_atomic_add_u64(&memory->oom_reports, 1) + 1;
    thread_refusals++;
    qi_lock_acquire(&shard->lock);
    if (number > record->number) {
        record->number = number;
        record->code = result;
        record->size = request->size;
        record->alignment = request->alignment;
        qi_copy_text(record->name, sizeof record->name, request->name ? request->name : "");
        record->is_dedicated = request->is_dedicated;
        record->tried = request->tried;
        record->kinds = UINT32_C(1) << memory->kind;
        record->limit = f->reason.limit;
        record->limit_max = f->reason.limit_max;
        record->largest_free = f->room.largest_free;
        record->free_bytes = f->room.free_bytes;
        record->page_count = f->room.page_count;
        record->compactable_pages = f->compactable.pages;
        record->compactable_bytes = f->compactable.page_bytes;
        record->thread = qi_thread_self();
        record->thread_number = thread_refusals;
        qi_error_save(&record->report);
    }
    qi_lock_release(&shard->lock);
}

void qi_oom_note_kinds(quire_memory *memory, uint32_t kinds, uint64_t since)
{
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[i];
        qi_oom_record *record = &shard->last_oom;
        qi_lock_acquire(&shard->lock);
        if (record->thread == qi_thread_self() && record->thread_number > since)
            record->kinds |= kinds;
        qi_lock_release(&shard->lock);
    }
}

quire_result qi_oom_report(quire_memory *memory, const qi_oom_request *request, quire_result result)
{
    facts f;
    qi_oom_count(memory);
    f.room = qi_stats_get_room(memory);
    f.compactable = qi_compactable_for_refusal(memory);
    f.request = *request;
    f.flags = memory->flags;
    f.kind = memory->kind;
    f.can_exist = qi_page_can_exist(memory, request->size);
    size_t used = request->name ? qi_copy_text(f.texts, MAX_SHOWN + 1, request->name) : 0;
    f.memory_name = (uint32_t)used;
    used += qi_copy_text(f.texts + used, MAX_SHOWN + 1, memory->name);
    f.reason_text = (uint32_t)used;
    used += qi_error_take_reason(&f.reason, f.texts + used, QI_ERROR_TEXT / 2);
    qi_fail_later(result, f.reason.native, write_report, &f, offsetof(facts, texts) + used);
    qi_ignore(qi_fail_at_limit(f.reason.limit, f.reason.limit_max, result));
    remember(memory, &f, result);
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
