/*
 * view.c - reports the ranges of the linear fit: the room at each end, the refusal of a request,
 * and the walk. Changes nothing.
 */
#include "src/base/result.h"
#include "src/space/linear/linear.h"

/* Bytes of the gap above a record. */
static uint64_t room_after(const qi_linear *l, uint32_t below)
{
    const qi_linear_record *record = &l->records[below];
    return qi_linear_begin(&l->records[record->next]) - qi_linear_end(record);
}

/* Bytes at the start of the region that a wrap could use. */
static uint64_t room_to_wrap(const qi_linear *l)
{
    return qi_linear_can_wrap(l) ? room_after(l, 0) : 0;
}

/* Bytes of the gap below the newest upper range, or at the end of the region if none lives. */
static uint64_t room_above(const qi_linear *l)
{
    return room_after(l, l->records[l->upper].before);
}

quire_result qi_linear_refuse(const qi_linear *l, uint64_t size, uint64_t alignment, uint32_t flags)
{
    const quire_space *space = &l->space;
    uint64_t all = space->region_bytes - space->live_bytes - space->padding_bytes;
    if (flags & QI_TRY)
        return QUIRE_ERROR_NO_SPACE;
    if (size > space->region_bytes) /* the fit has one region */
        return qi_fail_with(QUIRE_ERROR_NO_SPACE, "%u can never fit: the space has %u", size,
                            space->region_bytes);
    if (flags & QI_UPPER)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "no room for %u at a multiple of %u below the upper ranges: %u left "
                            "there, %u free in all",
                            size, alignment, room_above(l), all);
    uint64_t max = room_after(l, l->newest);
    qi_raise(&max, room_to_wrap(l));
    return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                        "no room for %u at a multiple of %u after the newest range: %u left there "
                        "or by wrapping, %u free in all",
                        size, alignment, max, all);
}

/*
 * The largest request that any of the three ends can serve; gaps between live ranges do not count.
 */
uint64_t qi_linear_largest_free(const quire_space *space)
{
    const qi_linear *l = qi_linear_of_const(space);
    uint64_t largest = room_after(l, l->newest);
    qi_raise(&largest, room_to_wrap(l));
    qi_raise(&largest, room_above(l));
    return largest;
}

/* Visits the gap above a record, if it is not empty. Returns false if the visit ended the walk. */
static bool visit_gap(const qi_linear *l, uint32_t below,
                      bool (*visit)(void *, const quire_space_item *), void *user)
{
    uint64_t begin = qi_linear_end(&l->records[below]) - l->space.regions[0].start;
    const quire_space_item gap = {.is_free = true, .offset = begin, .size = room_after(l, below)};
    return !gap.size || visit(user, &gap);
}

bool qi_linear_walk(const quire_space *space, uint32_t region,
                    bool (*visit)(void *, const quire_space_item *), void *user)
{
    (void)region;
    const qi_linear *l = qi_linear_of_const(space);
    uint32_t below = 0;
    for (uint32_t i = l->records[0].next; i; i = l->records[i].next) {
        quire_placement at;
        qi_linear_describe(l, i, &at);
        const quire_space_item item = {.offset = at.offset,
                                       .left_padding = at.left_padding,
                                       .size = at.size,
                                       .range = at.range,
                                       .user = at.user};
        if (!visit_gap(l, below, visit, user) || !visit(user, &item))
            return false;
        below = i;
    }
    return visit_gap(l, below, visit, user);
}
