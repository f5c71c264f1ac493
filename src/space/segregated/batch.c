/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * batch.c - allocates several equal ranges with one search: takes them as one range and cuts it.
 */
#include "src/space/segregated/lists.h"

/*
 * Cuts a live node of `count` times `part` granules. The first part keeps number and generation;
 * the others take spare numbers.
 */
static void cut(qi_segregated *s, uint32_t part, uint32_t count, quire_placement *placements)
{
    uint32_t last = qi_handle_slot(placements[0].range.id), start = s->nodes[last].offset;
    const uint32_t owner = s->nodes[last].owner;
    uint64_t bytes = part * s->space.granule;
    s->nodes[last].size = part;
    s->space.live_bytes -= bytes * (count - 1); /* qi_node_make_live adds them again */
    placements[0].size = bytes;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t number = qi_node_take(s);
        start += part;
        s->nodes[number].offset = start;
        s->nodes[number].size = part;
        s->nodes[number].owner = owner;
        qi_node_insert_after(s, last, number);
        qi_node_make_live(s, number, start, part, placements[i].user, &placements[i]);
        last = number;
    }
}

/* Whether the sum of the ranges would take another end of the space than each range. */
static bool ends_differ(const qi_segregated *s, uint64_t bytes, uint64_t total)
{
    return bytes >> s->granule_shift < s->tail_size && total >> s->granule_shift >= s->tail_size;
}

quire_result qi_segregated_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                          uint32_t count, quire_placement *placements)
{
    qi_segregated *s = qi_segregated_of(space);
    uint64_t bytes = 0, total = 0;
    if (qi_align_up_overflows(size, space->granule, &bytes) || bytes % alignment > 0 ||
        qi_multiply_overflows(bytes, count, &total) || total > space->region_bytes || s->slabs ||
        ends_differ(s, bytes, total))
        return QUIRE_ERROR_NO_SPACE;
    quire_result result = qi_segregated_reserve(s, count + 1);
    if (!result)
        result = space->allocate_range(space, total, alignment, placements[0].user, QI_TRY,
                                       &placements[0]);
    if (!result)
        cut(s, (uint32_t)(bytes >> s->granule_shift), count, placements);
    return result;
}
