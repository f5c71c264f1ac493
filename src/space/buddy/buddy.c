/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buddy.c - the buddy fit: power-of-two blocks that are split into halves and coalesce with their
 * buddies (see buddy.h for the records and their invariants).
 *
 * An allocation takes the smallest free block that is large and aligned enough; of several, the one
 * in the region with the lowest number, and there the one at the lowest address. Its lower part is
 * split off and the rest stays free, so that an alignment above the size costs nothing. A smaller
 * block that happens to be aligned serves such a request only in a full pass.
 *
 * Allocating and freeing contain no loop that grows with anything but the number of orders.
 */
#include "src/space/buddy/buddy.h"

/* ---- free blocks -------------------------------------------------------------------------- */

void qi_buddy_add_free(qi_buddy *b, qi_block block)
{
    qi_buddy_region *r = &b->regions[block.region];
    const qi_buddy_layout *l = &r->layout;
    uint64_t bit = UINT64_C(1) << block.order;
    qi_bitmap_add(r->words + l->first[block.order], qi_buddy_size(l, block.order),
                  qi_buddy_index(l, block.order, block.place));
    b->free_count++;
    if (r->orders & bit)
        return;
    r->orders |= bit;
    b->orders |= bit;
    qi_bitmap_add(qi_buddy_regions_of(b, block.order), b->capacity, block.region);
}

void qi_buddy_remove_free(qi_buddy *b, qi_block block)
{
    qi_buddy_region *r = &b->regions[block.region];
    const qi_buddy_layout *l = &r->layout;
    uint64_t bit = UINT64_C(1) << block.order;
    b->free_count--;
    if (!qi_bitmap_remove(r->words + l->first[block.order], qi_buddy_size(l, block.order),
                          qi_buddy_index(l, block.order, block.place)))
        return;
    r->orders &= ~bit;
    if (qi_bitmap_remove(qi_buddy_regions_of(b, block.order), b->capacity, block.region))
        b->orders &= ~bit;
}

/* The next free block of an order in a region, as an index of its bitmap; `from` must be valid. */
static uint32_t next_free(const qi_buddy_region *r, uint32_t order, uint32_t from)
{
    const qi_buddy_layout *l = &r->layout;
    return qi_bitmap_next(r->words + l->first[order], qi_buddy_size(l, order), from);
}

/* Finds the smallest free block of at least this order. */
static bool find(const qi_buddy *b, uint32_t order, qi_block *found)
{
    uint64_t orders = b->orders >> order;
    if (!orders)
        return false;
    found->order = order + qi_lowest_bit(orders);
    found->region = qi_bitmap_next(qi_buddy_regions_of(b, found->order), b->capacity, 0);
    const qi_buddy_region *r = &b->regions[found->region];
    uint32_t index = next_free(r, found->order, 0);
    found->place = (index + (r->layout.begin >> found->order)) << found->order;
    return true;
}

/* Finds the first free block of one order and region at a multiple of 2^align_order. */
static bool find_aligned(const qi_buddy *b, uint32_t align_order, qi_block *found)
{
    const qi_buddy_region *r = &b->regions[found->region];
    uint32_t mask = (UINT32_C(1) << (align_order - found->order)) - 1;
    uint32_t base = r->layout.begin >> found->order;
    uint32_t size = qi_buddy_size(&r->layout, found->order), index = 0;
    while ((index = next_free(r, found->order, index)) < size) {
        if (((base + index) & mask) == 0) {
            found->place = (base + index) << found->order;
            return true;
        }
        index += (0u - (base + index)) & mask;
    }
    return false;
}

/* The full pass: finds a block that is large enough and happens to be aligned. */
static bool find_anywhere(const qi_buddy *b, uint32_t order, uint32_t align_order, qi_block *found)
{
    for (uint32_t i = order; i < align_order; i++) {
        const uint64_t *regions = qi_buddy_regions_of(b, i);
        uint32_t region = b->orders >> i & 1 ? 0 : b->capacity;
        for (; region < b->capacity; region++) {
            region = qi_bitmap_next(regions, b->capacity, region);
            *found = (qi_block){.region = region, .order = i};
            if (region < b->capacity && find_aligned(b, align_order, found))
                return true;
        }
    }
    return false;
}

/* Takes the lower part of a free block; the rest stays free as halves. */
static void split(qi_buddy *b, qi_block block, uint32_t order)
{
    qi_buddy_remove_free(b, block);
    while (block.order > order) {
        block.order--;
        qi_block upper = block;
        upper.place += UINT32_C(1) << block.order;
        qi_buddy_add_free(b, upper);
    }
}

/* Frees a block; coalesces it with its buddy as long as the buddy is free. */
static void merge(qi_buddy *b, qi_block block)
{
    const qi_buddy_region *r = &b->regions[block.region];
    for (;;) {
        qi_block buddy = block;
        buddy.place ^= UINT32_C(1) << block.order;
        if (!qi_buddy_is_free(r, buddy.order, buddy.place))
            break;
        qi_buddy_remove_free(b, buddy);
        block.place &= buddy.place;
        block.order++;
    }
    qi_buddy_add_free(b, block);
}

/* ---- live ranges -------------------------------------------------------------------------- */

quire_result qi_buddy_reserve(qi_buddy *b)
{
    if (b->space.pool.spare)
        return QUIRE_SUCCESS;
    quire_result result = qi_pool_grow(&b->space.pool, &b->space.host);
    b->nodes = b->space.pool.items;
    return result;
}

/* Takes a spare number, makes it live and puts it in the list of its region. */
static uint32_t take_node(qi_buddy *b, uint32_t region)
{
    uint32_t number = b->space.pool.unused;
    b->space.pool.spare--;
    if (number)
        b->space.pool.unused = b->nodes[number].next;
    else
        number = b->space.pool.top++;
    qi_buddy_node *node = &b->nodes[number];
    uint32_t next = b->regions[region].newest;
    node->generation++;
    node->region = region;
    node->before = 0;
    node->next = next;
    b->nodes[next].before = number; /* writes the scratch node 0 if the list was empty */
    b->regions[region].newest = number;
    return number;
}

/* Removes a node from its list and returns its number, or retires it. */
static void give_node(qi_buddy *b, uint32_t number)
{
    qi_buddy_node *node = &b->nodes[number];
    if (node->before)
        b->nodes[node->before].next = node->next;
    else
        b->regions[node->region].newest = node->next;
    b->nodes[node->next].before = node->before;
    if (node->generation > QI_LAST_GENERATION) {
        b->space.pool.retired++;
        return;
    }
    node->next = b->space.pool.unused;
    b->space.pool.unused = number;
    b->space.pool.spare++;
}

static uint64_t bytes_of(const qi_buddy *b, uint32_t order)
{
    return b->space.granule << order;
}

void qi_buddy_describe(const qi_buddy *b, uint32_t number, quire_placement *out)
{
    const qi_buddy_node *node = &b->nodes[number];
    uint32_t place = node->place - b->regions[node->region].layout.begin;
    out->range.id = qi_handle(b->space.tag, node->generation, number);
    out->region = node->region;
    out->reserved = 0;
    out->offset = (uint64_t)place << b->granule_shift;
    out->left_padding = 0;
    out->size = bytes_of(b, node->order);
    out->user = node->user;
}

/* ---- allocate and free -------------------------------------------------------------------- */

/* Finds a block for the request; the full pass runs only if alignment exceeds the size. */
static bool search(qi_buddy *b, uint32_t order, uint64_t alignment, bool exhaustive,
                   qi_block *found)
{
    uint32_t align_order = qi_order_of(alignment >> b->granule_shift);
    if (find(b, align_order > order ? align_order : order, found))
        return true;
    if (!exhaustive || align_order <= order)
        return false;
    bool hit = find_anywhere(b, order, align_order, found);
    b->space.full_passes++;
    b->space.full_pass_hits += hit;
    return hit;
}

/* Reserves a node before it splits a block, so that nothing can fail half way. */
static quire_result buddy_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint64_t user, uint32_t flags, quire_placement *placement)
{
    qi_buddy *b = qi_buddy_of(space);
    qi_block found;
    if (size > space->region_bytes)
        return qi_space_no_room(space, size, alignment, flags);
    uint32_t order = qi_order_of((size + space->granule - 1) >> b->granule_shift);
    if (!search(b, order, alignment, flags & QI_EXHAUSTIVE, &found))
        return qi_space_no_room(space, size, alignment, flags);
    quire_result result = qi_buddy_reserve(b);
    if (result)
        return result;
    split(b, found, order);
    uint32_t live = take_node(b, found.region);
    b->nodes[live].place = found.place;
    b->nodes[live].order = order;
    b->nodes[live].user = user;
    space->live_count++;
    space->live_bytes += bytes_of(b, order);
    qi_buddy_describe(b, live, placement);
    return QUIRE_SUCCESS;
}

static bool is_live(const qi_buddy *b, uint32_t slot, uint32_t generation)
{
    return slot < b->space.pool.top && b->nodes[slot].generation == generation && generation & 1;
}

/* The node stays in its list and its block stays taken until release_claimed. */
static bool buddy_claim(quire_space *space, uint32_t slot, uint32_t generation)
{
    qi_buddy *b = qi_buddy_of(space);
    if (!is_live(b, slot, generation))
        return false;
    b->nodes[slot].generation++;
    space->live_count--;
    space->live_bytes -= bytes_of(b, b->nodes[slot].order);
    return true;
}

static void buddy_unclaim(quire_space *space, uint32_t slot)
{
    qi_buddy *b = qi_buddy_of(space);
    b->nodes[slot].generation--;
    space->live_count++;
    space->live_bytes += bytes_of(b, b->nodes[slot].order);
}

static void buddy_release_claimed(quire_space *space, uint32_t slot)
{
    qi_buddy *b = qi_buddy_of(space);
    const qi_buddy_node *node = &b->nodes[slot];
    merge(b, (qi_block){.region = node->region, .order = node->order, .place = node->place});
    give_node(b, slot);
}

static bool buddy_release(quire_space *space, uint32_t slot, uint32_t generation)
{
    if (!buddy_claim(space, slot, generation))
        return false;
    buddy_release_claimed(space, slot);
    return true;
}

/* release returns false for node numbers that are not live, so no test is needed here. */
static void buddy_clear(quire_space *space)
{
    const qi_buddy *b = qi_buddy_of(space);
    for (uint32_t i = 1; i < b->space.pool.top; i++)
        buddy_release(space, i, b->nodes[i].generation);
}

static bool buddy_get(const quire_space *space, uint32_t slot, uint32_t generation,
                      quire_placement *placement)
{
    const qi_buddy *b = qi_buddy_of_const(space);
    if (!is_live(b, slot, generation))
        return false;
    qi_buddy_describe(b, slot, placement);
    return true;
}

static bool buddy_set_user(quire_space *space, uint32_t slot, uint32_t generation, uint64_t user)
{
    qi_buddy *b = qi_buddy_of(space);
    if (!is_live(b, slot, generation))
        return false;
    b->nodes[slot].user = user;
    return true;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static uint64_t buddy_largest_free(const quire_space *space)
{
    const qi_buddy *b = qi_buddy_of_const(space);
    return b->orders ? bytes_of(b, qi_highest_bit(b->orders)) : 0;
}

static uint64_t buddy_free_count(const quire_space *space)
{
    return qi_buddy_of_const(space)->free_count;
}

/* The block of a request; 0 if its size exceeds 64 bits. */
static uint64_t buddy_block_size(const quire_space *space, uint64_t size)
{
    const qi_buddy *b = qi_buddy_of_const(space);
    uint32_t order = qi_order_of((size - 1) / space->granule + 1);
    return order + b->granule_shift < 64 ? bytes_of(b, order) : 0;
}

const qi_fit qi_buddy_fit = {
    .state_size = sizeof(qi_buddy),
    .default_granule = 256,
    .least_granule = 256,
    .max_granule = UINT64_C(1) << 30,
    .max_granules = UINT32_MAX,
    .init = qi_buddy_init,
    .finish = qi_buddy_finish,
    .add_region = qi_buddy_add_region,
    .region_is_empty = qi_buddy_region_is_empty,
    .remove_region = qi_buddy_remove_region,
    .allocate = buddy_allocate,
    .claim = buddy_claim,
    .unclaim = buddy_unclaim,
    .release_claimed = buddy_release_claimed,
    .release = buddy_release,
    .get = buddy_get,
    .set_user = buddy_set_user,
    .clear = buddy_clear,
    .largest_free = buddy_largest_free,
    .free_count = buddy_free_count,
    .block_size = buddy_block_size,
    .walk = qi_buddy_walk,
    .check = qi_buddy_check,
    .in_use = qi_buddy_in_use,
    .trim = qi_buddy_trim,
};
