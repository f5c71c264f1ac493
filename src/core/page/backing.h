/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.h - the page of an elastic memory: it covers a range of addresses, of which the chunks
 * in use have memory.
 *
 * The space knows stretches without memory as holes of its region. A request that no free range
 * holds gets a window of holes and free ranges (qi_window). The window is reserved under the
 * shard's lock, its holes are backed without a lock, and then it is free. Memory comes from free
 * chunks elsewhere in the page before new memory is requested.
 *
 * One thread at a time changes which chunks of a page have memory; the page is `resizing`
 * meanwhile. Allocations in the page are made, used and freed as usual during that time. One thread
 * at a time puts allocations to sleep or wakes them; the page has it as its `sleeper`. It is also
 * the thread that changes the page, but while it copies contents.
 */
#ifndef QUIRE_SRC_CORE_PAGE_BACKING_H
#define QUIRE_SRC_CORE_PAGE_BACKING_H

#include "src/core/page/life.h"
#include "src/core/state/memory.h"

/* ---- one thread at a time ----------------------------------------------------------------- */

/*
 * The lock of the pages protects `resizing` and `sleeper`, because a thread that waits for another
 * one's change sleeps on that lock.
 */

/* Requires the shard's lock. Returns false if another thread changes the page. Marks the thread as
   busy with a page, so that it never waits for itself. */
bool qi_resize_begin(qi_page *page);

/* Requires the shard's lock. Releases and reacquires it while another thread changes the page.
   Waits once: the caller tests its condition again, because another thread may begin at once. */
void qi_resize_await(qi_shard *shard, const qi_page *page);

/* Requires the shard's lock. Releases and reacquires it. Begins once no other thread changes the
   page. Fails with BUSY inside a function of the backend, which must not wait. */
QUIRE_MUST_USE quire_result qi_resize_await_turn(qi_shard *shard, qi_page *page);

/* Ends what qi_resize_begin began. `has_changed` makes waiting threads look for room again. */
void qi_resize_end(qi_page *page, bool has_changed);

/*
 * The same for the `sleeper`, before it begins to change the page. Fails with BUSY inside a
 * function of the backend. A thread that has begun may await its turn to change the page.
 */
QUIRE_MUST_USE quire_result qi_sleep_begin(qi_shard *shard, qi_page *page);
void qi_sleep_end(qi_page *page);

/* Requires the locks of the shard and of the pages. Whether a page still has memory that it
   gives. */
bool qi_resize_is_giving(const qi_shard *shard);

/* Requires no lock, for a page of a list that qi_pages_give_back got: takes what the page gives.
   Returns the bytes. *change receives the new size. */
uint64_t qi_resize_finish(quire_memory *memory, qi_page *page, qi_page_change *change);

/* What a call that did not fail has done. */
typedef enum qi_resize_result {
    QI_RESIZE_NONE = 0, /* nothing */
    QI_RESIZE_AWAITED,  /* another thread has changed the page */
    QI_RESIZE_DONE
} qi_resize_result;

/* ---- the page ----------------------------------------------------------------------------- */

/* Requires the shard's lock. Returns the page, or NULL if there is none or it is being made. */
qi_page *qi_backing_page(const qi_shard *shard);

/* Returns the bytes of addresses to reserve for a page that is to be made; 0 if it is not elastic.
 */
uint64_t qi_backing_max_size(const qi_page *page);

/* The refusal of a page whose address is not a multiple of the granule: its chunks would not begin
   with granules of the region. */
QUIRE_MUST_USE quire_result qi_backing_refuse_place(const qi_page *page);

/* ---- room --------------------------------------------------------------------------------- */

/*
 * Requires the shard's lock. Releases and reacquires it. Makes a free range in which `size` bytes
 * at `alignment` fit; the caller searches again, because other threads may have taken it. Fails
 * with OUT_OF_DEVICE_MEMORY if the addresses or the memory are exhausted, OVER_BUDGET,
 * OUT_OF_HOST_MEMORY, and errors of the backend. The caller reports the events.
 */
QUIRE_MUST_USE quire_result qi_backing_make_room(qi_shard *shard, uint64_t size, uint64_t alignment,
                                                 qi_resize_result *outcome,
                                                 qi_page_progress *progress);

/* Requires the shard's lock. Whether the elastic page has addresses for the request, so that only
   memory can lack. */
bool qi_backing_has_addresses(const qi_shard *shard, uint64_t size, uint64_t alignment);

/* Like qi_backing_make_room without a request: backs up to `bytes` of the largest hole, and takes
   no free chunks. */
QUIRE_MUST_USE quire_result qi_backing_add(qi_shard *shard, uint64_t bytes,
                                           qi_page_progress *progress);

/*
 * Both require the shard's lock, for a page that is resizing, and a part of a kept window; they
 * release and reacquire the lock. Backing gives the holes of the part memory, as
 * qi_backing_make_room, and leaves it to the caller to mark them; on failure nothing has changed.
 * Unbacking takes the memory of one kind of pieces, and marks them as holes.
 */
QUIRE_MUST_USE quire_result qi_backing_back_pieces(qi_page *page, const qi_window *part,
                                                   qi_page_progress *progress);
void qi_backing_unback_pieces(qi_page *page, const qi_window *part, qi_piece piece);

/* The same for runs in ascending order; the caller marks them before it takes their memory. */
QUIRE_MUST_USE quire_result qi_backing_back_runs(qi_page *page, const qi_chunk_run *runs,
                                                 uint64_t count, qi_page_progress *progress);
void qi_backing_unback_runs(qi_page *page, const qi_chunk_run *runs, uint64_t count);

/*
 * In the child of a fork, for an elastic page that a vanished thread was changing: what it had not
 * completed becomes holes, and no hole has memory. Calls the backend's table directly, without
 * counting, and takes no lock. The statistics follow.
 */
void qi_backing_settle(qi_page *page);

/* ---- free chunks -------------------------------------------------------------------------- */

/* Requires the shard's lock. Returns the bytes of the elastic page that no allocation uses; 0
   without one. */
uint64_t qi_backing_free(const qi_shard *shard);

/*
 * Requires the shard's lock. Free chunks of the elastic page are to lose their memory: up to
 * `bytes`, down to the memory's floor. Puts the page in front of the list, which the caller gives
 * without a lock to qi_pages_give_back. Changes nothing if another thread changes the page.
 */
qi_page *qi_backing_shrink(qi_shard *shard, uint64_t bytes, qi_page *leaving);

/*
 * Requires the shard's lock. Applies the policy's retention to the elastic page, as
 * qi_backing_shrink. By default free bytes beyond a tenth of the memory and a chunk leave if they
 * were free for a second. Called for one free in 16.
 */
qi_page *qi_backing_age(qi_shard *shard, qi_page *leaving);

#endif
