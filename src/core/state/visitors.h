/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * visitors.h - threads that reach a memory from its device, and not by a call on the memory itself.
 *
 * The program may destroy a memory, or set its hook, while no call on it runs. It cannot know of
 * visitors: these two calls wait for those of other threads. A visitor may take the memory's locks,
 * take its pages and call its hook. The lock of the device protects the count of visitors; the
 * functions acquire it, unless they require it. Invariant: a memory with visitors stays in
 * the device's list, and no other thread takes it apart.
 */
#ifndef QUIRE_SRC_CORE_STATE_VISITORS_H
#define QUIRE_SRC_CORE_STATE_VISITORS_H

#include "src/core/state/memory.h"

/*
 * Returns the memory after `previous`, or the first if that is NULL; NULL after the last. Closed
 * memories are left out. The caller becomes a visitor of the returned memory, and is no longer one
 * of the previous.
 */
quire_memory *qi_visitors_next(quire_device *device, quire_memory *previous);

/* Ends a visit before the end of the list. */
void qi_visitors_leave(quire_memory *memory);

/* As quire_device_walk. `visit` may also destroy the memory that it gets. */
void qi_visitors_walk(quire_device *device, bool (*visit)(void *user, quire_memory *memory),
                      void *user);

/* Closes a memory before its destruction: waits for the visitors of other threads, and lets no
   further one come. */
void qi_visitors_close(quire_memory *memory);

/* Requires the lock of the device. Moves walks of the calling thread that are at a memory to the
   next one, because the memory leaves the list. */
void qi_visitors_move_own(const quire_memory *memory);

/* Sets the memory's hook while it has no visitor. */
void qi_visitors_set_hook(quire_memory *memory, const quire_hook *hook);

/* Sets the hook of a device. No other thread uses the device or its memories. */
void qi_visitors_set_device_hook(quire_device *device, const quire_hook *hook);

#endif
