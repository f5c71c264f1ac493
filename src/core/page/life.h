/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * life.h - the life of a page: a thread numbers it, makes it in the backend, publishes it, takes it
 * out again and gives it back. state/page.h has the phases.
 *
 * Backend calls are made without a lock, between two steps under the locks. A thread has a page in
 * transit (base/thread.h) from the number or the taking of a page to its end, so that debug builds
 * catch a callback that would wait for the thread itself.
 */
#ifndef QUIRE_SRC_CORE_PAGE_LIFE_H
#define QUIRE_SRC_CORE_PAGE_LIFE_H

#include "src/core/state/memory.h"

/* ---- events ------------------------------------------------------------------------------- */

/*
 * A call collects its page events while it works. It reports them at its end, when it holds no lock
 * and has no page in transit: a hook or a log sink may then call quire again. Events are reported
 * in this order: pages resized, pages destroyed, the page made.
 *
 * A GONE page keeps its number until its end is reported, so that the hook never sees a new page
 * with the number of a page whose end it has not seen.
 */

/* What is reported of a page that was made. */
static inline qi_page_change qi_page_made(const qi_page *page)
{
    return (qi_page_change){
        .size = page->native.bytes, .number = page->number, .over_budget = page->over_budget};
}

/* Like qi_page_events_report, if something happened. */
void qi_page_events_report_some(quire_memory *memory, qi_page_events *events, const char *more);

/*
 * Requires no lock. Calls the hook and the log, frees the numbers and clears the events. `more` is
 * appended to the log line of a made page. Most calls have nothing to report.
 */
static inline void qi_page_events_report(quire_memory *memory, qi_page_events *events,
                                         const char *more)
{
    if (events->gone || events->renewed.size || events->given.resized || events->made.size)
        qi_page_events_report_some(memory, events, more);
}

/* Returns how many shared pages a shard may have; 0 means any number. */
uint32_t qi_page_max_shared(const qi_shard *shard);

/* ---- pages that leave or move ------------------------------------------------------------- */

/*
 * The locks of the shard and of the pages protect a page's phase. Invariant: a page that was taken
 * is in phase LEAVING and in a list of the calling thread, which gives the list to
 * qi_pages_give_back without a lock.
 */

/* Initialize and release the page records of a memory that no other thread uses. */
void qi_pages_init(qi_pages *pages);
void qi_pages_finish(qi_pages *pages, qi_host *host);

/* Returns the LIVE page of a number with its shard's lock acquired, or NULL without a lock. */
qi_page *qi_page_acquire(quire_memory *memory, uint32_t number);

/* Requires the shard's lock. Takes a page without allocations and puts it in front of the list. */
qi_page *qi_page_take(qi_page *page, qi_page *list);

/*
 * Requires the locks of all shards. Takes every page of a memory that is being destroyed. The
 * spaces are not updated, so that no host memory is needed.
 */
qi_page *qi_pages_take_all(quire_memory *memory);

/*
 * Move an empty shared page between shards: the first requires the lock of the old shard, the
 * second the lock of the new one. The second returns false if host memory is exhausted; the page is
 * then taken and in front of the list.
 */
void qi_page_leave_shard(qi_page *page);
bool qi_page_enter_shard(qi_page *page, qi_shard *shard, qi_page **leaving);

/* ---- the end ------------------------------------------------------------------------------ */

/*
 * Every function requires that the caller holds no lock. The calling thread owns the pages of a
 * list: they are LEAVING, or elastic pages that give memory (backing.h).
 */

/*
 * Destroys the pages of a list, takes what elastic pages in it give, and adds both to the events.
 * Returns the bytes given back.
 */
uint64_t qi_pages_give_back(quire_memory *memory, qi_page *list, qi_page_events *events);

/* Like qi_pages_give_back, but reports the events immediately. */
uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list);

/*
 * Destroys a page that was never reported, without reporting it. Its number becomes free at once,
 * or, if it is the renewed number of the events, when these are reported.
 */
void qi_page_undo(quire_memory *memory, qi_page *page, qi_page_events *events);

/* ---- making a page ------------------------------------------------------------------------ */

/*
 * A page is numbered under the locks of its shard and of the pages, created in the backend without
 * a lock, and published under the shard's lock. Invariant: on return the page is LIVE, or its
 * number becomes free again, at the latest when the events are reported.
 */

/*
 * Requires the shard's lock. Releases and reacquires it. Gives back the shard's oldest empty pages,
 * until `needed` bytes are free, with up to QI_EMPTY_PAGES_PER_CALL pages more, and what the policy
 * no longer keeps in any shard. Called before a page is made.
 */
void qi_page_give_back_before(qi_shard *shard, uint64_t needed, qi_page_events *events);

/* Returns the bytes that a page, or a growth, has at most, unless the request needs more; 0: no
   bound. Beyond the backend's budget that is the excess before it. */
uint64_t qi_page_max_bytes(const qi_shard *shard, const qi_page_progress *progress);

/*
 * Requires the shard's lock. Releases and reacquires it. Returns with the lock held after success
 * and after failure, so that the caller can use the page before any other thread. Makes a page for
 * `size` bytes at `alignment` and publishes it. A shared page that is refused for lack of memory,
 * or over a budget, is requested again with half the size, down to the size that the request needs
 * (sizes.h). If memory is exhausted, the empty pages of all shards are given back first.
 *
 * Without progress->may_exceed the page respects the backend's budget. After a refusal with
 * progress->is_over_budget the caller may set it and call again: the page then is as large as the
 * request needs, or as the current excess over the budget, so that many small requests beyond the
 * budget need few pages. Fails with TOO_MANY_PAGES, OVER_BUDGET, OUT_OF_DEVICE_MEMORY,
 * OUT_OF_HOST_MEMORY, OUT_OF_RANGE, WRONG_STATE (the memory is being destroyed) and errors of the
 * backend. Also on failure the caller reports the events once it holds no lock.
 */
QUIRE_MUST_USE quire_result qi_page_make(qi_shard *shard, uint64_t size, uint64_t alignment,
                                         bool dedicated, qi_page **page,
                                         qi_page_progress *progress);

/* Like qi_page_make, for a dedicated page of exactly `size` bytes that is tied to an object. */
QUIRE_MUST_USE quire_result qi_page_make_tied(qi_shard *shard, uint64_t size, const qi_tie *tie,
                                              qi_page **page, qi_page_progress *progress);

/* The page serves its request. The policy's next page size follows from its size. */
void qi_page_keep(const qi_page *page);

/* ---- waiting for other threads ------------------------------------------------------------ */

/*
 * Without it, several threads that run out of room together would each make a page, and a thread
 * could be refused while another one is about to free what it needs.
 *
 * Both waits return at once in a thread that has a page in transit itself (base/thread.h): such a
 * thread would wait for itself. The lock of the pages protects the counts that are compared.
 * Invariant: a thread that has finished with a page wakes all threads that wait.
 */

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
 *  - a page is leaving, or moves between shards, or an elastic page still has memory that it gives;
 *  - the memory has as many pages as it may have, and a page is being made;
 *  - a page is being made that was begun before the refusal. Pages begun later are not waited for:
 *    they may be refused for the same reason, and the threads would wait for each other in turn.
 * Returns true if it waited or if something changed since wait->changes; the caller searches again.
 */
bool qi_page_wait_for_change(qi_shard *shard, quire_result refusal, qi_page_wait *wait);

/* Takes the lock of the pages. Returns a count that grows with every change of a page. */
uint64_t qi_pages_changes(const qi_shard *shard);

#endif
