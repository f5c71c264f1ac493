/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs_records.c - the host memory of slabs: records, generations and user values. The three
 * arrays grow and shrink together.
 */
#include "src/space/segregated/slabs.h"

#include "src/base/handle.h"
#include "src/base/result.h"

enum { FIRST_CAPACITY = 16, DOUBLED_BELOW = 256, GROWTH = 8 };

/* Moves the arrays to another capacity. On failure changes nothing. */
static bool resize(qi_segregated *s, uint32_t capacity)
{
    qi_slabs *slabs = s->slabs;
    qi_host *host = &s->space.host;
    uint64_t old_slots = (uint64_t)slabs->capacity * QI_SLAB_SLOTS;
    uint64_t slots = (uint64_t)capacity * QI_SLAB_SLOTS;
    qi_slab *items = qi_host_allocate(host, capacity, sizeof *items);
    uint32_t *generations = qi_host_allocate(host, slots, sizeof *generations);
    uint64_t *users = slabs->users ? qi_host_allocate(host, slots, sizeof *users) : NULL;
    if (!items || !generations || (slabs->users && !users)) {
        qi_host_release(host, items, capacity, sizeof *items);
        qi_host_release(host, generations, slots, sizeof *generations);
        qi_host_release(host, users, slots, sizeof *users);
        return false;
    }
    uint64_t kept = old_slots < slots ? old_slots : slots;
    if (slabs->capacity) {
        memcpy(items, slabs->items, kept / QI_SLAB_SLOTS * sizeof *items);
        memcpy(generations, slabs->generations, kept * sizeof *generations);
        if (users)
            memcpy(users, slabs->users, kept * sizeof *users);
    }
    qi_host_release(host, slabs->items, slabs->capacity, sizeof *items);
    qi_host_release(host, slabs->generations, old_slots, sizeof *generations);
    qi_host_release(host, slabs->users, old_slots, sizeof *users);
    slabs->items = items;
    slabs->generations = generations;
    slabs->users = users;
    slabs->capacity = capacity;
    return true;
}

quire_result qi_slabs_reserve_number(qi_segregated *s)
{
    qi_slabs *slabs = s->slabs;
    if (slabs->unused || slabs->top < slabs->capacity)
        return QUIRE_SUCCESS;
    uint32_t old = slabs->capacity;
    uint32_t capacity = old < DOUBLED_BELOW ? old * 2 : old + old / GROWTH;
    if (!old)
        capacity = FIRST_CAPACITY;
    if (old >= QI_MAX_SLABS)
        return QUIRE_ERROR_NO_SPACE; /* the caller then allocates from the fit itself */
    if (capacity > QI_MAX_SLABS)
        capacity = QI_MAX_SLABS;
    if (!resize(s, capacity))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for %u slab%s",
                            capacity);
    slabs->top += !slabs->top;
    return QUIRE_SUCCESS;
}

quire_result qi_slabs_reserve_user(qi_segregated *s, uint64_t user)
{
    qi_slabs *slabs = s->slabs;
    if (!user || slabs->users || !slabs->capacity)
        return QUIRE_SUCCESS;
    uint64_t slots = (uint64_t)slabs->capacity * QI_SLAB_SLOTS;
    slabs->users = qi_host_allocate(&s->space.host, slots, sizeof *slabs->users);
    return slabs->users ? QUIRE_SUCCESS
                        : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                  "no host memory for the user values of small ranges");
}

/* Requires that the hot calls of the space are already those of the fit. */
quire_result qi_slabs_init(qi_segregated *s)
{
    s->slabs = qi_host_allocate(&s->space.host, 1, sizeof *s->slabs);
    if (!s->slabs)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the slabs of a space");
    s->slabs->allocate = s->space.allocate_range;
    s->slabs->free_range = s->space.usual_free;
    return QUIRE_SUCCESS;
}

void qi_slabs_finish(qi_segregated *s)
{
    qi_slabs *slabs = s->slabs;
    qi_host *host = &s->space.host;
    uint64_t slots = (uint64_t)slabs->capacity * QI_SLAB_SLOTS;
    qi_host_release(host, slabs->items, slabs->capacity, sizeof *slabs->items);
    qi_host_release(host, slabs->generations, slots, sizeof *slabs->generations);
    qi_host_release(host, slabs->users, slots, sizeof *slabs->users);
    qi_host_release(host, slabs, 1, sizeof *slabs);
}

/*
 * Requires that empty slabs were released. The slots that remain start at the highest discarded
 * generation, so that no old handle becomes live. Keeps the records if that generation is above
 * half of all: the slots would wear out too soon.
 */
void qi_slabs_trim(qi_segregated *s)
{
    qi_slabs *slabs = s->slabs;
    if (slabs->count || !slabs->capacity)
        return; /* existing slabs need their records and generations */
    uint32_t highest = slabs->first_generation;
    for (uint64_t i = 0; i < (uint64_t)slabs->top * QI_SLAB_SLOTS;
         i++) /* those of number 0 stay 0 */
        if (slabs->generations[i] > highest)
            highest = slabs->generations[i];
    if (highest > QI_LAST_GENERATION / 2 || slabs->capacity <= FIRST_CAPACITY ||
        !resize(s, FIRST_CAPACITY))
        return;
    slabs->top = 1;
    slabs->unused = 0;
    slabs->first_generation = highest;
}
