/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * map.h - maps host-visible pages while the host uses them
 * (quire_memory_options.map_on_demand).
 *
 * A user of a page is a map of one of its allocations, an allocation made with `mapped`, or a call
 * that reads or writes bytes of the page. The first user maps the page in the backend, the last one
 * unmaps it. In every other memory a page is mapped while it exists, and these functions only read
 * its address.
 *
 * The map word of a page counts its users without a lock. The thread that changes it from or to 0
 * sets a bit, calls the backend, and clears the bit; threads that need the page meanwhile sleep.
 *
 *   31        30       29             0
 *  +---------+--------+----------------+
 *  | changes | sleeps | users          |    page.native.host is constant while users > 0
 *  +---------+--------+----------------+
 *
 * No function may be called with a lock held: each may call the backend. The caller has an
 * allocation of the page in use, or PRIVATE. Invariant: without the bit `changes`, a page with
 * users is mapped. A page without users is mapped only in the child of a fork, until its next last
 * user.
 */
#ifndef QUIRE_SRC_CORE_PAGE_MAP_H
#define QUIRE_SRC_CORE_PAGE_MAP_H

#include "src/core/state/memory.h"

/* The largest number of users; also the mask of their count. */
#define QI_MAX_PAGE_USERS ((UINT32_C(1) << 30) - 1)

/*
 * Begin and end of a use, for a memory that maps on demand. Begin fails with what the backend
 * answers, and with OUT_OF_RANGE at QI_MAX_PAGE_USERS users; there is no user then.
 */
QUIRE_MUST_USE quire_result qi_page_map_add(quire_memory *memory, qi_page *page);
void qi_page_map_remove(quire_memory *memory, qi_page *page);

/* The same for any memory. qi_page_map_begin writes the address of the page's first byte. */
QUIRE_MUST_USE static inline quire_result qi_page_map_begin(quire_memory *memory, qi_page *page,
                                                            char **host)
{
    quire_result result =
        qi_unlikely(memory->maps_on_demand) ? qi_page_map_add(memory, page) : QUIRE_SUCCESS;
    *host = result ? NULL : page->native.host;
    return result;
}

static inline void qi_page_map_end(quire_memory *memory, qi_page *page)
{
    if (qi_unlikely(memory->maps_on_demand))
        qi_page_map_remove(memory, page);
}

/* The same for the page of a slot; the address is that of the slot's first byte. */
QUIRE_MUST_USE static inline quire_result qi_page_map_begin_slot(quire_memory *memory,
                                                                 uint32_t slot, char **bytes)
{
    quire_result result = qi_page_map_begin(memory, qi_memory_page(memory, slot), bytes);
    if (!result)
        *bytes += qi_memory_slot(memory, slot)->offset;
    return result;
}

static inline void qi_page_map_end_slot(quire_memory *memory, uint32_t slot)
{
    qi_page_map_end(memory, qi_memory_page(memory, slot));
}

/*
 * Make the map of a slot last until the release of the slot, and end it early; the slot is PRIVATE.
 * Its record then has QI_EXTRA_MAPPED, or not any more. The second does nothing without it. Both
 * take the shard lock.
 */
QUIRE_MUST_USE quire_result qi_page_map_keep(quire_memory *memory, uint32_t slot);
void qi_page_map_drop(quire_memory *memory, uint32_t slot);

/* The lasting host address of a slot in use or PRIVATE; NULL if it has no QI_EXTRA_MAPPED. */
void *qi_page_map_lasting(const quire_memory *memory, uint32_t slot);

/*
 * For the child of a fork, which has one thread: forgets changes and, with `recount`, the users of
 * threads that do not exist in the child.
 */
void qi_page_map_forked(quire_memory *memory, bool recount);

#endif
