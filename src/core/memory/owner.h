/*
 * owner.h - finds the memory of a handle by the tag in it.
 *
 * A table of the process has the memory of each tag. It is read without a lock. Invariant: the
 * entry of a tag is the only memory with this tag, or NULL, or says that several owners have had
 * the tag at the same time; then the memories of the device are searched under its lock.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_OWNER_H
#define QUIRE_SRC_CORE_MEMORY_OWNER_H

#include "src/core/state/memory.h"

/* Add a memory to the table, and remove it before its tag is returned. */
void qi_owner_add(quire_memory *memory);
void qi_owner_remove(quire_memory *memory);

/*
 * Writes the memory that made an allocation; the allocation may have been freed since. Fails with
 * INVALID_ARGUMENT for {0}, with STALE_HANDLE if no memory has the tag, with FOREIGN_HANDLE if one
 * of another device has it, and with WRONG_STATE if the handle is live in several memories.
 */
QUIRE_MUST_USE quire_result qi_owner_find(quire_device *device, quire_allocation allocation,
                                          quire_memory **memory);

#endif
