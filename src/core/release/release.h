/*
 * release.h - gives back a PRIVATE slot: its object, its name, and its range or dedicated page.
 *
 * A slot is PRIVATE because its allocation was never published, or because a free claimed it. The
 * calling thread owns it. No function requires a lock; the lock of the slot's shard protects the
 * range and the statistics. Invariant: a slot is given back once, after its object and name.
 */
#ifndef QUIRE_SRC_CORE_RELEASE_RELEASE_H
#define QUIRE_SRC_CORE_RELEASE_RELEASE_H

#include "src/core/state/memory.h"

/*
 * Gives the slot back. A slot of another thread's shard goes into that shard's inbox. Beyond 1,024
 * queued frees the calling thread drains the inbox itself.
 */
void qi_release(quire_memory *memory, uint32_t slot);

/*
 * Like qi_release, for a slot that the application freed. Checked builds keep it in quarantine
 * first. Returns CORRUPTED if bytes beside the allocation were written (checked builds only); the
 * slot is released all the same.
 */
static inline quire_result qi_release_checked(quire_memory *memory, uint32_t slot)
{
    bool is_corrupted = qi_checked_report_corruption(memory, slot);
    if (!qi_checked_hold(memory, slot))
        qi_release(memory, slot);
    return is_corrupted ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS;
}

/* Releases the name of a slot without an object. */
void qi_release_name(quire_memory *memory, uint32_t slot);

/*
 * Gives back a slot that was never published. The statistics do not count it as an allocation and a
 * free. Its native object stays with the thread that created it.
 */
void qi_release_unpublished(quire_memory *memory, uint32_t slot);

#endif
