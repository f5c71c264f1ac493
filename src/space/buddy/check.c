/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.c - verifies every record of a buddy space against the invariants in buddy.h. The records
 * may be damaged: only the sizes of the arrays are trusted, a link is followed only inside an
 * array, and a list is sorted only after it was verified.
 */
#include <string.h>

#include "src/space/buddy/buddy.h"

typedef struct tally {
    uint64_t live, free, live_granules, free_granules;
} tally;

/* Whether the tables have the shape that the checks below rely on. */
static bool tables_are_sound(const qi_buddy *b)
{
    return b->nodes == b->space.pool.items && b->granule_shift < 64 &&
           UINT64_C(1) << b->granule_shift == b->space.granule &&
           b->capacity <= b->space.region_capacity &&
           b->stride == (b->capacity ? qi_bitmap_words(b->capacity) : 0);
}

/* ---- bitmaps ------------------------------------------------------------------------------ */

/* The word at `index` of the level above a level of `count` words. */
static uint64_t summary_of(const uint64_t *words, uint32_t count, uint32_t index)
{
    uint64_t summary = 0;
    for (uint32_t i = 0; i < 64 && index * 64 + i < count; i++)
        summary |= (uint64_t)(words[index * 64 + i] != 0) << i;
    return summary;
}

/* Whether the summaries are correct and no bit is set from size on; adds the bits to *total. */
static bool bitmap_is_sound(const uint64_t *words, uint32_t size, uint64_t *total)
{
    uint32_t count = qi_level_words(size);
    if (size % 64 && words[count - 1] >> size % 64)
        return false;
    for (uint32_t i = 0; i < count; i++)
        *total += qi_count_bits(words[i]);
    while (count > 1) {
        const uint64_t *above = words + count;
        uint32_t above_count = qi_level_words(count);
        for (uint32_t i = 0; i < above_count; i++)
            if (above[i] != summary_of(words, count, i))
                return false;
        words = above;
        count = above_count;
    }
    return true;
}

/* The bitmaps of a region hold the blocks that were found in it, and no others. */
static quire_result check_bitmaps(const qi_buddy *b, uint32_t region, uint64_t blocks)
{
    const qi_buddy_region *r = &b->regions[region];
    uint64_t total = 0, orders = 0;
    for (uint32_t i = 0; i < r->layout.order_count; i++) {
        uint64_t before = total;
        if (!bitmap_is_sound(r->words + r->layout.first[i], qi_buddy_size(&r->layout, i), &total))
            return qi_space_damaged("a summary of free blocks is wrong", region);
        orders |= (uint64_t)(total != before) << i;
    }
    if (orders != r->orders)
        return qi_space_damaged("the bits of a region's free orders are wrong", region);
    if (total != blocks)
        return qi_space_damaged("a block is marked free where none begins", region);
    return QUIRE_SUCCESS;
}

/* The bitmaps of regions by order agree with the regions. */
static quire_result check_orders(const qi_buddy *b)
{
    uint64_t orders = 0;
    for (uint32_t i = 0; b->capacity && i < QI_ORDERS; i++) {
        const uint64_t *regions = qi_buddy_regions_of(b, i);
        uint64_t total = 0;
        bool sound = bitmap_is_sound(regions, b->capacity, &total);
        for (uint32_t region = 0; sound && region < b->capacity; region++)
            sound = qi_bitmap_has(regions, region) == (b->regions[region].orders >> i & 1);
        if (!sound)
            return qi_space_damaged("the regions with free blocks of an order are wrong", i);
        orders |= (uint64_t)(total != 0) << i;
    }
    return orders == b->orders ? QUIRE_SUCCESS
                               : qi_space_damaged("the bits of the free orders are wrong", 0);
}

/* ---- regions ------------------------------------------------------------------------------ */

/* Verifies the links of a region's list; the list may be unordered. */
static quire_result check_list(const qi_buddy *b, uint32_t region, tally *seen)
{
    uint32_t before = 0;
    for (uint32_t i = b->regions[region].newest; i; before = i, i = b->nodes[i].next) {
        if (i >= b->space.pool.top || b->nodes[i].region != region || b->nodes[i].before != before)
            return qi_space_damaged("a range is not linked with those of its region", i);
        if (!(b->nodes[i].generation & 1))
            return qi_space_damaged("a region lists a range that is not live", i);
        if (++seen->live >= b->space.pool.top)
            return qi_space_damaged("more ranges are listed than records exist", i);
    }
    return QUIRE_SUCCESS;
}

/* Verifies a live range; `left` granules remain in the region. */
static quire_result check_live(const qi_buddy *b, uint32_t number, uint64_t left, tally *seen)
{
    const qi_buddy_node *node = &b->nodes[number];
    uint32_t size = UINT32_C(1) << node->order;
    if (size > left || node->place & (size - 1))
        return qi_space_damaged("a range is larger than its place allows", number);
    seen->live_granules += size;
    return QUIRE_SUCCESS;
}

/* Verifies a free block; `left` granules remain in the region. */
static quire_result check_free(const qi_buddy *b, qi_block block, uint64_t left, tally *seen)
{
    const qi_buddy_region *r = &b->regions[block.region];
    uint32_t size = UINT32_C(1) << block.order;
    if (size > left)
        return qi_space_damaged("a free block reaches beyond its region", block.region);
    if (qi_buddy_is_free(r, block.order, block.place ^ size))
        return qi_space_damaged("two buddies are free", block.region);
    seen->free++;
    seen->free_granules += size;
    return QUIRE_SUCCESS;
}

/* Free blocks and live ranges cover a region without gap or overlap. */
static quire_result check_cover(const qi_buddy *b, uint32_t region, tally *seen)
{
    const qi_buddy_region *r = &b->regions[region];
    uint32_t live = r->newest;
    uint64_t end = r->layout.end, place = r->layout.begin;
    while (place < end) {
        qi_block block = {.region = region, .place = (uint32_t)place};
        const qi_buddy_node *node = live ? &b->nodes[live] : NULL;
        if (node && (node->place < place || node->order >= QI_ORDERS))
            return qi_space_damaged("a range overlaps what lies below it", live);
        bool is_live = node && node->place == place;
        block.order = is_live ? node->order : qi_buddy_order_at(r, block.place);
        if (block.order >= QI_ORDERS)
            return qi_space_damaged("a part of a region is neither free nor live", region);
        quire_result result = is_live ? check_live(b, live, end - place, seen)
                                      : check_free(b, block, end - place, seen);
        if (result)
            return result;
        place += UINT32_C(1) << block.order;
        live = is_live ? node->next : live;
    }
    return live ? qi_space_damaged("a range lies above the end of its region", live)
                : QUIRE_SUCCESS;
}

/* Whether the bitmaps of a region have the layout that follows from its start and size. */
static bool is_laid_out(const qi_buddy *b, uint32_t region)
{
    const qi_region *at = &b->space.regions[region];
    uint64_t line = b->space.fit->max_granules << b->granule_shift;
    if (!at->size || (at->size | at->start) & (b->space.granule - 1) ||
        !qi_range_fits(at->start, at->size, line))
        return false;
    qi_buddy_layout layout = qi_buddy_lay_out(b, region);
    return b->regions[region].words && !memcmp(&b->regions[region].layout, &layout, sizeof layout);
}

/* Verifies list, cover and bitmaps, in this order: each relies on the one before. */
static quire_result check_region(const qi_buddy *b, uint32_t region, tally *seen)
{
    bool is_used = b->space.regions[region].used;
    if (!is_used && region < b->capacity && b->regions[region].words)
        return qi_space_damaged("bitmaps of an unused region exist", region);
    if (!is_used)
        return QUIRE_SUCCESS;
    if (region >= b->capacity || !is_laid_out(b, region))
        return qi_space_damaged("the bitmaps of a region do not match its size", region);
    quire_result result = check_list(b, region, seen);
    if (result)
        return result;
    uint64_t free_before = seen->free;
    qi_buddy_sort(b, region);
    result = check_cover(b, region, seen);
    return result ? result : check_bitmaps(b, region, seen->free - free_before);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static quire_result check_figures(const qi_buddy *b, const tally *seen)
{
    const quire_space *space = &b->space;
    if (seen->live != space->live_count || seen->live != qi_pool_used(&space->pool) ||
        seen->live_granules << b->granule_shift != space->live_bytes || space->padding_bytes)
        return qi_space_damaged("the live statistics do not match the ranges", 0);
    if (seen->free != b->free_count)
        return qi_space_damaged("the number of free blocks is wrong", 0);
    if (seen->free_granules << b->granule_shift != space->region_bytes - space->live_bytes)
        return qi_space_damaged("the sums of live and free bytes are not the size of the regions",
                                0);
    return QUIRE_SUCCESS;
}

quire_result qi_buddy_check(const quire_space *space)
{
    const qi_buddy *b = qi_buddy_of_const(space);
    tally seen = {0};
    if (!tables_are_sound(b))
        return qi_space_damaged("the tables have a wrong size", 0);
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < space->region_capacity && !result; i++)
        result = check_region(b, i, &seen);
    if (!result)
        result = check_orders(b);
    return result ? result : check_figures(b, &seen);
}
