/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * view.c - reports the ranges of the segregated fit: placements, the walk, and statistics that are
 * computed from the records. Changes nothing.
 */
#include "src/space/segregated/lists.h"
#include "src/space/segregated/slabs.h"

/* Nodes of the highest class that the search for the largest free range examines. */
enum { MAX_EXAMINED = 1024 };

static uint32_t highest_list(const qi_segregated *s)
{
    for (uint32_t group = QI_MAX_BIT_WORDS / 64 + 1; group-- > 0;)
        if (s->bit_words[group]) {
            uint32_t word = group * 64 + qi_highest_bit(s->bit_words[group]);
            return word * 64 + qi_highest_bit(s->bits[word]);
        }
    return QI_NO_LIST;
}

/*
 * The largest range is in the highest class that is not empty. The result is exact unless that
 * class has more than MAX_EXAMINED nodes; then it may be up to 3 % too low.
 */
uint64_t qi_segregated_largest_free(const quire_space *space)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t last = highest_list(s), left = MAX_EXAMINED, largest = 0;
    if (last == QI_NO_LIST)
        return 0;
    uint32_t row = last >> s->row_shift << s->row_shift;
    for (uint32_t list = row; list <= last; list++)
        for (uint32_t i = s->heads[list]; i && left; i = s->nodes[i].next, left--)
            if (s->nodes[i].size > largest)
                largest = s->nodes[i].size;
    return (uint64_t)largest << s->granule_shift;
}

void qi_segregated_describe(const qi_segregated *s, uint32_t number, quire_placement *out)
{
    const qi_node *node = &s->nodes[number];
    uint64_t line = (uint64_t)node->offset << s->granule_shift;
    uint64_t size = (uint64_t)node->size << s->granule_shift, user = qi_node_user(node);
    uint32_t region = qi_node_region(node);
    out->range.id = qi_handle(s->space.tag, node->generation, number);
    out->region = region;
    out->reserved = 0;
    out->offset = line - s->space.regions[region].start;
    out->left_padding = 0;
    out->size = size;
    out->user = user;
}

/* Fills in the item of the kept window whose first piece this is. Returns the node after it. */
static uint32_t describe_kept(const qi_segregated *s, uint32_t number, quire_space_item *item)
{
    const uint32_t user = s->nodes[number].next;
    item->offset =
        s->nodes[number].offset * s->space.granule - s->space.regions[item->region].start;
    item->user = user - 1;
    for (; qi_node_is_reserved(s, number) && s->nodes[number].next == user;
         number = s->nodes[number].after)
        item->size += s->nodes[number].size * s->space.granule;
    return number;
}

/* A kept window is a live range without a handle. Other holes and windows are not visited. */
static uint32_t visit_hole(const qi_segregated *s, uint32_t number, bool *goes_on,
                           bool (*visit)(void *, const quire_space_item *), void *user)
{
    if (!qi_node_is_reserved(s, number) || !s->nodes[number].next)
        return s->nodes[number].after;
    quire_space_item item = {.region = qi_node_region(&s->nodes[number])};
    uint32_t after = describe_kept(s, number, &item);
    *goes_on = visit(user, &item);
    return after;
}

static bool visit_range(const qi_segregated *s, uint32_t number,
                        bool (*visit)(void *, const quire_space_item *), void *user)
{
    quire_placement at;
    qi_segregated_describe(s, number, &at);
    quire_space_item item = {.region = at.region, .offset = at.offset, .size = at.size};
    item.is_free = qi_node_is_free(s, number);
    if (!item.is_free) {
        item.range = at.range;
        item.user = at.user;
    }
    return visit(user, &item);
}

bool qi_segregated_walk(const quire_space *space, uint32_t region,
                        bool (*visit)(void *, const quire_space_item *), void *user)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t own = space->regions[region].node;
    for (uint32_t i = s->nodes[own].after, after; i != own; i = after) {
        bool goes_on = true;
        after = s->nodes[i].after;
        if (qi_node_is_slab(&s->nodes[i]))
            goes_on = qi_slabs_walk(s, i, visit, user);
        else if (qi_node_is_hole(s, i))
            after = visit_hole(s, i, &goes_on, visit, user);
        else
            goes_on = visit_range(s, i, visit, user);
        if (!goes_on)
            return false;
    }
    return true;
}

bool qi_segregated_in_use(const void *space, uint32_t number)
{
    const qi_segregated *s = space;
    const qi_node *node = (const qi_node *)s->space.pool.items +
                          number; /* s->nodes is outdated while the pool moves the nodes */
    return node->generation & 1 || qi_node_is_free(s, number) || qi_node_is_hole(s, number) ||
           qi_space_is_region_node(&s->space, qi_node_region(node), number);
}

uint64_t qi_segregated_free_count(const quire_space *space)
{
    const qi_slabs *slabs = qi_segregated_of_const(space)->slabs;
    if (!slabs)
        return qi_space_free_count(space);
    uint64_t nodes =
        qi_pool_used(&space->pool) - space->region_count - slabs->count - space->hole_nodes;
    return nodes + slabs->slots - space->live_count;
}
