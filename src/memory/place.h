/*
 * place.h - placing ranges in the pages of a memory and giving them back; what raw allocations,
 * buffers and images have in common.
 */
#ifndef QUIRE_SRC_MEMORY_PLACE_H
#define QUIRE_SRC_MEMORY_PLACE_H

#include "src/base/result.h"
#include "src/memory/put.h"
#include "src/memory/wish.h"

/*
 * Places a range; its slot is PRIVATE. With a name, or of an image, the slot has a qi_extra.
 * On failure nothing changed. Where something else than a lack of room has `failed` already, the
 * refusal is only told.
 */
QUIRE_MUST_USE quire_result qi_place(quire_memory *memory, const qi_wish *wish, quire_result failed,
                                     uint32_t *slot);

/* Whether a placement may need host memory, which frees that wait would save it. */
static inline bool qi_place_needs_records(const qi_shard *shard)
{
    return shard->queue.first == QI_NO_SLOT || shard->space->pool.spare < 2;
}

/* The usual case, whole: a raw range that fits into a page there is. NO_SPACE: it is another. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_place_at_once(quire_memory *memory,
                                                              const qi_load *load, uint32_t *slot)
{
    qi_shard *shard = qi_shard_mine(memory);
    quire_result result = QUIRE_ERROR_NO_SPACE;
    qi_lock_acquire(&shard->lock);
    if (!qi_shard_is_behind(shard) &&
        !(qi_unlikely(qi_place_needs_records(shard)) && !qi_inbox_is_empty(&shard->inbox)))
        result = qi_put(shard, load, QI_TRY, slot);
    qi_lock_release(&shard->lock);
    return result;
}

/* Gives back a private slot: object, range and, if it was dedicated, page. */
void qi_place_give_back(quire_memory *memory, uint32_t slot);

/*
 * The same when the caller frees it. Checked builds hold the range for a while, and CORRUPTED tells
 * there that somebody wrote beside it; it is freed all the same.
 */
static inline quire_result qi_place_release(quire_memory *memory, uint32_t slot)
{
    bool is_harmed = qi_checked_is_harmed(memory, slot);
    if (!qi_checked_hold(memory, slot))
        qi_place_give_back(memory, slot);
    return is_harmed ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS;
}

/* Destroys a won slot's native object, if it has one that is not borrowed. */
void qi_place_end_object(quire_memory *memory, qi_slot *record);

/* Of a won slot without an object: what it has besides its range goes. */
void qi_place_drop_name(quire_memory *memory, uint32_t slot);

/*
 * The same for one that was never handed out: it is not counted as an allocation and a free, and
 * its object stays its maker's.
 */
void qi_place_undo(quire_memory *memory, uint32_t slot);

/* allocation.c: the information about a slot the caller has pinned. */
void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info);

#endif
