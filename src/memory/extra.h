/*
 * extra.h - the part of a slot that only names, images, the user data of objects and recorded uses
 * need.
 */
#ifndef QUIRE_SRC_MEMORY_EXTRA_H
#define QUIRE_SRC_MEMORY_EXTRA_H

#include "src/memory/memory.h"

/* *extra is NULL when nothing is to be in it. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_extra_make(quire_memory *memory, const char *name,
                                          uint64_t user_data, bool is_image, qi_extra **extra);

/* One with nothing in it. NULL: no host memory. */
qi_extra *qi_extra_make_empty(quire_memory *memory);

/* Accepts NULL. */
void qi_extra_release(quire_memory *memory, qi_extra *extra);

#endif
