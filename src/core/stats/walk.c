/*
 * walk.c - walks over the ranges of a memory, and the owner of an address.
 *
 * A walk copies one page's ranges under the lock and hands them out without it, so that the visitor
 * may take its time and call quire. The copy is sized by a first look; when another thread made the
 * page fuller meanwhile, it is taken again.
 */
#include <string.h>

#include "src/base/result.h"
#include "src/base/transit.h"
#include "src/core/state/memory.h"
#include "src/space/space.h"

/* ---- one page's picture ------------------------------------------------------------------- */

typedef struct picture {
    qi_host host; /* of its own: what a walk takes is not the memory's record keeping */
    quire_memory *memory;
    const qi_page *page;
    quire_item *items;
    char *names; /* one after the other, each with its end */
    uint64_t item_room, name_room;
    uint64_t item_count, name_bytes; /* wanted; may be above the room */
} picture;

static const char *name_of(const quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    return record->meta && record->meta->name ? record->meta->name : "";
}

static void add_item(picture *p, const quire_item *item, const char *name)
{
    size_t length = strlen(name) + 1;
    if (p->item_count < p->item_room && p->name_bytes + length <= p->name_room) {
        p->items[p->item_count] = *item;
        memcpy(p->names + p->name_bytes, name, length);
    }
    p->item_count++;
    p->name_bytes += length;
}

static quire_item page_item(const picture *p)
{
    return (quire_item){
        .page = p->page->number,
        .dedicated = p->page->dedicated,
        .page_size = p->page->native.size,
    };
}

/* With the lock: an allocation by its slot. */
static void add_allocation(picture *p, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(p->memory, slot);
    quire_item item = page_item(p);
    item.offset = record->offset;
    item.left_padding = record->left_padding;
    item.size = record->size + qi_checked_behind(record); /* so that items lie end to end */
    item.requested = record->requested;
    item.user_data = qi_slot_user_data(record);
    item.allocation = qi_slot_public_handle(&p->memory->slots, slot);
    item.object = record->object;
    add_item(p, &item, name_of(p->memory, slot));
}

static void add_free(picture *p, uint64_t offset, uint64_t size)
{
    quire_item item = page_item(p);
    item.is_free = true;
    item.offset = offset;
    item.size = size;
    if (size)
        add_item(p, &item, "");
}

static bool add_range(void *user, const quire_space_item *range)
{
    picture *p = user;
    if (range->is_free)
        add_free(p, range->offset + p->page->tally->skipped, range->size);
    else if (qi_checked_is_held(p->memory, (uint32_t)range->user))
        add_free(p, range->offset - range->left_padding + p->page->tally->skipped,
                 range->size + range->left_padding);
    else
        add_allocation(p, (uint32_t)range->user);
    return true;
}

/* With the lock: the ranges of a page in address order. */
static void take_picture(picture *p)
{
    p->item_count = p->name_bytes = 0;
    if (!p->page->dedicated) {
        qi_space_walk_region(p->page->shard->space, p->page->region, add_range, p);
        return;
    }
    uint64_t end = 0;
    if (p->page->tally->allocation_count) {
        const qi_slot *record = qi_memory_slot(p->memory, p->page->slot);
        add_allocation(p, p->page->slot);
        end = record->offset + record->size + qi_checked_behind(record);
    }
    add_free(p, end, p->page->native.size - end);
}

static void release_picture(picture *p)
{
    qi_host *host = &p->host;
    qi_host_release(host, p->items, p->item_room, sizeof *p->items);
    qi_host_release(host, p->names, p->name_room, 1);
    p->items = NULL;
    p->names = NULL;
    p->item_room = p->name_room = 0;
}

static quire_result make_room(picture *p)
{
    uint64_t items = p->item_count + p->item_count / 4, names = p->name_bytes * 2;
    release_picture(p);
    p->items = qi_host_allocate(&p->host, items, sizeof *p->items);
    p->item_room = p->items ? items : 0;
    p->names = qi_host_allocate(&p->host, names, 1);
    p->name_room = p->names ? names : 0;
    if (p->items && p->names)
        return QUIRE_SUCCESS;
    release_picture(p);
    return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a picture of %u ranges",
                        items);
}

/* Takes the picture of page `number`; *live is false when there is no such page now. */
static quire_result picture_page(picture *p, uint32_t number, bool *live)
{
    for (;;) {
        p->page = qi_page_acquire(p->memory, number);
        *live = p->page != NULL;
        if (*live) {
            take_picture(p);
            qi_lock_release(&p->page->shard->lock);
        }
        if (!*live || (p->item_count <= p->item_room && p->name_bytes <= p->name_room))
            return QUIRE_SUCCESS;
        quire_result result = make_room(p);
        if (result)
            return result;
    }
}

static bool hand_out(const picture *p, bool (*visit)(void *, const quire_item *), void *user)
{
    const char *name = p->names;
    qi_transit_assert_none();
    for (uint64_t i = 0; i < p->item_count; i++) {
        quire_item item = p->items[i];
        item.name = name;
        name += strlen(name) + 1;
        if (!visit(user, &item))
            return false;
    }
    return true;
}

/* Page numbers below this may be in use now. */
static uint32_t page_limit(quire_memory *memory)
{
    qi_lock_acquire(&memory->pages.lock);
    uint32_t top = memory->pages.top;
    qi_lock_release(&memory->pages.lock);
    return top;
}

quire_result quire_memory_walk(quire_memory *memory,
                               bool (*visit)(void *user, const quire_item *item), void *user)
{
    if (!memory || !visit)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_walk: memory or visit is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    picture p = {.memory = memory};
    quire_result result = qi_host_init(&p.host, &memory->device->host.callbacks);
    uint32_t top = page_limit(memory);
    for (uint32_t i = 0; i < top && !result; i++) {
        bool live = false;
        result = picture_page(&p, i, &live);
        if (!result && live && !hand_out(&p, visit, user))
            break;
    }
    release_picture(&p);
    return result;
}

/* ---- owner of an address ------------------------------------------------------------------ */

static bool holds(const qi_page *page, uint64_t address, uint64_t *offset)
{
    if (page->phase != QI_PAGE_LIVE) /* else its maker may be writing what is read below */
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
    uint64_t offset; /* in the region */
    bool found;
    uint32_t slot;
} search;

static bool look_at(void *user, const quire_space_item *item)
{
    search *s = user;
    if (s->offset < item->offset - item->left_padding)
        return false;
    s->found = !item->is_free && s->offset >= item->offset && s->offset - item->offset < item->size;
    s->slot = (uint32_t)item->user;
    return !s->found;
}

/* With the lock: the slot at an offset of a page. */
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

/* The live page an address lies in, with its shard's lock taken; NULL, and no lock: none. */
static qi_page *acquire_page_at(quire_memory *memory, uint64_t address, uint64_t *offset)
{
    qi_pages *pages = &memory->pages;
    qi_page *page;
    do {
        uint32_t number = 0;
        qi_lock_acquire(&pages->lock);
        while (number < pages->top && !holds(qi_page_at(pages, number), address, offset))
            number++;
        bool is_there = number < pages->top;
        qi_lock_release(&pages->lock);
        if (!is_there)
            return NULL;
        page = qi_page_acquire(memory, number);
        if (page && !holds(page, address, offset)) { /* another page has the number meanwhile */
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

quire_result quire_memory_find_owner(quire_memory *memory, uint64_t address, quire_owner *owner)
{
    if (owner)
        *owner = (quire_owner){0};
    if (!memory || !owner)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_find_owner: memory or owner is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    return find_owner(memory, address, owner) ? QUIRE_SUCCESS : refuse_address(address);
}

quire_result quire_device_find_owner(quire_device *device, uint64_t address, quire_memory **memory,
                                     quire_owner *owner)
{
    if (owner)
        *owner = (quire_owner){0};
    if (memory)
        *memory = NULL;
    if (!device || !owner)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_find_owner: device or owner is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    qi_lock_acquire(&device->lock);
    quire_memory *at = device->memories;
    while (at && !find_owner(at, address, owner))
        at = at->next_of_device;
    qi_lock_release(&device->lock);
    if (memory)
        *memory = at;
    return at ? QUIRE_SUCCESS : refuse_address(address);
}
