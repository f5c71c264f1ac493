/*
 * page.c - see page.h.
 */
#include "src/core/page/page.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/transit.h"
#include "src/core/state/event.h"
#include "src/core/page/elastic.h"
#include "src/core/state/memory.h"
#include "src/space/space.h"

void qi_pages_init(qi_pages *pages)
{
    *pages = (qi_pages){0};
    qi_lock_init(&pages->lock, "pages", QI_RANK_PAGES);
    qi_table_init(&pages->records, sizeof(qi_page));
}

void qi_pages_finish(qi_pages *pages, qi_host *host)
{
    qi_table_finish(&pages->records, host);
}

qi_page *qi_page_acquire(quire_memory *memory, uint32_t number)
{
    qi_pages *pages = &memory->pages;
    for (;;) {
        qi_lock_acquire(&pages->lock);
        qi_page *page = qi_page_at(pages, number);
        qi_shard *shard = page && page->phase == QI_PAGE_LIVE ? page->shard : NULL;
        qi_lock_release(&pages->lock);
        if (!shard)
            return NULL;
        qi_lock_acquire(&shard->lock);
        qi_lock_acquire(&pages->lock); /* it may have left, and the number be another page's */
        bool is_there = page->phase == QI_PAGE_LIVE && page->shard == shard;
        qi_lock_release(&pages->lock);
        if (is_there)
            return page;
        qi_lock_release(&shard->lock);
    }
}

/* ---- leaving ------------------------------------------------------------------------------ */

/* With the lock of the pages, before the phase changes. */
static void count_moving(qi_pages *pages, const qi_page *page, bool will_move)
{
    if (page->phase == QI_PAGE_MOVING) {
        pages->moving--;
        pages->changes++;
        qi_lock_wake_all(&pages->lock);
    }
    pages->moving += will_move;
}

/* Out of the figures, for a page that is no region any more or whose space ends too. */
static qi_page *take_out(qi_page *page, qi_page *list)
{
    qi_pages *pages = &page->shard->memory->pages;
    quire_memory_stats *stats = &pages->stats;
    qi_lock_acquire(&pages->lock);
    stats->pages_destroyed++;
    stats->page_count--;
    stats->reserved_bytes -= page->native.size;
    pages->leaving++;
    count_moving(pages, page, false);
    page->phase = QI_PAGE_LEAVING;
    page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
    qi_transit_begin();
    page->next = list;
    return page;
}

/* Its region and its place among the empty_pages; it is empty, so that this cannot fail. */
static void leave_space(qi_page *page)
{
    qi_empty_pages_remove(page);
    if (page->dedicated)
        return;
    page->own = *page->tally; /* the region's number may be another page's soon */
    page->tally = &page->own;
    qi_ignore(qi_space_remove_region(page->shard->space, page->region));
    page->shard->shared--;
}

qi_page *qi_page_take(qi_page *page, qi_page *list)
{
    leave_space(page);
    return take_out(page, list);
}

qi_page *qi_pages_take_all(quire_memory *memory)
{
    qi_page *list = NULL;
    for (uint32_t i = memory->pages.top; i-- > 0;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (page->phase == QI_PAGE_LIVE)
            list = take_out(page, list);
    }
    return list;
}

/* ---- from shard to shard ------------------------------------------------------------------- */

static void set_phase(qi_page *page, qi_shard *shard, qi_page_phase phase)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    count_moving(pages, page, phase == QI_PAGE_MOVING);
    page->shard = shard;
    page->phase = phase;
    page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
}

void qi_page_leave_shard(qi_page *page)
{
    leave_space(page);
    set_phase(page, page->shard, QI_PAGE_MOVING);
    qi_transit_begin();
}

bool qi_page_enter_shard(qi_page *page, qi_shard *shard, qi_page **leaving)
{
    qi_transit_end();
    if (qi_page_add_region(shard, page)) {
        *leaving = take_out(page, *leaving);
        return false;
    }
    set_phase(page, shard, QI_PAGE_LIVE);
    qi_empty_pages_add(page);
    return true;
}

/* ---- gone ---------------------------------------------------------------------------------- */

/* With the lock of the pages: it counts no longer, but its number waits until it is told of. */
static void count_gone(qi_pages *pages, qi_page *page)
{
    page->phase = QI_PAGE_GONE;
    pages->changes++;
    pages->in_use--;
    pages->leaving--;
}

/* A page of which only the end goes is not one of the list any more. */
static qi_page *end_cuts(quire_memory *memory, qi_page *list, uint64_t *bytes,
                         qi_page_events *events)
{
    qi_page **link = &list;
    while (*link) {
        qi_page *page = *link;
        if (!page->cut_from) {
            link = &page->next;
            continue;
        }
        *link = page->next;
        events->cut = (qi_page_change){page->native.size, page->number, true};
        *bytes += qi_elastic_shrink_finish(memory, page);
    }
    return list;
}

uint64_t qi_pages_give_back(quire_memory *memory, qi_page *list, qi_page_events *events)
{
    uint64_t bytes = 0;
    list = end_cuts(memory, list, &bytes, events);
    if (!list)
        return bytes;
    for (qi_page *page = list; page; page = page->next) {
        bytes += page->native.size;
        qi_checked_page_leaving(page);
        page->ending = true;
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &page->native);
    }
    qi_page *last = NULL;
    qi_lock_acquire(&memory->pages.lock);
    for (qi_page *page = list; page; page = page->next) {
        count_gone(&memory->pages, page);
        qi_transit_end();
        last = page;
    }
    last->next = events->gone;
    qi_lock_wake_all(&memory->pages.lock);
    qi_lock_release(&memory->pages.lock);
    events->gone = list;
    return bytes;
}

uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list)
{
    qi_page_events events = {.gone = NULL};
    uint64_t bytes = qi_pages_give_back(memory, list, &events);
    qi_page_events_report(memory, &events, "");
    return bytes;
}

/* ---- telling ------------------------------------------------------------------------------ */

bool qi_page_events_keep_number(qi_page_events *events, qi_page *page)
{
    if (!events->renewed.size || events->renewed.number != page->number)
        return false;
    page->native.size = events->renewed.size;
    page->next = events->gone;
    events->gone = page;
    events->renewed.size = 0;
    return true;
}

static void give_numbers(qi_pages *pages, qi_page *gone)
{
    qi_lock_acquire(&pages->lock);
    for (qi_page *page = gone, *next; page; page = next) {
        next = page->next;
        qi_page_free_number(pages, page);
    }
    qi_lock_release(&pages->lock);
}

void qi_page_undo(quire_memory *memory, qi_page *page, qi_page_events *events)
{
    qi_page_events unreported = {.gone = NULL};
    qi_pages_give_back(memory, page, &unreported);
    if (!qi_page_events_keep_number(events, page))
        give_numbers(&memory->pages, unreported.gone);
}

static void report_gone(quire_memory *memory, qi_page *gone, const qi_page_change *renewed)
{
    uint64_t bytes = renewed->size, count = bytes != 0;
    if (count)
        qi_event_page(memory, QUIRE_EVENT_PAGE_GONE, renewed->number, renewed->size);
    for (const qi_page *page = gone; page; page = page->next) {
        bytes += page->native.size;
        count++;
        qi_event_page(memory, QUIRE_EVENT_PAGE_GONE, page->number, page->native.size);
    }
    give_numbers(&memory->pages, gone);
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': pages given back: %llu, %s",
           memory->name, (unsigned long long)count, qi_bytes(bytes).text);
}

static void report_made(quire_memory *memory, const qi_page_change *made, const char *more)
{
    qi_event_page(memory, made->grown ? QUIRE_EVENT_PAGE_RESIZED : QUIRE_EVENT_PAGE_MADE,
                  made->number, made->size);
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': page %u %s, %s%s", memory->name,
           made->number, made->grown ? "grown" : "made", qi_bytes(made->size).text, more);
}

void qi_page_events_report(quire_memory *memory, qi_page_events *events, const char *more)
{
    const qi_page_events reported = *events;
    *events = (qi_page_events){.gone = NULL};
    if (reported.cut.size)
        qi_event_page(memory, QUIRE_EVENT_PAGE_RESIZED, reported.cut.number, reported.cut.size);
    if (reported.gone || reported.renewed.size)
        report_gone(memory, reported.gone, &reported.renewed);
    if (reported.made.size)
        report_made(memory, &reported.made, more);
}
