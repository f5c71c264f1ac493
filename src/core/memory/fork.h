/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork.h - devices, memories and streams in the child of a fork (docs/threading.md, "Fork").
 *
 * Handlers of pthread_atfork acquire every lock of every device before the fork, in the order of
 * the ranks, so that the data which locks protect is consistent in the child. Parent and child
 * release the locks. The child also repairs what threads had in progress between two holds of a
 * lock: these threads do not exist there. The thread that forked continues in the child, possibly
 * inside a callback of the library, so that what it has in progress must stay. For this reason a
 * thread that starts to make, move, resize or destroy an object stores its identity in the object
 * (qi_thread_self).
 *
 * In progress in threads that do not exist in the child:
 *   a page in creation            its number is free again; what the backend created is lost
 *   a page being returned         is destroyed; lost if the backend was destroying it
 *   a page between two shards     is destroyed
 *   a resize of a page            the end is at the old or the new place, whichever is lower
 *   a use of an allocation        does not count any more; holds stay
 *   a move of an allocation       it stays where it was; the place for it is that of a slot
 *   a compaction                  is forgotten, so that another can begin; a step resumes it
 *   slots and their ranges        stay taken until the memory is destroyed (has_orphans)
 *   destruction of a memory or    the object is removed from its device; its records are lost
 *     stream
 *   bytes taken from an account   accounts are set to the pages that exist
 *
 * A device that does not survive the fork is disabled: its functions answer NOT_PERMITTED
 * (device/disabled.c). The slots of its memories get a tag that no handle has, so that its
 * allocations are refused without an additional test on the fast path.
 *
 * The lock of base/system.h protects the list of devices.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_FORK_H
#define QUIRE_SRC_CORE_MEMORY_FORK_H

#include "src/core/device/device.h"
#include "src/core/state/memory.h"

/* ---- the handlers ------------------------------------------------------------------------- */

/*
 * Add a new device to the devices of the process, before another thread can use it, and remove it
 * after its last use. Adding fails with OUT_OF_HOST_MEMORY if the handlers cannot be registered.
 */
QUIRE_MUST_USE quire_result qi_fork_add(quire_device *device);
void qi_fork_remove(quire_device *device);

/* ---- in the child ------------------------------------------------------------------------- */

/*
 * Requires that no lock is held, and a memory that is being destroyed. Releases the slots of
 * threads that do not exist in the child.
 */
void qi_fork_free_orphans(quire_memory *memory);

#endif
