/*
 * user_options.h - the options of memories that the user of a program sets by the variable
 * QUIRE_OPTIONS: words such as "limit=50% fit.slabs", whose keys are those of member.h. They fill
 * what the program leaves 0.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_USER_OPTIONS_H
#define QUIRE_SRC_CORE_MEMORY_USER_OPTIONS_H

#include "src/core/device/device.h"

/*
 * Reads the variable for a device that no other thread knows. A word that is wrong is a warning in
 * the log of the device, and has no effect. Setuid programs have no such options.
 */
void qi_user_options_read(quire_device *device);

/* Sets the members that are 0 in `options` and not in the user's. Returns whether there was one.
   The user's options are constant once the device exists; no lock is required. */
bool qi_user_options_fill(const quire_device *device, quire_memory_options *options);

#endif
