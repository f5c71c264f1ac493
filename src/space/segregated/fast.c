/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fast.c - the two hot calls of the segregated fit. Requests that need more than the direct choice
 * take the general path: qi_space_allocate, then search.c.
 *
 * An allocation takes, in this order: the lowest bucket of its own class whose first node is large
 * enough; otherwise the lowest bucket of the next class with a free node, where every node is large
 * enough. From 1 MiB on, while at most a quarter of the space is free, the search in search.c first
 * examines a few nodes of the own class.
 *
 * A free coalesces at once with free neighbours and never needs a new node.
 */
#include "src/space/segregated/lists.h"

/*
 * Serves the usual request without a function call. Every other request takes the general path with
 * the same arguments, which also reports errors.
 */
quire_result qi_segregated_fast_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                         uint64_t user, uint32_t flags, quire_placement *placement)
{
    qi_segregated *s = qi_segregated_of(space);
    uint64_t rest = size - 1, align_mask = alignment - 1; /* 0 wraps to above any limit */
    if (qi_unlikely(rest >= space->region_bytes || align_mask >= space->max_alignment ||
                    alignment & align_mask || space->pool.spare < 2))
        return qi_space_allocate(space, size, alignment, user, flags, placement);
    uint32_t granules = (uint32_t)(rest >> s->granule_shift) + 1;
    qi_class class = qi_class_of_request(granules);
    uint32_t list = qi_pick_in_class(s, class);
    if (list == QI_NO_LIST && (granules < s->tight_size || !qi_space_is_tight(space)))
        list = qi_pick_above(s, class);
    if (qi_unlikely(list == QI_NO_LIST))
        return qi_space_allocate(space, size, alignment, user, flags, placement);
    uint32_t found = s->heads[list], start = s->nodes[found].offset;
    uint32_t padding = (0 - start) & (uint32_t)(align_mask >> s->granule_shift);
    if (qi_unlikely((uint64_t)padding + granules > s->nodes[found].size))
        return qi_space_allocate(space, size, alignment, user, flags, placement);
    start += padding;
    uint32_t live = qi_node_carve(s, found, QI_AT_HEAD | list, start, granules);
    qi_node_make_live(s, live, start, granules, user, placement);
    return QUIRE_SUCCESS;
}

quire_result qi_segregated_fast_free(quire_space *space, quire_range range)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t slot = 0;
    if (!qi_node_claim(s, range, &slot))
        return qi_space_free(space, range);
    qi_node_free(s, slot);
    return QUIRE_SUCCESS;
}
