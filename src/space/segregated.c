/*
 * segregated.c - the segregated fit: one set of size classes over all regions, address buckets
 * within a class, in-place merge (see segregated.h for the records and their invariants).
 *
 * An allocation takes, in this order: an entry of the request's own class that is large enough, the
 * one in the lowest bucket; else the lowest bucket of the next class that has any, where every
 * entry is large enough. Only when alignment makes that one too small, or when nothing is left
 * above, are lists looked through, a bounded number of nodes. What this can miss is told in
 * quire/space.h.
 *
 * Freeing merges at once with free neighbours and never needs a new node.
 */
#include "src/space/segregated.h"

#include "src/space/lists.h"

/*
 * Nodes looked at where the direct choice fails. A larger number finds a tighter place for aligned
 * requests and costs as much more where there is none; 50,000 misaligned holes must not be felt.
 */
enum { LOOK_IN_CLASS = 8, LOOK_IN_ALL = 64 };

static bool node_fits(const qi_node *node, uint32_t size, uint32_t align_mask)
{
    return node->size >= (uint64_t)size + ((0u - node->offset) & align_mask);
}

/* The first node that fits in the lists of one class; `budget` counts down the nodes looked at. */
static uint32_t look_in_class(const qi_segregated *s, uint32_t class, uint32_t size,
                              uint32_t align_mask, uint64_t *budget)
{
    for (uint32_t buckets = s->masks[class]; buckets; buckets &= buckets - 1) {
        uint32_t number = s->heads[class * QI_BUCKETS + qi_lowest_bit(buckets)];
        for (; number; number = s->nodes[number].next) {
            if (node_fits(&s->nodes[number], size, align_mask))
                return number;
            if (--*budget == 0)
                return 0;
        }
    }
    return 0;
}

/* The same over all classes that could hold the request and in which not every node does. */
static uint32_t look_in_all(const qi_segregated *s, uint32_t size, uint32_t align_mask,
                            uint64_t budget)
{
    uint64_t sure = (uint64_t)size + align_mask;
    uint32_t last =
        sure > UINT32_MAX ? QI_CLASS_LIMIT - 1 : qi_class_of_range((uint32_t)sure).index;
    uint32_t class = qi_next_class(s, qi_class_of_range(size).index);
    while (class <= last && class < QI_CLASS_LIMIT && budget) {
        uint32_t number = look_in_class(s, class, size, align_mask, &budget);
        if (number)
            return number;
        class = qi_next_class(s, class + 1);
    }
    return 0;
}

/* What is tried when the direct choice `found` is nothing or too small once aligned. */
static uint32_t search_further(const qi_segregated *s, uint32_t size, uint32_t align_mask,
                               uint32_t found)
{
    uint64_t sure = (uint64_t)size + align_mask;
    if (found) {
        uint64_t budget = LOOK_IN_CLASS;
        uint32_t class = qi_class_of_range(s->nodes[found].size).index;
        found = look_in_class(s, class, size, align_mask, &budget);
    }
    if (!found && align_mask && sure <= UINT32_MAX)
        found = qi_pick_free(s, (uint32_t)sure);
    return found ? found : look_in_all(s, size, align_mask, LOOK_IN_ALL);
}

static uint32_t search(qi_segregated *s, uint32_t size, uint32_t align_mask, bool exhaustive)
{
    uint32_t found = qi_pick_free(s, size);
    if (found && node_fits(&s->nodes[found], size, align_mask))
        return found;
    found = search_further(s, size, align_mask, found);
    if (found || !exhaustive)
        return found;
    found = look_in_all(s, size, align_mask, UINT64_MAX);
    s->space.full_passes++;
    s->space.full_pass_hits += found != 0;
    return found;
}

/* ---- allocate and free -------------------------------------------------------------------- */

/* The whole free node becomes live, or a fresh one in its place if its number is used up. */
static uint32_t take_whole(qi_segregated *s, uint32_t found)
{
    qi_node_unlink(s, &s->nodes[found]);
    qi_node_mark_taken(s, found);
    if (s->nodes[found].generation <= QI_LAST_GENERATION)
        return found;
    uint32_t live = qi_node_take(s);
    qi_node_insert_after(s, found, live);
    s->nodes[live].offset = s->nodes[found].offset;
    s->nodes[live].size = s->nodes[found].size;
    qi_node_leave_ring(s, found);
    qi_node_give(s, found);
    return live;
}

/* Cuts [start, start + size) out of a free node; needs two spare numbers. */
static uint32_t carve(qi_segregated *s, uint32_t found, uint32_t start, uint32_t size)
{
    const qi_node *free_node = &s->nodes[found];
    uint32_t offset = free_node->offset, padding = start - offset;
    uint32_t slack = free_node->size - padding - size;
    if (!padding && !slack)
        return take_whole(s, found);
    uint32_t live = qi_node_take(s);
    s->nodes[live].offset = start;
    s->nodes[live].size = size;
    if (!padding) {
        qi_node_insert_after(s, free_node->before, live);
        qi_node_move(s, found, start + size, slack);
        return live;
    }
    qi_node_insert_after(s, found, live);
    qi_node_move(s, found, offset, padding);
    if (slack) {
        uint32_t rest = qi_node_take(s);
        qi_node_insert_after(s, live, rest);
        s->nodes[rest].offset = start + size;
        s->nodes[rest].size = slack;
        qi_node_mark_free(s, rest);
        qi_node_link(s, rest);
    }
    return live;
}

void qi_segregated_describe(const qi_segregated *s, uint32_t number, quire_placement *out)
{
    const qi_node *node = &s->nodes[number];
    uint64_t line = (uint64_t)node->offset << s->granule_shift;
    out->range.id = qi_handle(s->space.tag, node->generation, number);
    out->region = node->region;
    out->reserved = 0;
    out->offset = line - s->space.regions[node->region].start;
    out->left_padding = 0;
    out->size = (uint64_t)node->size << s->granule_shift;
    out->user = qi_node_user(node);
}

static quire_result segregated_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                        uint64_t user, uint32_t how, quire_placement *placement)
{
    qi_segregated *s = qi_segregated_of(space);
    if (size > space->region_bytes)
        return qi_space_no_room(space, size, alignment, how);
    uint32_t granules = (uint32_t)((size + space->granule - 1) >> s->granule_shift);
    uint32_t align_mask = (uint32_t)((alignment - 1) >> s->granule_shift);
    if (s->space.pool.spare < 2) {
        quire_result result = qi_segregated_reserve(s, 2);
        if (result)
            return result;
    }
    uint32_t found = search(s, granules, align_mask, how & QI_EXHAUSTIVE);
    if (!found)
        return qi_space_no_room(space, size, alignment, how);
    uint32_t start = s->nodes[found].offset;
    start += (0u - start) & align_mask;
    uint32_t live = carve(s, found, start, granules);
    qi_node *node = &s->nodes[live];
    node->generation++;
    node->next = (uint32_t)user;
    node->back = (uint32_t)(user >> 32);
    space->live_count++;
    space->live_bytes += (uint64_t)granules << s->granule_shift;
    qi_segregated_describe(s, live, placement);
    return QUIRE_SUCCESS;
}

static bool is_live(const qi_segregated *s, uint32_t slot, uint32_t generation)
{
    return slot < s->space.pool.top && s->nodes[slot].generation == generation && generation & 1;
}

/* Makes a range that is no longer live free: merged into a free neighbour, or listed itself. */
static void free_node(qi_segregated *s, uint32_t number)
{
    qi_node *node = &s->nodes[number];
    uint32_t before = node->before, after = node->after;
    bool low = qi_node_is_free(s, before), high = qi_node_is_free(s, after);
    if (!low && !high) {
        qi_node_mark_free(s, number);
        qi_node_link(s, number);
        return;
    }
    qi_node_leave_ring(s, number);
    qi_node_give(s, number);
    uint32_t size = node->size;
    if (!low) {
        qi_node_move(s, after, node->offset, size + s->nodes[after].size);
        return;
    }
    size += s->nodes[before].size;
    if (high) {
        size += s->nodes[after].size;
        qi_node_unlink(s, &s->nodes[after]);
        qi_node_mark_taken(s, after);
        qi_node_leave_ring(s, after);
        qi_node_give(s, after);
    }
    qi_node_move(s, before, s->nodes[before].offset, size);
}

static bool segregated_claim(quire_space *space, uint32_t slot, uint32_t generation)
{
    qi_segregated *s = qi_segregated_of(space);
    if (!is_live(s, slot, generation))
        return false;
    s->nodes[slot].generation++;
    space->live_count--;
    space->live_bytes -= (uint64_t)s->nodes[slot].size << s->granule_shift;
    return true;
}

static void segregated_unclaim(quire_space *space, uint32_t slot)
{
    qi_segregated *s = qi_segregated_of(space);
    s->nodes[slot].generation--;
    space->live_count++;
    space->live_bytes += (uint64_t)s->nodes[slot].size << s->granule_shift;
}

static void segregated_release_claimed(quire_space *space, uint32_t slot)
{
    free_node(qi_segregated_of(space), slot);
}

static bool segregated_release(quire_space *space, uint32_t slot, uint32_t generation)
{
    if (!segregated_claim(space, slot, generation))
        return false;
    free_node(qi_segregated_of(space), slot);
    return true;
}

static void segregated_clear(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    for (uint32_t i = 1; i < s->space.pool.top; i++)
        if (s->nodes[i].generation & 1)
            segregated_release(space, i, s->nodes[i].generation);
}

static bool segregated_get(const quire_space *space, uint32_t slot, uint32_t generation,
                           quire_placement *placement)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    if (!is_live(s, slot, generation))
        return false;
    qi_segregated_describe(s, slot, placement);
    return true;
}

static bool segregated_set_user(quire_space *space, uint32_t slot, uint32_t generation,
                                uint64_t user)
{
    qi_segregated *s = qi_segregated_of(space);
    if (!is_live(s, slot, generation))
        return false;
    s->nodes[slot].next = (uint32_t)user;
    s->nodes[slot].back = (uint32_t)(user >> 32);
    return true;
}

const qi_fit qi_segregated_fit = {
    .state_size = sizeof(qi_segregated),
    .default_granule = 256,
    .largest_granule = UINT64_C(1) << 30,
    .most_granules = UINT32_MAX,
    .init = qi_segregated_init,
    .finish = qi_segregated_finish,
    .add_region = qi_segregated_add_region,
    .region_is_empty = qi_segregated_region_is_empty,
    .remove_region = qi_segregated_remove_region,
    .allocate = segregated_allocate,
    .claim = segregated_claim,
    .unclaim = segregated_unclaim,
    .release_claimed = segregated_release_claimed,
    .release = segregated_release,
    .get = segregated_get,
    .set_user = segregated_set_user,
    .clear = segregated_clear,
    .largest_free = qi_segregated_largest_free,
    .free_count = qi_space_free_count,
    .walk = qi_segregated_walk,
    .check = qi_segregated_check,
    .in_use = qi_segregated_in_use,
    .trim = qi_segregated_trim,
};
