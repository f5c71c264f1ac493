/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.c - verifies every record of a segregated space against the invariants in segregated.h.
 * Only reads. The records may be damaged: every number is checked before it is followed.
 */
#include <string.h>

#include "src/base/bits.h"
#include "src/space/segregated/lists.h"
#include "src/space/segregated/slabs.h"

typedef struct count {
    uint64_t live, free, live_granules, free_granules;
    uint64_t holes, hole_granules, listed_holes; /* pieces of windows are holes, and not listed */
    uint64_t asleep_granules;                    /* of live ranges, in chunks that sleep */
    uint64_t free_slots;                         /* of slabs */
    uint64_t last_end; /* granules: end of the live range below; 0 at the start of a region */
    bool last_optimal;
} count;

static bool is_number(const qi_segregated *s, uint32_t number)
{
    return number != 0 && number < s->space.pool.top;
}

/* Whether the tables have the shape that the checks below rely on. */
static bool tables_are_sound(const qi_segregated *s)
{
    if ((s->row_shift != 0 && s->row_shift != 2 && s->row_shift != 4) ||
        s->row_mask != (1u << (1u << s->row_shift)) - 1)
        return false;
    if (s->chunk && (s->hole_capacity < s->space.pool.capacity || !s->is_hole))
        return false;
    return s->nodes == s->space.pool.items && s->free_capacity >= s->space.pool.capacity &&
           s->list_count <= (uint32_t)QI_CLASS_LIMIT << s->row_shift && s->list_count % 32 == 0 &&
           s->granule_shift < 64 && UINT64_C(1) << s->granule_shift == s->space.granule &&
           s->bucket_shift <= 32 && s->kind_mask == s->space.kind_mask >> s->granule_shift;
}

/* Whether no stretch holds live ranges of both kinds, and only live nodes have a kind. */
static bool kind_is_sound(const qi_segregated *s, const qi_node *node, count *seen)
{
    if (!(node->generation & 1) || !s->kind_mask)
        return !qi_node_is_optimal(node);
    bool shares = seen->last_end > (node->offset & ~(uint64_t)s->kind_mask);
    bool differs = qi_node_is_optimal(node) != seen->last_optimal;
    seen->last_end = (uint64_t)node->offset + node->size;
    seen->last_optimal = qi_node_is_optimal(node);
    return !shares || !differs;
}

/* The granules of a node in chunks that sleep. */
static uint64_t asleep_granules(const qi_segregated *s, uint32_t region, const qi_node *node)
{
    const uint32_t origin = s->nodes[s->space.regions[region].node].offset;
    const uint64_t end = (uint64_t)node->offset + node->size;
    uint64_t granules = 0;
    for (uint64_t at = node->offset, next; s->asleep_words && at < end; at = next) {
        const uint64_t chunk = (at - origin) / s->chunk;
        next = origin + (chunk + 1) * s->chunk;
        if (next > end)
            next = end;
        if (qi_chunk_sleeps(s, origin / s->chunk + (uint32_t)chunk))
            granules += next - at;
    }
    return granules;
}

/* Whether only live ranges and fillers touch chunks that sleep. */
static bool sleep_is_sound(const qi_segregated *s, uint32_t region, uint32_t number, count *seen)
{
    const qi_node *node = &s->nodes[number];
    const uint64_t granules = asleep_granules(s, region, node);
    const bool is_piece = qi_node_is_reserved(s, number) &&
                          (node->owner & QI_PIECE_MASK) >> QI_PIECE_SHIFT == QI_PIECE_ASLEEP;
    if (is_piece && !node->next) /* a filler */
        return granules == node->size && node->size < s->chunk;
    if (!(node->generation & 1))
        return !granules;
    seen->asleep_granules += granules;
    return true;
}

/* Verifies a hole, or a piece of a window, and adds it to the sums. The edges of a hole are those
   of chunks; holes do not touch. */
static quire_result check_hole(const qi_segregated *s, uint32_t region, uint32_t number,
                               count *seen)
{
    const qi_node *node = &s->nodes[number];
    bool is_reserved = node->owner & QI_RESERVED_MARK;
    uint32_t origin = s->nodes[s->space.regions[region].node].offset;
    if (node->generation & 1 || qi_node_is_free(s, number) || !s->chunk)
        return qi_space_damaged("a hole is free or live", number);
    if ((node->owner & ~(QI_RESERVED_MARK | QI_PIECE_MASK)) != region ||
        (!is_reserved && node->owner & QI_PIECE_MASK))
        return qi_space_damaged("a range is in the ring of another region", number);
    if (!is_reserved && ((node->offset - origin) % s->chunk || node->size % s->chunk))
        return qi_space_damaged("a hole begins or ends inside a chunk", number);
    if (!is_reserved && qi_node_is_hole(s, node->after) &&
        !(s->nodes[node->after].owner & QI_RESERVED_MARK))
        return qi_space_damaged("two holes touch", number);
    seen->holes++;
    seen->hole_granules += node->size;
    seen->listed_holes += !is_reserved;
    return QUIRE_SUCCESS;
}

/* Verifies one node of a ring and adds it to the sums. */
static quire_result check_ring_node(const qi_segregated *s, uint32_t region, uint32_t before,
                                    uint32_t number, count *seen)
{
    const qi_node *node = &s->nodes[number];
    bool is_free = qi_node_is_free(s, number), is_live = node->generation & 1;
    if (node->before != before || !is_number(s, node->after) ||
        s->nodes[node->after].before != number)
        return qi_space_damaged("a neighbour does not point back", number);
    if (!sleep_is_sound(s, region, number, seen))
        return qi_space_damaged("a range that is not live is in a chunk that sleeps", number);
    if (node->size && qi_node_is_hole(s, number))
        return check_hole(s, region, number, seen);
    uint32_t fraction = is_free ? qi_node_fraction(node) : 0; /* check_list verifies it */
    uint32_t kind = node->owner & QI_OPTIMAL_MARK;
    uint32_t slab_mark = is_live && s->slabs ? node->owner & QI_SLAB_MARK : 0;
    if (node->owner != (region | kind | slab_mark | fraction << (QI_REGION_BITS + 1)))
        return qi_space_damaged("a range is in the ring of another region", number);
    if (is_free == is_live || node->size == 0)
        return qi_space_damaged("a range is neither free nor live, or both", number);
    if (is_free && qi_node_is_free(s, node->after))
        return qi_space_damaged("two free neighbours touch", number);
    if (!kind_is_sound(s, node, seen))
        return qi_space_damaged("ranges of different kinds share a stretch", number);
    const qi_slab *slab = is_live && node->owner & QI_SLAB_MARK ? qi_slab_of_node(s, number) : NULL;
    if (is_live && node->owner & QI_SLAB_MARK && !slab)
        return qi_space_damaged("a range is marked as a slab that does not exist", number);
    if (slab) { /* qi_slabs_check verifies the slab */
        seen->live += slab->live;
        seen->free_slots += (uint64_t)slab->slots - slab->live;
        seen->live_granules += (uint64_t)slab->live * slab->stride;
        seen->free_granules += node->size - (uint64_t)slab->live * slab->stride;
        return QUIRE_SUCCESS;
    }
    *(is_free ? &seen->free : &seen->live) += 1;
    *(is_free ? &seen->free_granules : &seen->live_granules) += node->size;
    return QUIRE_SUCCESS;
}

static bool is_region_node(const qi_segregated *s, uint32_t region, uint32_t number)
{
    if (!is_number(s, number))
        return false;
    const qi_node *node = &s->nodes[number];
    return node->size == 0 && node->owner == region && !(node->generation & 1) &&
           !qi_node_is_free(s, number);
}

/*
 * Walks the ring of a region. Ends for damaged records too: every node must begin where the one
 * before ends, sizes are above 0, and offsets have 32 bits.
 */
static quire_result check_ring(const qi_segregated *s, uint32_t region, count *seen)
{
    const qi_region *place = &s->space.regions[region];
    uint32_t own = place->node, before = own;
    if (!is_region_node(s, region, own))
        return qi_space_damaged("the node of a region is damaged", own);
    uint64_t offset = place->start >> s->granule_shift;
    seen->last_end = 0;
    for (uint32_t i = s->nodes[own].after; i != own; i = s->nodes[i].after) {
        if (!is_number(s, i) || s->nodes[i].offset != offset)
            return qi_space_damaged("a range does not begin where its neighbour ends", i);
        quire_result result = check_ring_node(s, region, before, i, seen);
        if (result)
            return result;
        offset += s->nodes[i].size;
        before = i;
    }
    if (offset << s->granule_shift != place->start + place->size)
        return qi_space_damaged("the ranges of a region do not fill it", own);
    if ((offset - 1) >> s->bucket_shift >> s->row_shift)
        return qi_space_damaged("a region ends above the last address bucket", own);
    return QUIRE_SUCCESS;
}

/* Verifies the nodes of one list and its bit. *listed bounds the walk, so that a cycle ends it. */
static quire_result check_list(const qi_segregated *s, uint32_t list, uint64_t *listed)
{
    uint32_t back = QI_AT_HEAD | list;
    for (uint32_t i = s->heads[list]; i; i = s->nodes[i].next) {
        if (!is_number(s, i) || !qi_node_is_free(s, i) || s->nodes[i].back != back)
            return qi_space_damaged("a list holds a range that is not free or not linked back", i);
        const qi_node *node = &s->nodes[i];
        if (qi_list_for(s, node->offset, node->size).number != list)
            return qi_space_damaged("a free range is in the list of another size or address", i);
        uint32_t fraction = qi_class_of_range(node->size).fraction;
        if (qi_node_fraction(node) != fraction ||
            (back & QI_AT_HEAD && s->fractions[list] != fraction))
            return qi_space_damaged("a fraction does not match the size of its range", i);
        if (++*listed > s->space.pool.top)
            return qi_space_damaged("a list has a cycle", i);
        back = i;
    }
    bool marked = s->bits[list / 64] >> list % 64 & 1;
    if (marked != (s->heads[list] != 0))
        return qi_space_damaged("the bit of a list is wrong", s->heads[list]);
    return QUIRE_SUCCESS;
}

/* Verifies all lists, and the bits of words against the bits of lists. */
static quire_result check_lists(const qi_segregated *s, uint64_t *listed)
{
    for (uint32_t list = 0; list < s->list_count; list++) {
        quire_result result = check_list(s, list, listed);
        if (result)
            return result;
    }
    uint64_t words[QI_MAX_BIT_WORDS / 64 + 1] = {0};
    if (s->list_count) /* the last word may have bits beyond the lists */
        for (uint32_t word = 0; word <= s->list_count / 64; word++)
            words[word / 64] |= (uint64_t)(s->bits[word] != 0) << word % 64;
    if (s->list_count && s->bits[s->list_count / 64] >> s->list_count % 64)
        return qi_space_damaged("a bit above the last list is set", s->list_count);
    if (memcmp(words, s->bit_words, sizeof words))
        return qi_space_damaged("the bit of a word of lists is wrong", 0);
    return QUIRE_SUCCESS;
}

static uint64_t count_marked(const uint64_t *bits, uint32_t capacity)
{
    uint64_t marked = 0;
    for (uint32_t word = 0; word < (capacity + 63) / 64; word++)
        marked += qi_count_bits(bits[word]);
    return marked;
}

/* Verifies the list of holes, and the sums over all holes. */
static quire_result check_holes(const qi_segregated *s, const count *seen)
{
    uint64_t listed = 0, holes = seen->holes;
    uint32_t back = 0;
    for (uint32_t i = s->first_hole; i && listed <= seen->listed_holes; i = s->nodes[i].next) {
        if (!is_number(s, i) || !qi_node_is_hole(s, i) || s->nodes[i].owner & QI_RESERVED_MARK ||
            s->nodes[i].back != back)
            return qi_space_damaged("the list of holes is damaged", i);
        listed++;
        back = i;
    }
    for (uint32_t i = s->first_aside; i && holes <= s->space.hole_nodes; i = s->nodes[i].next) {
        if (!is_number(s, i) || !qi_node_is_hole(s, i) || s->nodes[i].size)
            return qi_space_damaged("the chain of the numbers put aside is damaged", i);
        holes++;
    }
    if (seen->asleep_granules << s->granule_shift != s->space.asleep_bytes)
        return qi_space_damaged("the sum of what sleeps is wrong", 0);
    if (listed != seen->listed_holes)
        return qi_space_damaged("the list does not have every hole exactly once", s->first_hole);
    if (holes != s->space.hole_nodes ||
        seen->hole_granules << s->granule_shift != s->space.hole_bytes ||
        (s->is_hole && holes != count_marked(s->is_hole, s->hole_capacity)))
        return qi_space_damaged("the sums of the holes are wrong", 0);
    return QUIRE_SUCCESS;
}

quire_result qi_segregated_check(const quire_space *space)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    count seen = {0};
    if (!tables_are_sound(s))
        return qi_space_damaged("the tables have a wrong size", 0);
    for (uint32_t i = 0; i < space->region_capacity; i++) {
        quire_result result = space->regions[i].used ? check_ring(s, i, &seen) : QUIRE_SUCCESS;
        if (result)
            return result;
    }
    uint64_t listed = 0;
    quire_result result = s->slabs ? qi_slabs_check(s) : QUIRE_SUCCESS;
    if (!result)
        result = check_lists(s, &listed);
    if (result)
        return result;
    if (listed != seen.free || seen.free + seen.free_slots != qi_segregated_free_count(space))
        return qi_space_damaged("the lists do not hold every free range exactly once", 0);
    if (seen.live != space->live_count ||
        seen.live_granules << s->granule_shift != space->live_bytes || space->padding_bytes)
        return qi_space_damaged("the live statistics do not match the ranges", 0);
    uint64_t free_bytes = space->region_bytes - space->live_bytes;
    if (seen.free_granules << s->granule_shift != free_bytes)
        return qi_space_damaged("the sums of live and free bytes are not the size of the regions",
                                0);
    if (seen.free != count_marked(s->is_free, s->free_capacity))
        return qi_space_damaged("a number that names no free range is marked free", 0);
    return check_holes(s, &seen);
}
