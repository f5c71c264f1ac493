/*
 * preallocate.h - makes pages before they are needed.
 *
 * The lock of the pages protects the floor. Invariant: as long as the floor is not changed,
 * retention keeps at least that many bytes of pages.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PREALLOCATE_H
#define QUIRE_SRC_CORE_PAGE_PREALLOCATE_H

#include "src/core/state/memory.h"

/*
 * Requires no lock. Sets the memory's floor to `bytes` and makes pages until it is reached, in all
 * shards in turn. On failure the old floor is restored and all empty pages are given back. Fails as
 * qi_page_make, and with UNSUPPORTED for a memory whose every page is dedicated.
 */
QUIRE_MUST_USE quire_result qi_memory_preallocate(quire_memory *memory, uint64_t bytes);

#endif
