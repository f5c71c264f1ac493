/*
 * page_size.h - the size of a page to create: what a request needs, what the policy says, and what
 * the device and the line of the space allow.
 *
 * The functions compute and change nothing. They require the shard's lock where they take a shard,
 * because they read its space. Invariant: every page size that is requested is a multiple of
 * qi_page_unit, except that of a tied page.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_SIZE_H
#define QUIRE_SRC_CORE_PAGE_PAGE_SIZE_H

#include "src/core/state/memory.h"

/* Returns the granularity of page sizes: the granule, or the backend's page granularity if
   larger. */
uint64_t qi_page_unit(const quire_memory *memory);

/* Returns the alignment to request for a page: at least a granule, because regions begin at one. */
uint64_t qi_page_alignment(const quire_memory *memory, uint64_t alignment);

/* Whether the heap and the device can have a page of this size at all. */
bool qi_page_can_exist(const quire_memory *memory, uint64_t size);

/*
 * Checks that the heap and the device can have a page of `total` bytes. `size`, the bytes that the
 * page is made for, is for the message. Fails with OUT_OF_DEVICE_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_page_check_total(const quire_memory *memory, uint64_t size,
                                                uint64_t total);

/*
 * Sets *needed to the bytes of a page in which the request certainly fits, for every address of
 * the page. Fails as qi_page_check_total; *needed is unchanged then.
 */
QUIRE_MUST_USE quire_result qi_page_needed_size(const qi_shard *shard, uint64_t size,
                                                uint64_t alignment, bool dedicated,
                                                uint64_t *needed);

/* Requires the lock of the pages too. Returns the policy's size for the next page, within
   limits. */
uint64_t qi_page_policy_size(const qi_shard *shard);

/*
 * Returns the size to request for `page`, which is made for `size` bytes and needs `needed`. Reads
 * page->policy_size.
 */
uint64_t qi_page_wanted_size(const qi_shard *shard, const qi_page *page, uint64_t size,
                             uint64_t needed);

#endif
