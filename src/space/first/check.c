/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.c - verifies every record of a first-fit space against the invariants in first.h. The
 * records may be damaged: only the size of the array is trusted, and every number is checked before
 * it is followed.
 */
#include "src/space/first/first.h"

static bool is_number(const qi_first *f, uint32_t number)
{
    return number != 0 && number < f->space.pool.top;
}

static bool is_region_node(const qi_first *f, uint32_t region, uint32_t number)
{
    if (!is_number(f, number))
        return false;
    const qi_first_node *node = &f->nodes[number];
    return node->size == 0 && node->region == region && !(node->generation & 1) && !node->is_free;
}

static quire_result check_ring_node(const qi_first *f, uint32_t before, uint32_t number,
                                    quire_space_stats *seen)
{
    const qi_first_node *node = &f->nodes[number];
    bool is_live = node->generation & 1;
    if (node->before != before || !is_number(f, node->after) ||
        f->nodes[node->after].before != number)
        return qi_space_damaged("a neighbour does not point back", number);
    if (node->is_free == is_live || node->size == 0)
        return qi_space_damaged("a range is neither free nor live, or both", number);
    if (node->is_free && f->nodes[node->after].is_free)
        return qi_space_damaged("two free neighbours touch", number);
    *(is_live ? &seen->live_count : &seen->free_count) += 1;
    *(is_live ? &seen->live_bytes : &seen->free_bytes) += node->size;
    seen->padding_bytes += is_live ? node->as.live.left_padding : 0;
    return QUIRE_SUCCESS;
}

static quire_result check_ring(const qi_first *f, uint32_t region, quire_space_stats *seen)
{
    const qi_region *place = &f->space.regions[region];
    uint32_t own = place->node, before = own;
    if (!is_region_node(f, region, own))
        return qi_space_damaged("the node of a region is damaged", own);
    uint64_t offset = place->start;
    for (uint32_t i = f->nodes[own].after; i != own; i = f->nodes[i].after) {
        const qi_first_node *node = &f->nodes[i];
        if (!is_number(f, i) || qi_first_begin(node) != offset || node->region != region)
            return qi_space_damaged("a range does not begin where its neighbour ends", i);
        quire_result result = check_ring_node(f, before, i, seen);
        if (result)
            return result;
        offset = node->offset + node->size;
        before = i;
    }
    if (offset != place->start + place->size)
        return qi_space_damaged("the ranges of a region do not fill it", own);
    return QUIRE_SUCCESS;
}

quire_result qi_first_check(const quire_space *space)
{
    const qi_first *f = qi_first_of_const(space);
    quire_space_stats seen = {0};
    if (f->nodes != space->pool.items)
        return qi_space_damaged("the records are not those of the pool", 0);
    for (uint32_t i = 0; i < space->region_capacity; i++) {
        quire_result result = space->regions[i].used ? check_ring(f, i, &seen) : QUIRE_SUCCESS;
        if (result)
            return result;
    }
    uint64_t in_tree = 0;
    quire_result result = qi_free_tree_check(f, &in_tree);
    if (result)
        return result;
    if (in_tree != seen.free_count || in_tree != qi_space_free_count(space))
        return qi_space_damaged("the tree does not hold every free range exactly once", 0);
    if (seen.live_count != space->live_count || seen.live_bytes != space->live_bytes ||
        seen.padding_bytes != space->padding_bytes)
        return qi_space_damaged("the live statistics do not match the ranges", 0);
    if (seen.live_bytes + seen.padding_bytes + seen.free_bytes != space->region_bytes)
        return qi_space_damaged("the sums of live and free bytes are not the size of the regions",
                                0);
    return QUIRE_SUCCESS;
}
