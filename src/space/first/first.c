/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * first.c - the first fit: the lowest address that holds the request, byte-exact; the range keeps
 * its left padding. Places and pads exactly as Lluvia's free-space manager and its page scan do.
 *
 * An allocation is cut from the low end of the free range that the tree finds. A free coalesces
 * with free neighbours and makes the padding free again. Each takes one or two passes down the
 * tree.
 */
#include "src/space/first/first.h"

static qi_first *of(quire_space *space)
{
    return (qi_first *)(void *)space;
}

/* ---- nodes and rings ---------------------------------------------------------------------- */

/* Ensures `count` spare node numbers. May move the nodes. */
static quire_result reserve_nodes(qi_first *f, uint32_t count)
{
    while (f->space.pool.spare < count) {
        quire_result result = qi_pool_grow(&f->space.pool, &f->space.host);
        if (result)
            return result;
        f->nodes = f->space.pool.items;
    }
    return QUIRE_SUCCESS;
}

/* Takes a node number; requires a spare one. */
static uint32_t take_node(qi_first *f)
{
    uint32_t number = f->space.pool.unused;
    f->space.pool.spare--;
    if (!number)
        return f->space.pool.top++;
    f->space.pool.unused = f->nodes[number].next;
    return number;
}

/* Returns a node number; retires it if its generations are used up. */
static void give_node(qi_first *f, uint32_t number)
{
    f->nodes[number].is_free = false;
    if (f->nodes[number].generation > QI_LAST_GENERATION) {
        f->space.pool.retired++;
        return;
    }
    f->nodes[number].next = f->space.pool.unused;
    f->space.pool.unused = number;
    f->space.pool.spare++;
}

/* Inserts a node into the ring of `place`, below it. */
static void insert_before(qi_first *f, uint32_t place, uint32_t number)
{
    uint32_t before = f->nodes[place].before;
    f->nodes[number].before = before;
    f->nodes[number].after = place;
    f->nodes[number].region = f->nodes[place].region;
    f->nodes[before].after = number;
    f->nodes[place].before = number;
}

static void leave_ring(qi_first *f, uint32_t number)
{
    uint32_t before = f->nodes[number].before, after = f->nodes[number].after;
    f->nodes[before].after = after;
    f->nodes[after].before = before;
}

/* ---- allocate and free -------------------------------------------------------------------- */

static void describe(const qi_first *f, uint32_t number, quire_placement *out)
{
    const qi_first_node *node = &f->nodes[number];
    *out = (quire_placement){
        .range.id = qi_handle(f->space.tag, node->generation, number),
        .region = node->region,
        .offset = node->offset - f->space.regions[node->region].start,
        .left_padding = node->as.live.left_padding,
        .size = node->size,
        .user = node->as.live.user,
    };
}

/* Reserves a node first, so that nothing can fail once the tree has found a range. */
static quire_result first_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint64_t user, uint32_t flags, quire_placement *placement)
{
    qi_first *f = of(space);
    quire_result result = reserve_nodes(f, 1);
    if (result)
        return result;
    uint32_t found = qi_free_tree_find(f, size, alignment);
    if (!found) /* QI_EXHAUSTIVE has no effect: the search misses nothing */
        return qi_space_no_room(space, size, alignment, flags | QI_EXHAUSTIVE);
    uint32_t live = take_node(f);
    qi_first_node *hole = &f->nodes[found], *node = &f->nodes[live];
    uint64_t padding = qi_padding(hole->offset, alignment);
    node->generation++;
    node->is_free = false;
    node->offset = hole->offset + padding;
    node->size = size;
    node->as.live = (qi_live_part){.left_padding = padding, .user = user};
    insert_before(f, found, live);
    if (hole->size == padding + size) { /* the range takes the whole hole */
        qi_free_tree_remove(f, found);
        leave_ring(f, found);
        give_node(f, found);
    } else {
        /* the hole keeps its order in the tree: no other range begins in between */
        hole->offset += padding + size;
        hole->size -= padding + size;
        qi_free_tree_update(f, found);
    }
    space->live_count++;
    space->live_bytes += size;
    space->padding_bytes += padding;
    describe(f, live, placement);
    return QUIRE_SUCCESS;
}

static bool is_live(const qi_first *f, uint32_t slot, uint32_t generation)
{
    return slot < f->space.pool.top && f->nodes[slot].generation == generation && generation & 1;
}

/* Frees [begin, begin + size) of a node that is not live. */
static void free_node(qi_first *f, uint32_t number, uint64_t begin, uint64_t size)
{
    uint32_t before = f->nodes[number].before, after = f->nodes[number].after;
    bool low = f->nodes[before].is_free, high = f->nodes[after].is_free;
    f->nodes[number].offset = begin;
    f->nodes[number].size = size;
    if (!low && !high) {
        f->nodes[number].is_free = true;
        qi_free_tree_insert(f, number);
        return;
    }
    leave_ring(f, number);
    give_node(f, number);
    if (!low) {
        f->nodes[after].offset = begin;
        f->nodes[after].size += size;
        qi_free_tree_update(f, after);
        return;
    }
    if (high) {
        size += f->nodes[after].size;
        qi_free_tree_remove(f, after);
        leave_ring(f, after);
        give_node(f, after);
    }
    f->nodes[before].size += size;
    qi_free_tree_update(f, before);
}

/* Until release_claimed the node keeps its place in the ring. unclaim restores the statistics. */
static bool first_claim(quire_space *space, uint32_t slot, uint32_t generation)
{
    qi_first *f = of(space);
    if (!is_live(f, slot, generation))
        return false;
    qi_first_node *node = &f->nodes[slot];
    node->generation++;
    space->live_count--;
    space->live_bytes -= node->size;
    space->padding_bytes -= node->as.live.left_padding;
    return true;
}

static void first_unclaim(quire_space *space, uint32_t slot)
{
    qi_first_node *node = &of(space)->nodes[slot];
    node->generation--;
    space->live_count++;
    space->live_bytes += node->size;
    space->padding_bytes += node->as.live.left_padding;
}

static void first_release_claimed(quire_space *space, uint32_t slot)
{
    qi_first *f = of(space);
    const qi_first_node *node = &f->nodes[slot];
    uint64_t padding = node->as.live.left_padding;
    free_node(f, slot, node->offset - padding, node->size + padding);
}

static bool first_release(quire_space *space, uint32_t slot, uint32_t generation)
{
    if (!first_claim(space, slot, generation))
        return false;
    first_release_claimed(space, slot);
    return true;
}

/* release returns false for node numbers that are not live, so no test is needed here. */
static void first_clear(quire_space *space)
{
    qi_first *f = of(space);
    for (uint32_t i = 1; i < f->space.pool.top; i++)
        first_release(space, i, f->nodes[i].generation);
}

static bool first_get(const quire_space *space, uint32_t slot, uint32_t generation,
                      quire_placement *placement)
{
    const qi_first *f = qi_first_of_const(space);
    if (!is_live(f, slot, generation))
        return false;
    describe(f, slot, placement);
    return true;
}

static bool first_set_user(quire_space *space, uint32_t slot, uint32_t generation, uint64_t user)
{
    qi_first *f = of(space);
    if (!is_live(f, slot, generation))
        return false;
    f->nodes[slot].as.live.user = user;
    return true;
}

/* ---- regions ------------------------------------------------------------------------------ */

/* Creates the node of the region, and one free node for all of it. */
static quire_result first_add_region(quire_space *space, uint32_t number)
{
    qi_first *f = of(space);
    qi_region *region = &space->regions[number];
    quire_result result = reserve_nodes(f, 2);
    if (result)
        return result;
    uint32_t own = take_node(f), whole = take_node(f);
    qi_first_node *node = &f->nodes[own];
    *node = (qi_first_node){
        .generation = node->generation,
        .offset = region->start,
        .before = own,
        .after = own,
        .region = number,
    };
    insert_before(f, own, whole);
    f->nodes[whole].offset = region->start;
    f->nodes[whole].size = region->size;
    f->nodes[whole].is_free = true;
    qi_free_tree_insert(f, whole);
    region->node = own;
    return QUIRE_SUCCESS;
}

static bool first_region_is_empty(const quire_space *space, uint32_t region)
{
    const qi_first *f = qi_first_of_const(space);
    uint32_t own = space->regions[region].node, only = f->nodes[own].after;
    return f->nodes[only].is_free && f->nodes[only].after == own;
}

static void first_remove_region(quire_space *space, uint32_t region)
{
    qi_first *f = of(space);
    uint32_t own = space->regions[region].node, whole = f->nodes[own].after;
    qi_free_tree_remove(f, whole);
    give_node(f, whole);
    give_node(f, own);
}

static uint64_t first_free_at_end(const quire_space *space, uint32_t region)
{
    const qi_first *f = qi_first_of_const(space);
    const qi_first_node *last = &f->nodes[f->nodes[space->regions[region].node].before];
    return last->is_free ? last->size : 0;
}

/* Removes the free bytes above the new end of a region. */
static void shrink_region(qi_first *f, const qi_region *region, uint64_t size)
{
    uint32_t last = f->nodes[region->node].before;
    uint64_t taken = region->size - size;
    if (f->nodes[last].size > taken) {
        f->nodes[last].size -= taken;
        qi_free_tree_update(f, last);
        return;
    }
    qi_free_tree_remove(f, last);
    leave_ring(f, last);
    give_node(f, last);
}

/* Growing extends the free range at the end, or frees a new node there. */
static quire_result first_resize_region(quire_space *space, uint32_t number, uint64_t size)
{
    qi_first *f = of(space);
    const qi_region *region = &space->regions[number];
    if (size < region->size) {
        shrink_region(f, region, size);
        return QUIRE_SUCCESS;
    }
    if (!first_free_at_end(space, number)) {
        quire_result result = reserve_nodes(f, 1);
        if (result)
            return result;
        uint32_t added = take_node(f);
        insert_before(f, region->node, added);
        free_node(f, added, region->start + region->size, size - region->size);
        return QUIRE_SUCCESS;
    }
    uint32_t last = f->nodes[region->node].before;
    f->nodes[last].size += size - region->size;
    qi_free_tree_update(f, last);
    return QUIRE_SUCCESS;
}

/* ---- creation, statistics, walk, trim ------------------------------------------------------- */

static quire_result first_init(quire_space *space, const quire_space_options *options)
{
    (void)options;
    qi_pool_init(&space->pool, sizeof(qi_first_node));
    return QUIRE_SUCCESS;
}

static void first_finish(quire_space *space)
{
    qi_pool_finish(&space->pool, &space->host);
}

static uint64_t first_largest_free(const quire_space *space)
{
    return qi_free_tree_largest(qi_first_of_const(space));
}

static bool first_walk(const quire_space *space, uint32_t region,
                       bool (*visit)(void *, const quire_space_item *), void *user)
{
    const qi_first *f = qi_first_of_const(space);
    uint32_t own = space->regions[region].node;
    for (uint32_t i = f->nodes[own].after; i != own; i = f->nodes[i].after) {
        const qi_first_node *node = &f->nodes[i];
        quire_space_item item = {.region = region, .size = node->size, .is_free = node->is_free};
        item.offset = node->offset - space->regions[region].start;
        if (!node->is_free) {
            item.left_padding = node->as.live.left_padding;
            item.range.id = qi_handle(space->tag, node->generation, i);
            item.user = node->as.live.user;
        }
        if (!visit(user, &item))
            return false;
    }
    return true;
}

static bool first_in_use(const void *space, uint32_t number)
{
    const qi_first *f = space;
    const qi_first_node *node =
        (const qi_first_node *)f->space.pool.items + number; /* may have moved */
    return node->generation & 1 || node->is_free ||
           qi_space_is_region_node(&f->space, node->region, number);
}

static void first_trim(quire_space *space)
{
    qi_first *f = of(space);
    qi_pool_trim(&f->space.pool, &space->host, first_in_use, space);
    f->nodes = f->space.pool.items;
}

const qi_fit qi_first_fit = {
    .state_size = sizeof(qi_first),
    .default_granule = 1,
    .least_granule = 1,
    .max_granule = 1,
    .max_granules = UINT64_C(1) << 62,
    .region_nodes = 2,
    .has_lowest = true, /* of every request */
    .init = first_init,
    .finish = first_finish,
    .add_region = first_add_region,
    .region_is_empty = first_region_is_empty,
    .remove_region = first_remove_region,
    .resize_region = first_resize_region,
    .free_at_end = first_free_at_end,
    .allocate = first_allocate,
    .claim = first_claim,
    .unclaim = first_unclaim,
    .release_claimed = first_release_claimed,
    .release = first_release,
    .get = first_get,
    .set_user = first_set_user,
    .clear = first_clear,
    .largest_free = first_largest_free,
    .free_count = qi_space_free_count,
    .walk = first_walk,
    .check = qi_first_check,
    .in_use = first_in_use,
    .trim = first_trim,
};
