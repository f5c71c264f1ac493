/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report.c - writes the facts of a memory (report_facts.h) as plain text.
 * quire_memory_write_report explains why an allocation failed; quire_device_write_report writes the
 * heaps of a device and all its memories.
 *
 * No lock is held while the sink runs.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/core/state/memory.h"
#include "src/render/owners.h"
#include "src/render/report_facts.h"

typedef struct report {
    qi_report_facts facts;
    qi_writer writer;
} report;

/* ---- writing ------------------------------------------------------------------------------ */

/* Writes names and error texts on one line: line ends and other control characters become '?'. */
static void write_text(qi_writer *w, const char *text)
{
    char copy[QI_ERROR_TEXT];
    snprintf(copy, sizeof copy, "%s", text);
    qi_make_printable(copy);
    qi_write_text(w, copy);
}

/* What memories and devices have alike. */
static void write_sums(qi_writer *w, const quire_memory_stats *stats)
{
    qi_write_format(w, "  live:  %s in %" PRIu64 " allocation%s, %s requested\n",
                    qi_bytes(stats->live_bytes).text, stats->allocation_count,
                    qi_plural(stats->allocation_count), qi_bytes(stats->requested_bytes).text);
    qi_write_format(w,
                    "  pages: %" PRIu64 ", %s reserved, %s free, %s of the free bytes in empty "
                    "pages\n",
                    stats->page_count, qi_bytes(stats->reserved_bytes).text,
                    qi_bytes(stats->free_bytes).text, qi_bytes(stats->empty_bytes).text);
}

/* Writes nothing if all allocations are awake. */
static void write_asleep(qi_writer *w, const quire_memory_stats *stats)
{
    if (stats->asleep_count)
        qi_write_format(w, "  asleep: %s in %" PRIu64 " of these allocations, without memory\n",
                        qi_bytes(stats->asleep_bytes).text, stats->asleep_count);
}

static void write_head(report *r)
{
    const quire_memory *memory = r->facts.memory;
    qi_write_text(&r->writer, "memory '");
    write_text(&r->writer, memory->name);
    qi_write_format(&r->writer, "': kind %" PRIu32 " (%s) of device '", memory->kind,
                    qi_flags(memory->flags).text);
    write_text(&r->writer, memory->device->info.name);
    qi_write_text(&r->writer, "'\n");
    write_sums(&r->writer, &r->facts.stats);
    write_asleep(&r->writer, &r->facts.stats);
}

/* Writes nothing if there is no limit. */
static void write_limit(qi_writer *w, uint64_t limit, const char *of_what)
{
    if (limit)
        qi_write_format(w, "  limit: %s for the pages of the %s\n", qi_bytes(limit).text, of_what);
}

static void write_heap(qi_writer *w, uint32_t heap, const quire_budget_info *budget,
                       bool has_budget)
{
    qi_write_format(w, "  heap:  number %" PRIu32 ", %s, %s in pages of quire\n", heap,
                    qi_bytes(budget->size).text, qi_bytes(budget->reserved).text);
    if (has_budget)
        qi_write_format(w, "         %s in use, %s left of a budget of %s\n",
                        qi_bytes(budget->usage).text, qi_bytes(budget->available).text,
                        qi_bytes(budget->budget).text);
}

static void write_beyond(qi_writer *w, uint64_t pages)
{
    if (pages)
        qi_write_format(w, "         %" PRIu64 " page%s made beyond the budget\n", pages,
                        qi_plural(pages));
}

/* The budget and the limits that apply to the next page. */
static void write_room(report *r)
{
    const qi_report_facts *facts = &r->facts;
    write_heap(&r->writer, facts->heap, &facts->budget, facts->has_budget);
    write_beyond(&r->writer, facts->stats.pages_over_budget);
    write_limit(&r->writer, facts->budget.limit, "heap");
    write_limit(&r->writer, facts->limit, "memory");
}

/* The kinds that refused the same call, if there are several. */
static void write_kinds(qi_writer *w, uint32_t kinds)
{
    if (qi_count_bits(kinds) < 2)
        return;
    for (uint32_t left = kinds; left; left &= left - 1)
        qi_write_format(w, "%s%" PRIu32, left == kinds ? "  kinds that refused it: " : ", ",
                        qi_lowest_bit(left));
    qi_write_text(w, "\n");
}

static void write_last_failure(report *r)
{
    qi_oom_record *last_oom = &r->facts.last_oom;
    if (!last_oom->number) {
        qi_write_text(&r->writer, "\nno allocation failed\n");
        return;
    }
    qi_write_format(&r->writer,
                    "\nlast of %" PRIu64 " failed allocation%s: %s, %" PRIu64
                    " byte%s at alignment %" PRIu64 "\n  ",
                    last_oom->number, qi_plural(last_oom->number),
                    quire_result_name(last_oom->code), last_oom->size, qi_plural(last_oom->size),
                    last_oom->alignment);
    write_text(&r->writer, qi_error_text(&last_oom->report));
    qi_write_text(&r->writer, "\n");
    write_kinds(&r->writer, last_oom->kinds);
}

/* "  between 'a' (2 MiB)": the word before the side, and the side. */
static void write_side(qi_writer *w, const char *word, const qi_report_side *side)
{
    qi_write_text(w, word);
    if (*side->name) {
        qi_write_text(w, "'");
        write_text(w, side->name);
        qi_write_text(w, "'");
    } else {
        qi_write_text(w, "(unnamed)");
    }
    qi_write_format(w, " (%s)", qi_bytes(side->size).text);
}

/* What keeps the largest free range from being larger. Nothing if the page has no allocation. */
static void write_sides(qi_writer *w, const qi_report_page *page)
{
    const qi_report_side *before = &page->before, *after = &page->after;
    if (before->is_live)
        write_side(w, after->is_live ? "  between " : "  after ", before);
    if (after->is_live)
        write_side(w, before->is_live ? " and " : "  before ", after);
}

/* What would free more. */
static void write_remedies(qi_writer *w, const qi_report_facts *facts)
{
    if (facts->listed_count && facts->together > facts->listed[0].largest_free)
        qi_write_format(w,
                        "  if the live ranges moved together: largest free range would be %s, in "
                        "page %" PRIu32 "\n",
                        qi_bytes(facts->together).text, facts->together_page);
    const qi_compactable *compactable = &facts->compactable;
    if (compactable->pages)
        qi_write_format(w,
                        "  a compaction would free up to %" PRIu64 " page%s (%s) by %" PRIu64
                        " move%s (%s)\n",
                        compactable->pages, qi_plural(compactable->pages),
                        qi_bytes(compactable->page_bytes).text, compactable->moves,
                        qi_plural(compactable->moves), qi_bytes(compactable->move_bytes).text);
    if (facts->unneeded && facts->can_be_elastic && !facts->memory->is_elastic)
        qi_write_format(w, "  an elastic memory would reserve %s, %s less\n",
                        qi_bytes(facts->reserved - facts->unneeded).text,
                        qi_bytes(facts->unneeded).text);
}

static void write_pages(report *r)
{
    const qi_report_facts *facts = &r->facts;
    qi_write_format(&r->writer, "\npages by their largest free range: %" PRIu32 " of %" PRIu64 "\n",
                    facts->listed_count, facts->pages);
    if (facts->listed_count)
        qi_write_format(&r->writer, "%8s %12s %12s %13s\n", "page", "size", "live", "largest free");
    for (uint32_t i = 0; i < facts->listed_count; i++) {
        const qi_report_page *page = &facts->listed[i];
        qi_write_format(&r->writer, "%8" PRIu32 " %12s %12s %13s%s", page->number,
                        qi_bytes(page->size).text, qi_bytes(page->live).text,
                        qi_bytes(page->largest_free).text, page->dedicated ? "  dedicated" : "");
        write_sides(&r->writer, page);
        qi_write_text(&r->writer, "\n");
    }
    write_remedies(&r->writer, facts);
}

static void write_owner(report *r, const qi_owner_sum *sum, const char *name)
{
    qi_write_format(&r->writer, "%12s %12" PRIu64 "  ", qi_bytes(sum->live_bytes).text, sum->count);
    write_text(&r->writer, name);
    qi_write_text(&r->writer, "\n");
}

/* The names with the most live bytes, and one line for all others. */
static void write_owners(report *r)
{
    qi_owners *owners = &r->facts.owners;
    uint64_t listed = owners->count < QI_REPORT_NAMES ? owners->count : QI_REPORT_NAMES;
    uint64_t names = 0;
    qi_write_format(&r->writer, "\nlive bytes by name: %" PRIu64 " of %" PRIu64 "\n", listed,
                    owners->count);
    if (listed)
        qi_write_format(&r->writer, "%12s %12s  %s\n", "live", "allocations", "name");
    for (uint64_t i = 0; i < listed; i++) {
        const qi_owner_sum *sum = qi_owners_take_largest(owners);
        write_owner(r, sum, *sum->name ? sum->name : "(unnamed)");
    }
    const qi_owner_sum rest = qi_owners_rest(owners, &names);
    if (names)
        write_owner(r, &rest, "(others)");
}

static quire_result write(report *r, quire_sink sink, void *user)
{
    qi_writer_init(&r->writer, sink, user);
    write_head(r);
    write_room(r);
    write_last_failure(r);
    write_pages(r);
    write_owners(r);
    return qi_writer_finish(&r->writer);
}

quire_result quire_memory_write_report(const quire_memory *memory, quire_sink sink, void *user)
{
    if (!memory || !sink)
        return qi_fail_null("quire_memory_write_report", !memory ? "memory" : "sink");
    report r;
    quire_result result = qi_report_collect(memory, &r.facts);
    if (!result)
        result = write(&r, sink, user);
    qi_report_forget(&r.facts);
    return result;
}

/* ---- a device ----------------------------------------------------------------------------- */

typedef struct device_report {
    quire_sink sink;
    void *user;
    quire_result result; /* of the memories so far */
} device_report;

/* The fields of a device that write_sums writes. */
static quire_memory_stats sums_of(const quire_device_stats *stats)
{
    return (quire_memory_stats){
        .live_bytes = stats->live_bytes,
        .requested_bytes = stats->requested_bytes,
        .reserved_bytes = stats->reserved_bytes,
        .free_bytes = stats->free_bytes,
        .empty_bytes = stats->empty_bytes,
        .allocation_count = stats->allocation_count,
        .page_count = stats->page_count,
    };
}

static quire_result write_device(const quire_device *device, quire_sink sink, void *user)
{
    qi_writer w;
    quire_device_stats stats;
    quire_result result = quire_device_get_stats(device, &stats);
    if (result)
        return result;
    const quire_memory_stats sums = sums_of(&stats);
    qi_writer_init(&w, sink, user);
    qi_write_text(&w, "device '");
    write_text(&w, device->info.name);
    qi_write_format(&w, "': backend %s, %" PRIu64 " memor%s\n", device->info.backend,
                    stats.memory_count, stats.memory_count == 1 ? "y" : "ies");
    write_sums(&w, &sums);
    write_beyond(&w, stats.pages_over_budget);
    for (uint32_t heap = 0; heap < device->info.heap_count; heap++) {
        quire_budget_info budget;
        bool has_budget = qi_device_describe_heap(qi_device_queried(device), heap, &budget);
        write_heap(&w, heap, &budget, has_budget);
        write_limit(&w, budget.limit, "heap");
    }
    return qi_writer_finish(&w);
}

/* An empty line, then the report of the memory. */
static bool write_memory(void *user, quire_memory *memory)
{
    device_report *r = user;
    r->result = r->sink(r->user, "\n", 1)
                    ? quire_memory_write_report(memory, r->sink, r->user)
                    : qi_fail(QUIRE_ERROR_BAD_FILE, "the sink refused the text");
    return !r->result;
}

quire_result quire_device_write_report(const quire_device *device, quire_sink sink, void *user)
{
    device_report r = {.sink = sink, .user = user};
    if (!device || !sink)
        return qi_fail_null("quire_device_write_report", !device ? "device" : "sink");
    quire_result result = write_device(device, sink, user);
    if (!result)
        result = quire_device_walk(device, write_memory, &r);
    return result ? result : r.result;
}
