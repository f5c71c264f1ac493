/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * region.c - cuts a region into the largest aligned blocks, and marks them in its bitmaps. Also the
 * walk, creation and trimming; the hot path is in buddy.c.
 */
#include "src/base/result.h"
#include "src/space/buddy/buddy.h"

/* ---- regions ------------------------------------------------------------------------------ */

/* The order of the largest block between two places that is aligned to its own size. */
static uint32_t max_order(uint64_t begin, uint64_t end)
{
    uint32_t order = qi_highest_bit(end - begin);
    while (begin + qi_padding(begin, UINT64_C(1) << order) + (UINT64_C(1) << order) > end)
        order--;
    return order;
}

qi_buddy_layout qi_buddy_lay_out(const qi_buddy *b, uint32_t region)
{
    const qi_region *at = &b->space.regions[region];
    uint64_t begin = (at->start & (b->space.max_alignment - 1)) >> b->granule_shift;
    uint64_t end = begin + (at->size >> b->granule_shift);
    qi_buddy_layout l = {.begin = (uint32_t)begin, .end = (uint32_t)end};
    l.order_count = max_order(begin, end) + 1;
    for (uint32_t i = 0; i < l.order_count; i++) {
        l.first[i] = l.word_count;
        l.word_count += qi_bitmap_words(qi_buddy_size(&l, i));
    }
    return l;
}

/* Extends the tables to the capacity of region numbers, which widens the bitmaps of regions. */
static quire_result grow_tables(qi_buddy *b)
{
    qi_host *host = &b->space.host;
    uint32_t capacity = b->space.region_capacity, stride = qi_bitmap_words(capacity);
    if (capacity <= b->capacity)
        return QUIRE_SUCCESS;
    uint64_t *words = qi_host_allocate(host, QI_ORDERS, stride * sizeof *words);
    qi_buddy_region *regions =
        words ? qi_host_resize(host, b->regions, b->capacity, capacity, sizeof *regions) : NULL;
    if (!regions) {
        qi_host_release(host, words, QI_ORDERS, stride * sizeof *words);
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the bitmaps of %u region%s", capacity);
    }
    for (uint32_t i = 0; i < b->capacity; i++)
        for (uint64_t orders = regions[i].orders; orders; orders &= orders - 1)
            qi_bitmap_add(words + (size_t)qi_lowest_bit(orders) * stride, capacity, i);
    qi_host_release(host, b->order_regions, QI_ORDERS, b->stride * sizeof *words);
    b->order_regions = words;
    b->regions = regions;
    b->capacity = capacity;
    b->stride = stride;
    return QUIRE_SUCCESS;
}

/* Calls a function for each block of an empty region: the largest aligned ones, in order. */
static void for_each_block(qi_buddy *b, uint32_t region, void (*call)(qi_buddy *, qi_block))
{
    const qi_buddy_layout *l = &b->regions[region].layout;
    qi_block block = {.region = region, .place = l->begin};
    while (block.place < l->end) {
        block.order = qi_highest_bit(l->end - block.place);
        if (block.place && qi_lowest_bit(block.place) < block.order)
            block.order = qi_lowest_bit(block.place);
        call(b, block);
        block.place += UINT32_C(1) << block.order;
    }
}

quire_result qi_buddy_add_region(quire_space *space, uint32_t number)
{
    qi_buddy *b = qi_buddy_of(space);
    quire_result result = grow_tables(b);
    if (!result)
        result = qi_buddy_reserve(b); /* the first allocation then needs no host memory */
    if (result)
        return result;
    qi_buddy_layout layout = qi_buddy_lay_out(b, number);
    uint64_t *words = qi_host_allocate(&space->host, layout.word_count, sizeof *words);
    if (!words)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the bitmaps of a region of %u byte%s: %b",
                            space->regions[number].size, layout.word_count * sizeof *words);
    b->regions[number] = (qi_buddy_region){.words = words, .layout = layout};
    for_each_block(b, number, qi_buddy_add_free);
    return QUIRE_SUCCESS;
}

bool qi_buddy_region_is_empty(const quire_space *space, uint32_t region)
{
    return !qi_buddy_of_const(space)->regions[region].newest;
}

/* Releases the bitmaps of a region; none exist if it was never added. */
static void release_words(qi_buddy *b, uint32_t region)
{
    qi_buddy_region *r = &b->regions[region];
    qi_host_release(&b->space.host, r->words, r->layout.word_count, sizeof *r->words);
    *r = (qi_buddy_region){0};
}

void qi_buddy_remove_region(quire_space *space, uint32_t region)
{
    qi_buddy *b = qi_buddy_of(space);
    for_each_block(b, region, qi_buddy_remove_free); /* every free coalesced into these */
    release_words(b, region);
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* Merges two sorted lists by their next links. Node 0 is the scratch head of the result. */
static uint32_t merge_lists(qi_buddy_node *nodes, uint32_t one, uint32_t other)
{
    uint32_t last = 0;
    while (one && other) {
        uint32_t *low = nodes[one].place < nodes[other].place ? &one : &other;
        nodes[last].next = *low;
        last = *low;
        *low = nodes[last].next;
    }
    nodes[last].next = one ? one : other;
    return nodes[0].next;
}

/* Whether the addresses of a list rise. */
static bool is_sorted(const qi_buddy_node *nodes, uint32_t first)
{
    uint32_t i = first;
    while (nodes[i].next && nodes[i].place < nodes[nodes[i].next].place)
        i = nodes[i].next;
    return !i || !nodes[i].next;
}

/* The list changes although the space is const: its order is not part of the visible state. */
void qi_buddy_sort(const qi_buddy *b, uint32_t region)
{
    qi_buddy_node *nodes = b->nodes;
    uint32_t sorted[QI_SLOT_BITS + 1] = {0}; /* lists of 2^index nodes each, or 0 */
    uint32_t all = 0;
    if (!b->regions[region].newest || is_sorted(nodes, b->regions[region].newest))
        return;
    for (uint32_t i = b->regions[region].newest, next; i; i = next) {
        uint32_t list = i, size = 0;
        next = nodes[i].next;
        nodes[i].next = 0;
        for (; sorted[size]; sorted[size++] = 0)
            list = merge_lists(nodes, sorted[size], list);
        sorted[size] = list;
    }
    for (uint32_t size = 0; size <= QI_SLOT_BITS; size++)
        all = merge_lists(nodes, sorted[size], all);
    b->regions[region].newest = all;
    for (uint32_t i = all, before = 0; i; before = i, i = nodes[i].next)
        nodes[i].before = before;
}

/* Tries the orders to which the place is aligned, the smallest first. */
uint32_t qi_buddy_order_at(const qi_buddy_region *r, uint32_t place)
{
    uint64_t lowest = place ? place & (0u - place) : UINT32_C(1) << (QI_ORDERS - 1);
    for (uint64_t orders = r->orders & (lowest | (lowest - 1)); orders; orders &= orders - 1)
        if (qi_buddy_is_free(r, qi_lowest_bit(orders), place))
            return qi_lowest_bit(orders);
    return QI_ORDERS;
}

/* Sorts the live ranges and merges them with the free blocks in address order. */
bool qi_buddy_walk(const quire_space *space, uint32_t region,
                   bool (*visit)(void *, const quire_space_item *), void *user)
{
    const qi_buddy *b = qi_buddy_of_const(space);
    const qi_buddy_region *r = &b->regions[region];
    qi_buddy_sort(b, region);
    uint32_t live = r->newest;
    for (uint32_t place = r->layout.begin, order; place < r->layout.end;
         place += UINT32_C(1) << order) {
        quire_space_item item = {.region = region};
        bool is_live = live && b->nodes[live].place == place;
        order = is_live ? b->nodes[live].order : qi_buddy_order_at(r, place);
        if (order >= QI_ORDERS)
            break; /* damaged: the next place is unknown */
        item.is_free = !is_live;
        item.offset = (uint64_t)(place - r->layout.begin) << b->granule_shift;
        item.size = space->granule << order;
        if (is_live) {
            item.range.id = qi_handle(space->tag, b->nodes[live].generation, live);
            item.user = b->nodes[live].user;
            live = b->nodes[live].next;
        }
        if (!visit(user, &item))
            return false;
    }
    return true;
}

/* ---- creation and trimming ---------------------------------------------------------------- */

quire_result qi_buddy_init(quire_space *space, const quire_space_options *options)
{
    (void)options;
    qi_buddy *b = qi_buddy_of(space);
    b->granule_shift = qi_highest_bit(space->granule);
    qi_pool_init(&space->pool, sizeof(qi_buddy_node));
    return QUIRE_SUCCESS;
}

void qi_buddy_finish(quire_space *space)
{
    qi_buddy *b = qi_buddy_of(space);
    for (uint32_t i = 0; i < b->capacity; i++)
        release_words(b, i);
    qi_host_release(&space->host, b->regions, b->capacity, sizeof *b->regions);
    qi_host_release(&space->host, b->order_regions, QI_ORDERS,
                    b->stride * sizeof *b->order_regions);
    qi_pool_finish(&space->pool, &space->host);
}

bool qi_buddy_in_use(const void *space, uint32_t number)
{
    const qi_buddy *b = space;
    const qi_buddy_node *nodes = b->space.pool.items; /* b->nodes may be outdated */
    return nodes[number].generation & 1;
}

void qi_buddy_trim(quire_space *space)
{
    qi_buddy *b = qi_buddy_of(space);
    qi_pool_trim(&space->pool, &space->host, qi_buddy_in_use, space);
    b->nodes = space->pool.items;
}
