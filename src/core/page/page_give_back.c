/*
 * page_give_back.c - destroys pages in the backend, and wakes the threads that wait for the change.
 */
#include "src/core/page/page_give_back.h"

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/page/elastic_end.h"

/* Requires the lock of the pages. The number stays taken until the end of the page is reported. */
static void count_gone(qi_pages *pages, qi_page *page)
{
    page->phase = QI_PAGE_GONE;
    pages->changes++;
    pages->in_use--;
    pages->leaving--;
}

/* Unmaps the cut ends of pages in the list, and removes these pages from it: they stay LIVE. */
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
        events->cut =
            (qi_page_change){.size = page->native.size, .number = page->number, .grown = true};
        *bytes += qi_elastic_shrink_finish(memory, page);
    }
    return list;
}

/*
 * All pages are destroyed before the lock is taken, so that it is taken once and waiting threads
 * wake once. The list is then prepended to the events, which own it until they are reported.
 */
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

/* The events of a page that no one has seen are dropped; only its number is settled. */
void qi_page_undo(quire_memory *memory, qi_page *page, qi_page_events *events)
{
    qi_page_events unreported = {.gone = NULL};
    qi_pages_give_back(memory, page, &unreported);
    if (!qi_page_events_keep_number(events, page))
        qi_pages_free_numbers(&memory->pages, unreported.gone);
}
