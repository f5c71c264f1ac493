/*
 * segregated_region.c - the rare half of the segregated fit: regions, growth and trimming of the
 * tables, walks and figures (segregated.c holds what every allocation and free runs).
 */
#include "src/space/segregated.h"

#include <string.h>

#include "src/base/result.h"
#include "src/space/lists.h"
#include "src/space/slabs.h"

enum {
    CLOSE_BYTES = 1024 << 10, /* from here on a tight place is worth a look */
    TAIL_BYTES = 64 << 10,    /* from here on the upper end is taken, where asked for */
    FEW_NODES = 64,           /* up to here a class has 1 bucket, */
    SOME_NODES = 512,         /* up to here 4, and 16 above */
    CLASSES_ROUNDED_TO = 32,  /* a power of two of sizes */
    LOOK_FOR_LARGEST = 1024,  /* nodes */
};

/* ---- tables ------------------------------------------------------------------------------- */

static uint32_t words_for(uint32_t bits)
{
    return (bits + 63) / 64;
}

static bool resize_free_bits(qi_segregated *s, uint32_t capacity)
{
    uint64_t *bits = qi_host_resize(&s->space.host, s->is_free, words_for(s->free_capacity),
                                    words_for(capacity), sizeof *bits);
    if (!bits)
        return false;
    s->is_free = bits;
    s->free_capacity = capacity;
    return true;
}

/* Bits, heads and fractions in one block. */
static uint64_t table_bytes(uint32_t lists)
{
    return (lists / 64 + 1) * sizeof(uint64_t) + lists * (sizeof(uint32_t) + 1) + QI_MAX_BUCKETS;
}

/* Puts every free node in its list, the tables being empty. */
static void link_all(qi_segregated *s)
{
    for (uint32_t i = s->space.pool.top; i-- > 1;)
        if (qi_node_is_free(s, i))
            qi_node_link(s, i);
}

/* Gives the tables another shape. On failure nothing changed, and no error is set. */
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

/* Fills the tables anew after the buckets became wider. */
static void relink(qi_segregated *s, uint32_t bucket_shift)
{
    memset(s->bits, 0, table_bytes(s->list_count));
    memset(s->bit_words, 0, sizeof s->bit_words);
    s->bucket_shift = bucket_shift;
    link_all(s);
}

/* The smallest shift by which the line in use, `extent` granules, has 1 << row_shift buckets. */
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

/* Buckets for so many nodes. The nodes that are linked anew for it are few, or it is a trim. */
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
                                "the space has %u ranges, as many as it can number",
                                s->space.pool.capacity);
        if ((capacity > s->free_capacity && !resize_free_bits(s, capacity)) ||
            !adapt_rows(s, capacity))
            return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for the tables of %u ranges", capacity);
        quire_result result = qi_pool_grow(&s->space.pool, &s->space.host);
        if (result)
            return result;
        s->nodes = s->space.pool.items;
    }
    return QUIRE_SUCCESS;
}

/* ---- regions ------------------------------------------------------------------------------ */

/* It doubles a few times in a space's life, and all nodes are linked anew then. */
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

quire_result qi_segregated_add_region(quire_space *space, uint32_t number)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_region *region = &space->regions[number];
    uint32_t granules = (uint32_t)(region->size >> s->granule_shift);
    if (number >= QI_MAX_REGIONS)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "a space has at most %u regions",
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
    qi_node_unlink(s, &s->nodes[whole], s->nodes[whole].back);
    qi_node_mark_taken(s, whole);
    qi_node_give(s, whole);
    qi_node_give(s, own);
}

static uint32_t granules_for(uint64_t bytes, uint32_t granule_shift)
{
    return bytes >> granule_shift ? (uint32_t)(bytes >> granule_shift) : 1;
}

/* ---- creation, figures, walk, trim ------------------------------------------------------- */

quire_result qi_segregated_init(quire_space *space, const quire_space_options *options)
{
    qi_segregated *s = qi_segregated_of(space);
    s->granule_shift = qi_highest_bit(space->granule);
    s->kind_mask = (uint32_t)(space->kind_mask >> s->granule_shift);
    s->close_size = granules_for(CLOSE_BYTES, s->granule_shift);
    s->tail_size = UINT32_MAX;
    if (options->least_fragmentation)
        s->tail_size = granules_for(TAIL_BYTES, s->granule_shift);
    s->row_mask = 1;
    qi_pool_init(&s->space.pool, sizeof(qi_node));
    if (!s->kind_mask && !options->least_fragmentation)
        space->allocate_range = qi_segregated_fast_allocate;
    if (!options->deferred_coalescing)
        space->free_range = qi_segregated_fast_free;
    else if (!(s->waiting = qi_host_allocate(&space->host, QI_WAITING, sizeof *s->waiting)))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                       "no host memory for the ranges that wait to be merged");
    if (!options->slabs)
        return QUIRE_SUCCESS;
    quire_result result = qi_slabs_init(s);
    if (result)
        qi_host_release(&space->host, s->waiting, QI_WAITING, sizeof *s->waiting);
    space->allocate_range = qi_slabs_allocate;
    space->free_range = qi_slabs_free;
    return result;
}

void qi_segregated_finish(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_host *host = &space->host;
    qi_pool_finish(&s->space.pool, host);
    qi_host_release(host, s->waiting, QI_WAITING, sizeof *s->waiting);
    if (s->slabs)
        qi_slabs_finish(s);
    qi_host_release(host, s->is_free, words_for(s->free_capacity), sizeof *s->is_free);
    qi_host_release(host, s->bits, table_bytes(s->list_count), 1);
}

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
 * The largest range lies in the highest class that has any. Exact unless that class has very many,
 * of which the rest is not looked at: then it may be 3 % low.
 */
uint64_t qi_segregated_largest_free(const quire_space *space)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t last = highest_list(s), left = LOOK_FOR_LARGEST, largest = 0;
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

bool qi_segregated_walk(const quire_space *space, uint32_t region,
                        bool (*visit)(void *, const quire_space_item *), void *user)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    uint32_t own = space->regions[region].node;
    for (uint32_t i = s->nodes[own].after; i != own; i = s->nodes[i].after) {
        if (qi_node_is_slab(&s->nodes[i])) {
            if (!qi_slabs_walk(s, i, visit, user))
                return false;
            continue;
        }
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
           qi_space_is_region_node(&s->space, qi_node_region(node), number);
}

void qi_segregated_shed(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    if (s->slabs)
        qi_slabs_shed(s);
}

quire_result qi_segregated_reserve_user(quire_space *space, uint32_t slot, uint64_t user)
{
    qi_segregated *s = qi_segregated_of(space);
    return s->slabs && slot & QI_SLAB_SLOT ? qi_slabs_reserve_user(s, user) : QUIRE_SUCCESS;
}

uint64_t qi_segregated_free_count(const quire_space *space)
{
    const qi_slabs *slabs = qi_segregated_of_const(space)->slabs;
    if (!slabs)
        return qi_space_free_count(space);
    uint64_t nodes = qi_pool_used(&space->pool) - space->region_count - slabs->count;
    return nodes + slabs->slots - space->live_count;
}

void qi_segregated_trim(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    if (s->slabs)
        qi_slabs_trim(s);
    qi_pool_trim(&s->space.pool, &space->host, qi_segregated_in_use, space);
    s->nodes = s->space.pool.items;
    if (s->space.pool.capacity < s->free_capacity)
        resize_free_bits(s, s->space.pool.capacity);
    adapt_rows(s, s->space.pool.capacity); /* or they stay, which only costs memory */
}
