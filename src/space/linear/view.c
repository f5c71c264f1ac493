/*
 * view.c - what the linear fit tells of its ranges: the room at each end, and the walk.
 */
#include "src/base/result.h"
#include "src/space/linear/linear.h"

static uint64_t room_behind(const qi_linear *l, uint32_t below)
{
    const qi_linear_record *record = &l->records[below];
    return qi_linear_begin(&l->records[record->next]) - qi_linear_end(record);
}

static uint64_t room_to_wrap(const qi_linear *l)
{
    return qi_linear_can_wrap(l) ? room_behind(l, 0) : 0;
}

static uint64_t room_above(const qi_linear *l)
{
    return room_behind(l, l->records[l->upper].before);
}

quire_result qi_linear_refuse(const qi_linear *l, uint64_t size, uint64_t alignment, uint32_t how)
{
    const quire_space *space = &l->space;
    uint64_t all = space->region_bytes - space->live_bytes - space->padding_bytes;
    if (how & QI_TRY)
        return QUIRE_ERROR_NO_SPACE;
    if (how & QI_UPPER)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "no room for %b at a multiple of %u below the upper ranges: %b are "
                            "left there, %b are free in all",
                            size, alignment, room_above(l), all);
    uint64_t most = room_behind(l, l->newest);
    qi_raise(&most, room_to_wrap(l));
    return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                        "no room for %b at a multiple of %u behind the newest range: %b are left "
                        "there or by wrapping, %b are free in all",
                        size, alignment, most, all);
}

uint64_t qi_linear_largest_free(const quire_space *space)
{
    const qi_linear *l = qi_linear_of_const(space);
    uint64_t largest = room_behind(l, l->newest);
    qi_raise(&largest, room_to_wrap(l));
    qi_raise(&largest, room_above(l));
    return largest;
}

static bool visit_gap(const qi_linear *l, uint32_t below,
                      bool (*visit)(void *, const quire_space_item *), void *user)
{
    uint64_t begin = qi_linear_end(&l->records[below]) - l->space.regions[0].start;
    const quire_space_item gap = {.is_free = true, .offset = begin, .size = room_behind(l, below)};
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
