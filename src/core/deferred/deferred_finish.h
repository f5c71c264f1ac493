/*
 * deferred_finish.h - the deferred frees of a memory that is destroyed.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_FINISH_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_FINISH_H

#include "src/core/state/memory.h"

/*
 * Requires no lock. Waits for the points of every deferred free, and of live allocations with
 * recorded uses, and releases all of them. It does not wait for capture streams. It waits for a
 * stream as long as points of the stream pass; when none has passed for the device's stall timeout
 * it logs a warning and releases the rest.
 */
void qi_deferred_finish(quire_memory *memory);

#endif
