/*
 * segregated_resize.c - regions of the segregated fit that end in another place: bytes are added to
 * the free range at the end of a region, which is made where there is none, or taken from it.
 */
#include "src/space/lists.h"

/* The node at the end of a region; a region has at least one. */
static uint32_t last_node(const qi_segregated *s, const qi_region *region)
{
    return s->nodes[region->node].before;
}

uint64_t qi_segregated_free_at_end(const quire_space *space, uint32_t region)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t last = last_node(s, &space->regions[region]);
    return qi_node_is_free(s, last) ? (uint64_t)s->nodes[last].size << s->granule_shift : 0;
}

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

/* Numbers and tables come first: what follows cannot fail. */
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
