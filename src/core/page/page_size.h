/*
 * page_size.h - how large a page is made: what a request needs of it, what the policy says, and
 * what the device and the line of the space allow.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_SIZE_H
#define QUIRE_SRC_CORE_PAGE_PAGE_SIZE_H

#include "src/core/state/memory.h"

/* Page sizes are multiples of this. */
uint64_t qi_page_unit(const quire_memory *memory);

/* The alignment a page is asked for with: regions begin at whole granules. */
uint64_t qi_page_alignment(const quire_memory *memory, uint64_t alignment);

/* Whether the heap and the device can have a page of `total` bytes, made for `size` of them. */
QUIRE_MUST_USE quire_result qi_page_check_total(const quire_memory *memory, uint64_t size,
                                                uint64_t total);

/* The bytes of a page in which the request surely fits. Fails as qi_page_make. */
QUIRE_MUST_USE quire_result qi_page_needed_size(const qi_shard *shard, uint64_t size,
                                                uint64_t alignment, bool dedicated,
                                                uint64_t *needed);

/* With both locks: what the policy says for the next page, within the device's limit. */
uint64_t qi_page_policy_size(const qi_shard *shard);

/* The same for a page made for `size` bytes, which needs to have `needed`. */
uint64_t qi_page_wanted_size(const qi_shard *shard, const qi_page *page, uint64_t size,
                             uint64_t needed);

#endif
