/*
 * default_memory.h - the memories that a device owns, one for each kind at most, made when they are
 * first needed.
 *
 * The device's lock protects their creation and their end; a thread that looks for one takes no
 * lock where it exists. Invariant: defaults[kind] of a device is NULL or a memory of this kind in
 * the list of the device, whose `is_default` is set.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_DEFAULT_MEMORY_H
#define QUIRE_SRC_CORE_MEMORY_DEFAULT_MEMORY_H

#include "src/core/state/memory.h"

/*
 * Writes the default memory of a kind that exists, and makes it if there is none. Requires no lock.
 * Fails with OUT_OF_HOST_MEMORY, and with WRONG_STATE while the device is destroyed.
 */
QUIRE_MUST_USE quire_result qi_default_memory(quire_device *device, uint32_t kind,
                                              quire_memory **memory);

/* As quire_device_set_default_options. Requires no lock. */
QUIRE_MUST_USE quire_result qi_default_set_options(quire_device *device,
                                                   const quire_memory_options *options);

/*
 * Checks that a device can be destroyed: that it has no other memories and nothing else that keeps
 * it (device_members.h), and that nothing is in use in its default memories, as
 * quire_memory_destroy does. Fails with BUSY and changes nothing; the log names what is in use in
 * all default memories. On success no default memory is made any more. No other thread may use the
 * device.
 */
QUIRE_MUST_USE quire_result qi_device_prepare_end(quire_device *device);

/* Destroys the default memories of a device that is prepared for its end. */
void qi_default_memories_destroy(quire_device *device);

#endif
