/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_addresses.h - the addresses of a page, and the offsets at which allocations start in it.
 *
 * A page has up to two addresses: one of the device, and one of the host's mapping. One of them,
 * the base, is the first that became known: the table of starts.h contains the base plus the
 * offset of each allocation. A shared page has a bitmap with one bit for each granule, set if an
 * allocation starts in it; an elastic page has one for each chunk that has memory. A dedicated page
 * has at most one allocation.
 *
 * Locks: `base` is atomic. The lock of addresses.h for pages (QI_RANK_ADDRESSES) protects
 * `addresses`. The lock that `lock` names (QI_RANK_PAGE_STARTS; several pages share one) protects
 * the starts. Invariant: while a start is set, the slot of its allocation is not given back, so
 * that its offset and size do not change.
 */
#ifndef QUIRE_SRC_CORE_FIND_PAGE_ADDRESSES_H
#define QUIRE_SRC_CORE_FIND_PAGE_ADDRESSES_H

#include "src/core/find/chunk_starts.h"
#include "src/core/state/memory.h"

/* Device first: if both kinds contain a number, it is a device address. */
enum { QI_ADDRESS_OF_DEVICE, QI_ADDRESS_OF_HOST, QI_ADDRESS_KINDS };

typedef struct qi_page_addresses {
    uint64_t addresses[QI_ADDRESS_KINDS]; /* of the first byte; 0: none */
    uint64_t size;                        /* bytes of addresses, from each of them on */
    qi_atomic_u64 base;                   /* one of them; 0: none is known yet */
    bool is_late; /* it had none at first: earlier allocations have no entry in the starts */
    qi_lock *lock;
    uint64_t granule;
    uint64_t skipped; /* bytes before the first granule */
    /* the bits of all starts so far, counted from their granules: 0 unless red zones or a unit of
       the request (allocate/request.h) move a start into its granule */
    uint64_t inner;
    uint64_t *starts; /* a bitmap (bitmap.h) of `granules` numbers; NULL in the other pages */
    bool is_elastic;
    qi_chunk_starts chunks; /* of an elastic page */
    uint32_t granules;
    uint64_t only_id;    /* in a dedicated page: the handle of its allocation, or 0 */
    uint64_t only_start; /* and the offset at which it starts */
} qi_page_addresses;

/*
 * Requires the shard's lock. Returns the record of a page that has no allocation yet, with its host
 * mapping and the device address given (0: none). Returns NULL if host memory is exhausted.
 */
qi_page_addresses *qi_page_addresses_create(quire_memory *memory, const qi_page *page,
                                            uint64_t device);
void qi_page_addresses_release(qi_page_addresses *page, qi_host *host);

/* Sets the device address of a page that had none. */
void qi_page_addresses_set_device(qi_page_addresses *page, uint64_t device);

/* Chunks of an elastic page are to get memory, or have lost it. Covering returns false if host
   memory is exhausted. */
QUIRE_MUST_USE bool qi_page_addresses_cover(qi_page_addresses *page, qi_host *host, uint64_t offset,
                                            uint64_t size);
void qi_page_addresses_uncover(qi_page_addresses *page, qi_host *host, uint64_t offset,
                               uint64_t size);

/* Whether the page can have more than one allocation. */
static inline bool qi_page_addresses_is_shared(const qi_page_addresses *page)
{
    return page->starts || page->is_elastic;
}

/* Note and forget that an allocation starts at an offset. Both may be called more than once. */
void qi_page_addresses_add(qi_page_addresses *page, uint64_t offset, uint64_t id);
void qi_page_addresses_remove(qi_page_addresses *page, uint64_t offset);

/* Requires the page's lock. Starts in a granule are multiples of it from the granule on. */
static inline uint64_t qi_page_addresses_step(const qi_page_addresses *page)
{
    uint64_t bits = page->inner | page->granule;
    return bits & (0 - bits);
}

/*
 * Requires the page's lock, for a shared page. *start receives the offset of the granule in which
 * the last allocation starts that does not start in a granule behind `offset`. Returns false if
 * there is none.
 */
bool qi_page_addresses_before(const qi_page_addresses *page, uint64_t offset, uint64_t *start);

#endif
