/*
 * batch.c - several equal ranges by one search: they are taken as one range, which is
 * then cut into them.
 */
#include "src/space/segregated/lists.h"

/* Cuts a live node of `count` times `part` granules; its first part keeps number and generation. */
static void cut(qi_segregated *s, uint32_t part, uint32_t count, quire_placement *placements)
{
    uint32_t last = qi_handle_slot(placements[0].range.id), start = s->nodes[last].offset;
    const uint32_t owner = s->nodes[last].owner;
    uint64_t bytes = part * s->space.granule;
    s->nodes[last].size = part;
    s->space.live_bytes -= bytes * (count - 1); /* which each of them adds again */
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

quire_result qi_segregated_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                          uint32_t count, quire_placement *placements)
{
    qi_segregated *s = qi_segregated_of(space);
    uint64_t bytes = 0, total = 0;
    if (qi_align_up_overflows(size, space->granule, &bytes) || bytes % alignment > 0 ||
        qi_multiply_overflows(bytes, count, &total) || total > space->region_bytes || s->slabs)
        return QUIRE_ERROR_NO_SPACE;
    quire_result result = qi_segregated_reserve(s, count + 1);
    if (!result)
        result = qi_segregated_fast_allocate(space, total, alignment, placements[0].user, QI_TRY,
                                             &placements[0]);
    if (!result)
        cut(s, (uint32_t)(bytes >> s->granule_shift), count, placements);
    return result;
}
