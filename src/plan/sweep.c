/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sweep.c - the bytes of one moment as blocks, live ones and holes, while time goes on.
 *
 * The blocks are linked in the order of their offsets, so that a block that ends merges with the
 * holes beside it. The holes are also in a search tree by size and offset, a treap whose priorities
 * are a hash of the block's number. Nothing lies above the last live block.
 *
 * At the busiest time there is no hole but for alignment. From there the sweep goes in both
 * directions; the backward one is the forward one with begins and ends exchanged.
 */
#include "src/plan/sweep.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- blocks and the tree of holes ---------------------------------------------------------- */

static const uint32_t NOBODY = UINT32_MAX, LIVE = UINT32_MAX - 1;

typedef struct block {
    uint64_t offset, size;
    uint32_t below, above; /* the blocks beside it, or NOBODY */
    uint32_t left, right;  /* in the tree, of a hole; `left` of a live block is LIVE, and links
                              unused blocks */
} block;

typedef struct heap {
    block *blocks;
    uint32_t unused; /* list of blocks */
    uint32_t root;   /* of the tree */
    uint32_t last;   /* the highest block, which is live; NOBODY: there is none */
    uint64_t peak;
    uint64_t steps;
} heap;

static uint32_t priority(uint32_t block_number)
{
    uint32_t x = block_number * UINT32_C(0x9E3779B1);
    x = (x ^ x >> 15) * UINT32_C(0x85EBCA77);
    return x ^ x >> 13;
}

static bool is_before(const block *a, uint64_t size, uint64_t offset)
{
    return a->size != size ? a->size < size : a->offset < offset;
}

static void insert_hole(heap *h, uint32_t made)
{
    block *b = &h->blocks[made];
    uint32_t *link = &h->root, rank = priority(made);
    while (*link != NOBODY && priority(*link) >= rank) {
        block *at = &h->blocks[*link];
        link = is_before(at, b->size, b->offset) ? &at->right : &at->left;
        h->steps++;
    }
    /* splits what was there: smaller ones go left, larger ones right */
    uint32_t rest = *link, *smaller = &b->left, *larger = &b->right;
    *link = made;
    while (rest != NOBODY) {
        block *at = &h->blocks[rest];
        h->steps++;
        if (is_before(at, b->size, b->offset)) {
            *smaller = rest;
            smaller = &at->right;
            rest = at->right;
        } else {
            *larger = rest;
            larger = &at->left;
            rest = at->left;
        }
    }
    *smaller = *larger = NOBODY;
}

static void remove_hole(heap *h, uint32_t gone)
{
    const block *b = &h->blocks[gone];
    uint32_t *link = &h->root;
    while (*link != gone) {
        block *at = &h->blocks[*link];
        link = is_before(at, b->size, b->offset) ? &at->right : &at->left;
        h->steps++;
    }
    uint32_t left = b->left, right = b->right;
    while (left != NOBODY && right != NOBODY) {
        h->steps++;
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &h->blocks[left].right;
            left = *link;
        } else {
            *link = right;
            link = &h->blocks[right].left;
            right = *link;
        }
    }
    *link = left != NOBODY ? left : right;
}

/* The smallest hole of at least `size` bytes, the lowest of equals; NOBODY if there is none. */
static uint32_t find_hole(heap *h, uint64_t size)
{
    uint32_t found = NOBODY;
    for (uint32_t at = h->root; at != NOBODY; h->steps++) {
        if (h->blocks[at].size >= size) {
            found = at;
            at = h->blocks[at].left;
        } else {
            at = h->blocks[at].right;
        }
    }
    return found;
}

static uint32_t take_unused(heap *h, block made)
{
    uint32_t number = h->unused;
    h->unused = h->blocks[number].left;
    h->blocks[number] = made;
    return number;
}

/* Makes a hole above `below`, which may be NOBODY, and links it. An empty hole is left out. */
static void add_hole(heap *h, uint64_t offset, uint64_t size, uint32_t below, uint32_t above)
{
    if (!size)
        return;
    uint32_t made = take_unused(h, (block){offset, size, below, above, NOBODY, NOBODY});
    if (below != NOBODY)
        h->blocks[below].above = made;
    if (above != NOBODY)
        h->blocks[above].below = made;
    insert_hole(h, made);
}

static void drop_block(heap *h, uint32_t gone)
{
    block *b = &h->blocks[gone];
    if (b->below != NOBODY)
        h->blocks[b->below].above = b->above;
    if (b->above != NOBODY)
        h->blocks[b->above].below = b->below;
    b->left = h->unused;
    h->unused = gone;
}

/* ---- live blocks --------------------------------------------------------------------------- */

/* Places a range above all blocks. */
static uint32_t stack_block(heap *h, const qi_plan_range *range)
{
    uint32_t last = h->last;
    uint64_t top = last == NOBODY ? 0 : h->blocks[last].offset + h->blocks[last].size;
    uint64_t at = qi_plan_align(top, range->alignment);
    uint32_t made = take_unused(h, (block){at, range->room, last, NOBODY, LIVE, NOBODY});
    if (last != NOBODY)
        h->blocks[last].above = made;
    add_hole(h, top, at - top, last, made);
    h->last = made;
    qi_raise(&h->peak, at + range->size);
    return made;
}

/* Places a range in a hole, or above all. The smallest hole may be too small after alignment; one
   that has room for any alignment is taken then. */
static uint32_t place_block(heap *h, const qi_plan_range *range)
{
    const uint64_t size = range->room, alignment = range->alignment;
    uint32_t hole = find_hole(h, size);
    if (hole != NOBODY && alignment > 1) {
        const block *b = &h->blocks[hole];
        if (qi_plan_align(b->offset, alignment) - b->offset > b->size - size)
            hole = find_hole(h, size + alignment - 1);
    }
    if (hole == NOBODY)
        return stack_block(h, range);
    remove_hole(h, hole);
    block *b = &h->blocks[hole];
    const uint64_t begin = b->offset, end = begin + b->size;
    b->offset = qi_plan_align(begin, alignment);
    b->size = size;
    b->left = LIVE;
    add_hole(h, begin, b->offset - begin, b->below, hole);
    add_hole(h, b->offset + size, end - b->offset - size, hole, b->above);
    return hole;
}

/* Merges what lies beside a block into it, if that is a hole. */
static void swallow(heap *h, block *into, uint32_t beside)
{
    if (beside == NOBODY || h->blocks[beside].left == LIVE)
        return;
    const block *hole = &h->blocks[beside];
    if (hole->offset < into->offset)
        into->offset = hole->offset;
    into->size += hole->size;
    remove_hole(h, beside);
    drop_block(h, beside);
}

/* A live block becomes a hole, with the holes beside it. What lies above all live blocks goes. */
static void free_block(heap *h, uint32_t gone)
{
    block *b = &h->blocks[gone];
    swallow(h, b, b->below);
    swallow(h, b, b->above);
    if (h->last == gone) {
        h->last = b->below;
        drop_block(h, gone);
        return;
    }
    insert_hole(h, gone);
}

/* ---- the sweep ----------------------------------------------------------------------------- */

/* Ranges by a section: those of section s are from starts[s] until before starts[s + 1]. */
typedef struct groups {
    uint32_t *starts, *ranges;
} groups;

typedef struct sweep {
    const qi_plan_line *line;
    const uint32_t *order;
    uint64_t limit;
    qi_plan_effort *effort;
    uint64_t *offsets;
    uint32_t *block_of;  /* of each range that lives */
    groups begins, ends; /* by the first section of a range, and by the one after its last */
    heap heap;
} sweep;

static uint32_t section_of(const qi_plan_range *range, bool by_end)
{
    return by_end ? range->end : range->begin;
}

/* Counts, and writes each group from its end to its begin. */
static void group(const sweep *s, bool by_end, groups *g)
{
    const qi_plan_line *line = s->line;
    for (uint32_t i = 0; i < line->count; i++)
        g->starts[section_of(&line->ranges[i], by_end)]++;
    for (uint32_t i = 0; i <= line->section_count; i++)
        g->starts[i + 1] += g->starts[i];
    for (uint32_t i = line->count; i-- > 0;) {
        uint32_t range = s->order[i];
        g->ranges[--g->starts[section_of(&line->ranges[range], by_end)]] = range;
    }
}

static void stack_start(sweep *s, uint32_t start)
{
    const qi_plan_line *line = s->line;
    heap *h = &s->heap;
    const uint32_t most = 2 * line->count + 1;
    h->root = h->last = NOBODY;
    for (uint32_t i = 0; i < most; i++)
        h->blocks[i].left = i + 1;
    h->unused = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        const qi_plan_range *range = &line->ranges[s->order[i]];
        if (range->begin > start || range->end <= start)
            continue;
        uint32_t made = stack_block(h, range);
        s->block_of[s->order[i]] = made;
        s->offsets[s->order[i]] = h->blocks[made].offset;
    }
}

/* One section further: a group ends and another begins. Returns false if that is enough. */
static bool advance(sweep *s, const groups *ending, const groups *beginning, uint32_t section)
{
    heap *h = &s->heap;
    for (uint32_t i = ending->starts[section]; i < ending->starts[section + 1]; i++)
        free_block(h, s->block_of[ending->ranges[i]]);
    for (uint32_t i = beginning->starts[section]; i < beginning->starts[section + 1]; i++) {
        uint32_t number = beginning->ranges[i];
        const qi_plan_range *range = &s->line->ranges[number];
        s->block_of[number] = place_block(h, range);
        s->offsets[number] = h->blocks[s->block_of[number]].offset;
        h->steps += 4;
    }
    bool goes_on = qi_plan_spend(s->effort, h->steps);
    h->steps = 0;
    return goes_on && h->peak < s->limit;
}

static uint64_t sweep_both_ways(sweep *s, uint32_t start)
{
    bool goes_on = true;
    group(s, false, &s->begins);
    group(s, true, &s->ends);
    stack_start(s, start);
    for (uint32_t i = start + 1; i < s->line->section_count && goes_on; i++)
        goes_on = advance(s, &s->ends, &s->begins, i);
    if (start && goes_on)
        stack_start(s, start);
    for (uint32_t i = start; i > 0 && goes_on; i--)
        goes_on = advance(s, &s->begins, &s->ends, i);
    return goes_on && s->heap.peak < s->limit ? s->heap.peak : UINT64_MAX;
}

quire_result qi_plan_sweep(const qi_plan_line *line, uint32_t start, const uint32_t *order,
                           uint64_t limit, qi_plan_effort *effort, qi_host *host, uint64_t *offsets,
                           uint64_t *peak)
{
    sweep s = {.line = line, .order = order, .limit = limit, .effort = effort, .offsets = offsets};
    const uint64_t count = line->count, starts = UINT64_C(2) + line->section_count;
    const uint64_t blocks = 2 * count + 1;
    s.block_of = qi_host_allocate(host, count, sizeof(uint32_t));
    s.begins.starts = qi_host_allocate(host, starts, sizeof(uint32_t));
    s.begins.ranges = qi_host_allocate(host, count, sizeof(uint32_t));
    s.ends.starts = qi_host_allocate(host, starts, sizeof(uint32_t));
    s.ends.ranges = qi_host_allocate(host, count, sizeof(uint32_t));
    s.heap.blocks = qi_host_allocate(host, blocks, sizeof(block));
    bool has_memory = s.block_of && s.begins.starts && s.begins.ranges && s.ends.starts &&
                      s.ends.ranges && s.heap.blocks;
    *peak = has_memory ? sweep_both_ways(&s, start) : UINT64_MAX;
    qi_host_release(host, s.block_of, count, sizeof(uint32_t));
    qi_host_release(host, s.begins.starts, starts, sizeof(uint32_t));
    qi_host_release(host, s.begins.ranges, count, sizeof(uint32_t));
    qi_host_release(host, s.ends.starts, starts, sizeof(uint32_t));
    qi_host_release(host, s.ends.ranges, count, sizeof(uint32_t));
    qi_host_release(host, s.heap.blocks, blocks, sizeof(block));
    return has_memory ? QUIRE_SUCCESS
                      : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
}
