/*
 * report.c - quire_memory_write_report: a memory as plain text that explains why an allocation
 * failed.
 *
 * One walk gathers all data before the first text reaches the sink, and no lock is held while the
 * sink runs. Statistics, budget and ranges are read one after the other, so they can disagree while
 * other threads allocate.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/base/result.h"
#include "src/base/text.h"
#include "src/base/writer.h"
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
    bool has_budget; /* false if the backend reported none; then only size and reserved are valid */
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
            .number = item->page, .dedicated = item->dedicated, .size = item->page_size};
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

/*
 * Without a budget of the backend the report shows the heap's size and quire's own part. The failed
 * query does not change the thread's last error, because the report itself succeeds.
 */
static void gather_budget(report *r)
{
    quire_device *device = r->memory->device;
    r->heap = device->info.kinds[r->memory->kind].heap;
    qi_error error;
    qi_error_save(&error);
    r->has_budget = !quire_device_get_budget(device, r->heap, &r->budget);
    if (r->has_budget)
        return;
    qi_error_restore(&error);
    r->budget.size = device->info.heaps[r->heap].size;
    r->budget.reserved = qi_account_used(&device->heaps[r->heap].account);
}

static quire_result gather(report *r)
{
    gather_budget(r);
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
static void write_text(report *r, const char *text)
{
    char copy[QI_ERROR_TEXT];
    snprintf(copy, sizeof copy, "%s", text);
    qi_make_printable(copy);
    qi_write_text(&r->writer, copy);
}

static void write_head(report *r)
{
    const quire_memory *memory = r->memory;
    const quire_memory_stats *stats = &r->stats;
    qi_write_text(&r->writer, "memory '");
    write_text(r, memory->name);
    qi_write_format(&r->writer, "': kind %" PRIu32 " (%s) of device '", memory->kind,
                    qi_flags(memory->flags).text);
    write_text(r, memory->device->info.name);
    qi_write_format(&r->writer, "'\n  live:  %s in %" PRIu64 " allocation%s, %s requested\n",
                    qi_bytes(stats->live_bytes).text, stats->allocation_count,
                    qi_plural(stats->allocation_count), qi_bytes(stats->requested_bytes).text);
    qi_write_format(&r->writer,
                    "  pages: %" PRIu64 ", %s reserved, %s free, %s of the free bytes in empty "
                    "pages\n",
                    stats->page_count, qi_bytes(stats->reserved_bytes).text,
                    qi_bytes(stats->free_bytes).text, qi_bytes(stats->empty_bytes).text);
}

/* Writes nothing if there is no limit. */
static void write_limit(report *r, uint64_t limit, const char *of_what)
{
    if (limit)
        qi_write_format(&r->writer, "  limit: %s for the pages of the %s\n", qi_bytes(limit).text,
                        of_what);
}

/* The budget and the limits that apply to the next page. */
static void write_heap(report *r)
{
    const quire_budget_info *budget = &r->budget;
    qi_write_format(&r->writer, "  heap:  number %" PRIu32 ", %s, %s in pages of quire\n", r->heap,
                    qi_bytes(budget->size).text, qi_bytes(budget->reserved).text);
    if (r->has_budget)
        qi_write_format(&r->writer, "         %s in use, %s left of a budget of %s\n",
                        qi_bytes(budget->usage).text, qi_bytes(budget->available).text,
                        qi_bytes(budget->budget).text);
    if (r->stats.pages_over_budget)
        qi_write_format(&r->writer, "         %" PRIu64 " page%s made beyond the budget\n",
                        r->stats.pages_over_budget, qi_plural(r->stats.pages_over_budget));
    write_limit(r, budget->limit, "heap");
    write_limit(r, qi_atomic_load_u64(&r->memory->account.limit), "memory");
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
    write_text(r, qi_error_text(&r->last_oom.report));
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
    write_text(r, name);
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
    write_heap(r);
    write_last_failure(r);
    write_pages(r);
    write_owners(r);
    return qi_writer_finish(&r->writer);
}

quire_result quire_memory_write_report(const quire_memory *memory, quire_sink sink, void *user)
{
    if (!memory || !sink)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_write_report: memory or sink is null");
    report r = {.memory = memory};
    quire_result result = qi_owners_init(&r.owners, &memory->device->host.callbacks);
    if (!result)
        result = gather(&r);
    if (!result)
        result = write(&r, sink, user);
    qi_owners_finish(&r.owners);
    return result;
}
