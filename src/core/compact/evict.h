/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * evict.h - allocations without a place, whose contents wait in host memory.
 *
 * Evicting and waking are moves (move.h): between a page and the page without memory of a shard
 * (qi_shard.nowhere), whose ranges have no bytes. The slot moves meanwhile, so that other calls
 * wait, and is ASLEEP afterwards. What the allocation had is in its qi_asleep, as of one that
 * sleeps in an elastic page (copy/sleep.h).
 *
 * A waking allocation may get a place in another shard. Its slot then belongs to that shard.
 */
#ifndef QUIRE_SRC_CORE_COMPACT_EVICT_H
#define QUIRE_SRC_CORE_COMPACT_EVICT_H

#include "quire/evict.h"
#include "src/core/state/memory.h"

/* As the public functions of these names, for checked pointers. Require no lock. */
QUIRE_MUST_USE quire_result qi_evict(quire_memory *memory, const quire_evict_options *options,
                                     uint64_t *bytes);
QUIRE_MUST_USE quire_result qi_wake(quire_memory *memory, quire_allocation allocation);

/* As quire_memory_wake, for a memory of pages. *bytes receives those of the allocations. */
QUIRE_MUST_USE quire_result qi_wake_named(quire_memory *memory, const char *prefix,
                                          uint64_t *bytes);

/* Fails with NOT_PERMITTED on a disabled device, and with BUSY inside a function of the backend. */
QUIRE_MUST_USE quire_result qi_evict_check_call(const quire_memory *memory);

#endif
