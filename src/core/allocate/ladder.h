/*
 * place.h - placing ranges in the pages of a memory and giving them back; what raw allocations,
 * buffers and images have in common.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_LADDER_H
#define QUIRE_SRC_CORE_ALLOCATE_LADDER_H

#include "src/base/result.h"
#include "src/core/page/range_take.h"
#include "src/core/allocate/request.h"

/*
 * Places a range; its slot is PRIVATE. With a name, or of an image, the slot has a qi_slot_meta.
 * On failure nothing changed. Where something else than a lack of room has `failed` already, the
 * refusal is only told.
 */
QUIRE_MUST_USE quire_result qi_allocate(quire_memory *memory, const qi_request *request,
                                        quire_result failed, uint32_t *slot);

/* Whether a placement may need host memory, which frees that wait would save it. */
static inline bool qi_allocate_needs_records(const qi_shard *shard)
{
    return shard->queue.first == QI_NO_SLOT || shard->space->pool.spare < 2;
}

/* The usual case, whole: a raw range that fits into a page there is. NO_SPACE: it is another. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_fast(quire_memory *memory,
                                                              const qi_range_request *range_request,
                                                              uint32_t *slot)
{
    qi_shard *shard = qi_shard_mine(memory);
    quire_result result = QUIRE_ERROR_NO_SPACE;
    qi_lock_acquire(&shard->lock);
    if (!qi_shard_is_behind(shard) &&
        !(qi_unlikely(qi_allocate_needs_records(shard)) && !qi_inbox_is_empty(&shard->inbox)))
        result = qi_range_take(shard, range_request, QI_TRY, slot);
    qi_lock_release(&shard->lock);
    return result;
}

/* Gives back a private slot: object, range and, if it was dedicated, page. */
void qi_release(quire_memory *memory, uint32_t slot);

/*
 * The same when the caller frees it. Checked builds hold the range for a while, and CORRUPTED tells
 * there that somebody wrote beside it; it is freed all the same.
 */
static inline quire_result qi_release_checked(quire_memory *memory, uint32_t slot)
{
    bool is_corrupted = qi_checked_is_corrupted(memory, slot);
    if (!qi_checked_hold(memory, slot))
        qi_release(memory, slot);
    return is_corrupted ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS;
}

/* Destroys a won slot's native object, if it has one that is not borrowed. */
void qi_native_release(quire_memory *memory, qi_slot *record);

/* Of a won slot without an object: what it has besides its range goes. */
void qi_release_name(quire_memory *memory, uint32_t slot);

/*
 * The same for one that was never handed out: it is not counted as an allocation and a free, and
 * its object stays its maker's.
 */
void qi_release_unpublished(quire_memory *memory, uint32_t slot);

/* allocation.c: the information about a slot the caller has pinned. */
void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info);

#endif
