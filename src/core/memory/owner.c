/*
 * owner.c - the table of memories by their tags (see owner.h).
 */
#include "src/core/memory/owner.h"

#include "src/base/result.h"

static void *_Atomic owners[1 << QI_TAG_BITS]; /* NULL, a quire_memory or &shared */
static char shared;

void qi_owner_add(quire_memory *memory)
{
    void *none = NULL;
    if (!qi_atomic_exchange_if_pointer(&owners[memory->tag], &none, memory))
        qi_atomic_store_release_pointer(&owners[memory->tag], &shared);
}

/* An entry that says `shared` stays: stale handles of all former owners have the tag. */
void qi_owner_remove(quire_memory *memory)
{
    void *expected = memory;
    qi_atomic_exchange_if_pointer(&owners[memory->tag], &expected, NULL);
}

static bool has_live(const quire_memory *memory, quire_allocation allocation)
{
    uint32_t slot = qi_handle_slot(allocation.id);
    return qi_slot_find_state(&memory->slots, slot) &&
           qi_slot_public_handle(&memory->slots, slot).id == allocation.id;
}

/* Prefers the memory in which the handle is live; *live gets the number of these. */
static quire_memory *search(quire_device *device, quire_allocation allocation, int *live)
{
    quire_memory *found = NULL;
    qi_lock_acquire(&device->lock);
    for (quire_memory *m = device->memories; m; m = m->next_of_device) {
        if (m->tag != qi_handle_tag(allocation.id))
            continue;
        bool is_live = has_live(m, allocation);
        if (is_live || !found)
            found = m;
        *live += is_live;
    }
    qi_lock_release(&device->lock);
    return found;
}

quire_result qi_owner_find(quire_device *device, quire_allocation allocation, quire_memory **memory)
{
    int live = 0;
    void *entry = qi_atomic_load_acquire_pointer(&owners[qi_handle_tag(allocation.id)]);
    *memory = entry == &shared ? search(device, allocation, &live) : entry;
    if (*memory && (*memory)->device == device && live < 2)
        return QUIRE_SUCCESS;
    if (live > 1)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "allocation %#llx is live in %d memories of device '%s', which has "
                            "more memories than handles tell apart",
                            (unsigned long long)allocation.id, live, device->info.name);
    if (!allocation.id)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the allocation is {0}, which is no handle");
    quire_result reason = *memory ? QUIRE_ERROR_FOREIGN_HANDLE : QUIRE_ERROR_STALE_HANDLE;
    *memory = NULL;
    return qi_fail_text(reason, "allocation %#llx belongs to no live memory of device '%s'",
                        (unsigned long long)allocation.id, device->info.name);
}
