/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report.c - gathers all data of a memory in one walk, then writes it as plain text.
 * quire_memory_write_report explains why an allocation failed; quire_device_write_report writes the
 * heaps of a device and all its memories.
 *
 * No lock is held while the sink runs. Statistics, budget and ranges are read one after the other,
 * so they can disagree while other threads allocate.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/state/memory.h"
#include "src/render/owners.h"

enum { MAX_PAGES_LISTED = 10, MAX_NAMES_LISTED = 20 };

typedef struct page_line {
    uint32_t number;
    bool dedicated;
    uint64_t size;
    uint64_t live;
    uint64_t largest_free;
} page_line;

typedef struct report {
    const quire_memory *memory;
    quire_memory_stats stats;
    uint32_t heap;
    bool has_budget; /* see qi_device_describe_heap */
    quire_budget_info budget;
    qi_oom_record last_oom;
    qi_owners owners;
    page_line page; /* the page that the walk is in */
    uint64_t pages; /* pages that the walk has entered */
    page_line listed[MAX_PAGES_LISTED];
    uint32_t listed_count;
    bool lacks_memory; /* host memory was exhausted during the walk */
    qi_writer writer;
} report;

/* ---- gathering ---------------------------------------------------------------------------- */

/*
 * Inserts the finished page into the list, which is sorted by largest free range. Of equal pages
 * the lowest numbers stay, because the walk visits pages by number.
 */
static void end_page(report *r)
{
    if (!r->pages)
        return;
    uint32_t at = r->listed_count;
    while (at && r->listed[at - 1].largest_free < r->page.largest_free)
        at--;
    if (at == MAX_PAGES_LISTED)
        return;
    r->listed_count += r->listed_count < MAX_PAGES_LISTED;
    for (uint32_t i = r->listed_count - 1; i > at; i--)
        r->listed[i] = r->listed[i - 1];
    r->listed[at] = r->page;
}

/* The visitor of the walk. Stops it if host memory is exhausted. */
static bool gather_item(void *user, const quire_item *item)
{
    report *r = user;
    if (!r->pages || r->page.number != item->page) {
        end_page(r);
        r->pages++;
        r->page = (page_line){
            .number = item->page, .dedicated = item->dedicated, .size = item->page_bytes};
    }
    if (item->is_free) {
        if (!item->dedicated && item->size > r->page.largest_free)
            r->page.largest_free = item->size;
        return true;
    }
    uint64_t held = item->size + item->left_padding;
    r->page.live += held;
    r->lacks_memory = !qi_owners_add(&r->owners, item->name, held);
    return !r->lacks_memory;
}

static quire_result gather(report *r)
{
    quire_device *device = r->memory->device;
    r->heap = device->info.kinds[r->memory->kind].heap;
    r->has_budget = qi_device_describe_heap(device, r->heap, &r->budget);
    qi_ignore(quire_memory_get_stats(r->memory, &r->stats));
    qi_oom_last(qi_memory_queried(r->memory), &r->last_oom);
    quire_result result = quire_memory_walk(r->memory, gather_item, r);
    if (!result && r->lacks_memory)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a report");
    end_page(r);
    return result;
}

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

static void write_head(report *r)
{
    const quire_memory *memory = r->memory;
    qi_write_text(&r->writer, "memory '");
    write_text(&r->writer, memory->name);
    qi_write_format(&r->writer, "': kind %" PRIu32 " (%s) of device '", memory->kind,
                    qi_flags(memory->flags).text);
    write_text(&r->writer, memory->device->info.name);
    qi_write_text(&r->writer, "'\n");
    write_sums(&r->writer, &r->stats);
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
    write_heap(&r->writer, r->heap, &r->budget, r->has_budget);
    write_beyond(&r->writer, r->stats.pages_over_budget);
    write_limit(&r->writer, r->budget.limit, "heap");
    write_limit(&r->writer, qi_atomic_load_u64(&r->memory->account.limit), "memory");
}

static void write_last_failure(report *r)
{
    const qi_oom_record *last_oom = &r->last_oom;
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
    write_text(&r->writer, qi_error_text(&r->last_oom.report));
    qi_write_text(&r->writer, "\n");
}

/* The largest free range of a dedicated page is 0: no other request can use its free bytes. */
static void write_pages(report *r)
{
    qi_write_format(&r->writer, "\npages by their largest free range: %" PRIu32 " of %" PRIu64 "\n",
                    r->listed_count, r->pages);
    if (r->listed_count)
        qi_write_format(&r->writer, "%8s %12s %12s %13s\n", "page", "size", "live", "largest free");
    for (uint32_t i = 0; i < r->listed_count; i++) {
        const page_line *page = &r->listed[i];
        qi_write_format(&r->writer, "%8" PRIu32 " %12s %12s %13s%s\n", page->number,
                        qi_bytes(page->size).text, qi_bytes(page->live).text,
                        qi_bytes(page->largest_free).text, page->dedicated ? "  dedicated" : "");
    }
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
    qi_owners *owners = &r->owners;
    uint64_t listed = owners->count < MAX_NAMES_LISTED ? owners->count : MAX_NAMES_LISTED;
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
    report r = {.memory = memory};
    quire_result result = qi_owners_init(&r.owners, &memory->device->host.callbacks);
    if (!result)
        result = gather(&r);
    if (!result)
        result = write(&r, sink, user);
    qi_owners_finish(&r.owners);
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
