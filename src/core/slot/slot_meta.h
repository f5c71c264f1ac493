/*
 * extra.h - the part of a slot that only names, images, the user data of objects and recorded uses
 * need.
 */
#ifndef QUIRE_SRC_CORE_SLOT_SLOT_META_H
#define QUIRE_SRC_CORE_SLOT_SLOT_META_H

#include "src/core/state/memory.h"

/* *extra is NULL when nothing is to be in it. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_slot_meta_create(quire_memory *memory, const char *name,
                                                uint64_t user_data, bool is_image,
                                                qi_slot_meta **meta);

/* One with nothing in it. NULL: no host memory. */
qi_slot_meta *qi_slot_meta_create_empty(quire_memory *memory);

/* Accepts NULL. */
void qi_slot_meta_release(quire_memory *memory, qi_slot_meta *meta);

#endif
