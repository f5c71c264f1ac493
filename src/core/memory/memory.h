/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.h - creating, describing and destroying memories, the memory of a handle, and what a
 * backend keeps in a memory besides allocations.
 *
 * While a memory is created or destroyed, no other thread uses it; the device's lock protects the
 * list of memories.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_MEMORY_H
#define QUIRE_SRC_CORE_MEMORY_MEMORY_H

#include "src/core/state/memory.h"

/* ---- attachments -------------------------------------------------------------------------- */

/*
 * The device's lock protects the list; both functions acquire it. The backend owns the attachments.
 * Invariant: an attachment is in the list from the add to the remove, and in one list only.
 */

/* Adds an attachment at the front. It must stay valid until it is removed. */
void qi_attachment_add(quire_memory *memory, quire_attachment *attachment);
void qi_attachment_remove(quire_memory *memory, quire_attachment *attachment);

/* ---- memories by their tags --------------------------------------------------------------- */

/*
 * A table of the process has the memory of each tag. It is read without a lock. Invariant: the
 * entry of a tag is the only memory with this tag, or NULL, or says that several owners have had
 * the tag at the same time; then the memories of the device are searched under its lock.
 */

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

/* ---- creation and destruction ------------------------------------------------------------- */

/*
 * As quire_memory_create, for checked pointers; NULL options mean {0}. `extra` is what the backend
 * wants to know of each page.
 */
QUIRE_MUST_USE quire_result qi_memory_create(quire_device *device,
                                             const quire_memory_options *options,
                                             quire_page_extra extra, quire_memory **memory);

/*
 * The two parts of the above for memories that the device lists in another way: makes the records,
 * and logs that the memory exists once it is listed.
 */
QUIRE_MUST_USE quire_result qi_memory_make(quire_device *device,
                                           const quire_memory_options *options,
                                           quire_page_extra extra, quire_memory **memory);
void qi_memory_announce(const quire_memory *memory);

/*
 * Checks that nothing of a memory is in use, and lets it make no more pages. Fails with BUSY, which
 * lists what remains; the memory is unchanged then. No other thread may use the memory.
 */
QUIRE_MUST_USE quire_result qi_memory_prepare_end(quire_memory *memory);

/*
 * Destroys a memory without allocations. Fails with INVALID_ARGUMENT for a default memory, and with
 * BUSY, which lists what remains; the memory is unchanged then. No other thread may use the memory.
 * *destroyed becomes NULL before the last callbacks are called, so that a hook or a log sink that
 * reads the application's variable does not use it.
 */
QUIRE_MUST_USE quire_result qi_memory_destroy(quire_memory **destroyed);

/* Likewise with its allocations, after their deferred frees. *destroyed becomes NULL at once. */
void qi_memory_destroy_all(quire_memory **destroyed);

/* As quire_memory_get_info. Takes the locks of a shard and of the pages. */
quire_memory_info qi_memory_get_info(quire_memory *memory);

/* Releases the records of a memory that has no pages and that no device lists. */
void qi_memory_release(quire_memory *memory);

#endif
