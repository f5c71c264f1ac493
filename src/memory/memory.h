/*
 * memory.h - a memory: its pages, its space, its slots and its figures, under one lock.
 *
 * The lock guards everything below except the slots' state words, which are atomic, and the pages'
 * native side, which does not change while an allocation in the page is pinned. It is never held
 * across a backend call, a log line or a callback. What takes long (making a page, giving one back,
 * binding, copying) is prepared under the lock, done without it, and published under it again.
 *
 * Invariant: reserved_bytes is the sum of the live pages, live_bytes the sum of the allocations'
 * size and left padding, and empty_bytes the sum of the live pages without allocations.
 */
#ifndef QUIRE_SRC_MEMORY_MEMORY_H
#define QUIRE_SRC_MEMORY_MEMORY_H

#include "quire/insight.h"
#include "src/memory/device.h"
#include "src/memory/name.h"
#include "src/memory/page.h"
#include "src/memory/slot.h"

struct quire_memory {
    quire_device *device;
    quire_memory *next_of_device;
    char *name;
    uint32_t kind;
    quire_memory_flags flags;
    bool exportable;
    quire_page_policy policy; /* resolved */
    uint64_t largest_alignment;
    uint64_t granule;
    uint64_t atom; /* sizes and alignments are multiples of it: 1 unless mapped and not coherent */
    quire_fit fit;
    qi_host host;
    qi_calls calls;
    qi_account account; /* bytes of its pages, from before they are made until they are gone */

    qi_lock lock;
    quire_space *space; /* the shared pages are its regions; a range's user value is its slot */
    qi_slots slots;
    qi_pages pages;
    qi_names names;           /* the limits of names */
    quire_memory_stats stats; /* the counted fields; derived ones are filled in when asked */
};

/* Fails with INVALID_ARGUMENT. */
quire_result qi_refuse_null_memory(void);

/* The record of a slot that the caller has pinned, reserved or won. */
static inline qi_slot *qi_memory_slot(const quire_memory *memory, uint32_t slot)
{
    return qi_slot_at(&memory->slots, slot);
}

/* The page of such a slot. */
static inline qi_page *qi_memory_page(const quire_memory *memory, uint32_t slot)
{
    return qi_page_of_allocation(&memory->pages, qi_memory_slot(memory, slot)->page);
}

#endif
