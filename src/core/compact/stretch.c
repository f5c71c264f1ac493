/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stretch.c - a free range of a wanted size: the stretch of a page that is to become free, and how
 * far a compaction is on the way.
 *
 * Once no page can be freed, each shard is looked at again. Its pages with the most free bytes come
 * first. In a page the stretch of whole ranges is selected that has the wanted size and the fewest
 * live bytes, and whose allocations can all move now. They get places outside of it, in the same
 * page too. One stretch is cleared, whatever others do in it meanwhile.
 */
#include "src/core/compact/source.h"
#include "src/core/stats/compactable.h"
#include "src/core/stats/stats.h"
#include "src/space/fit.h"
#include "src/space/space.h"

enum { MOST_RANGES = 512 }; /* of a stretch */

bool qi_stretch_begin(quire_compaction *c)
{
    if (c->clears || !c->wanted || qi_stats_get_room(c->memory).largest_free >= c->wanted)
        return false;
    c->has_cleared = false;
    return true;
}

/* ---- the stretch of a page ---------------------------------------------------------------- */

/* The walk over a page: the ranges of the stretch that ends at the present one. */
typedef struct walk {
    const quire_compaction *c;
    struct {
        uint64_t begin, size, live;
    } ranges[MOST_RANGES];
    uint32_t first, count;
    uint64_t size, live; /* sums */
    uint64_t best_live;
    qi_source *best; /* `end` is 0 as long as there is none */
} walk;

static void drop_first(walk *w)
{
    w->size -= w->ranges[w->first].size;
    w->live -= w->ranges[w->first].live;
    w->first = (w->first + 1) % MOST_RANGES;
    w->count--;
}

static void add(walk *w, uint64_t begin, uint64_t size, uint64_t live)
{
    const uint32_t at = (w->first + w->count++) % MOST_RANGES;
    w->ranges[at].begin = begin;
    w->ranges[at].size = size;
    w->ranges[at].live = live;
    w->size += size;
    w->live += live;
}

static bool visit(void *user, const quire_space_item *item)
{
    walk *w = user;
    const quire_compaction *c = w->c;
    const uint64_t begin = item->offset - item->left_padding,
                   size = item->left_padding + item->size;
    if (!item->is_free &&
        !qi_move_is_possible(c->memory, (uint32_t)item->user, c->by_caller, c->own)) {
        w->count = 0;
        w->size = w->live = 0;
        return true;
    }
    if (w->count == MOST_RANGES)
        drop_first(w);
    add(w, begin, size, item->is_free ? 0 : size);
    while (w->size - w->ranges[w->first].size >= c->wanted)
        drop_first(w);
    if (w->size >= c->wanted && w->live < w->best_live) {
        w->best->begin = w->ranges[w->first].begin;
        w->best->end = begin + size;
        w->best_live = w->live;
    }
    return true;
}

/* Requires the shard's lock. The end stays 0 if there is no such stretch. */
static void find_in(const quire_compaction *c, qi_source *source, qi_allowance *left)
{
    walk w = {.c = c, .best_live = UINT64_MAX, .best = source};
    qi_space_walk_region(qi_compact_shard(c)->space, source->page->region, visit, &w);
    qi_use_up(&left->records, source->page->tally->allocation_count);
}

/* ---- pages -------------------------------------------------------------------------------- */

/* Also requires the lock of the pages. Whether a page comes before another one, or NULL. */
static bool is_before(const quire_compaction *c, const qi_page *page, const qi_page *other)
{
    return qi_page_is_shared(page, qi_compact_shard(c)) && page->compacted != c->round &&
           page->kept != c->first_round && page->native.bytes >= c->wanted &&
           (!other || qi_page_free_bytes(page) > qi_page_free_bytes(other));
}

static qi_page *next_page(const quire_compaction *c, qi_allowance *left)
{
    qi_pages *pages = &c->memory->pages;
    qi_page *best = NULL;
    qi_lock_acquire(&pages->lock);
    for (uint32_t i = 0; i < pages->top; i++)
        if (is_before(c, qi_page_at(pages, i), best))
            best = qi_page_at(pages, i);
    if (best)
        best->compacted = c->round;
    qi_use_up(&left->records, pages->top);
    qi_lock_release(&pages->lock);
    return best;
}

qi_source qi_stretch_next(const quire_compaction *c, qi_allowance *left)
{
    const bool has_range = qi_space_largest_free(qi_compact_shard(c)->space) >= c->wanted;
    qi_source source = {.page = has_range || c->has_cleared ? NULL : next_page(c, left)};
    if (source.page)
        find_in(c, &source, left);
    return source;
}
