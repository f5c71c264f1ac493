/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.c - checks plans in one sweep over their units in the order of arenas and offsets.
 *
 * A segment tree over the times has the largest end of the units so far that live at each time. A
 * unit that begins below the largest end of its lifetime shares bytes with the unit that has this
 * end, because that unit begins at or below it.
 */
#include <stdlib.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/plan/units.h"

/* ---- the tree ------------------------------------------------------------------------------ */

static const uint32_t NOBODY = UINT32_MAX;

/* The largest end of units, and an item of the unit that has it. */
typedef struct reach {
    uint64_t end;
    uint32_t item;
    uint32_t arena; /* what lies in a later arena is larger */
} reach;

/* Of the times of a node: `some` is the largest end at any of them, `all` that of the units that
   live at all of them. */
typedef struct node {
    reach some, all;
} node;

typedef struct tree {
    node *nodes;     /* node 1 is the root, 2 i and 2 i + 1 are the children of i */
    uint64_t *times; /* of all first and last uses, ascending; the leaves */
    uint32_t leaves; /* a power of two */
    uint32_t time_count;
} tree;

static reach larger(reach a, reach b)
{
    if (a.arena != b.arena)
        return a.arena > b.arena ? a : b;
    return a.end >= b.end ? a : b;
}

/* The part of a lifetime, in leaves, that a node covers. */
typedef struct part {
    uint32_t at, low, high; /* the node, and its leaves from low until before high */
    uint32_t first, last;   /* the leaves of the lifetime, from first until before last */
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
        return (reach){0, NOBODY, 0};
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

/* A unit in the order of arenas and offsets. */
typedef struct placed {
    quire_plan_place at;
    uint32_t unit;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->at.arena != y->at.arena)
        return x->at.arena < y->at.arena ? -1 : 1;
    if (x->at.offset != y->at.offset)
        return x->at.offset < y->at.offset ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The index of a time, which is one of the tree's: the last of equal ones. */
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

static quire_result check_in_order(const qi_plan_units *units, const placed *order, uint32_t count,
                                   tree *t)
{
    for (uint32_t i = 0; i < count; i++) {
        const quire_plan_item *unit = &units->items[order[i].unit];
        const uint64_t offset = order[i].at.offset;
        const uint32_t item = qi_plan_item_of(units, order[i].unit);
        part whole = {1, 0, t->leaves, index_of(t, unit->first_use),
                      index_of(t, unit->last_use) + 1};
        reach before = reach_of(t, whole);
        if (before.arena == order[i].at.arena && before.end > offset)
            return qi_fail_naming(QUIRE_ERROR_OVERLAP,
                                  "%t of the plan share bytes of arena %u from offset "
                                  "%u on",
                                  qi_plan_names(units->problem, before.item, item).text,
                                  order[i].at.arena, offset);
        extend(t, whole, (reach){offset + unit->size, item, order[i].at.arena});
    }
    return QUIRE_SUCCESS;
}

/* Places of units; NULL: of those with a fixed offset alone. */
static uint32_t list_placed(const qi_plan_units *units, const quire_plan_place *places,
                            placed *order)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < units->count; i++) {
        const quire_plan_item *unit = &units->items[i];
        quire_plan_place fixed = {unit->fixed_offset, unit->arena ? unit->arena : 1};
        if (places || unit->is_fixed)
            order[count++] = (placed){places ? places[qi_plan_item_of(units, i)] : fixed, i};
    }
    return count;
}

static quire_result check_overlaps(const qi_plan_units *units, const quire_plan_place *places,
                                   qi_host *host)
{
    const uint64_t most = units->count, times = 2 * most;
    tree t = {.leaves = 1};
    while (t.leaves < times)
        t.leaves *= 2;
    const uint64_t node_count = UINT64_C(2) * t.leaves;
    placed *order = qi_host_allocate(host, most, sizeof *order);
    t.times = qi_host_allocate(host, times, sizeof *t.times);
    t.nodes = qi_host_allocate(host, node_count, sizeof *t.nodes);
    quire_result result;
    if (order && t.times && t.nodes) {
        const uint32_t count = list_placed(units, places, order);
        for (uint32_t i = 0; i < count; i++) {
            t.times[t.time_count++] = units->items[order[i].unit].first_use;
            t.times[t.time_count++] = units->items[order[i].unit].last_use;
        }
        qsort(order, count, sizeof *order, by_place);
        qsort(t.times, t.time_count, sizeof *t.times, by_number);
        result = check_in_order(units, order, count, &t);
    } else {
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory to check a plan");
    }
    qi_host_release(host, order, most, sizeof *order);
    qi_host_release(host, t.times, times, sizeof *t.times);
    qi_host_release(host, t.nodes, node_count, sizeof *t.nodes);
    return result;
}

quire_result qi_plan_check_fixed(const qi_plan_units *units, qi_host *host)
{
    for (uint32_t i = 0; i < units->count; i++)
        if (units->items[i].is_fixed)
            return check_overlaps(units, NULL, host);
    return QUIRE_SUCCESS;
}

/* ---- one by one ---------------------------------------------------------------------------- */

static quire_result check_place(const quire_plan_problem *problem, const quire_plan_place *places,
                                uint32_t i)
{
    const quire_plan_item *item = &problem->items[i];
    const quire_plan_place at = places[i];
    const uint32_t arenas = qi_plan_arena_count(problem);
    if (!at.arena || at.arena > arenas)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t of the plan is in arena %u of %u",
                              qi_plan_name(problem, i).text, at.arena, arenas);
    if (item->arena && item->arena != at.arena)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "%t of the plan is in arena %u and names arena %u",
                              qi_plan_name(problem, i).text, at.arena, item->arena);
    if (item->is_fixed && item->fixed_offset != at.offset)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "%t of the plan is at offset %u, and its offset is fixed at %u",
                              qi_plan_name(problem, i).text, at.offset, item->fixed_offset);
    if (item->alignment && at.offset % item->alignment)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT,
                              "%t of the plan is at offset %u, which is no multiple of %u",
                              qi_plan_name(problem, i).text, at.offset, item->alignment);
    const uint64_t capacity = qi_plan_capacity(problem, at.arena - 1);
    if (item->size > capacity || at.offset > capacity - item->size)
        return qi_fail_naming(
            QUIRE_ERROR_OUT_OF_RANGE, "%t of the plan has %u byte%s at offset %u: arena %u has %u",
            qi_plan_name(problem, i).text, item->size, at.offset, at.arena, capacity);
    return QUIRE_SUCCESS;
}

static quire_result check_aliases(const qi_plan_units *units, const quire_plan_place *places)
{
    for (uint32_t i = 0; units->unit_of && i < units->problem->item_count; i++) {
        const uint32_t first = units->item_of[units->unit_of[i]];
        if (places[i].arena != places[first].arena || places[i].offset != places[first].offset)
            return qi_fail_naming(
                QUIRE_ERROR_INVALID_ARGUMENT, "%t of alias group %u are at different places",
                qi_plan_names(units->problem, first, i).text, units->problem->items[i].alias_group);
    }
    return QUIRE_SUCCESS;
}

static quire_result check_separations(const qi_plan_units *units, const quire_plan_place *places)
{
    const quire_plan_problem *problem = units->problem;
    for (uint32_t i = 0; i < problem->separation_count; i++) {
        const uint32_t a = problem->separations[i].first, b = problem->separations[i].second;
        const uint64_t a_size = units->items[qi_plan_unit_of(units, a)].size;
        const uint64_t b_size = units->items[qi_plan_unit_of(units, b)].size;
        if (places[a].arena == places[b].arena && places[a].offset < places[b].offset + b_size &&
            places[b].offset < places[a].offset + a_size)
            return qi_fail_naming(QUIRE_ERROR_OVERLAP,
                                  "%t of the plan share bytes and are separated",
                                  qi_plan_names(problem, a, b).text, 0);
    }
    return QUIRE_SUCCESS;
}

quire_result qi_plan_check(const quire_plan_problem *problem, const quire_plan_place *places,
                           uint64_t *peaks, qi_host *host)
{
    quire_result result = qi_plan_check_problem(problem);
    for (uint32_t i = 0; i < problem->item_count && !result; i++)
        result = check_place(problem, places, i);
    if (result)
        return result;
    qi_plan_units units;
    result = qi_plan_units_make(problem, host, &units);
    if (!result)
        result = check_aliases(&units, places);
    if (!result && units.count)
        result = check_overlaps(&units, places, host);
    if (!result)
        result = check_separations(&units, places);
    for (uint32_t i = 0; i < problem->item_count && peaks && !result; i++)
        qi_raise(&peaks[places[i].arena - 1], places[i].offset + problem->items[i].size);
    qi_plan_units_release(&units, host);
    return result;
}
