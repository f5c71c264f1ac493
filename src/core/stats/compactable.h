/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compactable.h - which pages a compaction could free, from their bytes and from what may move in
 * them. No range is searched: places of the right size can lack, so that the result is a bound.
 */
#ifndef QUIRE_SRC_CORE_STATS_COMPACTABLE_H
#define QUIRE_SRC_CORE_STATS_COMPACTABLE_H

#include "src/core/state/memory.h"

/* NULL if allocations of the memory can move. Otherwise why not, as the end of a sentence. */
const char *qi_compact_obstacle(const quire_memory *memory);

/*
 * Takes the lock of one shard after the other. Looks at up to `records` allocations, from the
 * emptiest pages on; pages with further ones count as pages that stay. Needs no host memory.
 */
qi_compactable qi_compactable_get(quire_memory *memory, uint64_t records);

/* The same for a refusal, with 4,096 records. Looks at no page if no allocation was ever movable,
   or if nothing has changed since the last refusal: programs are refused again and again. */
qi_compactable qi_compactable_for_refusal(quire_memory *memory);

/* Requires the lock of the shard and of the pages, because another shard may have the page. Whether
   the page has allocations of this shard that ranges elsewhere could hold. */
bool qi_page_is_shared(const qi_page *page, const qi_shard *shard);

/* Requires the lock of its shard. */
uint64_t qi_page_free_bytes(const qi_page *page);

/* Whether so much of a page is free that a compaction looks at it. */
bool qi_page_is_worth_emptying(const qi_page *page);

#endif
