/*
 * page_events.h - what a call did to pages, collected until the hook and the log may be called.
 *
 * A call collects its page events while it works. It reports them at its end, when it holds no lock
 * and has no page under way: a hook or a log sink may then call quire again. Events are reported in
 * this order: pages resized, pages destroyed, the page made.
 *
 * A GONE page keeps its number until its end is reported, so that the hook never sees a new page
 * with the number of a page whose end it has not seen.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_EVENTS_H
#define QUIRE_SRC_CORE_PAGE_PAGE_EVENTS_H

#include "src/core/state/memory.h"

/* A page that was made or resized. */
typedef struct qi_page_change {
    uint64_t size; /* bytes; 0: no such page */
    uint32_t number;
    bool grown;
    bool over_budget; /* of the backend */
} qi_page_change;

/* {0} means that nothing happened. */
typedef struct qi_page_events {
    qi_page *gone; /* destroyed pages, in phase GONE; only this call knows them */
    qi_page_change
        renewed;         /* a destroyed page whose number the call reuses for the page it makes */
    qi_page_change cut;  /* the last page that was made smaller */
    qi_page_change made; /* the last page that was made or made larger */
} qi_page_events;

/* What is reported of a page that was made. */
static inline qi_page_change qi_page_made(const qi_page *page)
{
    return (qi_page_change){
        .size = page->native.size, .number = page->number, .over_budget = page->over_budget};
}

/* As qi_page_events_report, where something happened. */
void qi_page_events_report_some(quire_memory *memory, qi_page_events *events, const char *more);

/*
 * Requires no lock. Calls the hook and the log, frees the numbers and clears the events. `more` is
 * appended to the log line of a made page. Most calls have nothing to report.
 */
static inline void qi_page_events_report(quire_memory *memory, qi_page_events *events,
                                         const char *more)
{
    if (events->gone || events->renewed.size || events->cut.size || events->made.size)
        qi_page_events_report_some(memory, events, more);
}

/*
 * For a GONE page that was never published. If it has the renewed number, its record replaces that
 * of the earlier page with this number, whose end is reported later. Returns false if it has
 * another number.
 */
bool qi_page_events_keep_number(qi_page_events *events, qi_page *page);

/* Takes the lock of the pages. Frees the numbers of a list of GONE pages. */
void qi_pages_free_numbers(qi_pages *pages, qi_page *gone);

#endif
