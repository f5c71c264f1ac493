/*
 * page_events.c - reports page events to the hook and the log, and then frees the page numbers.
 */
#include "src/core/page/page_events.h"

#include "src/base/result.h"
#include "src/core/state/event.h"

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

void qi_pages_free_numbers(qi_pages *pages, qi_page *gone)
{
    qi_lock_acquire(&pages->lock);
    for (qi_page *page = gone, *next; page; page = next) {
        next = page->next;
        qi_page_free_number(pages, page);
    }
    qi_lock_release(&pages->lock);
}

/* The hook receives the end of every page before the page numbers become free. */
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
    qi_pages_free_numbers(&memory->pages, gone);
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': pages given back: %llu, %s",
           memory->name, (unsigned long long)count, qi_bytes(bytes).text);
}

static void report_made(quire_memory *memory, const qi_page_change *made, const char *more)
{
    qi_event_page(memory, made->grown ? QUIRE_EVENT_PAGE_RESIZED : QUIRE_EVENT_PAGE_MADE,
                  made->number, made->size);
    if (made->over_budget)
        qi_event_page(memory, QUIRE_EVENT_OVER_BUDGET, made->number, made->size);
    qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': page %u %s, %s%s%s", memory->name,
           made->number, made->grown ? "grown" : "made", qi_bytes(made->size).text, more,
           made->over_budget ? ", beyond the backend's budget" : "");
}

/*
 * The events are cleared first: the hook and the log sink may call quire, which may use them again.
 */
void qi_page_events_report_some(quire_memory *memory, qi_page_events *events, const char *more)
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
