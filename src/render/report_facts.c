/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report_facts.c - collects the facts of a report in one walk. The walk visits the ranges of a page
 * by address, so that the neighbours of a free range come directly before and after it.
 */
#include "src/render/report_facts.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/oom_report.h"

/* The walk. */
typedef struct gathering {
    qi_report_facts *facts;
    qi_report_page page;     /* that the walk is in, if facts->pages is not 0 */
    qi_report_side previous; /* the range before the next one, if it is live and has no gap */
    uint64_t end;            /* of the range before the next one */
    uint64_t chunks;         /* bytes of whole free chunks of the page */
    bool is_first;           /* the next range is the first of the page */
    bool wants_after;        /* the range before the next one is the largest free one */
    bool lacks_memory;       /* host memory was exhausted during the walk */
} gathering;

/*
 * Inserts the finished page into the list, which is sorted by largest free range. Of equal pages
 * the lowest numbers stay, because the walk visits pages by number.
 */
static void list_page(qi_report_facts *facts, const qi_report_page *page)
{
    uint32_t at = facts->listed_count;
    while (at && facts->listed[at - 1].largest_free < page->largest_free)
        at--;
    if (at == QI_REPORT_PAGES)
        return;
    facts->listed_count += facts->listed_count < QI_REPORT_PAGES;
    for (uint32_t i = facts->listed_count - 1; i > at; i--)
        facts->listed[i] = facts->listed[i - 1];
    facts->listed[at] = *page;
}

static void end_page(gathering *g)
{
    qi_report_facts *facts = g->facts;
    const qi_report_page *page = &g->page;
    if (!facts->pages)
        return;
    facts->reserved += page->size;
    if (!page->dedicated)
        facts->unneeded += page->live ? g->chunks : page->size;
    if (page->free > facts->together) {
        facts->together = page->free;
        facts->together_page = page->number;
    }
    list_page(facts, page);
}

static void begin_page(gathering *g, const quire_item *item)
{
    end_page(g);
    g->facts->pages++;
    g->page = (qi_report_page){
        .number = item->page, .dedicated = item->dedicated, .size = item->page_bytes};
    g->previous.is_live = g->wants_after = false;
    g->chunks = g->end = 0;
    g->is_first = true;
}

static void set_side(qi_report_side *side, const quire_item *item)
{
    side->is_live = true;
    side->offset = item->offset;
    side->left_padding = item->left_padding;
    side->size = item->size;
    side->allocation = item->allocation;
    qi_copy_text(side->name, sizeof side->name, item->name);
}

/* Whole chunks of a free range. Less than a granule at the edges of a page is free as well, and not
   visited. */
static uint64_t whole_chunks(const gathering *g, const quire_item *item)
{
    const uint64_t chunk = g->facts->chunk, granule = g->facts->memory->granule;
    uint64_t first = item->offset, end = item->offset + item->size;
    if (g->is_first && first < granule)
        first = 0;
    if (item->page_size - end < granule)
        end = item->page_size;
    first = qi_align_up(first, chunk);
    end = qi_align_down(end, chunk);
    return end > first ? end - first : 0;
}

static void gather_free(gathering *g, const quire_item *item)
{
    qi_report_page *page = &g->page;
    if (item->dedicated)
        return;
    page->free += item->size;
    g->chunks += whole_chunks(g, item);
    g->wants_after = item->size > page->largest_free;
    if (g->wants_after) {
        page->largest_free = item->size;
        page->largest_offset = item->offset;
        page->before = (qi_report_side){.is_live = false};
        page->after = (qi_report_side){.is_live = false};
        if (g->previous.is_live && g->end == item->offset)
            page->before = g->previous;
    }
    g->previous.is_live = false;
}

static void gather_live(gathering *g, const quire_item *item)
{
    uint64_t held = item->backed + item->left_padding;
    g->page.live += held;
    set_side(&g->previous, item);
    if (g->wants_after && g->end == item->offset - item->left_padding)
        g->page.after = g->previous;
    g->wants_after = false;
    g->lacks_memory = !qi_owners_add(&g->facts->owners, item->name, held);
}

/* The visitor of the walk. Stops it if host memory is exhausted. */
static bool gather_item(void *user, const quire_item *item)
{
    gathering *g = user;
    if (!g->facts->pages || g->page.number != item->page)
        begin_page(g, item);
    if (item->is_free)
        gather_free(g, item);
    else
        gather_live(g, item);
    g->end = item->offset + item->size;
    g->is_first = false;
    return !g->lacks_memory;
}

/* What the device and the memory say of themselves. */
static void describe(qi_report_facts *facts)
{
    const quire_memory *memory = facts->memory;
    const quire_limits *limits = &memory->device->info.limits;
    facts->heap = memory->device->info.kinds[memory->kind].heap;
    facts->has_budget = qi_device_describe_heap(memory->device, facts->heap, &facts->budget);
    facts->limit = qi_atomic_load_u64(&memory->account.limit);
    facts->chunk = qi_memory_elastic_chunk(memory);
    facts->can_be_elastic =
        limits->elastic_kinds >> memory->kind & 1 &&
        !(limits->elastic_rules & (QUIRE_ELASTIC_KEEPS_MEMORY | QUIRE_ELASTIC_NEEDS_IDLE));
    facts->can_compact = !qi_compact_obstacle(memory);
    facts->compactable = qi_compactable_get(qi_memory_queried(memory), UINT64_MAX);
    qi_ignore(quire_memory_get_stats(memory, &facts->stats));
    qi_oom_last(qi_memory_queried(memory), &facts->last_oom);
}

quire_result qi_report_collect(const quire_memory *memory, qi_report_facts *facts)
{
    gathering g = {.facts = facts};
    memset(facts, 0, sizeof *facts);
    facts->memory = memory;
    quire_result result = qi_owners_init(&facts->owners, &memory->device->host.callbacks);
    if (result)
        return result;
    describe(facts);
    result = quire_memory_walk(memory, gather_item, &g);
    if (!result && g.lacks_memory)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a report");
    end_page(&g);
    return result;
}

void qi_report_forget(qi_report_facts *facts)
{
    qi_owners_finish(&facts->owners);
}
