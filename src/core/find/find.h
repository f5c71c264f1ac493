/*
 * find.h - the look-ups by address of the public functions, with their refusals.
 *
 * No function requires a lock. All fail with OUT_OF_RANGE if no live allocation has the address,
 * and with UNSUPPORTED without the option find_by_address.
 */
#ifndef QUIRE_SRC_CORE_FIND_FIND_H
#define QUIRE_SRC_CORE_FIND_FIND_H

#include "src/core/state/memory.h"

QUIRE_MUST_USE quire_result qi_find(quire_memory *memory, uint64_t address,
                                    quire_allocation *allocation);

/* The same for an allocation that starts at the address; otherwise INVALID_ARGUMENT. */
QUIRE_MUST_USE quire_result qi_find_start(quire_memory *memory, uint64_t address,
                                          quire_allocation *allocation);

/* The same in all memories of a device that have the option. */
QUIRE_MUST_USE quire_result qi_find_in_device(quire_device *device, uint64_t address,
                                              quire_memory **memory, quire_allocation *allocation);

#endif
