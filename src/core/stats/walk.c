/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * walk.c - copies the ranges of one page under its shard's lock and calls the visitor without it,
 * so that the visitor may take long and may call quire (see stats.h). The size of the copy comes
 * from a first pass over the page. If another thread adds ranges before the second pass, the copy
 * is enlarged and taken again.
 */
#include <string.h>

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/page/life.h"
#include "src/core/state/memory.h"
#include "src/core/stats/stats.h"
#include "src/space/fit.h"
#include "src/space/space.h"

/* ---- the copy of one page ----------------------------------------------------------------- */

typedef struct page_copy {
    qi_host host; /* separate: what a walk allocates does not count as metadata of the memory */
    quire_memory *memory;
    const qi_page *page;
    quire_item *items;
    char *names; /* one after the other, each with its terminating zero */
    uint64_t item_room, name_room;
    uint64_t item_count, name_bytes; /* needed; may exceed the room */
} page_copy;

static const char *name_of(const quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    return record->meta && record->meta->name ? record->meta->name : "";
}

/* Counts an item, and stores it if there is room. */
static void add_item(page_copy *p, const quire_item *item, const char *name)
{
    size_t length = strlen(name) + 1;
    if (p->item_count < p->item_room && p->name_bytes + length <= p->name_room) {
        p->items[p->item_count] = *item;
        memcpy(p->names + p->name_bytes, name, length);
    }
    p->item_count++;
    p->name_bytes += length;
}

static quire_item page_item(const page_copy *p)
{
    return (quire_item){
        .page = p->page->number,
        .dedicated = p->page->dedicated,
        .page_size = p->page->native.native.size,
        .page_bytes = p->page->native.bytes,
    };
}

/* Requires the shard lock. */
static void add_allocation(page_copy *p, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(p->memory, slot);
    quire_item item = page_item(p);
    item.offset = record->offset;
    item.left_padding = qi_slot_padding(record);
    item.size = qi_slot_extent(record) + qi_slot_behind(record); /* so that items have no gaps */
    item.requested = qi_slot_usable(record);
    item.backed = record->size + qi_checked_behind(record);
    item.asleep = record->extras & QI_EXTRA_ASLEEP;
    item.user_data = qi_slot_user_data(record);
    item.allocation = qi_slot_public_handle(&p->memory->slots, slot);
    item.object = record->object;
    add_item(p, &item, name_of(p->memory, slot));
}

static void add_free(page_copy *p, uint64_t offset, uint64_t size)
{
    quire_item item = page_item(p);
    item.is_free = true;
    item.offset = offset;
    item.size = item.backed = size;
    if (size)
        add_item(p, &item, "");
}

/* A range in quarantine is shown as free, together with its left padding. */
static bool add_range(void *user, const quire_space_item *range)
{
    page_copy *p = user;
    if (range->is_free)
        add_free(p, range->offset + p->page->tally->skipped, range->size);
    else if (qi_checked_is_held(p->memory, (uint32_t)range->user))
        add_free(p, range->offset - range->left_padding + p->page->tally->skipped,
                 range->size + range->left_padding);
    else
        add_allocation(p, (uint32_t)range->user);
    return true;
}

/* An elastic page is shown up to the end of its last range. */
static void end_at_last_range(const page_copy *p)
{
    if (!p->item_count || p->item_count > p->item_room)
        return;
    const quire_item *last = &p->items[p->item_count - 1];
    for (uint64_t i = 0; i < p->item_count; i++)
        p->items[i].page_size = last->offset + last->size;
}

/* Requires the shard lock. Copies the ranges of a page in address order. */
static void take_copy(page_copy *p)
{
    p->item_count = p->name_bytes = 0;
    if (!p->page->dedicated) {
        qi_space_walk_region(p->page->shard->space, p->page->region, add_range, p);
        if (p->page->elastic)
            end_at_last_range(p);
        return;
    }
    uint64_t end = 0;
    if (p->page->tally->allocation_count > p->page->objects) {
        const qi_slot *record = qi_memory_slot(p->memory, p->page->slot);
        add_allocation(p, p->page->slot);
        end = record->offset + record->size + qi_checked_behind(record);
    }
    add_free(p, end, p->page->native.native.size - end);
}

static void release_copy(page_copy *p)
{
    qi_host *host = &p->host;
    qi_host_release(host, p->items, p->item_room, sizeof *p->items);
    qi_host_release(host, p->names, p->name_room, 1);
    p->items = NULL;
    p->names = NULL;
    p->item_room = p->name_room = 0;
}

/* Enlarges the copy to what the last pass needed and some more, for pages that fill up. */
static quire_result make_room(page_copy *p)
{
    uint64_t items = p->item_count + p->item_count / 4, names = p->name_bytes * 2;
    release_copy(p);
    p->items = qi_host_allocate(&p->host, items, sizeof *p->items);
    p->item_room = p->items ? items : 0;
    p->names = qi_host_allocate(&p->host, names, 1);
    p->name_room = p->names ? names : 0;
    if (p->items && p->names)
        return QUIRE_SUCCESS;
    release_copy(p);
    return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a copy of %u range%s",
                        items);
}

/* Copies page `number`; *live is false if no live page has this number now. */
static quire_result copy_page(page_copy *p, uint32_t number, bool *live)
{
    for (;;) {
        p->page = qi_page_acquire(p->memory, number);
        *live = p->page != NULL;
        if (*live) {
            take_copy(p);
            qi_lock_release(&p->page->shard->lock);
        }
        if (!*live || (p->item_count <= p->item_room && p->name_bytes <= p->name_room))
            return QUIRE_SUCCESS;
        quire_result result = make_room(p);
        if (result)
            return result;
    }
}

/* Calls the visitor for every item. Returns false if the visitor ends the walk. */
static bool visit_items(const page_copy *p, bool (*visit)(void *, const quire_item *), void *user)
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

/* All pages have numbers below this. */
static uint32_t page_limit(quire_memory *memory)
{
    qi_lock_acquire(&memory->pages.lock);
    uint32_t top = memory->pages.top;
    qi_lock_release(&memory->pages.lock);
    return top;
}

quire_result qi_memory_walk(quire_memory *memory, bool (*visit)(void *user, const quire_item *item),
                            void *user)
{
    page_copy p = {.memory = memory};
    quire_result result = qi_host_init(&p.host, &memory->device->host.callbacks);
    uint32_t top = page_limit(memory);
    for (uint32_t i = 0; i < top && !result; i++) {
        bool live = false;
        result = copy_page(&p, i, &live);
        if (!result && live && !visit_items(&p, visit, user))
            break;
    }
    release_copy(&p);
    return result;
}
