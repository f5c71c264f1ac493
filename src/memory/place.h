/*
 * place.h - placing ranges in the pages of a memory and giving them back; what raw allocations,
 * buffers and images have in common.
 */
#ifndef QUIRE_SRC_MEMORY_PLACE_H
#define QUIRE_SRC_MEMORY_PLACE_H

#include "src/memory/memory.h"

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
    quire_object object;
} qi_wish;

/* The checks that all options share: size, alignment, name, access. */
QUIRE_MUST_USE quire_result qi_wish_check(const quire_memory *memory, const qi_wish *wish);

/*
 * Places a range; its slot is PRIVATE. With an object or a name the slot has a qi_extra.
 * On failure nothing changed.
 */
QUIRE_MUST_USE quire_result qi_place(quire_memory *memory, const qi_wish *wish, uint32_t *slot);

/* Gives back a private slot: object, range and, if it was dedicated, page. */
void qi_place_release(quire_memory *memory, uint32_t slot);

/*
 * With the shard's lock: gives back the range of a private slot of this shard, whose object and
 * name are gone, and the slot. True: its page became empty, and the policy is to be applied.
 */
bool qi_place_free(qi_shard *shard, uint32_t slot);

/* The same for one that was never handed out: it is not counted as an allocation and a free. */
void qi_place_undo(quire_memory *memory, uint32_t slot);

/* The part of a slot that only names and objects need; *extra is NULL when there is neither. */
QUIRE_MUST_USE quire_result qi_extra_make(quire_memory *memory, const char *name,
                                          quire_object object, qi_extra **extra);
void qi_extra_release(quire_memory *memory, qi_extra *extra);

/* allocation.c: the information about a slot the caller has pinned. */
void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info);

#endif
