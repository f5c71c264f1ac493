/*
 * slot_meta.h - creating and releasing the meta record of a slot.
 *
 * Only allocations with a name, images, objects with user data, and allocations with recorded uses
 * have one. No function requires a lock. The caller owns the record until it is stored in a slot.
 */
#ifndef QUIRE_SRC_CORE_SLOT_SLOT_META_H
#define QUIRE_SRC_CORE_SLOT_SLOT_META_H

#include "src/base/host_memory.h"
#include "src/core/slot/slot.h"

/* Fails with OUT_OF_HOST_MEMORY; then *meta is NULL. */
QUIRE_MUST_USE quire_result qi_slot_meta_create_some(qi_host *host, const char *name,
                                                     uint64_t user_data, bool is_image,
                                                     qi_slot_meta **meta);

/* The same, but sets *meta to NULL if nothing is to be stored in it, as for most allocations. */
QUIRE_MUST_USE static inline quire_result qi_slot_meta_create(qi_host *host, const char *name,
                                                              uint64_t user_data, bool is_image,
                                                              qi_slot_meta **meta)
{
    *meta = NULL;
    return name || user_data || is_image
               ? qi_slot_meta_create_some(host, name, user_data, is_image, meta)
               : QUIRE_SUCCESS;
}

/* Returns an empty record, or NULL if host memory is exhausted. */
qi_slot_meta *qi_slot_meta_create_empty(qi_host *host);

/* Accepts NULL. */
void qi_slot_meta_release(qi_host *host, qi_slot_meta *meta);

#endif
