/*
 * by_kind.h - places something in the default memory of the best memory kind that has room.
 *
 * No function requires a lock.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_BY_KIND_H
#define QUIRE_SRC_CORE_MEMORY_BY_KIND_H

#include "quire/default_memory.h"
#include "src/core/object/object.h"

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
