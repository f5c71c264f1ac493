/*
 * page_make.h - makes a page and publishes it.
 *
 * A page is numbered under the locks of its shard and of the pages, created in the backend without
 * a lock, and published under the shard's lock. Invariant: on return the page is LIVE, or its
 * number becomes free again, at the latest when the events are reported.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_MAKE_H
#define QUIRE_SRC_CORE_PAGE_PAGE_MAKE_H

#include "src/core/page/page_events.h"

/* What a call that needs a page has done so far. */
typedef struct qi_page_progress {
    bool gave_back_empty; /* empty pages, to make room for the page */
    bool is_smaller;      /* requested less than the policy's size, because memory is exhausted */
    bool within_budget;   /* set by the caller: no page exceeds the backend's budget */
    bool zero;            /* set by the caller: a dedicated page is made for zeros */
    bool may_exceed;      /* set by the caller: pages may exceed it; never set with within_budget */
    bool is_over_budget;  /* the last page was refused by that budget alone */
    uint64_t excess;      /* bytes of the heap's pages above that budget when it was refused */
    qi_page_events events;
} qi_page_progress;

/*
 * Requires the shard's lock. Releases and reacquires it. Gives back the shard's oldest empty pages,
 * until `needed` bytes are free, with up to QI_EMPTY_PAGES_PER_CALL pages more, and what the policy
 * no longer keeps in any shard. Called before a page is made.
 */
void qi_page_give_back_before(qi_shard *shard, uint64_t needed, qi_page_events *events);

/* Returns the bytes that a page, or a growth, has at most, unless the request needs more; 0: no
   bound. Beyond the backend's budget that is the excess before it. */
uint64_t qi_page_most(const qi_shard *shard, const qi_page_progress *progress);

/*
 * Requires the shard's lock. Releases and reacquires it. Returns with the lock held after success
 * and after failure, so that the caller can use the page before any other thread. Makes a page for
 * `size` bytes at `alignment` and publishes it. A shared page that is refused for lack of memory,
 * or over a budget, is requested again with half the size, down to the size that the request needs
 * (page_attempt.h). If memory is exhausted, the empty pages of all shards are given back first.
 *
 * Without progress->may_exceed the page respects the backend's budget. After a refusal with
 * progress->is_over_budget the caller may set it and call again: the page then is as large as the
 * request needs, or as what the heap's pages exceed the budget by already, so that many small
 * requests beyond the budget need few pages. Fails with
 * TOO_MANY_PAGES, OVER_BUDGET, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, OUT_OF_RANGE, WRONG_STATE
 * (the memory is being destroyed) and errors of the backend. Also on failure the caller reports the
 * events once it holds no lock.
 */
QUIRE_MUST_USE quire_result qi_page_make(qi_shard *shard, uint64_t size, uint64_t alignment,
                                         bool dedicated, qi_page **page,
                                         qi_page_progress *progress);

/* Like qi_page_make, for a dedicated page of exactly `size` bytes that is tied to an object. */
QUIRE_MUST_USE quire_result qi_page_make_tied(qi_shard *shard, uint64_t size, const qi_tie *tie,
                                              qi_page **page, qi_page_progress *progress);

/* The page serves its request. The policy's next page size follows from its size. */
void qi_page_keep(const qi_page *page);

#endif
