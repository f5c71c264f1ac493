/*
 * by_size.c - places items in the order of their sizes.
 *
 * The items that are placed are in the order of their offsets. One pass over them finds the lowest
 * gap of an item: only those that live at a time with it count.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/plan/plan.h"

/* An item in the order of the placement. */
typedef struct turn {
    uint64_t size, lifetime;
    uint32_t item;
} turn;

/* The largest first; of equal size the longest; then the first of the list. */
static int by_size(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->lifetime != y->lifetime)
        return x->lifetime > y->lifetime ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

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

quire_result qi_plan_by_size(const qi_plan_item *items, uint32_t count, qi_host *host,
                             uint64_t *offsets, uint64_t *peak)
{
    *peak = 0;
    if (!count)
        return QUIRE_SUCCESS;
    turn *turns = qi_host_allocate(host, count, sizeof *turns);
    place *placed = qi_host_allocate(host, count, sizeof *placed);
    bool has_memory = turns && placed;
    for (uint32_t i = 0; i < count && has_memory; i++)
        turns[i] = (turn){items[i].size, items[i].last - items[i].first, i};
    if (has_memory)
        qsort(turns, count, sizeof *turns, by_size);
    for (uint32_t i = 0; i < count && has_memory; i++) {
        const qi_plan_item *item = &items[turns[i].item];
        uint64_t at = lowest_gap(placed, i, item), end = at + item->size;
        insert(placed, i, (place){at, end, item->first, item->last});
        offsets[turns[i].item] = at;
        *peak = end > *peak ? end : *peak;
    }
    qi_host_release(host, turns, count, sizeof *turns);
    qi_host_release(host, placed, count, sizeof *placed);
    return has_memory ? QUIRE_SUCCESS
                      : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
}
