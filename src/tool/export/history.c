/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * history.c - records the events of a memory during a replay (see export.h).
 */
#include <stdlib.h>

#include "src/base/result.h"
#include "src/render/memory_viz.h"
#include "src/tool/array.h"
#include "src/tool/export/export.h"

/* ---- growing arrays ----------------------------------------------------------------------- */

/* As grow_array. Without memory the history has failed. */
static void *grow(export_history *h, void *array, uint64_t *room, uint64_t at, size_t size)
{
    void *larger = grow_array(array, room, at, size);
    h->failed |= !larger;
    return larger;
}

/* Adds an event with the time and the stream of the event of the trace. */
static void add_event(export_history *h, const export_event *event)
{
    quire_trace_event now;
    export_event *larger = grow(h, h->events, &h->room, h->count, sizeof *h->events);
    if (!larger || quire_trace_get_event(h->setup->trace, h->now, &now))
        return;
    h->events = larger;
    h->events[h->count] = *event;
    h->events[h->count].number = h->now;
    h->events[h->count].time_ns = now.time_ns;
    h->events[h->count].stream = now.stream;
    h->count++;
}

/* The page with a number, which may not be known yet; NULL without memory. */
static export_page *page_at(export_history *h, uint32_t number)
{
    const uint32_t before = h->page_room;
    uint64_t room = before;
    export_page *larger = grow(h, h->pages, &room, number, sizeof *h->pages);
    if (!larger)
        return NULL;
    h->pages = larger;
    h->page_room = (uint32_t)room;
    for (uint32_t i = before; i < h->page_room; i++)
        h->pages[i] = (export_page){.address = 0};
    return &h->pages[number];
}

/* ---- stretches ---------------------------------------------------------------------------- */

/* Reads what a page has now; nothing if no live page has the number. */
static export_page read_page(export_history *h, uint32_t number)
{
    quire_page_info info;
    quire_memory_info memory;
    export_page page = {.address = 0};
    if (quire_page_get_info(h->setup->memory, number, &info) ||
        quire_memory_get_info(h->setup->memory, &memory))
        return page;
    page.is_elastic = memory.address_space && !info.dedicated;
    page.address = info.address;
    h->failed = page.is_elastic ? !stretches_read(&page.memory, h->setup->memory, number)
                                : !stretches_add(&page.memory, 0, info.size);
    return page;
}

typedef struct difference {
    export_history *history;
    const export_page *page;
    export_event event;
} difference;

static void add_part(void *user, uint64_t begin, uint64_t end)
{
    difference *d = user;
    d->event.address = d->page->address + begin;
    d->event.size = end - begin;
    add_event(d->history, &d->event);
}

/* Adds an event for all parts of the memory of a page that `without` does not have. */
static void add_difference(export_history *h, uint32_t number, export_action action,
                           const export_page *of, const export_page *without)
{
    difference d = {
        h, of, {.action = action, .page = number, .is_elastic = of->is_elastic, .label = ""}};
    stretches_differ(&of->memory, &without->memory, add_part, &d);
}

/* Records what a page got and lost since it was last read. */
static void refresh(export_history *h, uint32_t number)
{
    export_page *known = page_at(h, number), now = read_page(h, number);
    if (!known || h->failed) {
        free(now.memory.items);
        return;
    }
    if (known->memory.items)
        now.address = known->address; /* the number has meant one page since then */
    else if (!now.address && now.memory.items)
        now.address =
            qi_viz_choose(&h->chosen, now.is_elastic ? h->address_space
                                                     : now.memory.items[now.memory.count - 1].end);
    add_difference(h, number, EXPORT_UNMAP, known, &now);
    add_difference(h, number, EXPORT_MAP, &now, known);
    free(known->memory.items);
    *known = now;
}

static void forget(export_history *h, uint32_t number)
{
    const export_page none = {.address = 0};
    export_page *page = page_at(h, number);
    if (!page)
        return;
    add_difference(h, number, EXPORT_UNMAP, page, &none);
    free(page->memory.items);
    *page = none;
}

/* ---- events ------------------------------------------------------------------------------- */

static bool has_memory(const export_page *page, uint64_t begin, uint64_t end)
{
    for (uint64_t i = 0; i < page->memory.count; i++)
        if (page->memory.items[i].begin <= begin && end <= page->memory.items[i].end)
            return true;
    return false;
}

/* The label comes from the trace: the name is valid during the call only, and may be cut. */
static const char *label_of(export_history *h, export_action action)
{
    quire_trace_event now;
    if (quire_trace_get_event(h->setup->trace, h->now, &now))
        return "";
    if (action == EXPORT_ALLOC)
        h->labels[now.range] = now.label;
    return action == EXPORT_FREE ? h->labels[now.range] : now.label;
}

static void add_range(export_history *h, const quire_event *event, export_action action)
{
    const uint64_t end = event->offset + event->size;
    const export_page *page = page_at(h, event->page);
    if (page && !has_memory(page, event->offset, end))
        refresh(h, event->page);
    if (h->failed)
        return;
    page = &h->pages[event->page];
    add_event(h, &(export_event){.action = action,
                                 .page = event->page,
                                 .is_elastic = page->is_elastic,
                                 .address = page->address + event->offset,
                                 .size = event->requested,
                                 .label = label_of(h, action)});
}

static void add_refusal(export_history *h, const quire_event *event)
{
    quire_budget_info budget = {.available = 0};
    if (quire_device_get_budget(h->setup->device, h->heap, &budget))
        budget.available = 0;
    add_event(h, &(export_event){.action = EXPORT_REFUSED,
                                 .address = budget.available,
                                 .size = event->size,
                                 .label = label_of(h, EXPORT_REFUSED)});
}

static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    export_history *h = user;
    (void)memory;
    if (h->failed)
        return;
    switch (event->kind) {
    case QUIRE_EVENT_ALLOCATED:
        add_range(h, event, EXPORT_ALLOC);
        break;
    case QUIRE_EVENT_FREED:
        add_range(h, event, EXPORT_FREE);
        break;
    case QUIRE_EVENT_REFUSED:
        add_refusal(h, event);
        break;
    case QUIRE_EVENT_PAGE_GONE:
        forget(h, event->page);
        break;
    default: /* made or resized */
        refresh(h, event->page);
    }
}

/* ---- samples ------------------------------------------------------------------------------ */

void history_sample(export_history *h)
{
    quire_memory_stats stats;
    const export_sample *last = h->sample_count ? &h->samples[h->sample_count - 1] : NULL;
    if (h->failed || quire_memory_get_stats(h->setup->memory, &stats))
        return;
    const export_sample now = {h->now, stats.live_bytes, stats.requested_bytes,
                               stats.reserved_bytes, stats.page_count};
    if (last && last->live == now.live && last->requested == now.requested &&
        last->reserved == now.reserved && last->pages == now.pages)
        return;
    export_sample *larger =
        grow(h, h->samples, &h->sample_room, h->sample_count, sizeof *h->samples);
    if (!larger)
        return;
    h->samples = larger;
    h->samples[h->sample_count++] = now;
}

/* ---- a history ---------------------------------------------------------------------------- */

bool history_begin(export_history *h, const replay_setup *setup)
{
    quire_memory_info memory;
    quire_device_info device;
    const quire_hook hook = {.event = on_event,
                             .user = h,
                             .kinds = QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED |
                                      QUIRE_EVENT_REFUSED | QUIRE_EVENT_PAGE_MADE |
                                      QUIRE_EVENT_PAGE_GONE | QUIRE_EVENT_PAGE_RESIZED};
    *h = (export_history){.setup = setup};
    h->labels = calloc(setup->info.peak_ranges + 1, sizeof *h->labels);
    if (!h->labels) {
        print_problem("quire: no host memory for the events");
        return false;
    }
    if (quire_memory_get_info(setup->memory, &memory) ||
        quire_device_get_info(setup->device, &device) ||
        quire_memory_set_hook(setup->memory, &hook)) {
        fail_with_last_error();
        return false;
    }
    h->kind = memory.kind;
    h->heap = device.kinds[memory.kind].heap;
    h->address_space = memory.address_space;
    return true;
}

bool history_stop(export_history *h)
{
    qi_ignore(quire_memory_set_hook(h->setup->memory, NULL));
    if (h->failed)
        print_problem("quire: no host memory for the events");
    return !h->failed;
}

void history_end(export_history *h)
{
    for (uint32_t i = 0; i < h->page_room; i++)
        free(h->pages[i].memory.items);
    free(h->pages);
    free(h->events);
    free(h->samples);
    free(h->labels);
    *h = (export_history){.setup = NULL};
}

uint64_t history_address(const export_history *h, uint32_t page)
{
    return h->pages[page].address;
}
