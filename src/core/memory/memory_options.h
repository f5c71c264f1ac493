/*
 * memory_options.h - checks the options of a memory and resolves their defaults for a device.
 *
 * No lock is required: the functions read what is constant in a device, and write a record that no
 * other thread knows.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_MEMORY_OPTIONS_H
#define QUIRE_SRC_CORE_MEMORY_MEMORY_OPTIONS_H

#include "src/core/state/memory.h"

/*
 * Fills the fields of a memory that follow from its options, before any host memory is allocated.
 * Fails with INVALID_ARGUMENT, UNSUPPORTED, and as quire_device_choose_kind.
 */
QUIRE_MUST_USE quire_result qi_memory_resolve(quire_device *device,
                                              const quire_memory_options *options,
                                              quire_memory *memory);

/* Turns a limit that may be a share of the heap into bytes. Fails with INVALID_ARGUMENT. */
QUIRE_MUST_USE quire_result qi_memory_resolve_limit(const quire_device *device, uint32_t kind,
                                                    uint64_t given, uint64_t *bytes);

#endif
