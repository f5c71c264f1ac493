/*
 * place.h - placing ranges in the pages of a memory and giving them back; what raw allocations,
 * buffers and images have in common.
 */
#ifndef QUIRE_SRC_MEMORY_PLACE_H
#define QUIRE_SRC_MEMORY_PLACE_H

#include "src/base/result.h"
#include "src/memory/put.h"

/* What to place; already checked against the public options' rules. */
typedef struct qi_wish {
    uint64_t size; /* asked for by the caller */
    uint64_t held; /* to be placed, at least size: what the backend or the policy needs; 0: size */
    uint64_t alignment;
    const char *name;
    uint64_t user_data;
    bool zero; /* filled with zeros before anybody can see it */
    bool dedicated;
    bool host_access;
    bool tied;               /* the backend wants a page for this object alone */
    const void *description; /* of memory that exists, which is tied too; or NULL */
    bool is_unaided;         /* the caller's on_shortage is not asked */
    quire_object object;
    uint64_t native; /* to be bound: freed with the allocation once that is handed out */
    bool borrowed;   /* the object is its maker's: it is not destroyed */
} qi_wish;

/* The checks that all options share: size, alignment, name, access. */
QUIRE_MUST_USE quire_result qi_wish_check(const quire_memory *memory, const qi_wish *wish);

/* The wish behind the options of a raw allocation, checked. */
QUIRE_MUST_USE quire_result qi_wish_from(const quire_memory *memory,
                                         const quire_allocation_options *options, qi_wish *wish);

/* Whether it is a raw range to which the policy adds nothing, in a shared page. */
static inline bool qi_wish_is_usual(const quire_memory *memory, const qi_wish *wish)
{
    return !wish->name && !wish->object && !wish->zero && !wish->dedicated &&
           wish->held <= wish->size && wish->size <= memory->largest_at_once;
}

/* What of a usual wish is put into a page. */
static inline qi_load qi_load_of(const qi_wish *wish)
{
    return (qi_load){.size = wish->size,
                     .alignment = wish->alignment,
                     .requested = wish->size,
                     .user_data = wish->user_data};
}

/*
 * Places a range; its slot is PRIVATE. With an object or a name the slot has a qi_extra.
 * On failure nothing changed. Where something else than a lack of room has `failed` already, the
 * refusal is only told.
 */
QUIRE_MUST_USE quire_result qi_place(quire_memory *memory, const qi_wish *wish, quire_result failed,
                                     uint32_t *slot);

/* The usual case, whole: a raw range that fits into a page there is. NO_SPACE: it is another. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_place_at_once(quire_memory *memory,
                                                              const qi_load *load, uint32_t *slot)
{
    qi_shard *shard = qi_shard_mine(memory);
    quire_result result = QUIRE_ERROR_NO_SPACE;
    qi_lock_acquire(&shard->lock);
    if (!qi_shard_is_behind(shard))
        result = qi_put(shard, load, QI_TRY, slot);
    qi_lock_release(&shard->lock);
    return result;
}

/* Requests up to this size need nothing that the policy adds and no page of their own. */
uint64_t qi_place_largest_at_once(const quire_memory *memory);

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

/*
 * The same for one that was never handed out: it is not counted as an allocation and a free, and
 * its object stays its maker's.
 */
void qi_place_undo(quire_memory *memory, uint32_t slot);

/* The part of a slot that only names and objects need; *extra is NULL when there is neither. */
QUIRE_MUST_USE quire_result qi_extra_make(quire_memory *memory, const char *name,
                                          quire_object object, qi_extra **extra);
void qi_extra_release(quire_memory *memory, qi_extra *extra);

/* allocation.c: the information about a slot the caller has pinned. */
void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info);

#endif
