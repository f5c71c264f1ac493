/*
 * page_number.h - the number and record of a page, before and after the backend makes it.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_NUMBER_H
#define QUIRE_SRC_CORE_PAGE_PAGE_NUMBER_H

#include "src/core/page/page_events.h"

/* A page to make. */
typedef struct qi_page_plan {
    uint64_t size;   /* of the request that it is made for; bytes */
    uint64_t needed; /* the least page size in which the request fits */
    uint64_t most;   /* the page has no more bytes, unless it needs them; 0: no bound */
    bool dedicated;
    const qi_tie *tie; /* NULL: not tied to an object */
} qi_page_plan;

/* Returns how many shared pages a shard may have; 0 means any number. */
uint32_t qi_page_max_shared(const qi_shard *shard);

/*
 * Requires the locks of the shard and of the pages. Assigns a number and a record in phase MAKING.
 * From then on the calling thread has a page under way (transit.h). Fails with WRONG_STATE (the
 * memory is being destroyed), TOO_MANY_PAGES, OUT_OF_RANGE, OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_page_begin(qi_shard *shard, const qi_page_plan *p,
                                          qi_page_events *events, qi_page **out);

/*
 * Requires the lock of the pages. Ends what qi_page_begin began and wakes waiting threads. With an
 * error the number becomes free again.
 */
void qi_page_end(qi_pages *pages, qi_page *page, quire_result result, qi_page_events *events);

#endif
