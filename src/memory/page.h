/*
 * page.h - the pages of a memory and how they come and go.
 *
 * A page is numbered when it is wanted (phase MAKING), made without the lock, and published (LIVE):
 * a shared page becomes a region of the space. To give one back it is taken out of the space and
 * the figures under the lock (LEAVING) and destroyed without it. Page records do not move, and the
 * number of a page is used again only after it is gone.
 */
#ifndef QUIRE_SRC_MEMORY_PAGE_H
#define QUIRE_SRC_MEMORY_PAGE_H

#include "src/base/table.h"
#include "src/memory/device.h"

typedef enum qi_page_phase {
    QI_PAGE_NONE = 0, /* the number is free */
    QI_PAGE_MAKING,
    QI_PAGE_LIVE,
    QI_PAGE_LEAVING
} qi_page_phase;

typedef struct qi_page {
    qi_device_page native; /* set before LIVE, constant until the page is gone */
    uint64_t live_bytes;
    uint64_t peak_live_bytes;
    uint64_t allocation_count;
    uint64_t skipped; /* bytes before the region, where the native base is below a granule */
    uint32_t region;  /* of the space; of shared pages */
    uint32_t slot;    /* the allocation of a dedicated page */
    uint32_t number;
    bool dedicated;
    qi_page_phase phase;
    uint64_t policy_size; /* what the policy said when a shared page was made */
    uint64_t to_join;     /* while it is made: bytes that others may wait for in it */
    uint64_t turn;        /* pages begun up to this one */
    struct qi_page *next; /* of those being made, or of those leaving together */
} qi_page;

typedef struct qi_pages {
    qi_table records;
    qi_table by_region; /* uint32_t: the page number of each region of the space */
    uint32_t top;       /* numbers below were used at least once */
    uint32_t free_hint; /* no number below is free */
    uint32_t in_use;    /* numbers not free */
    uint32_t shared;    /* live ones that are regions of the space */
    uint32_t leaving;   /* numbers in phase LEAVING */
    qi_page *being_made;
    uint64_t turns;     /* pages begun so far */
    uint64_t last_size; /* policy_size of the shared page made last; 0: none yet */
} qi_pages;

/* With the lock: the record of a number below top; NULL above. */
static inline qi_page *qi_page_at(const qi_pages *pages, uint32_t number)
{
    return number < pages->top ? qi_table_get(&pages->records, number) : NULL;
}

/* Without the lock: the record of the page that a pinned, reserved or won allocation lies in. */
static inline qi_page *qi_page_of_allocation(const qi_pages *pages, uint32_t number)
{
    return qi_table_get(&pages->records, number);
}

/* The page behind a region of the space. */
static inline qi_page *qi_page_of_region(const qi_pages *pages, uint32_t region)
{
    const uint32_t *number = qi_table_get(&pages->by_region, region);
    return qi_page_at(pages, *number);
}

void qi_pages_init(qi_pages *pages);
void qi_pages_finish(qi_pages *pages, qi_host *host);

/*
 * Makes a page for `size` bytes at `alignment` and publishes it. The lock is held on entry and on
 * return, whatever the result, and given up between: the caller places in the page before anybody
 * else can. Empty pages are given back first. A shared page that is refused for want of memory, or
 * over a budget, is asked for again at half the size, and at last at the size of the request.
 * Fails with TOO_MANY_PAGES, OVER_BUDGET, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, OUT_OF_RANGE
 * and what the backend answers. The page is told to the log by its maker, once the lock is given up
 * for good: a sink that allocates must not wait for a page of its own thread.
 */
QUIRE_MUST_USE quire_result qi_page_make(quire_memory *memory, uint64_t size, uint64_t alignment,
                                         bool dedicated, qi_page **page);

/*
 * With the lock, given up meanwhile: waits for a page being made in which `size` bytes will be
 * left. `joined`, NULL at first, is where the caller's share was taken, which happens once. False:
 * there is none; true: it waited, and the caller should look again.
 */
bool qi_page_join(quire_memory *memory, uint64_t size, const qi_page **joined);

/*
 * After a page could not be had: the same while pages are on their way that can change this. They
 * are leaving, or the memory has as many pages as it may and some of them are being made; or a
 * budget is used up while pages are being made that were begun before the refusal, which *turn, 0
 * at first, remembers: what is begun later may be refused for the same reason, and would be waited
 * for in turn.
 */
bool qi_page_await_change(quire_memory *memory, quire_result refusal, uint64_t *turn);

/* With the lock: an allocation of `bytes`, padding included, came to or left the page. */
void qi_page_add_live(quire_memory *memory, qi_page *page, uint64_t bytes);
void qi_page_remove_live(quire_memory *memory, qi_page *page, uint64_t bytes);

/*
 * With the lock: take pages out of the memory, to be given to qi_pages_destroy without it.
 *  - take: one page without allocations
 *  - take_empty: the empty shared pages, the highest numbers first, until at most `keep` bytes of
 *    them are left
 *  - take_all: every page of a memory that ends; the space is left as it is, so that no host memory
 *    is needed
 */
qi_page *qi_page_take(quire_memory *memory, qi_page *page);
qi_page *qi_pages_take_empty(quire_memory *memory, uint64_t keep);
qi_page *qi_pages_take_all(quire_memory *memory);

/* Without the lock: gives the pages back to the backend, then their numbers. Returns the bytes. */
uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list);

/* With the lock: what the policy says for the next page, within the device's limit. */
uint64_t qi_page_policy_size(const quire_memory *memory);

#endif
