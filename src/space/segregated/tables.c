/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tables.c - the host memory of the segregated fit: node numbers, the bit per free node, and the
 * tables of lists (bits, heads, fractions). The shape of the tables follows the number of nodes and
 * the length of the line. An operation grows them before it changes anything, so that it cannot
 * fail half way.
 */
#include <string.h>

#include "src/base/result.h"
#include "src/space/segregated/lists.h"
#include "src/space/segregated/slabs.h"

enum {
    FEW_NODES = 64,          /* up to here a class has 1 bucket */
    SOME_NODES = 512,        /* up to here a class has 4 buckets, above it 16 */
    CLASSES_ROUNDED_TO = 32, /* the classes of one power of two */
};

static uint32_t words_for(uint32_t bits)
{
    return (bits + 63) / 64;
}

/* Gives a bit per node, is_free or is_hole, another capacity. On failure changes nothing. */
static bool resize_bits(qi_segregated *s, uint64_t **bits, uint32_t *capacity, uint32_t to)
{
    uint64_t *resized =
        qi_host_resize(&s->space.host, *bits, words_for(*capacity), words_for(to), sizeof *resized);
    if (!resized)
        return false;
    *bits = resized;
    *capacity = to;
    return true;
}

static bool resize_free_bits(qi_segregated *s, uint32_t capacity)
{
    return resize_bits(s, &s->is_free, &s->free_capacity, capacity);
}

static bool resize_hole_bits(qi_segregated *s, uint32_t capacity)
{
    return resize_bits(s, &s->is_hole, &s->hole_capacity, capacity);
}

/* Bytes of the block that holds bits, heads and fractions. */
static uint64_t table_bytes(uint32_t lists)
{
    return (lists / 64 + 1) * sizeof(uint64_t) + lists * (sizeof(uint32_t) + 1) + QI_MAX_BUCKETS;
}

/* Puts every free node in its list. The tables must be empty. */
static void link_all(qi_segregated *s)
{
    for (uint32_t i = s->space.pool.top; i-- > 1;)
        if (qi_node_is_free(s, i))
            qi_node_link(s, i);
}

/* Replaces the tables by ones of another shape. On failure changes nothing and records no error. */
static bool reshape_tables(qi_segregated *s, uint32_t classes, uint32_t row_shift,
                           uint32_t bucket_shift)
{
    qi_host *host = &s->space.host;
    uint32_t lists = classes << row_shift;
    uint64_t *bits = qi_host_allocate(host, table_bytes(lists), 1);
    if (!bits)
        return false;
    qi_host_release(host, s->bits, table_bytes(s->list_count), 1);
    s->bits = bits;
    s->heads = (uint32_t *)(bits + lists / 64 + 1);
    s->fractions = (uint8_t *)(s->heads + lists);
    s->list_count = lists;
    s->row_shift = row_shift;
    s->row_mask = (1u << (1u << row_shift)) - 1;
    s->bucket_shift = bucket_shift;
    memset(s->bit_words, 0, sizeof s->bit_words);
    link_all(s);
    return true;
}

/* Rebuilds the lists with wider buckets. */
static void relink(qi_segregated *s, uint32_t bucket_shift)
{
    memset(s->bits, 0, table_bytes(s->list_count));
    memset(s->bit_words, 0, sizeof s->bit_words);
    s->bucket_shift = bucket_shift;
    link_all(s);
}

/* The smallest shift that maps `extent` granules of the line to at most 1 << row_shift buckets. */
static uint32_t bucket_shift_for(uint64_t extent, uint32_t row_shift)
{
    uint32_t shift = 0;
    while (extent && (extent - 1) >> shift >= UINT32_C(1) << row_shift)
        shift++;
    return shift;
}

static uint32_t row_shift_for(uint32_t nodes)
{
    if (nodes <= FEW_NODES)
        return 0;
    return nodes <= SOME_NODES ? 2 : 4;
}

static uint64_t line_extent(const qi_segregated *s)
{
    return qi_line_extent(&s->space.line) >> s->granule_shift;
}

/*
 * Adapts the number of buckets to the capacity of the pool. Relinks all free nodes: these are few,
 * except in a trim.
 */
static bool adapt_rows(qi_segregated *s, uint32_t capacity)
{
    uint32_t row_shift = row_shift_for(capacity), classes = s->list_count >> s->row_shift;
    if (!classes || row_shift == s->row_shift)
        return true;
    return reshape_tables(s, classes, row_shift, bucket_shift_for(line_extent(s), row_shift));
}

quire_result qi_segregated_reserve(qi_segregated *s, uint32_t count)
{
    while (s->space.pool.spare < count) {
        uint32_t capacity = qi_pool_next_capacity(&s->space.pool);
        if (s->slabs && capacity > QI_SLAB_SLOT)
            return qi_fail_with(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                                "the space has %u range%s, as many as it can number",
                                s->space.pool.capacity);
        if ((capacity > s->free_capacity && !resize_free_bits(s, capacity)) ||
            (s->chunk && capacity > s->hole_capacity && !resize_hole_bits(s, capacity)) ||
            !adapt_rows(s, capacity))
            return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for the tables of %u range%s", capacity);
        quire_result result = qi_pool_grow(&s->space.pool, &s->space.host);
        if (result)
            return result;
        s->nodes = s->space.pool.items;
        qi_segregated_choose_free(s);
    }
    return QUIRE_SUCCESS;
}

quire_result qi_segregated_cover_holes(qi_segregated *s)
{
    if (s->hole_capacity >= s->space.pool.capacity || resize_hole_bits(s, s->space.pool.capacity))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                        "no host memory for the tables of %u range%s", s->space.pool.capacity);
}

/* The tables change their shape a few times in the life of a space; this relinks all free nodes. */
quire_result qi_segregated_cover(qi_segregated *s, uint32_t granules)
{
    uint32_t classes = qi_class_of_range(granules).index / CLASSES_ROUNDED_TO + 1;
    classes *= CLASSES_ROUNDED_TO;
    uint32_t row_shift = s->list_count ? s->row_shift : row_shift_for(s->space.pool.capacity);
    uint32_t bucket_shift = bucket_shift_for(line_extent(s), row_shift);
    if (bucket_shift < s->bucket_shift)
        bucket_shift = s->bucket_shift;
    if (classes > s->list_count >> s->row_shift) {
        if (reshape_tables(s, classes, row_shift, bucket_shift))
            return QUIRE_SUCCESS;
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the tables of %u size classes", classes);
    }
    if (bucket_shift != s->bucket_shift)
        relink(s, bucket_shift);
    return QUIRE_SUCCESS;
}

/* ---- release ------------------------------------------------------------------------------ */

void qi_segregated_trim_tables(qi_segregated *s)
{
    if (s->space.pool.capacity < s->free_capacity)
        resize_free_bits(s, s->space.pool.capacity);
    if (s->space.pool.capacity < s->hole_capacity)
        resize_hole_bits(s, s->space.pool.capacity);
    adapt_rows(s, s->space.pool.capacity); /* without host memory they keep their size */
}

void qi_segregated_release_tables(qi_segregated *s)
{
    qi_host *host = &s->space.host;
    qi_host_release(host, s->is_free, words_for(s->free_capacity), sizeof *s->is_free);
    qi_host_release(host, s->is_hole, words_for(s->hole_capacity), sizeof *s->is_hole);
    qi_host_release(host, s->is_asleep, s->asleep_words, sizeof *s->is_asleep);
    qi_host_release(host, s->bits, table_bytes(s->list_count), 1);
}
