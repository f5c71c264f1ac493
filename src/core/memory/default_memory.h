/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * default_memory.h - the memories that a device owns, one for each kind at most, made when they are
 * first needed; and requests that take the best kind with room.
 *
 * The device's lock protects their creation and their end; a thread that looks for one takes no
 * lock if it exists. Invariant: defaults[kind] of a device is NULL or a memory of this kind in
 * the list of the device, whose `is_default` is set.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_DEFAULT_MEMORY_H
#define QUIRE_SRC_CORE_MEMORY_DEFAULT_MEMORY_H

#include "quire/default_memory.h"
#include "src/core/object/object.h"
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

/* ---- by kind ------------------------------------------------------------------------------ */

/*
 * No function requires a lock.
 */

/* An object that is mapped and not read counts as written: the kind is then host-visible. */
static inline bool qi_host_writes(bool host_read, bool host_write, bool mapped)
{
    return host_write || (mapped && !host_read);
}

/*
 * Resolves a request (NULL means {0}) with the host access that the options ask for, by the rules
 * of quire/default_memory.h. Fails with INVALID_ARGUMENT and UNSUPPORTED.
 */
QUIRE_MUST_USE quire_result qi_by_kind_resolve(const quire_device *device,
                                               const quire_kind_request *given, bool host_read,
                                               bool host_write, quire_kind_request *request);

/*
 * As quire_device_allocate, quire_device_buffer_create and the like, for checked pointers and a
 * resolved request. The second completes a build that was begun, and ends it.
 */
QUIRE_MUST_USE quire_result qi_by_kind_allocate(quire_device *device,
                                                const quire_kind_request *request,
                                                const quire_allocation_options *options,
                                                quire_memory **memory,
                                                quire_allocation *allocation);
QUIRE_MUST_USE quire_result qi_by_kind_build(quire_device *device,
                                             const quire_kind_request *request,
                                             qi_object_build *build, quire_memory **memory,
                                             quire_allocation *allocation);

#endif
