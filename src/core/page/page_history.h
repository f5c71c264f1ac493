/*
 * page_history.h - the sizes of a memory's shared pages, as the policy needs them for the next page
 * (device/policy.h).
 *
 * Every function requires the lock of the pages. Invariant: shared_bytes of a shard is the sum over
 * its shared pages in the phases MAKING (the bytes requested), LIVE and MOVING; shared_bytes of the
 * pages is the sum over the shards.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_HISTORY_H
#define QUIRE_SRC_CORE_PAGE_PAGE_HISTORY_H

#include "src/core/device/policy.h"
#include "src/core/state/memory.h"

/* Reads every page if the policy's growth depends on the largest. For other policies `largest` is
   0, because nothing reads it. */
qi_page_history qi_page_history_of(const qi_shard *shard);

/* The bytes of a page of the shard change from `from` to `to`. 0 means that it does not count. A
   dedicated page never counts. */
void qi_page_history_change(const qi_page *page, uint64_t from, uint64_t to);

/* Whether the sums are those of the pages. */
bool qi_page_history_agrees(const quire_memory *memory);

#endif
