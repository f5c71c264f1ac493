/*
 * addresses_check.c - looks for allocations that the addresses of a memory lack.
 */
#include "src/core/find/addresses.h"

/* Whether a start in a shared page is noted in the page's bitmap. */
static bool is_noted(const qi_page_addresses *page, uint64_t offset)
{
    uint64_t start = 0;
    if (!page->starts)
        return true;
    qi_lock_acquire(page->lock);
    bool is_there = qi_page_addresses_before(page, offset, &start);
    qi_lock_release(page->lock);
    return is_there && offset - start < page->granule;
}

/* An allocation is in the tables as long as its slot is live: its free claims the slot first. */
uint32_t qi_addresses_missing(quire_memory *memory)
{
    for (uint32_t slot = 0; slot < qi_slots_top(&memory->slots); slot++) {
        quire_allocation allocation = qi_slot_public_handle(&memory->slots, slot);
        if (!allocation.id || !qi_slot_is_live(&memory->slots, allocation.id))
            continue;
        const qi_page_addresses *page = qi_memory_page(memory, slot)->addresses;
        uint64_t address = qi_addresses_start_of(memory, slot);
        uint64_t offset = qi_memory_slot(memory, slot)->offset;
        bool is_there =
            !address || page->is_late ||
            (qi_starts_has(&memory->addresses->starts, address, slot) && is_noted(page, offset));
        if (!is_there && qi_slot_is_live(&memory->slots, allocation.id))
            return slot;
    }
    return QI_NO_SLOT;
}
