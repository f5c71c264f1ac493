/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/elastic.h - lazy allocations: addresses first, memory where it is needed and when; and
 * allocations that sleep without memory, and wake at the same addresses.
 *
 * A memory with quire_memory_options.elastic has one page, which gets and returns memory in chunks
 * (quire_memory_info.page_size). An allocation with quire_allocation_options.lazy occupies whole
 * chunks of its addresses, and none of them has memory at first. quire_back_range gives memory to
 * parts of it, quire_unback_range takes it again; its offset, address and pointer never change. A
 * key/value cache, for example, is one lazy allocation for each sequence, as long as the longest
 * one, of which the used part has memory.
 *
 * All allocations of the memory share its limits: a lazy one counts the chunks that have memory, in
 * the statistics (also as requested bytes), in the limit of the memory and in limits of names. A
 * chunk without memory costs addresses alone (quire_memory_options.address_space). Chunks that lose
 * their memory serve the whole device, those that a free leaves serve the memory, as any free
 * chunk.
 *
 * Bytes without memory: quire_read, quire_write, fills and copies that touch one are WRONG_STATE. A
 * pointer and an address may be used only for bytes that have memory. New memory has unspecified
 * contents, even at an offset that had memory before.
 *
 * Thread-safety: any thread may call any function on a live memory. The calls of one memory that
 * change chunks take turns.
 */
#ifndef QUIRE_ELASTIC_H
#define QUIRE_ELASTIC_H

#include "quire/allocation.h"
#include "quire/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gives memory to `count` ranges of lazy allocations: to every chunk that a range touches and that
 * has none. A size of 0 means up to the end of the allocation. Ranges may overlap. All of them get
 * memory, or none. Chunks that wait for a point (quire_unback_range) keep their memory and their
 * contents, also if the call fails. Memory comes from free chunks before new memory is requested,
 * and quire_page_policy.retained_empty_bytes applies. Deferred frees and chunks whose points have
 * passed are collected before the call is refused; on_out_of_memory is not called.
 * Errors: INVALID_ARGUMENT, those of handles, UNSUPPORTED (an allocation is not lazy),
 * OUT_OF_RANGE, OUT_OF_DEVICE_MEMORY, OVER_BUDGET, OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS, BUSY
 * (called inside a function of the backend), and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_back_range(quire_memory *memory,
                                                       const quire_view *ranges, uint64_t count);

/*
 * Takes the memory of every chunk that lies in one of `count` ranges of lazy allocations as a
 * whole; a size of 0 means up to the end. Chunks without memory stay as they are. The contents are
 * lost. A map of the allocation stays valid for the other bytes. The memory of all ranges is taken,
 * or of none.
 *
 * With a point the memory is taken once the point has passed: by quire_collect, and when the memory
 * needs room. Until then work of a device may use the bytes, the host may not, they count as live,
 * and a free of the allocation waits for the point. NULL: no work uses the bytes any more.
 * Errors: INVALID_ARGUMENT, those of handles, UNSUPPORTED (an allocation is not lazy),
 * OUT_OF_RANGE, BUSY (another call uses an allocation now, an object of the backend lies in it, or
 * the call comes from inside a function of the backend), OUT_OF_HOST_MEMORY,
 * TOO_MANY_ALLOCATIONS.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_unback_range(quire_memory *memory,
                                                         const quire_view *ranges, uint64_t count,
                                                         const quire_point *after);

/* ---- sleep ---------------------------------------------------------------------------------- */

/* What becomes of the contents of allocations that sleep. */
typedef enum quire_sleep_mode {
    QUIRE_SLEEP_KEEP = 0,   /* they wait in host memory, and come back */
    QUIRE_SLEEP_DISCARD = 1 /* they are lost: the contents are unspecified after waking */
} quire_sleep_mode;

/*
 * Puts the allocations of an elastic memory to sleep whose names start with `prefix`; NULL: all of
 * them, also those without a name. Those that sleep already stay asleep, those on dedicated pages
 * awake. A prefix that matches nothing is no error. All allocations fall asleep, or none.
 *
 * Every chunk in which only sleeping allocations lie loses its memory, which then serves the whole
 * device; *bytes receives how much that is; NULL is allowed. What is free in such a chunk serves no
 * request until one of its allocations wakes.
 *
 * A sleeping allocation keeps its handle, page, offset, address and pointer. It can be queried and
 * freed. What needs its bytes is WRONG_STATE: maps, reads, writes, fills and copies; so is a new
 * name. Statistics, budgets and limits of names do not count it (quire_memory_stats.asleep_bytes).
 * No work may use its address; a captured graph that does may run again once it is awake.
 * Registrations of the address with other libraries (network cards, communicators) lose their
 * meaning with the memory: QUIRE_EVENT_ASLEEP and QUIRE_EVENT_AWAKE name each allocation.
 *
 * With a point the call waits until the point has passed, before it copies contents. It does not
 * wait for recorded uses (quire_record_use): work on the allocations must have ended by then.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the memory is not elastic, or its fit has slabs), BUSY (an
 * allocation is mapped or held, another call uses it now, an object of the backend lies in it, or
 * the call comes from inside a function of the backend), OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS,
 * and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_sleep(quire_memory *memory, const char *prefix,
                                                         quire_sleep_mode mode,
                                                         const quire_point *after, uint64_t *bytes);

/*
 * Wakes the sleeping allocations whose names start with `prefix`, as above: every chunk that they
 * touch has memory again, at the same addresses, and the contents that were kept are in it. All of
 * them wake, or none: if memory is short, they all stay asleep with their contents. *bytes receives
 * the bytes of chunks that got memory; NULL is allowed. In a memory of pages those wake that are
 * evicted (quire/evict.h), and *bytes receives what they had requested.
 * Errors: INVALID_ARGUMENT, OUT_OF_DEVICE_MEMORY, OVER_BUDGET, BUSY (another call uses an
 * allocation now, or the call comes from inside a function of the backend), OUT_OF_HOST_MEMORY, and
 * errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_wake(quire_memory *memory, const char *prefix,
                                                        uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
