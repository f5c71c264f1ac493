/*
 * segregated_check.c - verifies every record of a segregated space against the invariants written
 * in segregated.h. Reads only; may be given damaged records, so that nothing is followed unchecked.
 */
#include "src/base/bits.h"
#include "src/space/segregated.h"

typedef struct count {
    uint64_t live, free, live_granules, free_granules;
} count;

static bool is_number(const qi_segregated *s, uint32_t number)
{
    return number != 0 && number < s->space.pool.top;
}

/* Whether the tables are there and as large as the checks below take them to be. */
static bool tables_are_sound(const qi_segregated *s)
{
    return s->nodes == s->space.pool.items && s->free_capacity >= s->space.pool.capacity &&
           s->class_count <= QI_CLASS_LIMIT && s->class_count % 64 == 0 && s->granule_shift < 64 &&
           UINT64_C(1) << s->granule_shift == s->space.granule && s->bucket_shift < 32;
}

static quire_result check_ring_node(const qi_segregated *s, uint32_t region, uint32_t before,
                                    uint32_t number, count *seen)
{
    const qi_node *node = &s->nodes[number];
    bool is_free = qi_node_is_free(s, number), is_live = node->generation & 1;
    if (node->before != before || !is_number(s, node->after) ||
        s->nodes[node->after].before != number)
        return qi_space_damaged("a neighbour does not point back", number);
    if (node->region != region)
        return qi_space_damaged("a range is in the ring of another region", number);
    if (is_free == is_live || node->size == 0)
        return qi_space_damaged("a range is neither free nor live, or both", number);
    if (is_free && qi_node_is_free(s, node->after))
        return qi_space_damaged("two free neighbours touch", number);
    *(is_free ? &seen->free : &seen->live) += 1;
    *(is_free ? &seen->free_granules : &seen->live_granules) += node->size;
    return QUIRE_SUCCESS;
}

static bool is_region_node(const qi_segregated *s, uint32_t region, uint32_t number)
{
    if (!is_number(s, number))
        return false;
    const qi_node *node = &s->nodes[number];
    return node->size == 0 && node->region == region && !(node->generation & 1) &&
           !qi_node_is_free(s, number);
}

static quire_result check_ring(const qi_segregated *s, uint32_t region, count *seen)
{
    const qi_region *place = &s->space.regions[region];
    uint32_t own = place->node, before = own;
    if (!is_region_node(s, region, own))
        return qi_space_damaged("a region has no node of its own", own);
    uint64_t offset = place->start >> s->granule_shift;
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
    if ((offset - 1) >> s->bucket_shift >= QI_BUCKETS)
        return qi_space_damaged("a region ends behind the last address bucket", own);
    return QUIRE_SUCCESS;
}

static quire_result check_list(const qi_segregated *s, uint32_t list, uint64_t *listed)
{
    uint32_t back = QI_AT_HEAD | list;
    for (uint32_t i = s->heads[list]; i; i = s->nodes[i].next) {
        if (!is_number(s, i) || !qi_node_is_free(s, i) || s->nodes[i].back != back)
            return qi_space_damaged("a list holds what is not free or not linked back", i);
        const qi_node *node = &s->nodes[i];
        if (qi_list_of(s, node->offset, node->size) != list)
            return qi_space_damaged("a free range is in the list of another size or place", i);
        uint32_t fraction = qi_class_of_range(node->size).fraction;
        if (back & QI_AT_HEAD && s->fractions[list] != fraction)
            return qi_space_damaged("the fraction of a list is not its first range's", i);
        if (++*listed > s->space.pool.top)
            return qi_space_damaged("a list runs in a circle", i);
        back = i;
    }
    bool marked = s->masks[list / QI_BUCKETS] >> list % QI_BUCKETS & 1;
    if (marked != (s->heads[list] != 0))
        return qi_space_damaged("a bucket is marked wrongly", s->heads[list]);
    return QUIRE_SUCCESS;
}

static quire_result check_lists(const qi_segregated *s, uint64_t *listed)
{
    for (uint32_t class = 0; class < s->class_count; class ++) {
        for (uint32_t bucket = 0; bucket < QI_BUCKETS; bucket++) {
            quire_result result = check_list(s, class * QI_BUCKETS + bucket, listed);
            if (result)
                return result;
        }
        bool marked = s->class_bits[class / 64] >> class % 64 & 1;
        if (marked != (s->masks[class] != 0))
            return qi_space_damaged("a class is marked wrongly", class);
    }
    uint64_t words = 0;
    for (uint32_t word = 0; word < QI_CLASS_LIMIT / 64; word++)
        words |= (uint64_t)(s->class_bits[word] != 0) << word;
    bool beyond = words >> (s->class_count / 64); /* classes that the tables do not reach */
    if (beyond || s->top_bits != words)
        return qi_space_damaged("a word of classes is marked wrongly", 0);
    return QUIRE_SUCCESS;
}

static uint64_t count_marked_free(const qi_segregated *s)
{
    uint64_t marked = 0;
    for (uint32_t word = 0; word < s->free_capacity / 64; word++)
        marked += qi_count_bits(s->is_free[word]);
    return marked;
}

quire_result qi_segregated_check(const quire_space *space)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    count seen = {0};
    if (!tables_are_sound(s))
        return qi_space_damaged("the tables are not of the size they should be", 0);
    for (uint32_t i = 0; i < space->region_capacity; i++) {
        quire_result result = space->regions[i].used ? check_ring(s, i, &seen) : QUIRE_SUCCESS;
        if (result)
            return result;
    }
    uint64_t listed = 0;
    quire_result result = check_lists(s, &listed);
    if (result)
        return result;
    if (listed != seen.free || seen.free != qi_space_free_count(space))
        return qi_space_damaged("not every free range is listed once", 0);
    if (seen.live != space->live_count ||
        seen.live_granules << s->granule_shift != space->live_bytes || space->padding_bytes)
        return qi_space_damaged("the live figures do not match the ranges", 0);
    uint64_t free_bytes = space->region_bytes - space->live_bytes;
    if (seen.free_granules << s->granule_shift != free_bytes)
        return qi_space_damaged("the sums of live and free are not the regions", 0);
    if (seen.free != count_marked_free(s))
        return qi_space_damaged("a number that names no free range is marked free", 0);
    return QUIRE_SUCCESS;
}
