/*
 * segregated_region.c - the rare half of the segregated fit: regions, growth and trimming of the
 * tables, walks and figures (segregated.c holds what every allocation and free runs).
 */
#include "src/space/segregated.h"

#include <string.h>

#include "src/base/result.h"
#include "src/space/lists.h"

static quire_result grow_free_bits(qi_segregated *s, uint32_t capacity)
{
    if (capacity <= s->free_capacity)
        return QUIRE_SUCCESS;
    uint64_t *bits = qi_host_resize(&s->space.host, s->is_free, s->free_capacity / 64,
                                    capacity / 64, sizeof *bits);
    if (!bits)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the free bits of %u ranges", capacity);
    s->is_free = bits;
    s->free_capacity = capacity;
    return QUIRE_SUCCESS;
}

/* Makes `count` numbers spare, so that what follows cannot fail half way. */
quire_result qi_segregated_reserve(qi_segregated *s, uint32_t count)
{
    while (s->space.pool.spare < count) {
        uint32_t capacity = s->space.pool.capacity ? s->space.pool.capacity * 2 : 64;
        quire_result result = grow_free_bits(s, capacity);
        if (!result)
            result = qi_pool_grow(&s->space.pool, &s->space.host);
        if (result)
            return result;
        s->nodes = s->space.pool.items;
    }
    return QUIRE_SUCCESS;
}

/* ---- regions ------------------------------------------------------------------------------ */

/* Lets the tables reach the class of the largest possible range of a region. */
static quire_result grow_tables(qi_segregated *s, uint32_t granules)
{
    uint32_t old = s->class_count;
    uint32_t count = (qi_class_of_range(granules).index / 64 + 1) * 64;
    if (count <= old)
        return QUIRE_SUCCESS;
    qi_host *host = &s->space.host;
    uint32_t *heads = qi_host_allocate(host, count, QI_BUCKETS * sizeof *heads);
    uint8_t *fractions = qi_host_allocate(host, count, QI_BUCKETS);
    uint16_t *masks = qi_host_allocate(host, count, sizeof *masks);
    if (!heads || !fractions || !masks) {
        qi_host_release(host, heads, count, QI_BUCKETS * sizeof *heads);
        qi_host_release(host, fractions, count, QI_BUCKETS);
        qi_host_release(host, masks, count, sizeof *masks);
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the tables of %u size classes", count);
    }
    if (old) {
        memcpy(heads, s->heads, old * QI_BUCKETS * sizeof *heads);
        memcpy(fractions, s->fractions, old * QI_BUCKETS);
        memcpy(masks, s->masks, old * sizeof *masks);
    }
    qi_host_release(host, s->heads, old, QI_BUCKETS * sizeof *heads);
    qi_host_release(host, s->fractions, old, QI_BUCKETS);
    qi_host_release(host, s->masks, old, sizeof *masks);
    s->heads = heads;
    s->fractions = fractions;
    s->masks = masks;
    s->class_count = count;
    return QUIRE_SUCCESS;
}

/* Empties all lists and fills them again, after the buckets became wider. */
static void relink_all(qi_segregated *s)
{
    memset(s->heads, 0, s->class_count * QI_BUCKETS * sizeof *s->heads);
    memset(s->masks, 0, s->class_count * sizeof *s->masks);
    memset(s->class_bits, 0, sizeof s->class_bits);
    s->top_bits = 0;
    for (uint32_t i = s->space.pool.top; i-- > 1;)
        if (qi_node_is_free(s, i))
            qi_node_link(s, i);
}

/* Buckets cover the line in use; it doubles a few times in a space's life, and they with it. */
static void widen_buckets(qi_segregated *s)
{
    uint64_t extent = qi_line_extent(&s->space.line) >> s->granule_shift;
    uint32_t shift = s->bucket_shift;
    while ((extent - 1) >> shift >= QI_BUCKETS)
        shift++;
    if (shift == s->bucket_shift)
        return;
    s->bucket_shift = shift;
    relink_all(s);
}

quire_result qi_segregated_add_region(quire_space *space, uint32_t number)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_region *region = &space->regions[number];
    uint32_t granules = (uint32_t)(region->size >> s->granule_shift);
    quire_result result = qi_segregated_reserve(s, 2);
    if (!result)
        result = grow_tables(s, granules);
    if (result)
        return result;
    widen_buckets(s);
    uint32_t own = qi_node_take(s), whole = qi_node_take(s);
    qi_node *node = &s->nodes[own];
    *node = (qi_node){.generation = node->generation, .before = own, .after = own};
    node->offset = (uint32_t)(region->start >> s->granule_shift);
    node->region = number;
    qi_node_insert_after(s, own, whole);
    s->nodes[whole].offset = node->offset;
    s->nodes[whole].size = granules;
    qi_node_mark_free(s, whole);
    qi_node_link(s, whole);
    region->node = own;
    return QUIRE_SUCCESS;
}

bool qi_segregated_region_is_empty(const quire_space *space, uint32_t region)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t own = space->regions[region].node, only = s->nodes[own].after;
    return qi_node_is_free(s, only) && s->nodes[only].after == own;
}

void qi_segregated_remove_region(quire_space *space, uint32_t region)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t own = space->regions[region].node, whole = s->nodes[own].after;
    qi_node_unlink(s, &s->nodes[whole]);
    qi_node_mark_taken(s, whole);
    qi_node_give(s, whole);
    qi_node_give(s, own);
}

/* ---- creation, figures, walk, trim ------------------------------------------------------- */

quire_result qi_segregated_init(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    s->granule_shift = qi_highest_bit(space->granule);
    qi_pool_init(&s->space.pool, sizeof(qi_node));
    return QUIRE_SUCCESS;
}

void qi_segregated_finish(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_host *host = &space->host;
    qi_pool_finish(&s->space.pool, host);
    qi_host_release(host, s->is_free, s->free_capacity / 64, sizeof *s->is_free);
    qi_host_release(host, s->heads, s->class_count, QI_BUCKETS * sizeof *s->heads);
    qi_host_release(host, s->fractions, s->class_count, QI_BUCKETS);
    qi_host_release(host, s->masks, s->class_count, sizeof *s->masks);
}

/* Exact: the largest range lies in the highest class that has any, and only those are looked at. */
uint64_t qi_segregated_largest_free(const quire_space *space)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    if (!s->top_bits)
        return 0;
    uint32_t word = qi_highest_bit(s->top_bits);
    uint32_t class = word * 64 + qi_highest_bit(s->class_bits[word]);
    uint32_t largest = 0;
    for (uint32_t buckets = s->masks[class]; buckets; buckets &= buckets - 1) {
        uint32_t number = s->heads[class * QI_BUCKETS + qi_lowest_bit(buckets)];
        for (; number; number = s->nodes[number].next)
            if (s->nodes[number].size > largest)
                largest = s->nodes[number].size;
    }
    return (uint64_t)largest << s->granule_shift;
}

bool qi_segregated_walk(const quire_space *space, uint32_t region,
                        bool (*visit)(void *, const quire_space_item *), void *user)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t own = space->regions[region].node;
    for (uint32_t i = s->nodes[own].after; i != own; i = s->nodes[i].after) {
        quire_placement at;
        qi_segregated_describe(s, i, &at);
        quire_space_item item = {.region = region, .offset = at.offset, .size = at.size};
        item.is_free = qi_node_is_free(s, i);
        if (!item.is_free) {
            item.range = at.range;
            item.user = at.user;
        }
        if (!visit(user, &item))
            return false;
    }
    return true;
}

bool qi_segregated_in_use(const void *space, uint32_t number)
{
    const qi_segregated *s = space;
    const qi_node *node =
        (const qi_node *)s->space.pool.items + number; /* they may just have moved */
    return node->generation & 1 || qi_node_is_free(s, number) ||
           qi_space_is_region_node(&s->space, node->region, number);
}

void qi_segregated_trim(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_pool_trim(&s->space.pool, &space->host, qi_segregated_in_use, space);
    s->nodes = s->space.pool.items;
    uint32_t capacity = s->space.pool.capacity > 64 ? s->space.pool.capacity : 64;
    if (capacity >= s->free_capacity)
        return;
    uint64_t *bits = qi_host_resize(&space->host, s->is_free, s->free_capacity / 64, capacity / 64,
                                    sizeof *bits);
    if (!bits)
        return;
    s->is_free = bits;
    s->free_capacity = capacity;
}
