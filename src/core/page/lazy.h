/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lazy.h - lazy allocations: ranges of whole chunks of an elastic page that have addresses, and
 * memory in the chunks that the caller asks for.
 *
 * Such a range is a kept window of the shard's space (qi_fit_backing), not a range of it. `size`
 * and `requested` of its record are the bytes that have memory, so that statistics, budgets and
 * limits of names count what is there; its addresses are in qi_lazy. A change of its chunks
 * belongs to the thread that changes the page (qi_resize_begin).
 *
 * The lock of the shard protects the window and the counts. The rest of a
 * qi_lazy does not change while the allocation lives.
 */
#ifndef QUIRE_SRC_CORE_PAGE_LAZY_H
#define QUIRE_SRC_CORE_PAGE_LAZY_H

#include "src/core/page/range.h"

/*
 * Requires the shard's lock. Releases and reacquires it if the memory has no page yet, which is
 * made with one chunk. Takes a slot, which stays PRIVATE, and addresses. qi_range_give gives both
 * back. Fails with OUT_OF_DEVICE_MEMORY if the page has no addresses, as qi_slot_take, and as a
 * page that is made.
 */
QUIRE_MUST_USE quire_result qi_lazy_take(qi_shard *shard, const qi_range_request *request,
                                         uint32_t *slot, qi_page_progress *progress);

/* As quire_back_range and quire_unback_range, for checked pointers. Require no lock. */
QUIRE_MUST_USE quire_result qi_lazy_back(quire_memory *memory, const quire_view *ranges,
                                         uint64_t count);
QUIRE_MUST_USE quire_result qi_lazy_unback(quire_memory *memory, const quire_view *ranges,
                                           uint64_t count);

/*
 * Require the shard's lock, for a page that is resizing and a slot that is ASLEEP and in use
 * (copy/sleep.h). Chunks with memory become pieces that sleep, or the other way, and are counted;
 * their memory is not touched, and accounts of names do not change. Bytes: of one kind of pieces.
 */
void qi_lazy_sleep(qi_page *page, uint32_t slot);
void qi_lazy_wake(qi_page *page, uint32_t slot);
uint64_t qi_lazy_bytes(const qi_page *page, uint32_t slot, qi_piece piece);

/*
 * Require no lock. Begin: as qi_lazy_unback, but the chunks of range i wait for a point of a new
 * number, for which `enter` is called under the shard's lock, once all ranges are checked. End:
 * those of a number lose their memory; returns the bytes, 0 also for an allocation that was freed.
 */
QUIRE_MUST_USE quire_result
qi_lazy_begin_wait(quire_memory *memory, const quire_view *ranges, uint64_t count,
                   void (*enter)(void *user, uint64_t i, uint32_t number), void *user);
uint64_t qi_lazy_end_wait(quire_memory *memory, quire_allocation allocation, uint32_t number);

/* In the child of a fork, before qi_backing_settle. Chunks that a vanished thread was changing have
   no memory. Takes no lock. */
void qi_lazy_settle(qi_page *page);

/* Requires no lock. Fails with WRONG_STATE if a byte of the range, which may be empty, of a lazy
   allocation, which the caller has in use, has no memory. */
QUIRE_MUST_USE quire_result qi_lazy_check(quire_memory *memory, uint32_t slot, uint64_t offset,
                                          uint64_t size);

/* The same for any allocation. */
static inline quire_result qi_lazy_check_if(quire_memory *memory, uint32_t slot, uint64_t offset,
                                            uint64_t size)
{
    return qi_slot_is_lazy(qi_memory_slot(memory, slot)) ? qi_lazy_check(memory, slot, offset, size)
                                                         : QUIRE_SUCCESS;
}

/* Requires the shard's lock. Whether the window of a lazy slot and its record agree. */
bool qi_lazy_agrees(const qi_page *page, uint32_t slot);

#endif
