/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * source.c - selects the page to empty: that with the fewest live bytes whose allocations can all
 * move, and have places elsewhere at the same time.
 */
#include "src/core/compact/source.h"

#include "src/base/result.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/stats/compactable.h"
#include "src/space/fit.h"
#include "src/space/space.h"

enum { MAX_LOOKED_AT = 1024 }; /* allocations of a page that one hold of the lock looks at */

/* ---- limits ------------------------------------------------------------------------------- */

static uint64_t limit_of(uint64_t limit)
{
    return limit ? limit : UINT64_MAX;
}

qi_allowance qi_allowance_from(const quire_compact_limits *limits)
{
    static const quire_compact_limits none = {0};
    limits = limits ? limits : &none;
    return (qi_allowance){.moves = limit_of(limits->moves),
                          .bytes = limit_of(limits->bytes),
                          .records = limit_of(limits->records)};
}

/* ---- pages -------------------------------------------------------------------------------- */

/* The pages in use that a round does not empty. */
typedef struct survey {
    qi_page *emptiest; /* of those that the round has not looked at, by live bytes; or NULL */
    qi_page *kept;     /* the same of those out of which a move was declined */
    uint64_t free, live, count;
} survey;

/* Also requires the lock of the pages. */
static survey survey_pages(const quire_compaction *c)
{
    qi_pages *pages = &c->memory->pages;
    survey s = {.emptiest = NULL};
    for (uint32_t i = 0; i < pages->top; i++) {
        qi_page *page = qi_page_at(pages, i);
        if (!qi_page_is_shared(page, qi_compact_shard(c)) || page->emptied == c->round)
            continue;
        s.free += qi_page_free_bytes(page);
        s.live += page->tally->live_bytes;
        s.count++;
        qi_page **best = page->kept == c->first_round ? &s.kept : &s.emptiest;
        if (page->compacted != c->round && qi_page_is_worth_emptying(page) &&
            (!*best || page->tally->live_bytes < (*best)->tally->live_bytes))
            *best = page;
    }
    return s;
}

/* Whether the other pages have as many bytes as a page needs. If not, fuller ones need more. */
static bool has_bytes(const survey *s, const qi_page *page)
{
    return page && s->free - qi_page_free_bytes(page) >= page->tally->live_bytes;
}

/* What a walk over a page looks for: its first allocations between two offsets. */
typedef struct search {
    uint64_t offset, end;
    uint32_t *slots;
    uint32_t count, room;
} search;

static bool look(void *user, const quire_space_item *item)
{
    search *s = user;
    if (item->offset >= s->end)
        return false;
    if (!item->is_free && item->offset >= s->offset)
        s->slots[s->count++] = (uint32_t)item->user;
    return s->count < s->room;
}

/* From an offset on. */
static uint32_t find_in(const quire_compaction *c, const qi_source *source, uint64_t offset,
                        uint32_t *slots, uint32_t room)
{
    search s = {.offset = offset > source->begin ? offset : source->begin,
                .end = source->end,
                .slots = slots,
                .room = room};
    qi_space_walk_region(qi_compact_shard(c)->space, source->page->region, look, &s);
    return s.count;
}

/* Takes ranges outside a source for allocations of it, `placed` of them. Fails with NO_SPACE if one
   cannot move or has no place. */
static quire_result try_places(const quire_compaction *c, const qi_source *source,
                               const uint32_t *slots, uint32_t count, quire_range *ranges,
                               uint32_t *placed)
{
    qi_shard *shard = qi_compact_shard(c);
    quire_result result = QUIRE_SUCCESS;
    for (*placed = 0; *placed < count && !result; *placed += !result) {
        const uint32_t slot = slots[*placed];
        const qi_slot *record = qi_memory_slot(c->memory, slot);
        result = qi_move_is_possible(c->memory, slot, c->by_caller, c->own)
                     ? qi_move_find_place(shard, source, record, &ranges[*placed])
                     : QUIRE_ERROR_NO_SPACE;
    }
    return result;
}

/* Fails with NO_SPACE unless all allocations of a source can move now, and have places at the same
   time. Beyond those that are looked at, the bytes decide. */
static quire_result check_places(const quire_compaction *c, const qi_source *source,
                                 qi_allowance *left)
{
    uint32_t slots[MAX_LOOKED_AT];
    quire_range ranges[MAX_LOOKED_AT];
    quire_space *space = qi_compact_shard(c)->space;
    const uint32_t count = find_in(c, source, 0, slots, MAX_LOOKED_AT);
    uint32_t placed;
    quire_result result = try_places(c, source, slots, count, ranges, &placed);
    qi_use_up(&left->records, placed + 1);
    /* the last one first: the lists of free ranges are as before then, and the moves find the same
       places */
    while (placed)
        qi_ignore(space->free_range(space, ranges[--placed])); /* it is live */
    return result;
}

static void begin_round(quire_compaction *c)
{
    qi_pages *pages = &c->memory->pages;
    qi_lock_acquire(&pages->lock);
    pages->compact_rounds += pages->compact_rounds == UINT32_MAX ? 2 : 1; /* 0 is none */
    c->round = pages->compact_rounds;
    if (!c->first_round)
        c->first_round = c->round;
    c->has_freed = false;
    qi_lock_release(&pages->lock);
}

/* Returns the next page to look at, if there is one. */
static qi_source next_page(const quire_compaction *c, qi_allowance *left)
{
    qi_pages *pages = &c->memory->pages;
    qi_lock_acquire(&pages->lock);
    const survey s = survey_pages(c);
    qi_page *page = has_bytes(&s, s.emptiest) ? s.emptiest : has_bytes(&s, s.kept) ? s.kept : NULL;
    if (page)
        page->compacted = c->round;
    qi_use_up(&left->records, pages->top);
    qi_lock_release(&pages->lock);
    return (qi_source){.page = page,
                       .end = page ? UINT64_MAX : 0,
                       .least = page && c->by_caller ? s.live / s.count : 0};
}

/* Selects the next source, if there is one that can become empty; without a page to look at the
   round is over. After an error the next step looks at the page again. */
static quire_result select_source(quire_compaction *c, qi_allowance *left)
{
    if (!c->round)
        begin_round(c);
    const qi_source next = c->clears ? qi_stretch_next(c, left) : next_page(c, left);
    qi_page *page = next.page;
    quire_result result = next.end ? check_places(c, &next, left) : QUIRE_ERROR_NO_SPACE;
    if (!page) {
        c->round = 0;
    } else if (!result) {
        c->source = next;
        page->emptied = c->clears ? 0 : c->round;
    } else if (result != QUIRE_ERROR_NO_SPACE) {
        page->compacted = 0;
    }
    c->offset = 0;
    c->page_size = page ? page->native.bytes : 0;
    return result == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : result;
}

/* The record may be that of a new page, of any shard. */
bool qi_source_is_left(const quire_compaction *c)
{
    qi_pages *pages = &c->memory->pages;
    const qi_page *page = c->source.page;
    if (!page)
        return false;
    qi_lock_acquire(&pages->lock);
    const bool is_same =
        page->compacted == c->round && qi_page_is_shared(page, qi_compact_shard(c));
    qi_lock_release(&pages->lock);
    return is_same;
}

void qi_source_resume(quire_compaction *c, const quire_compact_limits *limits, bool by_caller,
                      const quire_stream *own)
{
    if (!c->clears)
        c->wanted = limits ? limits->largest_free : 0;
    c->own = own;
    c->by_caller = by_caller;
    c->stats.is_complete = false;
    if (c->shard == qi_shard_count(c->memory)) /* other allocations have come and gone since */
        c->shard = 0;
    if (c->is_round_over && !(by_caller && c->offered_count))
        qi_round_end(c);
    qi_source_give_back(c);
}

/* ---- lots --------------------------------------------------------------------------------- */

/* Whether a step may move an allocation, which then counts as looked at. */
static bool admit(quire_compaction *c, qi_allowance *left, const qi_slot *record)
{
    if (left->has_moved && record->requested > left->bytes) {
        left->bytes = 0;
        return false;
    }
    c->offset = record->offset - record->tally->skipped + 1;
    return true;
}

/* Requires the shard's lock. What has no place any more stays. */
static quire_result begin_moves(quire_compaction *c, qi_allowance *left, qi_begin_move *begin,
                                qi_lot *l)
{
    uint32_t slots[QI_LOT];
    const uint32_t room = left->moves < QI_LOT ? (uint32_t)left->moves : QI_LOT;
    const uint32_t count = find_in(c, &c->source, c->offset, slots, room);
    quire_result result = QUIRE_SUCCESS;
    l->is_end = !count;
    for (uint32_t i = 0; i < count && !result; i++) {
        const qi_slot *record = qi_memory_slot(c->memory, slots[i]);
        if (!admit(c, left, record))
            break;
        result = begin(qi_compact_shard(c), &c->source, slots[i], c->own, &l->moves[l->count]);
        if (!result) {
            l->count++;
            left->has_moved = true;
            qi_use_up(&left->bytes, record->requested);
        }
        if (result == QUIRE_ERROR_NO_SPACE)
            result = QUIRE_SUCCESS;
    }
    qi_use_up(&left->moves, l->count);
    qi_use_up(&left->records, count);
    return result;
}

quire_result qi_lot_begin(quire_compaction *c, qi_allowance *left, qi_begin_move *begin, qi_lot *l)
{
    qi_shard *shard = qi_compact_shard(c);
    *l = (qi_lot){.count = 0};
    qi_lock_acquire(&shard->lock);
    qi_shard_drain(shard);
    const bool had_source = c->source.page != NULL;
    quire_result result = had_source ? QUIRE_SUCCESS : select_source(c, left);
    if (!result && qi_source_is_left(c))
        result = begin_moves(c, left, begin, l);
    l->is_end |= had_source && !qi_source_is_left(c);
    qi_lock_release(&shard->lock);
    return result;
}

/* ---- ends --------------------------------------------------------------------------------- */

void qi_source_close(const qi_page *page)
{
    page->shard->space->regions[page->region].is_closed = true;
}

void qi_source_open_all(const quire_compaction *c)
{
    quire_memory *memory = c->memory;
    qi_shards_acquire(memory);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        quire_space *space = memory->shards[i]->space;
        for (uint32_t region = 0; region < space->region_capacity; region++)
            space->regions[region].is_closed = false;
    }
    qi_shards_release(memory);
}

static bool is_claimed(void *user, const quire_space_item *item)
{
    const quire_memory *memory = user;
    return item->is_free || qi_slot_phase(&memory->slots, (uint32_t)item->user) == QI_PHASE_PRIVATE;
}

bool qi_source_has_live(const quire_memory *memory, const qi_page *page)
{
    return !qi_space_walk_region(page->shard->space, page->region, is_claimed,
                                 (quire_memory *)(uintptr_t)memory);
}

void qi_source_count_freed(quire_compaction *c, uint64_t bytes)
{
    c->has_freed = true;
    c->stats.pages_freed++;
    c->stats.bytes_freed += bytes;
    c->to_give += bytes;
    qi_source_give_back(c);
}

void qi_source_give_back(quire_compaction *c)
{
    qi_page_events events = {.gone = NULL};
    if (qi_deferred_count(c->memory))
        (void)qi_deferred_collect_quietly(c->memory);
    if (!c->to_give)
        return;
    qi_use_up(&c->to_give, qi_pages_give_back_empty(c->memory, c->to_give, &events));
    qi_page_events_report(c->memory, &events, "");
}

void qi_source_end(quire_compaction *c)
{
    c->source.page = NULL;
    c->has_cleared |= c->clears;
}

void qi_round_end(quire_compaction *c)
{
    c->is_round_over = false;
    if (c->has_freed)
        return;
    c->shard++;
    if (c->shard < qi_shard_count(c->memory))
        return;
    c->clears = qi_stretch_begin(c);
    c->stats.is_complete = !c->clears;
    if (c->clears)
        c->shard = 0;
}
