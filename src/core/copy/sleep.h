/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.h - allocations of an elastic page without memory, whose contents come back at the same
 * addresses. What they had is in host memory (qi_asleep).
 *
 * A sleeping allocation has the phase ASLEEP, so that every call which needs its bytes refuses it.
 * Its record has the size 0: statistics, budgets and limits of names count what has memory. Chunks
 * lose their memory if only sleeping allocations lie in them (qi_fit_asleep).
 */
#ifndef QUIRE_SRC_CORE_COPY_SLEEP_H
#define QUIRE_SRC_CORE_COPY_SLEEP_H

#include "src/core/state/memory.h"

/*
 * As quire_memory_sleep and quire_memory_wake, for checked pointers, without a point. Require no
 * lock. `prefix` NULL: all allocations. *bytes receives what has lost or got memory.
 */
QUIRE_MUST_USE quire_result qi_memory_sleep(quire_memory *memory, const char *prefix, bool discards,
                                            uint64_t *bytes);
QUIRE_MUST_USE quire_result qi_memory_wake(quire_memory *memory, const char *prefix,
                                           uint64_t *bytes);

#endif
