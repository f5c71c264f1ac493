/*
 * native.h - binds and destroys the backend's object of an allocation.
 *
 * No function requires a lock. The caller owns the slot: it is PRIVATE. Invariant: `native` of the
 * record is 0 once the object is destroyed.
 */
#ifndef QUIRE_SRC_CORE_NATIVE_NATIVE_H
#define QUIRE_SRC_CORE_NATIVE_NATIVE_H

#include "src/core/state/memory.h"

/* Binds a native object to the slot's range; 0 binds nothing. Fails as the backend does. */
QUIRE_MUST_USE quire_result qi_native_bind(quire_memory *memory, uint32_t slot, quire_object object,
                                           uint64_t native);

/* Destroys the slot's native object, unless there is none or the application owns it. */
void qi_native_destroy(quire_memory *memory, qi_slot *record);

#endif
