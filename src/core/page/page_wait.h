/*
 * page_wait.h - waiting for pages that other threads make, move or destroy.
 *
 * Without it, several threads that run out of room together would each make a page, and a thread
 * could be refused while another one is about to free what it needs.
 *
 * Both waits return at once in a thread that has a page under way itself (transit.h): such a thread
 * would wait for itself. The lock of the pages protects the counts that are compared. Invariant: a
 * thread that has finished with a page wakes all threads that wait.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_WAIT_H
#define QUIRE_SRC_CORE_PAGE_PAGE_WAIT_H

#include "src/core/state/memory.h"

/*
 * Requires the shard's lock. Releases and reacquires it. Waits for a shared page that another
 * thread makes for this shard and that will have `size` bytes left. *joined, NULL at first,
 * remembers the page in which the caller claimed these bytes, so that it claims them once. Returns
 * false if there is no such page. Returns true after a wait; the caller searches again.
 */
bool qi_page_wait_for_room(qi_shard *shard, uint64_t size, const qi_page **joined);

/* What a thread that needs a page remembers between its waits. {0} at first. */
typedef struct qi_page_wait {
    uint64_t changes; /* qi_pages_changes before the page was requested */
    uint64_t turn;    /* waits for pages begun up to this one; 0: nothing was refused yet */
    uint64_t as_of;   /* `changes` before the request whose refusal set the turn */
} qi_page_wait;

/*
 * Requires the shard's lock. Releases and reacquires it. Called after a page was refused with
 * `refusal`; waits while other threads work on pages in a way that can change the answer:
 *  - a page is leaving, or moves between shards, or the cut end of a page is not yet unmapped;
 *  - the memory has as many pages as it may have, and a page is being made;
 *  - a page is being made that was begun before the refusal. Pages begun later are not waited for:
 *    they may be refused for the same reason, and the threads would wait for each other in turn.
 * Returns true if it waited or if something changed since wait->changes; the caller searches again.
 */
bool qi_page_wait_for_change(qi_shard *shard, quire_result refusal, qi_page_wait *wait);

/* Takes the lock of the pages. Returns a count that grows with every change of a page. */
uint64_t qi_pages_changes(const qi_shard *shard);

#endif
