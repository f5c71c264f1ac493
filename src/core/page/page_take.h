/*
 * page_take.h - finds LIVE pages, and takes them out of their shard or of the memory.
 *
 * The locks of the shard and of the pages protect a page's phase. Invariant: a page that was taken
 * is in phase LEAVING and in a list of the calling thread, which gives the list to
 * qi_pages_give_back without a lock.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_TAKE_H
#define QUIRE_SRC_CORE_PAGE_PAGE_TAKE_H

#include "src/core/state/memory.h"

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

#endif
