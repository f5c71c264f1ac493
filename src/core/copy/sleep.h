/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.h - lazy allocations without memory, whose chunks and contents come back at the same
 * addresses. What they had is in host memory (qi_asleep).
 */
#ifndef QUIRE_SRC_CORE_COPY_SLEEP_H
#define QUIRE_SRC_CORE_COPY_SLEEP_H

#include "src/core/state/memory.h"

/*
 * As quire_memory_sleep and quire_memory_wake, for checked pointers, without a point. Require no
 * lock. `prefix` NULL: all lazy allocations. *bytes receives what has lost or got memory.
 */
QUIRE_MUST_USE quire_result qi_memory_sleep(quire_memory *memory, const char *prefix, bool discards,
                                            uint64_t *bytes);
QUIRE_MUST_USE quire_result qi_memory_wake(quire_memory *memory, const char *prefix,
                                           uint64_t *bytes);

#endif
