/*
 * page_region.h - shared pages as regions of their shard's space.
 *
 * Both functions require the lock of the page's shard.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_REGION_H
#define QUIRE_SRC_CORE_PAGE_PAGE_REGION_H

#include "src/core/state/memory.h"

/* Adds a shared page to the shard's space. Fails with OUT_OF_HOST_MEMORY; nothing changed then. */
QUIRE_MUST_USE quire_result qi_page_add_region(qi_shard *shard, qi_page *page);

/*
 * Removes an empty page from the list of empty pages and, if it is shared, from the space. Cannot
 * fail.
 */
void qi_page_remove_region(qi_page *page);

#endif
