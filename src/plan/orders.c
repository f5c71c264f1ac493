/*
 * orders.c - places items in several orders, each at its lowest free offset, and keeps the best
 * plan.
 *
 * No order is best for all programs. Each is a list of keys; items with larger keys come first. An
 * order ends as soon as it reaches the best peak so far.
 *
 * The items that are placed are in the order of their offsets. One pass over them finds the lowest
 * gap of an item: only those that live at a time with it count.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/plan/plan.h"

/* ---- the keys ------------------------------------------------------------------------------ */

typedef enum key {
    KEY_LOAD,         /* the largest load of its sections */
    KEY_SECTIONS,     /* their number */
    KEY_SIZE,         /* bytes */
    KEY_SIZE_BITS,    /* the position of the highest bit of the size */
    KEY_LIFETIME,     /* last - first */
    KEY_LIFETIME_BITS /* the position of its highest bit */
} key;

enum { KEYS = 2 };

/* The first is the order that many programs use. */
static const key ORDERS[][KEYS] = {
    {KEY_SIZE, KEY_LIFETIME},      {KEY_LOAD, KEY_SECTIONS}, {KEY_SIZE_BITS, KEY_SECTIONS},
    {KEY_LIFETIME_BITS, KEY_SIZE}, {KEY_LOAD, KEY_LIFETIME}, {KEY_SECTIONS, KEY_SIZE},
    {KEY_LOAD, KEY_SIZE},
};

enum { ORDER_COUNT = sizeof ORDERS / sizeof *ORDERS };

/* An item in an order. */
typedef struct turn {
    uint64_t keys[KEYS];
    uint32_t item;
} turn;

typedef struct work {
    const qi_plan_item *items;
    const qi_plan_sections *sections;
    uint64_t *heaviest; /* of each item: KEY_LOAD */
    turn *turns;
    struct place *placed;
    uint64_t *offsets; /* of the order that is tried */
} work;

static uint64_t key_of(const work *w, uint32_t i, key of)
{
    const qi_plan_item *item = &w->items[i];
    switch (of) {
    case KEY_LOAD:
        return w->heaviest[i];
    case KEY_SECTIONS:
        return w->sections->end[i] - w->sections->begin[i];
    case KEY_SIZE:
        return item->size;
    case KEY_SIZE_BITS:
        return qi_highest_bit(item->size);
    case KEY_LIFETIME:
        return item->last - item->first;
    case KEY_LIFETIME_BITS:
        return qi_highest_bit(item->last - item->first);
    }
    return 0;
}

static int by_keys(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    for (int i = 0; i < KEYS; i++)
        if (x->keys[i] != y->keys[i])
            return x->keys[i] > y->keys[i] ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* O(the sum of the numbers of sections), which is no more than the pairs that live together. */
static void find_heaviest(work *w)
{
    for (uint32_t i = 0; i < w->sections->item_count; i++)
        for (uint32_t s = w->sections->begin[i]; s < w->sections->end[i]; s++)
            if (w->sections->loads[s] > w->heaviest[i])
                w->heaviest[i] = w->sections->loads[s];
}

/* ---- placing ------------------------------------------------------------------------------- */

/* A placed item. */
typedef struct place {
    uint64_t offset, end, first, last;
} place;

static uint64_t align(uint64_t offset, const qi_plan_item *item)
{
    uint64_t over = item->alignment ? offset % item->alignment : 0;
    return over ? offset + item->alignment - over : offset;
}

/* Returns the lowest offset at which the item meets none of the placed ones. */
static uint64_t lowest_gap(const place *placed, uint32_t count, const qi_plan_item *item)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const place *p = &placed[i];
        if (p->first >= item->last || item->first >= p->last || p->end <= at)
            continue;
        if (p->offset >= at + item->size)
            break; /* all others begin there or later */
        at = align(p->end, item);
    }
    return at;
}

static void insert(place *placed, uint32_t count, place made)
{
    uint32_t low = 0, high = count; /* those below `low` begin at or before it */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (placed[middle].offset <= made.offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&placed[low + 1], &placed[low], (count - low) * sizeof *placed);
    placed[low] = made;
}

/* Returns the peak of an order, or `best` if the order does not stay below it. */
static uint64_t try_order(work *w, const key *order, uint64_t best)
{
    const uint32_t count = w->sections->item_count;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < count; i++) {
        w->turns[i].item = i;
        for (int k = 0; k < KEYS; k++)
            w->turns[i].keys[k] = key_of(w, i, order[k]);
    }
    qsort(w->turns, count, sizeof *w->turns, by_keys);
    for (uint32_t i = 0; i < count; i++) {
        const qi_plan_item *item = &w->items[w->turns[i].item];
        uint64_t at = lowest_gap(w->placed, i, item), end = at + item->size;
        if (end >= best)
            return best;
        insert(w->placed, i, (place){at, end, item->first, item->last});
        w->offsets[w->turns[i].item] = at;
        peak = end > peak ? end : peak;
    }
    return peak;
}

static uint64_t try_orders(work *w, uint64_t *offsets)
{
    const uint64_t bound = qi_plan_lower_bound(w->sections);
    uint64_t best = UINT64_MAX;
    find_heaviest(w);
    for (int i = 0; i < ORDER_COUNT && best > bound; i++) {
        uint64_t peak = try_order(w, ORDERS[i], best);
        if (peak < best)
            memcpy(offsets, w->offsets, w->sections->item_count * sizeof *offsets);
        best = peak;
    }
    return best;
}

quire_result qi_plan_by_orders(const qi_plan_item *items, const qi_plan_sections *sections,
                               qi_host *host, uint64_t *offsets, uint64_t *peak)
{
    const uint32_t count = sections->item_count;
    *peak = 0;
    if (!count)
        return QUIRE_SUCCESS;
    work w = {.items = items, .sections = sections};
    w.heaviest = qi_host_allocate(host, count, sizeof *w.heaviest);
    w.turns = qi_host_allocate(host, count, sizeof *w.turns);
    w.placed = qi_host_allocate(host, count, sizeof *w.placed);
    w.offsets = qi_host_allocate(host, count, sizeof *w.offsets);
    bool has_memory = w.heaviest && w.turns && w.placed && w.offsets;
    if (has_memory)
        *peak = try_orders(&w, offsets);
    qi_host_release(host, w.heaviest, count, sizeof *w.heaviest);
    qi_host_release(host, w.turns, count, sizeof *w.turns);
    qi_host_release(host, w.placed, count, sizeof *w.placed);
    qi_host_release(host, w.offsets, count, sizeof *w.offsets);
    return has_memory ? QUIRE_SUCCESS
                      : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
}
