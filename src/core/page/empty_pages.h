/*
 * empty_pages.h - the list of a shard's pages without allocations.
 *
 * The list is in the order in which the pages became empty. Dedicated pages are also found by size,
 * in one list for each power of two. retention.h decides how long empty pages stay.
 *
 * Every function requires the lock of the page's shard, except qi_empty_pages_now, which requires
 * none. Invariant: the list has every LIVE page of the shard without allocations, and no other;
 * `bytes` is the sum of their sizes, and no page is smaller than `least`.
 */
#ifndef QUIRE_SRC_CORE_PAGE_EMPTY_PAGES_H
#define QUIRE_SRC_CORE_PAGE_EMPTY_PAGES_H

#include "src/core/state/memory.h"

/* Adds a page that became empty; removes one that is used again or leaves the shard. */
void qi_empty_pages_add(qi_page *page);
void qi_empty_pages_remove(qi_page *page);

/* Returns an empty dedicated page of at least `size` bytes and at most 8/7 of it, or NULL. */
qi_page *qi_empty_pages_find_dedicated(const qi_shard *shard, uint64_t size);

/* Returns the empty shared page of at least `size` bytes with the lowest number, or NULL. */
qi_page *qi_empty_pages_find_shared(const qi_shard *shard, uint64_t size);

/* Reads the memory's clock, or the system's where the memory has none; nanoseconds. */
uint64_t qi_empty_pages_now(const quire_memory *memory);

#endif
