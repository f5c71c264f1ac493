/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/evict.h - eviction: allocations leave their pages, and their contents wait in host memory
 * until they wake, at another place.
 *
 * For memories of pages, and for the allocations and buffers that compaction moves
 * (quire/compact.h): those that were requested as movable, on a page that they share, while they
 * are neither mapped, held, nor in use by another call, and no recorded work uses them. No work of
 * a device may use a movable allocation during quire_memory_evict, except work that was recorded
 * with quire_record_use. In an elastic memory quire_memory_sleep does the same, and addresses stay.
 *
 * An evicted allocation is asleep: it keeps its handle, name and user data, and can be queried and
 * freed; its info says `asleep`, QUIRE_NO_PAGE, and no address. What needs its bytes is
 * WRONG_STATE, and so are a new name and new user data. Statistics, budgets and limits of names do
 * not count it (quire_memory_stats.asleep_bytes). It is not part of a walk. Waking gives it a
 * place, a new native object if it is a buffer, and its contents.
 *
 *     quire_touch(memory, texture);                  for what a frame uses
 *     quire_memory_frame(memory);                    once a frame
 *     ...
 *     const quire_evict_options options = {.bytes = missing};
 *     quire_memory_evict(memory, &options, &evicted);
 *     ...
 *     quire_wake(memory, texture);                   before it is used again
 *
 * Thread-safety: any thread may call any function on a live memory.
 */
#ifndef QUIRE_EVICT_H
#define QUIRE_EVICT_H

#include "quire/elastic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The priority of an allocation that is never evicted. */
#define QUIRE_PRIORITY_STAYS INT8_MAX

/*
 * Sets the priority of an allocation: lower ones are evicted first. New allocations have 0; lower
 * numbers are negative. Errors: those of handles, OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_set_priority(quire_memory *memory,
                                                         quire_allocation allocation,
                                                         int8_t priority);

/* Begins a frame of a memory: a step of the program after which it may evict. It counts uses.
   Errors: INVALID_ARGUMENT. */
QUIRE_API quire_result quire_memory_frame(quire_memory *memory);

/*
 * Says that the current frame uses an allocation: it is not evicted in this frame, and later than
 * those with the same priority that were used before it. Takes no lock.
 * Errors: those of handles, WRONG_STATE (it is evicted: quire_wake), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_touch(quire_memory *memory,
                                                  quire_allocation allocation);

typedef struct quire_evict_options {
    uint64_t bytes;         /* to evict at least, of what was requested; UINT64_MAX: all */
    uint64_t recent_frames; /* what so many frames before the current one have used stays as well */
    quire_sleep_mode mode;  /* QUIRE_SLEEP_DISCARD: nothing is copied, and what wakes has
                               unspecified contents, which the program makes again */
    uint64_t unused[4];     /* must be zero */
} quire_evict_options;

/*
 * Evicts allocations until `bytes` are evicted, or none is left that may be. Lower priorities come
 * first; among equals those whose last use is longer ago, those never used before all; then those
 * on pages with the fewest live bytes. Pages that become empty go back to the backend, as
 * quire_memory_trim with 0 does. *bytes receives what was evicted, also if the call fails; NULL is
 * allowed. Takes time in proportion to the allocations of the memory. An on_out_of_memory may call
 * it.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (as quire_compact_begin, or contents are kept and the
 * backend copies no bytes of the kind), NOT_PERMITTED (the device is disabled), BUSY (called inside
 * a function of the backend), OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS, and those of reads. After
 * an error every allocation is in its place or evicted, with its contents.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_evict(quire_memory *memory,
                                                         const quire_evict_options *options,
                                                         uint64_t *bytes);

/*
 * Wakes an allocation that is evicted: with the room of the memory, a new page, or what
 * on_out_of_memory frees, as quire_allocate. Does nothing if it is awake. quire_memory_wake
 * (quire/elastic.h) wakes all, or those whose names have a prefix.
 * Errors: those of handles, UNSUPPORTED (the memory is elastic), BUSY (another call reads it now,
 * or the call comes from inside a function of the backend), those of quire_allocate, of writes and
 * of the backend's objects. After an error it sleeps as before.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_wake(quire_memory *memory, quire_allocation allocation);

#ifdef __cplusplus
}
#endif
#endif
