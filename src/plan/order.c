/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * order.c - keys of ranges, and ranges sorted by them.
 *
 * Keys are doubles. Each is the result of one operation that every machine rounds in the same way,
 * so that orders are the same everywhere.
 */
#include "src/plan/order.h"

#include <float.h>
#include <stdlib.h>

#include "src/base/bits.h"
#include "src/base/result.h"

typedef struct qi_plan_turn {
    double keys[QI_PLAN_KEYS];
    uint32_t range;
} turn;

/* ---- the largest load of the sections of each range ---------------------------------------- */

/* A tree of maxima: node 1 is the root, 2 i and 2 i + 1 are the children of i, and the leaves are
   the loads. */
static bool find_heaviest(qi_plan_sorter *sorter, qi_host *host)
{
    const qi_plan_line *line = sorter->line;
    const uint64_t leaves = line->section_count;
    uint64_t *tree = qi_host_allocate(host, 2 * leaves, sizeof *tree);
    if (!tree)
        return false;
    for (uint64_t i = 0; i < leaves; i++)
        tree[leaves + i] = line->loads[i];
    for (uint64_t i = leaves - 1; i > 0; i--)
        tree[i] = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
    for (uint32_t i = 0; i < line->count; i++) {
        uint64_t most = 0;
        uint64_t from = leaves + line->ranges[i].begin, until = leaves + line->ranges[i].end;
        for (; from < until; from /= 2, until /= 2) {
            if (from % 2)
                qi_raise(&most, tree[from++]);
            if (until % 2)
                qi_raise(&most, tree[--until]);
        }
        sorter->heaviest[i] = (double)most;
    }
    qi_host_release(host, tree, 2 * leaves, sizeof *tree);
    return true;
}

quire_result qi_plan_sorter_make(qi_plan_sorter *sorter, const qi_plan_line *line, qi_host *host)
{
    *sorter = (qi_plan_sorter){.line = line};
    sorter->heaviest = qi_host_allocate(host, line->count, sizeof *sorter->heaviest);
    sorter->turns = qi_host_allocate(host, line->count, sizeof *sorter->turns);
    return sorter->heaviest && sorter->turns && find_heaviest(sorter, host)
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
}

void qi_plan_sorter_release(qi_plan_sorter *sorter, qi_host *host)
{
    const uint32_t count = sorter->line->count;
    qi_host_release(host, sorter->heaviest, count, sizeof *sorter->heaviest);
    qi_host_release(host, sorter->turns, count, sizeof *sorter->turns);
}

/* ---- the order ----------------------------------------------------------------------------- */

static double twice_logarithm(uint64_t value)
{
    /* the square root of 2 in the upper half of 128 bits */
    static const uint64_t ROOT = UINT64_C(0xB504F333F9DE6485);
    uint32_t bits = qi_highest_bit(value);
    return (double)(2 * bits + (value << (63 - bits) >= ROOT));
}

static double key_of(const qi_plan_sorter *sorter, uint32_t i, qi_plan_key key)
{
    const qi_plan_range *range = &sorter->line->ranges[i];
    /* all times there are: one less, which no program notices */
    const uint64_t span = range->last - range->first;
    const uint64_t lifetime = span == UINT64_MAX ? span : span + 1;
    switch (key) {
    case QI_PLAN_KEY_NONE:
        return 0;
    case QI_PLAN_KEY_LOAD:
        return sorter->heaviest[i];
    case QI_PLAN_KEY_SECTIONS:
        return (double)(range->end - range->begin);
    case QI_PLAN_KEY_SIZE:
        return (double)range->size;
    case QI_PLAN_KEY_SIZE_BITS:
        return (double)qi_highest_bit(range->size);
    case QI_PLAN_KEY_LIFETIME:
        return (double)lifetime;
    case QI_PLAN_KEY_LIFETIME_BITS:
        return twice_logarithm(lifetime);
    case QI_PLAN_KEY_AREA:
        return (double)lifetime * (double)range->size;
    case QI_PLAN_KEY_LATE:
        return (double)range->begin;
    case QI_PLAN_KEY_EARLY:
        return -(double)range->begin;
    case QI_PLAN_KEY_LATE_END:
        return (double)range->end;
    }
    return 0;
}

static double random_factor(uint64_t *random)
{
    return (double)(797 + qi_plan_random(random) % 519) / 1024;
}

static int by_keys(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    for (int i = 0; i < QI_PLAN_KEYS; i++)
        if (x->keys[i] != y->keys[i])
            return x->keys[i] > y->keys[i] ? -1 : 1;
    return (x->range > y->range) - (x->range < y->range);
}

void qi_plan_sort(qi_plan_sorter *sorter, const qi_plan_key keys[QI_PLAN_KEYS], uint64_t *random,
                  uint32_t *order)
{
    const uint32_t count = sorter->line->count;
    for (uint32_t i = 0; i < count; i++) {
        turn *t = &sorter->turns[i];
        t->range = i;
        for (int k = 0; k < QI_PLAN_KEYS; k++)
            t->keys[k] = key_of(sorter, i, keys[k]) * (random ? random_factor(random) : 1);
        if (qi_plan_is_fixed(&sorter->line->ranges[i]))
            t->keys[0] = DBL_MAX;
    }
    qsort(sorter->turns, count, sizeof *sorter->turns, by_keys);
    for (uint32_t i = 0; i < count; i++)
        order[i] = sorter->turns[i].range;
}
