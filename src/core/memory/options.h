/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * options.h - the options of a memory: what the program leaves 0 comes from the user's
 * QUIRE_OPTIONS, then from the defaults. Also the checks.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_OPTIONS_H
#define QUIRE_SRC_CORE_MEMORY_OPTIONS_H

#include "src/core/device/device.h"
#include "src/core/state/memory.h"

/* ---- the user's options ------------------------------------------------------------------- */

/*
 * The options of memories that the user of a program sets by the variable QUIRE_OPTIONS: words such
 * as "limit=50% fit.slabs", whose keys are those of member.h. They fill what the program leaves 0.
 */

/*
 * Reads the variable for a device that no other thread knows. A word that is wrong is a warning in
 * the log of the device, and has no effect. Setuid programs have no such options.
 */
void qi_user_options_read(quire_device *device);

/* Sets the members that are 0 in `options` and not in the user's. Returns whether there was one.
   The user's options are constant once the device exists; no lock is required. */
bool qi_user_options_fill(const quire_device *device, quire_memory_options *options);

/* ---- checks and defaults ------------------------------------------------------------------ */

/*
 * No lock is required: the functions read what is constant in a device, and write a record that no
 * other thread knows.
 */

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
