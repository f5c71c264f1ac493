/*
 * fork.h - what becomes of devices, memories and streams in the child of a fork (docs/threading.md,
 * "Fork").
 *
 * Handlers of pthread_atfork take every lock of every device before the fork, in the order of the
 * ranks, so that what locks guard is whole in the child. They give them back in the parent; in the
 * child they also settle what is not under a lock: what other threads, which are gone there, had in
 * hand between two holds of a lock. The thread that forked goes on in the child, perhaps within a
 * callback of the library: what it has in hand stays. So whoever takes a page or the end of an
 * object in hand writes down which thread it is (qi_thread_self).
 *
 * What threads that are gone had in hand:
 *   a page being made             its number is free again; what the backend made of it is lost
 *   a page being given back       given back, unless the backend was at it: then it is lost
 *   a page between two shards     given back
 *   the end of a page             is where it was, or was going to be if that is less
 *   pins                          gone; holds stay
 *   slots and their ranges        taken until the memory ends (has_orphans)
 *   the end of a memory, stream   it is gone from its device; its records are lost
 *   bytes taken from an account   what the pages that are left take is counted anew
 *
 * A device that does not survive is cut: its table answers NOT_PERMITTED (cut.c), and so do its
 * memories, whose slots have a tag that no handle has, so that no usual call looks for it.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_FORK_H
#define QUIRE_SRC_CORE_MEMORY_FORK_H

#include "src/core/state/memory.h"

/* Before anybody knows the device; after nobody does. OUT_OF_HOST_MEMORY: no handlers. */
QUIRE_MUST_USE quire_result qi_fork_add(quire_device *device);
void qi_fork_remove(quire_device *device);

/* Around a callback during which the calling thread has allocations pinned: where it forks there,
   all pins stay in the child. */
void qi_fork_keep_uses(bool keep);

/* For a memory that ends, without a lock: gives back what no thread has in hand any more. */
void qi_fork_free_orphans(quire_memory *memory);

/*
 * cut.c: from now on the device's table answers NOT_PERMITTED, but what ends something, which is
 * the backend's own where it has heard of the fork (QUIRE_BACKEND_FORK), and nothing else.
 */
void qi_device_disable(quire_device *device);

#endif
