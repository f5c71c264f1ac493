/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * addresses.h - finds allocations by address: first in a table of all starts, then through the page
 * that has the address. For memories with the option find_by_address.
 *
 * memory->addresses is NULL in other memories. If no allocation starts at the address (starts.h),
 * the page is found in sorted arrays of the pages' addresses, and the last start before the address
 * in the page's bitmap (page_addresses.h). No step depends on the number of allocations; the search
 * of the arrays takes a step for each doubling of the number of pages.
 *
 * An allocation is added when it has its place, before it is published, and removed by its free
 * before its range is given back. It is hidden while it is reserved, and after its free while it
 * waits for a point or is in quarantine. During the call that allocates or frees it, a look-up may
 * return its handle, which is then refused as stale.
 *
 * Locks: `lock` protects the arrays. It is taken after a shard's lock, and before those of the
 * starts of pages and of stripes. Invariant: the arrays contain the addresses of every LIVE page.
 */
#ifndef QUIRE_SRC_CORE_FIND_ADDRESSES_H
#define QUIRE_SRC_CORE_FIND_ADDRESSES_H

#include "src/core/find/page_addresses.h"
#include "src/core/find/starts.h"
#include "src/core/state/memory.h"

enum { QI_START_LOCKS = 32 };

typedef struct qi_start_lock {
    _Alignas(QI_CACHE_LINE) qi_lock lock;
} qi_start_lock;

/* Addresses of a page. */
typedef struct qi_page_span {
    uint64_t first;
    uint64_t reach; /* the highest address of this page and of those before it in the array */
    qi_page_addresses *page;
} qi_page_span;

typedef struct qi_addresses {
    uint64_t max_fast_size; /* as max_fast_size of a memory without the option, which is 0 here */
    qi_lock lock;
    uint32_t pages, capacity;                  /* pages in the arrays, and pages that have room */
    uint32_t span_counts[QI_ADDRESS_KINDS];    /* pages that have an address of the kind */
    qi_page_span *spans[QI_ADDRESS_KINDS];     /* by `first`, ascending */
    qi_start_lock start_locks[QI_START_LOCKS]; /* of the starts of pages, by page number */
    qi_starts starts;
} qi_addresses;

/* What a look-up found. */
typedef struct qi_found {
    quire_allocation allocation;
    uint64_t offset; /* bytes from the start of the allocation to the address */
} qi_found;

/* Create and release the record of a memory that no other thread uses. create fails with
   OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_addresses_create(quire_memory *memory);
void qi_addresses_release(quire_memory *memory);

/*
 * Require the shard's lock. A page enters before it has allocations, with the device address that
 * the backend reports for it (0: none), and leaves after its last one. Entering fails with
 * OUT_OF_HOST_MEMORY, and with UNSUPPORTED for a shared page of 2^32 granules or more. Both do
 * nothing in a memory without the option.
 */
QUIRE_MUST_USE quire_result qi_addresses_enter_page(quire_memory *memory, qi_page *page,
                                                    uint64_t device);
void qi_addresses_leave_page(quire_memory *memory, qi_page *page);

/* Require the shard's lock. A stretch of an elastic page is to get memory; whole chunks of it,
   which no allocation uses, have lost theirs. Covering fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_addresses_cover(quire_memory *memory, const qi_page *page,
                                               uint64_t offset, uint64_t size);
void qi_addresses_uncover(quire_memory *memory, const qi_page *page, uint64_t offset,
                          uint64_t size);

/*
 * Requires no lock. Makes room for one more allocation before anything changes, so that adding it
 * does not fail later. Returns false if host memory is exhausted, without an error text.
 */
QUIRE_MUST_USE bool qi_addresses_reserve(quire_memory *memory);

/* Returns the address that the table has for a slot, or 0. A page that leaves while its memory is
   destroyed has no addresses any more. */
static inline uint64_t qi_addresses_start_of(quire_memory *memory, uint32_t slot)
{
    const qi_page_addresses *page = qi_memory_page(memory, slot)->addresses;
    uint64_t base = page ? qi_atomic_load_acquire_u64(&page->base) : 0;
    return base ? base + qi_memory_slot(memory, slot)->offset : 0;
}

/*
 * Require a PRIVATE slot with its range, and no lock or locks of lower rank. Adding returns false
 * if host memory is exhausted, without an error text; adding a slot again, with a new generation
 * or visibility, cannot fail.
 */
QUIRE_MUST_USE bool qi_addresses_add(quire_memory *memory, uint32_t slot, bool visible);
void qi_addresses_hide(quire_memory *memory, uint32_t slot);
void qi_addresses_remove(quire_memory *memory, uint32_t slot);

/*
 * For a slot that moves to the place of another one, before they exchange their places. Entering
 * adds the handle of the source there, hidden; it fails as qi_addresses_add. Ending removes one of
 * the two entries, and shows the one of the new place.
 */
QUIRE_MUST_USE bool qi_addresses_enter_move(quire_memory *memory, uint32_t source, uint32_t target);
void qi_addresses_end_move(quire_memory *memory, uint32_t source, uint32_t target, bool has_moved);

/* Requires no lock. Commits a reserved allocation, as qi_slot_commit, and shows it. */
QUIRE_MUST_USE quire_result qi_addresses_commit(quire_memory *memory, quire_allocation allocation);

/* Returns OUT_OF_HOST_MEMORY, for a slot that could not be added. */
quire_result qi_addresses_refuse(void);

/*
 * Requires no lock, and an object that is bound. In a page without a device address, a buffer of
 * quire_buffer_options has one that the backend reports. The address of the page follows from it.
 */
void qi_addresses_learn(quire_memory *memory, uint32_t slot);

/*
 * Require no lock, or locks of lower rank. Both return false if they find no live allocation:
 * qi_addresses_find_start looks for one that starts at an address, by the base of its page;
 * qi_addresses_find for one that contains the address.
 */
static inline bool qi_addresses_find_start(const quire_memory *memory, uint64_t address,
                                           quire_allocation *allocation)
{
    uint64_t id = address ? qi_starts_find(&memory->addresses->starts, address) : 0;
    /* in the child of a fork, a thread that does not exist there may have been freeing it */
    if (id && qi_unlikely(memory->has_orphans) && !qi_slot_is_live(&memory->slots, id))
        id = 0;
    allocation->id = id;
    return id != 0;
}

bool qi_addresses_find(quire_memory *memory, uint64_t address, qi_found *found);

/*
 * Requires the locks of all shards. Returns a slot that is live, and whose
 * allocation the tables do not contain; QI_NO_SLOT if there is none.
 */
uint32_t qi_addresses_missing(quire_memory *memory);

/* Calls a function for each lock of a rank: QI_RANK_ADDRESSES, _PAGE_STARTS or _STARTS. */
void qi_addresses_each_lock(qi_addresses *addresses, qi_lock_rank rank,
                            void (*apply)(qi_lock *lock));

/* ---- look-ups of the public functions ----------------------------------------------------- */

/*
 * No function requires a lock. All fail with OUT_OF_RANGE if no live allocation has the address,
 * and with UNSUPPORTED without the option find_by_address.
 */

QUIRE_MUST_USE quire_result qi_find(quire_memory *memory, uint64_t address,
                                    quire_allocation *allocation);

/* The same for an allocation that starts at the address; otherwise INVALID_ARGUMENT. */
QUIRE_MUST_USE quire_result qi_find_start(quire_memory *memory, uint64_t address,
                                          quire_allocation *allocation);

/* The same in all memories of a device that have the option. */
QUIRE_MUST_USE quire_result qi_find_in_device(quire_device *device, uint64_t address,
                                              quire_memory **memory, quire_allocation *allocation);

#endif
