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

/*
 * As quire_back_range and quire_unback_range, for checked pointers: of allocations that are awake,
 * or of those that are asleep and held. Require no lock. Fail also with WRONG_STATE.
 */
QUIRE_MUST_USE quire_result qi_lazy_back(quire_memory *memory, const quire_view *ranges,
                                         uint64_t count, bool asleep);
QUIRE_MUST_USE quire_result qi_lazy_unback(quire_memory *memory, const quire_view *ranges,
                                           uint64_t count, bool asleep);

/*
 * Require the shard's lock. A hold is a use of a live lazy allocation by a call that changes its
 * chunks. Holding fails if the allocation is not live. Idle: it has one use, the caller's hold, and
 * nobody has it mapped.
 */
bool qi_lazy_hold(quire_memory *memory, uint32_t slot);
void qi_lazy_drop(quire_memory *memory, uint32_t slot);
bool qi_lazy_is_idle(const quire_memory *memory, uint32_t slot);

/* Requires no lock. Returns how many lazy allocations there are. */
uint64_t qi_lazy_count(quire_memory *memory);

/* Requires the shard's lock. Writes up to `room` runs of chunks with memory; returns how many there
   are. */
uint64_t qi_lazy_runs(const quire_memory *memory, uint32_t slot, qi_asleep_run *runs,
                      uint64_t room);

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

/* Requires no lock. Fails with WRONG_STATE if a lazy allocation, which the caller has in use, is
   asleep, or a byte of the range, which may be empty, has no memory. */
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
