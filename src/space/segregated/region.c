/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * region.c - a region is added as one free node, and can be removed when it is one again; resizing
 * changes, makes or removes the free node at its end.
 */
#include "src/base/result.h"
#include "src/space/segregated/lists.h"

/* Creates the node of the region, and one free node for all of it. */
quire_result qi_segregated_add_region(quire_space *space, uint32_t number)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_region *region = &space->regions[number];
    uint32_t granules = (uint32_t)(region->size >> s->granule_shift);
    if (number >= QI_MAX_REGIONS)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "a space has at most %u region%s",
                            QI_MAX_REGIONS);
    quire_result result = qi_segregated_reserve(s, 2);
    if (!result)
        result = qi_segregated_cover(s, granules);
    if (result)
        return result;
    uint32_t own = qi_node_take(s), whole = qi_node_take(s);
    qi_node *node = &s->nodes[own];
    *node = (qi_node){.generation = node->generation, .before = own, .after = own};
    node->offset = (uint32_t)(region->start >> s->granule_shift);
    node->owner = number;
    qi_node_insert_after(s, own, whole);
    s->nodes[whole].offset = node->offset;
    s->nodes[whole].size = granules;
    qi_node_mark_free(s, whole);
    qi_node_link(s, whole);
    region->node = own;
    return QUIRE_SUCCESS;
}

/* One free range, or holes with free ranges between them. */
bool qi_segregated_region_is_empty(const quire_space *space, uint32_t region)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t own = space->regions[region].node, i = s->nodes[own].after;
    while (i != own && (qi_node_is_free(s, i) || qi_node_is_hole(s, i)))
        i = s->nodes[i].after;
    return i == own;
}

/* Requires an empty region, of which no window is reserved. */
void qi_segregated_remove_region(quire_space *space, uint32_t region)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t own = space->regions[region].node;
    if (s->chunk)
        qi_segregated_fill(s, region);
    uint32_t whole = s->nodes[own].after;
    qi_node_unlink(s, &s->nodes[whole], s->nodes[whole].back);
    qi_node_mark_taken(s, whole);
    qi_node_give(s, whole);
    qi_node_give(s, own);
}

/* ---- resizing ----------------------------------------------------------------------------- */

/* The node at the end of a region; a region has at least one. */
static uint32_t last_node(const qi_segregated *s, const qi_region *region)
{
    return s->nodes[region->node].before;
}

/* Constant time: the node before the region's own node is the last one. */
uint64_t qi_segregated_free_at_end(const quire_space *space, uint32_t region)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t last = last_node(s, &space->regions[region]);
    return qi_node_is_free(s, last) ? (uint64_t)s->nodes[last].size << s->granule_shift : 0;
}

/* Removes granules of the free node at the end of a region. */
static void shrink(qi_segregated *s, uint32_t last, uint32_t granules)
{
    const qi_node *node = &s->nodes[last];
    if (node->size > granules) {
        qi_node_move(s, last, node->back, node->offset, node->size - granules);
        return;
    }
    qi_node_unlink(s, node, node->back);
    qi_node_mark_taken(s, last);
    qi_node_leave_ring(s, last);
    qi_node_give(s, last);
}

/* Extends the free node at the end of a region, or creates one. Allocates before it changes. */
static quire_result grow(qi_segregated *s, const qi_region *region, uint64_t size)
{
    uint32_t last = last_node(s, region);
    uint32_t granules = (uint32_t)((size - region->size) >> s->granule_shift);
    bool merges = qi_node_is_free(s, last);
    quire_result result = merges ? QUIRE_SUCCESS : qi_segregated_reserve(s, 1);
    if (!result)
        result = qi_segregated_cover(s, (uint32_t)(size >> s->granule_shift));
    if (result)
        return result;
    if (merges) {
        const qi_node *node = &s->nodes[last];
        qi_node_move(s, last, node->back, node->offset, node->size + granules);
        return QUIRE_SUCCESS;
    }
    uint32_t added = qi_node_take(s);
    qi_node_insert_after(s, last, added);
    s->nodes[added].offset = (uint32_t)((region->start + region->size) >> s->granule_shift);
    s->nodes[added].size = granules;
    qi_node_mark_free(s, added);
    qi_node_link(s, added);
    return QUIRE_SUCCESS;
}

quire_result qi_segregated_resize_region(quire_space *space, uint32_t number, uint64_t size)
{
    qi_segregated *s = qi_segregated_of(space);
    const qi_region *region = &space->regions[number];
    if (size > region->size)
        return grow(s, region, size);
    shrink(s, last_node(s, region), (uint32_t)((region->size - size) >> s->granule_shift));
    return QUIRE_SUCCESS;
}
