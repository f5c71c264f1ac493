/*
 * check.c - checks items, and plans in one sweep over their ranges in the order of the offsets.
 *
 * A segment tree over the times has the largest end of the ranges so far that live at each time. A
 * range that begins below the largest end of its lifetime shares bytes with the range that has this
 * end, because that range begins at or below it.
 */
#include <stdlib.h>

#include "src/base/result.h"
#include "src/plan/plan.h"

static const uint64_t SIZE_LIMIT = UINT64_C(1) << 63;

quire_result qi_plan_check_items(const qi_plan_item *items, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const qi_plan_item *item = &items[i];
        if (!item->size)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "item %u of the plan has size 0", i);
        if (item->first >= item->last)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "item %u of the plan lives from %u until before %u", i, item->first,
                                item->last);
        if (item->size >= SIZE_LIMIT || item->alignment >= SIZE_LIMIT - item->size ||
            sum >= SIZE_LIMIT - item->size - item->alignment)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "the sizes and alignments of the items up to %u exceed 2^63", i);
        sum += item->size + item->alignment;
    }
    return QUIRE_SUCCESS;
}

/* ---- the tree ------------------------------------------------------------------------------ */

static const uint32_t NOBODY = UINT32_MAX;

/* The largest end of ranges, and the item that has it. */
typedef struct reach {
    uint64_t end;
    uint32_t item;
} reach;

/* Of the times of a node: `some` is the largest end at any of them, `all` that of the ranges that
   live at all of them. */
typedef struct node {
    reach some, all;
} node;

typedef struct tree {
    node *nodes;     /* node 1 is the root, 2 i and 2 i + 1 are the children of i */
    uint64_t *times; /* of all begins and ends, ascending; the leaves are the gaps between them */
    uint32_t leaves; /* a power of two */
    uint32_t time_count;
} tree;

static reach larger(reach a, reach b)
{
    return a.end >= b.end ? a : b;
}

/* The part of a lifetime, in leaves, that a node covers. */
typedef struct part {
    uint32_t at, low, high; /* the node, and its leaves from low until before high */
    uint32_t first, last;   /* the leaves of the lifetime */
} part;

static part child(part p, uint32_t which)
{
    uint32_t middle = p.low + (p.high - p.low) / 2;
    return (part){2 * p.at + which, which ? middle : p.low, which ? p.high : middle, p.first,
                  p.last};
}

static reach reach_of(const tree *t, part p)
{
    if (p.last <= p.low || p.high <= p.first)
        return (reach){0, NOBODY};
    if (p.first <= p.low && p.high <= p.last)
        return t->nodes[p.at].some;
    return larger(t->nodes[p.at].all, larger(reach_of(t, child(p, 0)), reach_of(t, child(p, 1))));
}

static void extend(tree *t, part p, reach to)
{
    if (p.last <= p.low || p.high <= p.first)
        return;
    node *n = &t->nodes[p.at];
    n->some = larger(n->some, to);
    if (p.first <= p.low && p.high <= p.last) {
        n->all = larger(n->all, to);
        return;
    }
    extend(t, child(p, 0), to);
    extend(t, child(p, 1), to);
}

/* ---- the sweep ----------------------------------------------------------------------------- */

/* A range in the order of the offsets. */
typedef struct place {
    uint64_t offset;
    uint32_t item;
} place;

static int by_offset(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The index of a time, which is one of the tree's. */
static uint32_t index_of(const tree *t, uint64_t time)
{
    uint32_t low = 0, high = t->time_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (t->times[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static quire_result check_place(const qi_plan_item *items, const place *at, uint64_t capacity)
{
    const qi_plan_item *item = &items[at->item];
    if (item->alignment && at->offset % item->alignment)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "item %u of the plan is at offset %u, which is no multiple of %u",
                            at->item, at->offset, item->alignment);
    uint64_t most = capacity ? capacity : UINT64_MAX;
    if (item->size > most || at->offset > most - item->size)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "item %u of the plan has %u byte%s at offset %u: the capacity is %u",
                            at->item, item->size, at->offset, most);
    return QUIRE_SUCCESS;
}

static quire_result check_in_order(const qi_plan_item *items, const place *places, uint32_t count,
                                   uint64_t capacity, tree *t)
{
    for (uint32_t i = 0; i < count; i++) {
        const qi_plan_item *item = &items[places[i].item];
        quire_result result = check_place(items, &places[i], capacity);
        if (result)
            return result;
        part whole = {1, 0, t->leaves, index_of(t, item->first), index_of(t, item->last)};
        reach before = reach_of(t, whole);
        if (before.end > places[i].offset)
            return qi_fail_with(QUIRE_ERROR_OVERLAP,
                                "items %u and %u of the plan share bytes from offset %u on",
                                before.item, places[i].item, places[i].offset);
        extend(t, whole, (reach){places[i].offset + item->size, places[i].item});
    }
    return QUIRE_SUCCESS;
}

quire_result qi_plan_check(const qi_plan_item *items, const uint64_t *offsets, uint32_t count,
                           uint64_t capacity, qi_host *host)
{
    if (!count)
        return QUIRE_SUCCESS;
    const uint64_t time_count = UINT64_C(2) * count;
    tree t = {.leaves = 1, .time_count = (uint32_t)time_count};
    while (t.leaves < time_count)
        t.leaves *= 2;
    const uint64_t node_count = UINT64_C(2) * t.leaves;
    place *places = qi_host_allocate(host, count, sizeof *places);
    t.times = qi_host_allocate(host, time_count, sizeof *t.times);
    t.nodes = qi_host_allocate(host, node_count, sizeof *t.nodes);
    quire_result result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory to check a plan");
    if (places && t.times && t.nodes) {
        for (uint32_t i = 0; i < count; i++) {
            places[i] = (place){offsets[i], i};
            t.times[2 * i] = items[i].first;
            t.times[2 * i + 1] = items[i].last;
        }
        qsort(places, count, sizeof *places, by_offset);
        qsort(t.times, time_count, sizeof *t.times, by_number);
        result = check_in_order(items, places, count, capacity, &t);
    }
    qi_host_release(host, places, count, sizeof *places);
    qi_host_release(host, t.times, time_count, sizeof *t.times);
    qi_host_release(host, t.nodes, node_count, sizeof *t.nodes);
    return result;
}
