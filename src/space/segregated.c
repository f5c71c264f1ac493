/*
 * segregated.c - the segregated fit: one set of size classes over all regions, address buckets
 * within a class, in-place merge (see segregated.h for the records and their invariants). What
 * every allocation and free runs is here; the rest of the search is in segregated_search.c, regions
 * and tables are in segregated_region.c.
 *
 * An allocation takes, in this order: an entry of the request's own class that is large enough, the
 * one in the lowest bucket; else the lowest bucket of the next class that has any, where every
 * entry is large enough. For a large request while little is free, a tighter place is worth a look
 * in between.
 *
 * Freeing merges at once with free neighbours and never needs a new node.
 */
#include "src/space/lists.h"
#include "src/space/slabs.h"

/*
 * All that is usual, without a call: what is not goes the general way, with the same arguments.
 */
quire_result qi_segregated_fast_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                         uint64_t user, uint32_t how, quire_placement *placement)
{
    qi_segregated *s = qi_segregated_of(space);
    uint64_t rest = size - 1, align_mask = alignment - 1; /* 0 becomes larger than any limit */
    if (qi_unlikely(rest >= space->region_bytes || align_mask >= space->max_alignment ||
                    alignment & align_mask || space->pool.spare < 2))
        return qi_space_allocate(space, size, alignment, user, how, placement);
    uint32_t granules = (uint32_t)(rest >> s->granule_shift) + 1;
    qi_class class = qi_class_of_request(granules);
    uint32_t list = qi_pick_in_class(s, class);
    if (list == QI_NO_LIST && (granules < s->close_size || !qi_space_is_tight(space)))
        list = qi_pick_above(s, class);
    if (qi_unlikely(list == QI_NO_LIST))
        return qi_space_allocate(space, size, alignment, user, how, placement);
    uint32_t found = s->heads[list], start = s->nodes[found].offset;
    uint32_t padding = (0 - start) & (uint32_t)(align_mask >> s->granule_shift);
    if (qi_unlikely((uint64_t)padding + granules > s->nodes[found].size))
        return qi_space_allocate(space, size, alignment, user, how, placement);
    start += padding;
    uint32_t live = qi_node_carve(s, found, QI_AT_HEAD | list, start, granules);
    qi_node_begin(s, live, start, granules, user, placement);
    return QUIRE_SUCCESS;
}

/* Without slabs that bit is one of a range's number. */
static inline bool is_slot(const qi_segregated *s, uint32_t slot)
{
    return slot & QI_SLAB_SLOT && s->slabs;
}

static bool is_live(const qi_segregated *s, uint32_t slot, uint32_t generation)
{
    return slot < s->space.pool.top && s->nodes[slot].generation == generation && generation & 1 &&
           !qi_node_is_slab(&s->nodes[slot]);
}

quire_result qi_segregated_fast_free(quire_space *space, quire_range range)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t slot = qi_handle_slot(range.id);
    if (qi_unlikely(slot >= space->pool.top ||
                    !qi_handle_is(range.id, space->tag, s->nodes[slot].generation)))
        return qi_space_free(space, range);
    qi_node_end(s, slot);
    qi_node_free(s, slot);
    return QUIRE_SUCCESS;
}

static bool segregated_claim(quire_space *space, uint32_t slot, uint32_t generation)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot))
        return qi_slabs_claim(s, slot, generation);
    if (!is_live(s, slot, generation))
        return false;
    qi_node_end(s, slot);
    qi_node_fetch_neighbours(s, slot); /* a batch claims all of its ranges before it frees one */
    return true;
}

static void segregated_unclaim(quire_space *space, uint32_t slot)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot)) {
        qi_slabs_unclaim(s, slot);
        return;
    }
    s->nodes[slot].generation--;
    space->live_count++;
    space->live_bytes += (uint64_t)s->nodes[slot].size << s->granule_shift;
}

static void segregated_release_claimed(quire_space *space, uint32_t slot)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot))
        qi_slabs_release_claimed(s, slot);
    else if (s->waiting)
        qi_segregated_put_off(s, slot);
    else
        qi_node_free(s, slot);
}

static void segregated_fetch(const quire_space *space, uint32_t slot)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    if (!(slot & QI_SLAB_SLOT) && space->pool.top >= QI_MANY_NODES)
        qi_node_fetch_lists(s, slot);
}

static bool segregated_release(quire_space *space, uint32_t slot, uint32_t generation)
{
    if (!segregated_claim(space, slot, generation))
        return false;
    segregated_release_claimed(space, slot);
    return true;
}

static void segregated_clear(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    if (s->slabs)
        qi_slabs_clear(s);
    for (uint32_t i = 1; i < s->space.pool.top; i++)
        if (s->nodes[i].generation & 1)
            segregated_release(space, i, s->nodes[i].generation);
    qi_segregated_settle(space);
}

static bool segregated_get(const quire_space *space, uint32_t slot, uint32_t generation,
                           quire_placement *placement)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    if (is_slot(s, slot))
        return qi_slabs_get(s, slot, generation, placement);
    if (!is_live(s, slot, generation))
        return false;
    qi_segregated_describe(s, slot, placement);
    return true;
}

static bool segregated_set_user(quire_space *space, uint32_t slot, uint32_t generation,
                                uint64_t user)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot))
        return qi_slabs_set_user(s, slot, generation, user);
    if (!is_live(s, slot, generation))
        return false;
    s->nodes[slot].next = (uint32_t)user;
    s->nodes[slot].back = (uint32_t)(user >> 32);
    return true;
}

const qi_fit qi_segregated_fit = {
    .state_size = sizeof(qi_segregated),
    .default_granule = 256,
    .max_granule = UINT64_C(1) << 30,
    .keeps_kinds_apart = true,
    .has_segregated_options = true,
    .max_granules = UINT32_MAX,
    .region_nodes = 2,
    .init = qi_segregated_init,
    .finish = qi_segregated_finish,
    .add_region = qi_segregated_add_region,
    .region_is_empty = qi_segregated_region_is_empty,
    .remove_region = qi_segregated_remove_region,
    .resize_region = qi_segregated_resize_region,
    .free_at_end = qi_segregated_free_at_end,
    .allocate = qi_segregated_allocate,
    .allocate_batch = qi_segregated_allocate_batch,
    .claim = segregated_claim,
    .unclaim = segregated_unclaim,
    .fetch = segregated_fetch,
    .release_claimed = segregated_release_claimed,
    .release = segregated_release,
    .get = segregated_get,
    .set_user = segregated_set_user,
    .clear = segregated_clear,
    .largest_free = qi_segregated_largest_free,
    .free_count = qi_segregated_free_count,
    .settle = qi_segregated_settle,
    .shed = qi_segregated_shed,
    .reserve_user = qi_segregated_reserve_user,
    .walk = qi_segregated_walk,
    .check = qi_segregated_check,
    .in_use = qi_segregated_in_use,
    .trim = qi_segregated_trim,
};
