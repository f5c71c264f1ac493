/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * map.c - counts the users of a page in one word: the first maps the page, the last unmaps it, and
 * others sleep during these two calls of the backend (see map.h).
 */
#include "src/core/page/map.h"

#include "src/base/result.h"
#include "src/base/sleep.h"

#define CHANGES (UINT32_C(1) << 31)
#define SLEEPS (UINT32_C(1) << 30)

/* ---- the map word ------------------------------------------------------------------------- */

/* Sleeps while another thread maps or unmaps the page. `seen` is a word with the bit `changes`. */
static void await_change(qi_atomic_u32 *word, uint32_t seen)
{
    if (seen & SLEEPS || qi_atomic_take_u32(word, seen, seen | SLEEPS))
        qi_sleep_while(word, seen | SLEEPS);
}

/* Ends a change. Publishes page->native.host. */
static void end_change(qi_atomic_u32 *word, uint32_t users)
{
    if (qi_atomic_swap_release_u32(word, users) & SLEEPS)
        qi_sleep_wake_all(word);
}

/* In the child of a fork the page may be mapped already. */
static quire_result map_first(quire_memory *memory, qi_page *page)
{
    quire_result result = page->native.host
                              ? QUIRE_SUCCESS
                              : qi_device_page_map(memory->device, &memory->calls, &page->native);
    end_change(&page->map_word, !result);
    return result;
}

quire_result qi_page_map_add(quire_memory *memory, qi_page *page)
{
    qi_atomic_u32 *word = &page->map_word;
    for (;;) {
        uint32_t seen = qi_atomic_load_acquire_u32(word);
        if (seen & CHANGES)
            await_change(word, seen);
        else if (seen == QI_MAX_PAGE_USERS)
            return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the page is mapped %u times", seen);
        else if (seen && qi_atomic_exchange_if_u32(word, &seen, seen + 1))
            return QUIRE_SUCCESS;
        else if (!seen && qi_atomic_exchange_if_u32(word, &seen, CHANGES))
            return map_first(memory, page);
    }
}

/* No other thread changes the word from or to 0 while it counts this user. */
void qi_page_map_remove(quire_memory *memory, qi_page *page)
{
    qi_atomic_u32 *word = &page->map_word;
    uint32_t seen = qi_atomic_load_acquire_u32(word);
    while (!qi_atomic_exchange_if_u32(word, &seen, seen == 1 ? CHANGES : seen - 1)) {
    }
    if (seen != 1)
        return;
    qi_device_page_unmap(memory->device, &memory->calls, &page->native);
    end_change(word, 0);
}

/* ---- maps that last ----------------------------------------------------------------------- */

/* Under the lock, because a walk of the page reads the byte, also that of a PRIVATE slot. */
static void set_mapped(quire_memory *memory, uint32_t slot, bool is_mapped)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    record->extras &= (uint8_t)~QI_EXTRA_MAPPED;
    record->extras |= is_mapped ? QI_EXTRA_MAPPED : 0;
    qi_lock_release(lock);
}

quire_result qi_page_map_keep(quire_memory *memory, uint32_t slot)
{
    char *host;
    quire_result result = qi_page_map_begin(memory, qi_memory_page(memory, slot), &host);
    if (!result)
        set_mapped(memory, slot, true);
    return result;
}

void qi_page_map_drop(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    if (!(record->extras & QI_EXTRA_MAPPED))
        return;
    set_mapped(memory, slot, false);
    qi_page_map_end(memory, record->tally->page);
}

void *qi_page_map_lasting(const quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    if (!(record->extras & QI_EXTRA_MAPPED))
        return NULL;
    return (char *)record->tally->page->native.host + record->offset;
}

/* ---- after a fork ------------------------------------------------------------------------- */

/* The number of users that a slot stands for. Calls that run are not among them. */
static uint32_t users_of(const quire_memory *memory, uint32_t slot)
{
    qi_phase phase = qi_slot_phase(&memory->slots, slot);
    bool has_maps = phase == QI_PHASE_LIVE || phase == QI_PHASE_RESERVED;
    if (phase == QI_PHASE_FREE)
        return 0;
    return (has_maps ? qi_slot_map_count(&memory->slots, slot) : 0) +
           ((qi_memory_slot(memory, slot)->extras & QI_EXTRA_MAPPED) != 0);
}

/* A page that was about to change has no other user, and its address is unknown. */
static void forget_changes(quire_memory *memory, bool recount)
{
    for (uint32_t i = 0; i < memory->pages.top; i++) {
        qi_page *page = qi_page_at(&memory->pages, i);
        bool changes = qi_atomic_load_u32(&page->map_word) & CHANGES;
        if (changes)
            page->native.host = NULL;
        if (changes || recount)
            qi_atomic_store_release_u32(&page->map_word, 0);
    }
}

void qi_page_map_forked(quire_memory *memory, bool recount)
{
    if (!memory->maps_on_demand)
        return;
    forget_changes(memory, recount);
    for (uint32_t i = 0, top = qi_slots_top(&memory->slots); i < top && recount; i++) {
        uint32_t users = users_of(memory, i);
        if (users)
            qi_atomic_add_u32(&qi_memory_page(memory, i)->map_word, users);
    }
}
