/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compactable.c - empties pages on paper, the emptiest first, as long as the other pages have as
 * many free bytes as move.
 */
#include "src/core/stats/compactable.h"

#include "src/core/checked.h"
#include "src/space/fit.h"
#include "src/space/space.h"

enum { MAX_LOOKED_AT = 4096 }; /* allocations that a refusal looks at */
enum { WORTH = 128 }; /* a page is worth emptying if at least this part of it is free: 1 / WORTH */

const char *qi_compact_obstacle(const quire_memory *memory)
{
    if (QI_IS_CHECKED)
        return "checked builds move nothing";
    if (memory->is_elastic)
        return "free chunks of an elastic memory serve any request";
    if (memory->fit != QUIRE_FIT_SEGREGATED || memory->space.fit.slabs)
        return "its fit is not the segregated one, or has slabs";
    return NULL;
}

bool qi_page_is_shared(const qi_page *page, const qi_shard *shard)
{
    return page->phase == QI_PAGE_LIVE && page->shard == shard && !page->dedicated &&
           page->tally->allocation_count && !shard->space->regions[page->region].is_closed;
}

uint64_t qi_page_free_bytes(const qi_page *page)
{
    return page->native.bytes - page->tally->live_bytes;
}

bool qi_page_is_worth_emptying(const qi_page *page)
{
    return qi_page_free_bytes(page) >= page->native.bytes / WORTH;
}

/* Some pages of a shard that are worth emptying, the emptiest first. */
enum { MOST = 64 };

typedef struct list {
    const qi_page *pages[MOST];
    uint32_t count;
} list;

/* The emptiest first; of equally empty ones that with the lowest number. */
static bool is_before(const qi_page *one, const qi_page *other)
{
    const uint64_t a = one->tally->live_bytes, b = other->tally->live_bytes;
    return a != b ? a < b : one->number < other->number;
}

static void insert(list *l, const qi_page *page)
{
    uint32_t at = l->count;
    while (at && is_before(page, l->pages[at - 1]))
        at--;
    if (at == MOST)
        return;
    l->count += l->count < MOST;
    for (uint32_t i = l->count - 1; i > at; i--)
        l->pages[i] = l->pages[i - 1];
    l->pages[at] = page;
}

/* Requires the shard's lock. Lists the pages that come after `last` (NULL: all). Returns the free
   bytes of all pages in use. */
static uint64_t fill(list *l, const qi_shard *shard, const qi_page *last)
{
    qi_pages *pages = &shard->memory->pages;
    uint64_t free_bytes = 0;
    l->count = 0;
    qi_lock_acquire(&pages->lock);
    for (uint32_t i = 0; i < pages->top; i++) {
        const qi_page *page = qi_page_at(pages, i);
        if (!qi_page_is_shared(page, shard))
            continue;
        free_bytes += qi_page_free_bytes(page);
        if (qi_page_is_worth_emptying(page) && (!last || is_before(last, page)))
            insert(l, page);
    }
    qi_lock_release(&pages->lock);
    return free_bytes;
}

typedef struct look {
    const quire_memory *memory;
    uint64_t records; /* that may still be looked at */
    bool all_move;
} look;

static bool look_at(void *user, const quire_space_item *item)
{
    look *l = user;
    if (item->is_free)
        return true;
    const uint32_t slot = (uint32_t)item->user;
    l->all_move = l->records && qi_slot_phase(&l->memory->slots, slot) == QI_PHASE_LIVE &&
                  qi_slot_is_movable(qi_memory_slot(l->memory, slot));
    l->records -= l->records != 0;
    return l->all_move;
}

static bool all_move(look *l, const qi_shard *shard, const qi_page *page)
{
    l->all_move = true;
    qi_space_walk_region(shard->space, page->region, look_at, l);
    return l->all_move;
}

/* Requires the shard's lock. Adds pages of the list as long as the others have room, `*room` bytes.
   Returns false if fuller pages need more. */
static bool add_list(qi_compactable *sum, look *l, const list *pages, const qi_shard *shard,
                     uint64_t *room)
{
    for (uint32_t i = 0; i < pages->count; i++) {
        const qi_page *page = pages->pages[i];
        const uint64_t live = page->tally->live_bytes, needed = live + qi_page_free_bytes(page);
        if (!l->records || needed > *room)
            return false;
        if (!all_move(l, shard, page))
            continue;
        *room -= needed;
        sum->pages++;
        sum->page_bytes += page->native.bytes;
        sum->moves += page->tally->allocation_count;
        sum->move_bytes += live;
    }
    return pages->count == MOST;
}

/* Requires the shard's lock, under which no page becomes emptier. */
static void add_shard(qi_compactable *sum, look *l, const qi_shard *shard)
{
    list pages;
    uint64_t room = fill(&pages, shard, NULL);
    while (add_list(sum, l, &pages, shard, &room))
        fill(&pages, shard, pages.pages[MOST - 1]);
}

qi_compactable qi_compactable_get(quire_memory *memory, uint64_t records)
{
    qi_compactable sum = {.pages = 0};
    look l = {.memory = memory, .records = records};
    if (qi_compact_obstacle(memory))
        return sum;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_lock_acquire(&memory->shards[i]->lock);
        add_shard(&sum, &l, memory->shards[i]);
        qi_lock_release(&memory->shards[i]->lock);
    }
    return sum;
}

/* Returns whether allocations of the memory were ever movable. `*changes` differs once one was
   allocated or freed, a page made or destroyed, or a round of a compaction begun. */
static bool has_had_movable(quire_memory *memory, uint64_t *changes)
{
    bool any = false;
    qi_lock_acquire(&memory->pages.lock);
    const quire_memory_stats *pages = &memory->pages.stats;
    *changes = 1 + pages->pages_created + pages->pages_destroyed + memory->pages.compact_rounds;
    qi_lock_release(&memory->pages.lock);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[i];
        qi_lock_acquire(&shard->lock);
        any |= shard->has_had_movable;
        *changes += 2 * qi_atomic_load_u64(&shard->allocations); /* and frees: stats.c */
        *changes -= shard->stats.allocation_count;
        qi_lock_release(&shard->lock);
    }
    return any;
}

qi_compactable qi_compactable_for_refusal(quire_memory *memory)
{
    uint64_t changes;
    if (!has_had_movable(memory, &changes))
        return (qi_compactable){.pages = 0};
    qi_lock_acquire(&memory->pages.lock);
    qi_compactable most = memory->compactable;
    const bool is_known = memory->compactable_at == changes;
    qi_lock_release(&memory->pages.lock);
    if (is_known)
        return most;
    most = qi_compactable_get(memory, MAX_LOOKED_AT);
    qi_lock_acquire(&memory->pages.lock);
    memory->compactable = most;
    memory->compactable_at = changes;
    qi_lock_release(&memory->pages.lock);
    return most;
}
