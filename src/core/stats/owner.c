/*
 * owner.c - finds the allocation at an address (see stats.h): a search of the pages, then of the
 * ranges of one page.
 */
#include "src/base/result.h"
#include "src/core/page/page_take.h"
#include "src/core/state/memory.h"
#include "src/core/stats/stats.h"
#include "src/space/fit.h"
#include "src/space/space.h"

/*
 * Whether a live page contains an address, of the device or of the host's mapping. *offset receives
 * the position in the page. Other pages are skipped, because another thread may be writing the
 * record of a page that is being made.
 */
static bool holds(const qi_page *page, uint64_t address, uint64_t *offset)
{
    if (page->phase != QI_PAGE_LIVE)
        return false;
    uint64_t host = (uintptr_t)page->native.host, native = page->native.native.address;
    uint64_t size = page->native.size;
    *offset = address - native;
    if (native && *offset < size)
        return true;
    *offset = address - host;
    return host && *offset < size;
}

typedef struct search {
    uint64_t offset; /* in the region; the position to find */
    bool found;
    uint32_t slot;
} search;

/* Stops the walk at the range that contains the offset, or at the first range after it. */
static bool look_at(void *user, const quire_space_item *item)
{
    search *s = user;
    if (s->offset < item->offset - item->left_padding)
        return false;
    s->found = !item->is_free && s->offset >= item->offset && s->offset - item->offset < item->size;
    s->slot = (uint32_t)item->user;
    return !s->found;
}

/* Requires the shard lock. Finds the slot at an offset of a page. */
static search find_slot(quire_memory *memory, const qi_page *page, uint64_t offset)
{
    search s = {.offset = offset - page->tally->skipped};
    if (!page->dedicated) {
        qi_space_walk_region(page->shard->space, page->region, look_at, &s);
        s.found = s.found && qi_checked_owns(memory, s.slot, offset);
        return s;
    }
    if (!page->tally->allocation_count)
        return s;
    const qi_slot *record = qi_memory_slot(memory, page->slot);
    s.slot = page->slot;
    s.found = offset >= record->offset && offset - record->offset < record->size;
    return s;
}

/*
 * The live page that holds an address, with its shard's lock held; NULL, without a lock, where none
 * does. Between the two locks another page can get the number, so the page is checked again.
 */
static qi_page *acquire_page_at(quire_memory *memory, uint64_t address, uint64_t *offset)
{
    qi_pages *pages = &memory->pages;
    qi_page *page;
    do {
        uint32_t number = 0;
        qi_lock_acquire(&pages->lock);
        while (number < pages->top && !holds(qi_page_at(pages, number), address, offset))
            number++;
        bool is_found = number < pages->top;
        qi_lock_release(&pages->lock);
        if (!is_found)
            return NULL;
        page = qi_page_acquire(memory, number);
        if (page && !holds(page, address, offset)) {
            qi_lock_release(&page->shard->lock);
            page = NULL;
        }
    } while (!page);
    return page;
}

static bool find_owner(quire_memory *memory, uint64_t address, quire_owner *owner)
{
    uint64_t offset = 0;
    const qi_page *page = acquire_page_at(memory, address, &offset);
    if (!page)
        return false;
    search s = find_slot(memory, page, offset);
    *owner = (quire_owner){.page = page->number, .is_free = !s.found, .page_offset = offset};
    if (s.found) {
        owner->allocation = qi_slot_public_handle(&memory->slots, s.slot);
        owner->offset = offset - qi_memory_slot(memory, s.slot)->offset;
    }
    qi_lock_release(&page->shard->lock);
    return true;
}

static quire_result refuse_address(uint64_t address)
{
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "no page holds address %x", address);
}

quire_result qi_owner_find(quire_memory *memory, uint64_t address, quire_owner *owner)
{
    return find_owner(memory, address, owner) ? QUIRE_SUCCESS : refuse_address(address);
}

quire_result qi_owner_find_in_device(quire_device *device, uint64_t address, quire_memory **found,
                                     quire_owner *owner)
{
    qi_lock_acquire(&device->lock);
    quire_memory *memory = device->memories;
    while (memory && !find_owner(memory, address, owner))
        memory = memory->next_of_device;
    qi_lock_release(&device->lock);
    *found = memory;
    return memory ? QUIRE_SUCCESS : refuse_address(address);
}
