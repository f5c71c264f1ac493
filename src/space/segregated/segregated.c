/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * segregated.c - the segregated fit: its table of functions, creation, trimming, and the entries
 * that look a range up by its slot. A slot names a node, or with slabs a slot of a slab. The hot
 * calls are in fast.c, the bounded search in search.c, records and invariants in segregated.h.
 */
#include "src/space/segregated/segregated.h"

#include "src/base/result.h"
#include "src/space/segregated/lists.h"
#include "src/space/segregated/slabs.h"

enum {
    TIGHT_BYTES = 1 << 20, /* requests from here on search for a tight place first */
    TAIL_BYTES = 64 << 10, /* with least_fragmentation, requests from here on take the upper end */
};

/* ---- slots -------------------------------------------------------------------------------- */

/* Without slabs the bit QI_SLAB_SLOT is part of a node number. */
static inline bool is_slot(const qi_segregated *s, uint32_t slot)
{
    return slot & QI_SLAB_SLOT && s->slabs;
}

/* Whether a node is live in this generation. A node that carries a slab has no handle. */
static bool is_live(const qi_segregated *s, uint32_t slot, uint32_t generation)
{
    return slot < s->space.pool.top && s->nodes[slot].generation == generation && generation & 1 &&
           !qi_node_is_slab(&s->nodes[slot]);
}

/* Prefetches the neighbours, which release_claimed reads. */
static bool segregated_claim(quire_space *space, uint32_t slot, uint32_t generation)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot))
        return qi_slabs_claim(s, slot, generation);
    if (!is_live(s, slot, generation))
        return false;
    qi_node_make_stale(s, slot);
    qi_node_prefetch_neighbours(s, slot); /* a batch claims all its ranges before it releases one */
    return true;
}

static void segregated_unclaim(quire_space *space, uint32_t slot)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot)) {
        qi_slabs_unclaim(s, slot);
        return;
    }
    s->nodes[slot].generation--;
    space->live_count++;
    space->live_bytes += (uint64_t)s->nodes[slot].size << s->granule_shift;
}

static void segregated_release_claimed(quire_space *space, uint32_t slot)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot))
        qi_slabs_release_claimed(s, slot);
    else if (qi_segregated_defers(s))
        qi_segregated_defer_free(s, slot);
    else
        qi_node_free(s, slot);
}

static void segregated_prefetch(const quire_space *space, uint32_t slot)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    if (!(slot & QI_SLAB_SLOT) && space->pool.top >= QI_PREFETCH_MIN_NODES)
        qi_node_prefetch_lists(s, slot);
}

static bool segregated_release(quire_space *space, uint32_t slot, uint32_t generation)
{
    if (!segregated_claim(space, slot, generation))
        return false;
    segregated_release_claimed(space, slot);
    return true;
}

/* Frees the slots first: each live node that remains is then a range of a caller. */
static void segregated_clear(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    if (s->slabs)
        qi_slabs_clear(s);
    for (uint32_t i = 1; i < s->space.pool.top; i++)
        if (s->nodes[i].generation & 1)
            segregated_release(space, i, s->nodes[i].generation);
    qi_segregated_flush_deferred(space);
}

static bool segregated_get(const quire_space *space, uint32_t slot, uint32_t generation,
                           quire_placement *placement)
{
    const qi_segregated *s = qi_segregated_of_const(space);
    if (is_slot(s, slot))
        return qi_slabs_get(s, slot, generation, placement);
    if (!is_live(s, slot, generation))
        return false;
    qi_segregated_describe(s, slot, placement);
    return true;
}

static bool segregated_set_user(quire_space *space, uint32_t slot, uint32_t generation,
                                uint64_t user)
{
    qi_segregated *s = qi_segregated_of(space);
    if (is_slot(s, slot))
        return qi_slabs_set_user(s, slot, generation, user);
    if (!is_live(s, slot, generation))
        return false;
    s->nodes[slot].next = (uint32_t)user;
    s->nodes[slot].back = (uint32_t)(user >> 32);
    return true;
}

/* ---- creation and trimming ---------------------------------------------------------------- */

/* Bytes in granules, at least 1. */
static uint32_t granules_for(uint64_t bytes, uint32_t granule_shift)
{
    return bytes >> granule_shift ? (uint32_t)(bytes >> granule_shift) : 1;
}

/* Selects the hot calls for the options: those in fast.c, those of slabs, or the general form. */
static quire_result segregated_init(quire_space *space, const quire_space_options *options)
{
    qi_segregated *s = qi_segregated_of(space);
    s->granule_shift = qi_highest_bit(space->granule);
    s->kind_mask = (uint32_t)(space->kind_mask >> s->granule_shift);
    s->tight_size = granules_for(TIGHT_BYTES, s->granule_shift);
    s->tail_size = UINT32_MAX;
    if (options->fit.least_fragmentation)
        s->tail_size = granules_for(TAIL_BYTES, s->granule_shift);
    s->row_mask = 1;
    qi_pool_init(&s->space.pool, sizeof(qi_node));
    if (!s->kind_mask && !options->fit.least_fragmentation)
        space->allocate_range = qi_segregated_fast_allocate;
    s->defer_from = QI_PREFETCH_MIN_NODES;
    qi_segregated_choose_free(s);
    if (!options->fit.slabs)
        return QUIRE_SUCCESS;
    quire_result result = qi_slabs_init(s);
    space->allocate_range = qi_slabs_allocate;
    qi_space_set_free(space, qi_slabs_free);
    return result;
}

static void segregated_finish(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    qi_host *host = &space->host;
    qi_pool_finish(&s->space.pool, host);
    if (s->slabs)
        qi_slabs_finish(s);
    qi_segregated_release_tables(s);
}

static void segregated_release_cached(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    if (s->slabs)
        qi_slabs_release_empty(s);
}

/* Only slots need storage: a node holds the user value of its range. */
static quire_result segregated_reserve_user(quire_space *space, uint32_t slot, uint64_t user)
{
    qi_segregated *s = qi_segregated_of(space);
    return s->slabs && slot & QI_SLAB_SLOT ? qi_slabs_reserve_user(s, user) : QUIRE_SUCCESS;
}

/*
 * Slabs first, because they release nodes; then the pool; then the tables, which follow the pool.
 */
static void segregated_trim(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    if (s->slabs) {
        qi_slabs_release_empty(s);
        qi_slabs_trim(s);
    }
    qi_pool_trim(&s->space.pool, &space->host, qi_segregated_in_use, space);
    s->nodes = s->space.pool.items;
    qi_segregated_choose_free(s);
    qi_segregated_trim_tables(s);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const qi_fit_backing segregated_backing = {
    .asleep = &qi_segregated_asleep,
    .hollow = qi_segregated_hollow,
    .find_window = qi_segregated_find_window,
    .reserve_window = qi_segregated_reserve_window,
    .open_window = qi_segregated_open_window,
    .close_window = qi_segregated_close_window,
    .find_hole = qi_segregated_find_hole,
    .next_piece = qi_segregated_next_piece,
    .find_room = qi_segregated_find_room,
    .keep_window = qi_segregated_keep_window,
    .part_of_window = qi_segregated_part_of_window,
    .mark_pieces = qi_segregated_mark_pieces,
    .mark_waiting = qi_segregated_mark_waiting,
    .end_waiting = qi_segregated_end_waiting,
    .take_chunks = qi_segregated_take_chunks,
};

const qi_fit qi_segregated_fit = {
    .state_size = sizeof(qi_segregated),
    .default_granule = 256,
    .least_granule = 1,
    .max_granule = UINT64_C(1) << 30,
    .keeps_kinds_apart = true,
    .has_lowest = true,
    .has_segregated_options = true,
    .max_granules = UINT32_MAX,
    .region_nodes = 2,
    .init = segregated_init,
    .finish = segregated_finish,
    .add_region = qi_segregated_add_region,
    .region_is_empty = qi_segregated_region_is_empty,
    .remove_region = qi_segregated_remove_region,
    .resize_region = qi_segregated_resize_region,
    .free_at_end = qi_segregated_free_at_end,
    .backing = &segregated_backing,
    .allocate = qi_segregated_allocate,
    .allocate_batch = qi_segregated_allocate_batch,
    .allocate_elsewhere = qi_segregated_allocate_elsewhere,
    .claim = segregated_claim,
    .unclaim = segregated_unclaim,
    .prefetch = segregated_prefetch,
    .release_claimed = segregated_release_claimed,
    .release = segregated_release,
    .get = segregated_get,
    .set_user = segregated_set_user,
    .clear = segregated_clear,
    .largest_free = qi_segregated_largest_free,
    .free_count = qi_segregated_free_count,
    .flush_deferred = qi_segregated_flush_deferred,
    .release_cached = segregated_release_cached,
    .reserve_user = segregated_reserve_user,
    .walk = qi_segregated_walk,
    .check = qi_segregated_check,
    .in_use = qi_segregated_in_use,
    .trim = segregated_trim,
};
