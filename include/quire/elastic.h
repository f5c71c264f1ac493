/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/elastic.h - lazy allocations: addresses first, memory where it is needed and when.
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

#ifdef __cplusplus
}
#endif
#endif
