/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.h - the bytes of an allocation: mapping, flushing, reading, writing and filling, through
 * the mapping of the page or through the backend.
 *
 * Functions that take a handle hold a use of the allocation while they run, so that no thread can
 * free it during the call. Functions that take a slot require that the caller holds a use of it, or
 * owns the slot. None may be called with a lock held: each may call the backend. Invariant: a
 * function with a handle reads and writes no byte outside the requested size of its allocation.
 */
#ifndef QUIRE_SRC_CORE_COPY_ACCESS_H
#define QUIRE_SRC_CORE_COPY_ACCESS_H

#include "src/core/state/memory.h"

/* ---- by handle: what the public functions of quire/allocation.h do ------------------------- */

/*
 * *pointer receives the address of the byte at `offset`. The mapping is counted until
 * qi_access_unmap. Pages of host-visible kinds are mapped when they are created, unless the memory
 * maps on demand, so that mapping costs a count and an addition. `size` of 0 means up to the end.
 */
QUIRE_MUST_USE quire_result qi_access_map(quire_memory *memory, quire_allocation allocation,
                                          uint64_t offset, uint64_t size, void **pointer);
QUIRE_MUST_USE quire_result qi_access_unmap(quire_memory *memory, quire_allocation allocation);

/* Do nothing if the memory kind is coherent. `size` of 0 means up to the end. */
QUIRE_MUST_USE quire_result qi_access_flush(quire_memory *memory, quire_allocation allocation,
                                            uint64_t offset, uint64_t size);
QUIRE_MUST_USE quire_result qi_access_invalidate(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, uint64_t size);

/*
 * access_batch.c: flush and invalidate many ranges. All are checked and taken into use first; then
 * the backend gets them in lists of at most QUIRE_MAX_RANGES. On failure some may have been
 * flushed.
 */
QUIRE_MUST_USE quire_result qi_access_flush_batch(quire_memory *memory, const quire_view *views,
                                                  uint64_t count);
QUIRE_MUST_USE quire_result qi_access_invalidate_batch(quire_memory *memory,
                                                       const quire_view *views, uint64_t count);

/* qi_device_flush_many or qi_device_invalidate_many. */
typedef quire_result (*qi_access_sync)(quire_device *, qi_calls *, const quire_page_range *,
                                       uint32_t);

/* The ranges of the next call of the backend. It belongs to the calling thread. */
typedef struct qi_access_list {
    quire_memory *memory;
    qi_access_sync sync;
    uint32_t count;
    quire_page_range ranges[QUIRE_MAX_RANGES];
} qi_access_list;

/* Adds a checked range of an allocation in use, and calls the backend when the list is full. Does
   nothing if the memory kind is coherent. */
QUIRE_MUST_USE quire_result qi_access_add(qi_access_list *list, uint32_t slot, uint64_t offset,
                                          uint64_t size);
/* Calls the backend for what the list has. */
QUIRE_MUST_USE quire_result qi_access_send(qi_access_list *list);

/* A size of 0 is allowed and copies nothing. The handle and the offset are still checked. */
QUIRE_MUST_USE quire_result qi_access_write(quire_memory *memory, quire_allocation allocation,
                                            uint64_t offset, const void *data, uint64_t size);
QUIRE_MUST_USE quire_result qi_access_read(quire_memory *memory, quire_allocation allocation,
                                           uint64_t offset, void *data, uint64_t size);

/* `size` of 0 means up to the end. */
QUIRE_MUST_USE quire_result qi_access_fill(quire_memory *memory, quire_allocation allocation,
                                           uint64_t offset, uint64_t size, uint8_t value);

/* Checks that a range lies in a live allocation. A size of 0 becomes the bytes up to the end. */
QUIRE_MUST_USE quire_result qi_access_check_range(quire_memory *memory, quire_allocation allocation,
                                                  uint64_t offset, uint64_t *size);

/* What a backend needs of a live or reserved allocation. Takes the lock of its shard. */
QUIRE_MUST_USE quire_result qi_access_get_native(quire_memory *memory, quire_allocation allocation,
                                                 quire_native *native);

/* ---- by slot ------------------------------------------------------------------------------ */

/* Fills all bytes of a slot with zeros, unless its page is fresh, or a range with a
   value. */
QUIRE_MUST_USE quire_result qi_access_fill_zero(quire_memory *memory, uint32_t slot);
QUIRE_MUST_USE quire_result qi_access_fill_slot(quire_memory *memory, uint32_t slot,
                                                uint64_t offset, uint64_t size, uint8_t value);

/* Write and read bytes of a slot in use, which have memory. The size is above 0. */
QUIRE_MUST_USE quire_result qi_access_write_slot(quire_memory *memory, uint32_t slot,
                                                 uint64_t offset, const void *data, uint64_t size);
QUIRE_MUST_USE quire_result qi_access_read_slot(quire_memory *memory, uint32_t slot,
                                                uint64_t offset, void *data, uint64_t size);

/* Begins a use of an allocation for a fill and resolves its range. The caller ends the use. */
QUIRE_MUST_USE quire_result qi_access_begin_fill(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, uint64_t *size, uint32_t *slot);

/*
 * Both replace a size of 0 by the bytes up to the end, and check that the range is not empty and
 * lies in the allocation of a slot in use, or in a view of `limit` bytes. Fail with OUT_OF_RANGE;
 * the message has the numbers.
 */
QUIRE_MUST_USE quire_result qi_access_resolve_view(uint64_t limit, uint64_t offset, uint64_t *size);

/* ---- by page ------------------------------------------------------------------------------ */

/*
 * Flushes or invalidates a part of a mapped page that lies in one allocation. Nothing happens if
 * the memory kind is coherent.
 */
QUIRE_MUST_USE quire_result qi_access_flush_page(quire_memory *memory, const qi_device_page *page,
                                                 uint64_t begin, uint64_t size);
QUIRE_MUST_USE quire_result qi_access_invalidate_page(quire_memory *memory,
                                                      const qi_device_page *page, uint64_t begin,
                                                      uint64_t size);

#endif
