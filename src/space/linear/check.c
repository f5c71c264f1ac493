/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.c - verifies every record of a linear space against the invariants in linear.h. The records
 * may be damaged: only the size of the array is trusted, and a link is followed only inside the
 * array and toward higher addresses.
 */
#include "src/space/linear/linear.h"

/* What a pass over the ring has found. */
typedef struct seen {
    uint64_t live_bytes, padding_bytes, free_bytes, live_count, gaps;
    bool oldest, newest, upper;
    uint32_t last_lower; /* the last one before the upper ranges; 0: none */
} seen;

/* Verifies record 0 and the region that it stands for. */
static quire_result check_own(const qi_linear *l)
{
    const quire_space *space = &l->space;
    const qi_linear_record *own = &l->records[0];
    uint64_t end = 0, start = 0;
    if (space->region_count > 1)
        return qi_space_damaged("more than one region is in use", space->region_count);
    if (space->region_count) {
        const qi_region *region = &space->regions[0];
        if (!space->region_capacity || !region->used)
            return qi_space_damaged("the region is not the first one", 0);
        start = region->start;
        end = region->start + region->size;
    }
    if (own->offset != end || qi_linear_end(own) != start || own->left_padding ||
        own->epoch == l->epoch)
        return qi_space_damaged("the record of the region does not match the region", 0);
    return QUIRE_SUCCESS;
}

/* Verifies one record of the ring and its gap to the record below. */
static quire_result check_record(const qi_linear *l, uint32_t before, uint32_t number, seen *s)
{
    const qi_linear_record *record = &l->records[number];
    uint64_t reached = qi_linear_end(&l->records[before]), end = l->records[0].offset;
    if (record->before != before)
        return qi_space_damaged("a neighbour does not point back", number);
    if (record->epoch != l->epoch || !record->generation || record->generation > QI_LAST_GENERATION)
        return qi_space_damaged("a range in the ring is not live", number);
    if (record->left_padding >= l->space.max_alignment || record->size == 0)
        return qi_space_damaged("a range has size 0 or too much padding", number);
    if (record->offset < reached || record->offset - reached < record->left_padding ||
        !qi_range_fits(record->offset, record->size, end))
        return qi_space_damaged("a range does not lie above the one below it", number);
    s->live_count++;
    s->live_bytes += record->size;
    s->padding_bytes += record->left_padding;
    s->free_bytes += qi_linear_begin(record) - reached;
    s->gaps += qi_linear_begin(record) != reached;
    return QUIRE_SUCCESS;
}

/* Records which of the remembered ends this range is; the lower ranges precede the upper ones. */
static quire_result check_end(const qi_linear *l, uint32_t number, seen *s)
{
    s->upper |= number == l->upper;
    bool is_end = number == l->oldest || number == l->newest;
    if (is_end && s->upper)
        return qi_space_damaged("the oldest or newest lower range is an upper one", number);
    s->oldest |= number == l->oldest;
    s->newest |= number == l->newest;
    if (!s->upper)
        s->last_lower = number;
    return QUIRE_SUCCESS;
}

/* Walks the ring upward; ends because check_record verifies that addresses rise. */
static quire_result check_ring(const qi_linear *l, seen *s)
{
    uint32_t before = 0;
    for (uint32_t i = l->records[0].next; i; i = l->records[i].next) {
        if (i >= l->space.pool.top)
            return qi_space_damaged("the ring leads outside the records", i);
        quire_result result = check_record(l, before, i, s);
        if (!result)
            result = check_end(l, i, s);
        if (result)
            return result;
        before = i;
    }
    if (l->records[0].before != before)
        return qi_space_damaged("a neighbour does not point back", 0);
    uint64_t reached = qi_linear_end(&l->records[before]), end = l->records[0].offset;
    s->free_bytes += end - reached;
    s->gaps += end != reached;
    return QUIRE_SUCCESS;
}

/* Whether the lower ranges are ordered by age, except for one wrap. */
static quire_result check_ends(const qi_linear *l, const seen *s)
{
    if (s->upper != (l->upper != 0))
        return qi_space_damaged("the newest upper range is not in the ring", l->upper);
    if (!s->last_lower)
        return l->oldest || l->newest
                   ? qi_space_damaged("no lower range exists, but an oldest or newest one is set",
                                      l->oldest)
                   : QUIRE_SUCCESS;
    if (!s->oldest || !s->newest)
        return qi_space_damaged("the oldest or newest lower range is not in the ring", l->oldest);
    bool in_order = l->oldest == l->records[0].next && l->newest == s->last_lower;
    if (!in_order && l->records[l->newest].next != l->oldest)
        return qi_space_damaged("the oldest range does not follow the newest", l->newest);
    return QUIRE_SUCCESS;
}

static quire_result check_figures(const qi_linear *l, const seen *s)
{
    const quire_space *space = &l->space;
    if (s->live_count != space->live_count || s->live_bytes != space->live_bytes ||
        s->padding_bytes != space->padding_bytes)
        return qi_space_damaged("the live statistics do not match the ranges", 0);
    if (s->gaps != l->gaps)
        return qi_space_damaged("the number of gaps is wrong", 0);
    if (s->live_bytes + s->padding_bytes + s->free_bytes != space->region_bytes)
        return qi_space_damaged("the sums of live and free bytes are not the size of the regions",
                                0);
    if (qi_pool_used(&space->pool) != space->live_count)
        return qi_space_damaged("not every number in use names a range", 0);
    return QUIRE_SUCCESS;
}

quire_result qi_linear_check(const quire_space *space)
{
    const qi_linear *l = qi_linear_of_const(space);
    seen s = {0};
    if (l->records != space->pool.items || !l->records)
        return qi_space_damaged("the records are not those of the pool", 0);
    if (!l->epoch)
        return qi_space_damaged("the epoch is 0, the mark of freed ranges", 0);
    if (l->window > QI_SLOT_COUNT - space->pool.capacity)
        return qi_space_damaged("numbers would name slots beyond the last", l->window);
    quire_result result = check_own(l);
    if (!result)
        result = check_ring(l, &s);
    if (!result)
        result = check_ends(l, &s);
    return result ? result : check_figures(l, &s);
}
