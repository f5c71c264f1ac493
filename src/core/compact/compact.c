/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact.c - rounds over the pages of a shard, in lots: a lot of moves begins under one hold of
 * the shard's lock, is copied without it, and completes under another hold.
 */
#include "src/core/compact/compact.h"

#include "src/base/result.h"
#include "src/core/compact/move.h"
#include "src/core/device/device.h"
#include "src/core/device/disabled.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/space/fit.h"
#include "src/space/space.h"

enum {
    LOT = 32,             /* moves that begin together */
    MAX_LOOKED_AT = 1024, /* allocations of a page that one hold of the lock looks at */
    WORTH = 128           /* a page is a source if at least this part of it is free: 1 / WORTH */
};

struct quire_compaction {
    quire_memory *memory;
    uint32_t shard;     /* whose pages are looked at */
    uint32_t round;     /* in `compacted` of the pages that were looked at; 0: it has not begun */
    qi_page *source;    /* or NULL; it may have left meanwhile */
    uint64_t offset;    /* in the source: everything below was looked at */
    uint64_t page_size; /* of the source */
    bool has_freed;     /* a page, in this round */
    quire_compact_stats stats;
};

/* ---- begin and end ------------------------------------------------------------------------ */

static quire_result refuse(const quire_memory *memory, const char *why)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "memory '%s' cannot be compacted: %s",
                        memory->name, why);
}

static quire_result check(const quire_memory *memory)
{
    if (QI_IS_CHECKED)
        return refuse(memory, "checked builds move nothing");
    if (memory->is_elastic)
        return refuse(memory, "free chunks of an elastic memory serve any request");
    if (memory->fit != QUIRE_FIT_SEGREGATED || memory->space.fit.slabs)
        return refuse(memory, "its fit is not the segregated one, or has slabs");
    return qi_device_check_bytes(memory->device, memory->kind);
}

/* Sets the compaction of a memory that has none. */
static bool claim(quire_memory *memory, quire_compaction *c)
{
    qi_lock_acquire(&memory->pages.lock);
    const bool is_free = !memory->compaction;
    if (is_free)
        memory->compaction = c;
    qi_lock_release(&memory->pages.lock);
    return is_free;
}

quire_result qi_compact_begin(quire_memory *memory, quire_compaction **compaction)
{
    *compaction = NULL;
    quire_result result = check(memory);
    if (result)
        return result;
    quire_compaction *c = qi_host_allocate(&memory->host, 1, sizeof *c);
    if (!c)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a compaction");
    *c = (quire_compaction){.memory = memory};
    if (!claim(memory, c)) {
        qi_host_release(&memory->host, c, 1, sizeof *c);
        return qi_fail_text(QUIRE_ERROR_BUSY, "a compaction of memory '%s' has not ended",
                            memory->name);
    }
    *compaction = c;
    return QUIRE_SUCCESS;
}

void qi_compact_end(quire_compaction *c)
{
    quire_memory *memory = c->memory;
    qi_lock_acquire(&memory->pages.lock);
    memory->compaction = NULL;
    qi_lock_release(&memory->pages.lock);
    qi_host_release(&memory->host, c, 1, sizeof *c);
}

/* ---- limits ------------------------------------------------------------------------------- */

/* What a step may still do. */
typedef struct allowance {
    uint64_t moves, bytes, records;
    bool has_moved;
} allowance;

static void use_up(uint64_t *left, uint64_t amount)
{
    *left -= amount < *left ? amount : *left;
}

static uint64_t limit_of(uint64_t limit)
{
    return limit ? limit : UINT64_MAX;
}

/* ---- sources ------------------------------------------------------------------------------ */

/*
 * All require the lock of the shard.
 */

static qi_shard *shard_of(const quire_compaction *c)
{
    return c->memory->shards[c->shard];
}

static uint64_t free_in(const qi_page *page)
{
    return page->native.bytes - page->tally->live_bytes;
}

/* Whether a page has allocations of this shard that ranges elsewhere could hold. */
static bool is_in_use(const qi_page *page, const qi_shard *shard)
{
    return page->phase == QI_PAGE_LIVE && page->shard == shard && !page->dedicated &&
           page->tally->allocation_count;
}

/* Finds the page with the fewest live bytes that the round has not looked at. *free receives the
   free bytes of all pages in use. Also requires the lock of the pages. */
static qi_page *find_emptiest(const quire_compaction *c, uint64_t *free)
{
    qi_pages *pages = &c->memory->pages;
    qi_page *best = NULL;
    *free = 0;
    for (uint32_t i = 0; i < pages->top; i++) {
        qi_page *page = qi_page_at(pages, i);
        if (!is_in_use(page, shard_of(c)))
            continue;
        *free += free_in(page);
        if (page->compacted != c->round && free_in(page) >= page->native.bytes / WORTH &&
            (!best || page->tally->live_bytes < best->tally->live_bytes))
            best = page;
    }
    return best;
}

/* What a walk over a page looks for: its first allocations from an offset on. */
typedef struct search {
    uint64_t offset;
    uint32_t *slots;
    uint32_t count, room;
} search;

static bool look(void *user, const quire_space_item *item)
{
    search *s = user;
    if (!item->is_free && item->offset >= s->offset)
        s->slots[s->count++] = (uint32_t)item->user;
    return s->count < s->room;
}

static uint32_t find_allocations(const quire_compaction *c, const qi_page *page, uint32_t *slots,
                                 uint32_t room)
{
    search s = {.offset = c->offset, .slots = slots, .room = room};
    qi_space_walk_region(shard_of(c)->space, page->region, look, &s);
    return s.count;
}

/* Takes ranges outside a page for allocations of it, as many as there is room for. */
static uint32_t try_places(const quire_compaction *c, const qi_page *page, const uint32_t *slots,
                           uint32_t count, quire_range *ranges)
{
    qi_shard *shard = shard_of(c);
    for (uint32_t i = 0; i < count; i++)
        if (!qi_move_is_possible(c->memory, slots[i]) ||
            qi_move_find_place(shard, page, qi_memory_slot(c->memory, slots[i]), &ranges[i]))
            return i;
    return count;
}

/* Whether all allocations of a page can move now, and have places at the same time. Beyond those
   that are looked at, the bytes decide. */
static bool can_become_empty(quire_compaction *c, const qi_page *page, allowance *left)
{
    uint32_t slots[MAX_LOOKED_AT];
    quire_range ranges[MAX_LOOKED_AT];
    quire_space *space = shard_of(c)->space;
    c->offset = 0;
    const uint32_t count = find_allocations(c, page, slots, MAX_LOOKED_AT);
    const uint32_t placed = try_places(c, page, slots, count, ranges);
    for (uint32_t i = 0; i < placed; i++)
        qi_ignore(space->free_range(space, ranges[i])); /* it is live */
    use_up(&left->records, placed + 1);
    return placed == count;
}

static void begin_round(quire_compaction *c)
{
    qi_pages *pages = &c->memory->pages;
    pages->compact_rounds += pages->compact_rounds == UINT32_MAX ? 2 : 1; /* 0 is none */
    c->round = pages->compact_rounds;
    c->has_freed = false;
}

/* Returns the next page to look at, or NULL: the round is over. */
static qi_page *next_page(quire_compaction *c)
{
    qi_pages *pages = &c->memory->pages;
    uint64_t free;
    qi_lock_acquire(&pages->lock);
    if (!c->round)
        begin_round(c);
    qi_page *page = find_emptiest(c, &free);
    if (page && free - free_in(page) < page->tally->live_bytes)
        page = NULL; /* fuller pages need even more */
    if (page)
        page->compacted = c->round;
    qi_lock_release(&pages->lock);
    return page;
}

/* Selects the next source, if there is one. */
static void select_source(quire_compaction *c, allowance *left)
{
    qi_page *page = next_page(c);
    use_up(&left->records, c->memory->pages.top);
    if (!page)
        c->round = 0;
    else if (can_become_empty(c, page, left))
        c->source = page;
    c->offset = 0;
    c->page_size = page ? page->native.bytes : 0;
}

/* ---- lots --------------------------------------------------------------------------------- */

typedef struct lot {
    qi_move moves[LOT];
    uint32_t count;
    bool is_end; /* of the source */
} lot;

/* Requires the shard's lock. Whether the source is as it was selected. */
static bool has_source(const quire_compaction *c)
{
    return c->source && c->source->compacted == c->round && is_in_use(c->source, shard_of(c));
}

/* Requires the shard's lock. Begins moves out of the source. What has no place any more stays. */
static quire_result begin_lot(quire_compaction *c, allowance *left, lot *l)
{
    uint32_t slots[LOT];
    const uint32_t room = left->moves < LOT ? (uint32_t)left->moves : LOT;
    const uint32_t count = find_allocations(c, c->source, slots, room);
    quire_result result = QUIRE_SUCCESS;
    l->is_end = !count;
    for (uint32_t i = 0; i < count && !result; i++) {
        const qi_slot *record = qi_memory_slot(c->memory, slots[i]);
        if (left->has_moved && record->requested > left->bytes) {
            left->bytes = 0;
            break;
        }
        c->offset = record->offset - record->tally->skipped + 1;
        result = qi_move_begin(shard_of(c), slots[i], &l->moves[l->count]);
        if (!result) {
            l->count++;
            left->has_moved = true;
            use_up(&left->bytes, record->requested);
        }
        if (result == QUIRE_ERROR_NO_SPACE)
            result = QUIRE_SUCCESS;
    }
    use_up(&left->moves, l->count);
    use_up(&left->records, count);
    return result;
}

/* Requires no lock. Copies all of a lot, completes the moves that were copied, and ends all. */
static quire_result run_lot(quire_compaction *c, lot *l)
{
    quire_memory *memory = c->memory;
    qi_shard *shard = shard_of(c);
    quire_result result = QUIRE_SUCCESS;
    uint32_t copied = 0;
    for (; copied < l->count && !result; copied += !result)
        result = qi_move_copy(memory, &l->moves[copied]);
    qi_lock_acquire(&shard->lock);
    for (uint32_t i = 0; i < copied; i++) {
        c->stats.bytes_moved += qi_memory_slot(memory, l->moves[i].source)->requested;
        qi_move_complete(shard, &l->moves[i]);
    }
    qi_lock_release(&shard->lock);
    c->stats.moves += copied;
    for (uint32_t i = 0; i < l->count; i++)
        qi_move_end(memory, &l->moves[i]);
    return result;
}

/* Requires no lock. The source has no allocation left, or only those that have no place. */
static void end_source(quire_compaction *c)
{
    qi_page_events events = {.gone = NULL};
    qi_shard *shard = shard_of(c);
    qi_lock_acquire(&shard->lock);
    const bool is_empty = !has_source(c);
    qi_lock_release(&shard->lock);
    c->source = NULL;
    if (!is_empty)
        return;
    c->has_freed = true;
    c->stats.pages_freed++;
    c->stats.bytes_freed += c->page_size;
    qi_pages_give_back_empty(c->memory, c->page_size, &events);
    qi_page_events_report(c->memory, &events, "");
}

/* Goes on to the next round, to the next shard, or to the end. */
static void end_round(quire_compaction *c)
{
    if (c->has_freed)
        return;
    c->shard++;
    c->stats.is_complete = c->shard == qi_shard_count(c->memory);
}

static quire_result run(quire_compaction *c, allowance *left)
{
    lot l = {.count = 0};
    qi_shard *shard = shard_of(c);
    qi_lock_acquire(&shard->lock);
    qi_shard_drain(shard);
    const bool had_source = c->source != NULL;
    if (!had_source)
        select_source(c, left);
    quire_result result = has_source(c) ? begin_lot(c, left, &l) : QUIRE_SUCCESS;
    l.is_end |= had_source && !has_source(c);
    qi_lock_release(&shard->lock);
    quire_result copied = run_lot(c, &l);
    if (l.is_end)
        end_source(c);
    if (!c->round)
        end_round(c);
    return result ? result : copied;
}

quire_result qi_compact_step(quire_compaction *c, const quire_compact_limits *limits,
                             quire_compact_stats *stats)
{
    static const quire_compact_limits none = {0};
    limits = limits ? limits : &none;
    allowance left = {.moves = limit_of(limits->moves),
                      .bytes = limit_of(limits->bytes),
                      .records = limit_of(limits->records)};
    quire_result result = c->memory->device->is_disabled ? qi_refuse_disabled() : QUIRE_SUCCESS;
    c->stats.is_complete = false;
    if (c->shard == qi_shard_count(c->memory)) /* other allocations have come and gone since */
        c->shard = 0;
    while (!result && !c->stats.is_complete && left.moves && left.bytes && left.records)
        result = run(c, &left);
    *stats = c->stats;
    return result;
}
