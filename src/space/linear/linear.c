/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear.c - the linear fit: stack, ring and double stack in one region, cleared in constant time
 * (see linear.h for the records).
 *
 * An allocation examines one gap, or two if it wraps. A free removes the range from the ring and
 * updates the three ends that the fit remembers.
 */
#include "src/space/linear/linear.h"

#include "src/base/result.h"

/* ---- numbers of the records --------------------------------------------------------------- */

/*
 * Unused numbers form a chain, from which an allocation takes the head.
 */

/* Grows the pool, if slots for the new numbers are left above the window. */
static quire_result grow(qi_linear *l)
{
    if (qi_pool_next_capacity(&l->space.pool) > QI_SLOT_COUNT - l->window)
        return qi_fail_with(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                            "the space has %u range%s, as many as it can number: %u slots are worn",
                            l->space.live_count, l->window);
    quire_result result = qi_pool_grow(&l->space.pool, &l->space.host);
    l->records = l->space.pool.items;
    return result;
}

/*
 * Resets all numbers, for slots that were never handed out. Returns false if ranges live or too few
 * such slots are left.
 */
static bool renew(qi_linear *l)
{
    qi_pool *pool = &l->space.pool;
    uint32_t window = l->window + pool->top - 1;
    if (l->space.live_count || window > QI_SLOT_COUNT - pool->capacity)
        return false;
    l->window = window;
    qi_pool_renew(pool);
    return true;
}

/*
 * Ensures that the next unused number has a generation left, so that an allocation that found a
 * place cannot fail. Errors: OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS. Used-up numbers stay in the
 * chain until this function finds them, because a clear does not visit its records. Numbers that
 * were never taken pass through the chain too, so that an allocation reads only the head of the
 * chain.
 */
static quire_result prepare(qi_linear *l)
{
    qi_pool *pool = &l->space.pool;
    for (;;) {
        uint32_t number = pool->unused;
        if (!number && pool->top < pool->capacity) {
            number = pool->unused = pool->top++;
            l->records[number].next = 0;
        }
        if (!number) {
            quire_result result = grow(l);
            if (result)
                return result;
        } else if (l->records[number].generation < QI_LAST_GENERATION) {
            return QUIRE_SUCCESS;
        } else if (!renew(l)) {
            pool->unused = l->records[number].next;
            pool->spare--;
            pool->retired++;
            l->records[number].generation = QI_LAST_GENERATION + 1;
        }
    }
}

static bool linear_in_use(const void *space, uint32_t number)
{
    const qi_linear *l = space;
    const qi_linear_record *records = l->space.pool.items; /* l->records may be outdated */
    return records[number].epoch == l->epoch;
}

/* The pool starts new numbers at an even generation: round up, which skips one use. */
static void linear_trim(quire_space *space)
{
    qi_linear *l = qi_linear_of(space);
    for (uint32_t i = 1; i < space->pool.top; i++)
        if (!linear_in_use(space, i))
            l->records[i].generation += l->records[i].generation & 1;
    qi_pool_sort(&space->pool, linear_in_use, space);
    qi_pool_trim(&space->pool, &space->host, linear_in_use, space);
    l->records = space->pool.items;
}

/* ---- state -------------------------------------------------------------------------------- */

/* Bytes of the gap above a record. */
static uint64_t room_after(const qi_linear *l, uint32_t below)
{
    const qi_linear_record *record = &l->records[below];
    return qi_linear_begin(&l->records[record->next]) - qi_linear_end(record);
}

/* Bytes at the start of the region that a wrap could use. */
static uint64_t room_to_wrap(const qi_linear *l)
{
    return qi_linear_can_wrap(l) ? room_after(l, 0) : 0;
}

/* Bytes of the gap below the newest upper range, or at the end of the region if none lives. */
static uint64_t room_above(const qi_linear *l)
{
    return room_after(l, l->records[l->upper].before);
}

/* Returns NO_SPACE; the sentence, omitted with QI_TRY, reports the room at each end. */
static quire_result refuse(const qi_linear *l, uint64_t size, uint64_t alignment, uint32_t flags)
{
    const quire_space *space = &l->space;
    uint64_t all = space->region_bytes - space->live_bytes - space->padding_bytes;
    if (flags & QI_TRY)
        return QUIRE_ERROR_NO_SPACE;
    if (size > space->region_bytes) /* the fit has one region */
        return qi_fail_with(QUIRE_ERROR_NO_SPACE, "%u can never fit: the space has %u", size,
                            space->region_bytes);
    if (flags & QI_UPPER)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "no room for %u at a multiple of %u below the upper ranges: %u left "
                            "there, %u free in all",
                            size, alignment, room_above(l), all);
    uint64_t max = room_after(l, l->newest);
    qi_raise(&max, room_to_wrap(l));
    return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                        "no room for %u at a multiple of %u after the newest range: %u left there "
                        "or by wrapping, %u free in all",
                        size, alignment, max, all);
}

/*
 * The largest request that any of the three ends can serve; gaps between live ranges do not count.
 */
static uint64_t linear_largest_free(const quire_space *space)
{
    const qi_linear *l = qi_linear_of_const(space);
    uint64_t largest = room_after(l, l->newest);
    qi_raise(&largest, room_to_wrap(l));
    qi_raise(&largest, room_above(l));
    return largest;
}

/* Visits the gap above a record, if it is not empty. Returns false if the visit ended the walk. */
static bool visit_gap(const qi_linear *l, uint32_t below,
                      bool (*visit)(void *, const quire_space_item *), void *user)
{
    uint64_t begin = qi_linear_end(&l->records[below]) - l->space.regions[0].start;
    const quire_space_item gap = {.is_free = true, .offset = begin, .size = room_after(l, below)};
    return !gap.size || visit(user, &gap);
}

static bool linear_walk(const quire_space *space, uint32_t region,
                        bool (*visit)(void *, const quire_space_item *), void *user)
{
    (void)region;
    const qi_linear *l = qi_linear_of_const(space);
    uint32_t below = 0;
    for (uint32_t i = l->records[0].next; i; i = l->records[i].next) {
        quire_placement at;
        qi_linear_describe(l, i, &at);
        const quire_space_item item = {.offset = at.offset,
                                       .left_padding = at.left_padding,
                                       .size = at.size,
                                       .range = at.range,
                                       .user = at.user};
        if (!visit_gap(l, below, visit, user) || !visit(user, &item))
            return false;
        below = i;
    }
    return visit_gap(l, below, visit, user);
}

/* ---- allocate ----------------------------------------------------------------------------- */

/* The place of a request: in the gap between two neighbours of the ring. */
typedef struct place {
    uint32_t below, above;
    uint64_t offset, left_padding;
} place;

/* Whether the request fits between `below` and the next range above it. */
static inline bool fits_above(const qi_linear *l, uint32_t below, uint64_t size, uint64_t alignment,
                              place *out)
{
    uint32_t above = l->records[below].next;
    uint64_t begin = qi_linear_end(&l->records[below]);
    uint64_t room = qi_linear_begin(&l->records[above]) - begin;
    uint64_t padding = qi_padding(begin, alignment);
    if (size > room || padding > room - size)
        return false;
    *out = (place){below, above, begin + padding, padding};
    return true;
}

/* Tries the gap above the newest lower range, then the start of the region. */
static inline bool find_lower(const qi_linear *l, uint64_t size, uint64_t alignment, place *out)
{
    return fits_above(l, l->newest, size, alignment, out) ||
           (qi_linear_can_wrap(l) && fits_above(l, 0, size, alignment, out));
}

/* Alignment leaves free bytes above an upper range; they are not padding of any range. */
static bool find_upper(const qi_linear *l, uint64_t size, uint64_t alignment, place *out)
{
    uint32_t above = l->upper, below = l->records[above].before;
    uint64_t begin = qi_linear_end(&l->records[below]);
    uint64_t end = qi_linear_begin(&l->records[above]);
    if (size > end - begin)
        return false;
    uint64_t offset = qi_align_down(end - size, alignment);
    *out = (place){below, above, offset, 0};
    return offset >= begin;
}

/*
 * Makes the next unused number a live range between two neighbours. Requires that the number has a
 * generation left. The range replaces one gap and may leave one on each side.
 */
static inline void occupy(qi_linear *l, const place *at, uint64_t size, uint64_t user, bool upper,
                          quire_placement *placement)
{
    quire_space *space = &l->space;
    uint32_t number = space->pool.unused;
    qi_linear_record *record = &l->records[number], *below = &l->records[at->below],
                     *above = &l->records[at->above];
    space->pool.unused = record->next;
    space->pool.spare--;
    l->gaps -= at->offset + size == qi_linear_begin(above);
    if (upper)
        l->gaps += at->offset != qi_linear_end(below);
    *record = (qi_linear_record){
        .generation = record->generation + 1,
        .next = at->above,
        .before = at->below,
        .left_padding = (uint32_t)at->left_padding, /* below the largest alignment, 1 GiB */
        .epoch = l->epoch,
        .offset = at->offset,
        .size = size,
        .user = user,
    };
    below->next = above->before = number;
    space->live_count++;
    space->live_bytes += size;
    space->padding_bytes += at->left_padding;
    qi_linear_describe(l, number, placement);
    if (upper) {
        l->upper = number;
        return;
    }
    if (!l->newest)
        l->oldest = number;
    l->newest = number;
}

/* Whether the next unused number can be taken at once; otherwise prepare is needed. */
static inline bool is_ready(const qi_linear *l)
{
    uint32_t number = l->space.pool.unused;
    return number && l->records[number].generation < QI_LAST_GENERATION;
}

static quire_result allocate_upper(qi_linear *l, uint64_t size, uint64_t alignment, uint64_t user,
                                   uint32_t flags, quire_placement *placement)
{
    place at;
    if (!find_upper(l, size, alignment, &at))
        return refuse(l, size, alignment, flags);
    quire_result result = is_ready(l) ? QUIRE_SUCCESS : prepare(l);
    if (!result)
        occupy(l, &at, size, user, true, placement);
    return result;
}

/* Prepares a number after the search, because a refusal must not grow the records. */
static quire_result linear_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                    uint64_t user, uint32_t flags, quire_placement *placement)
{
    qi_linear *l = qi_linear_of(space);
    place at;
    if (flags & QI_UPPER)
        return allocate_upper(l, size, alignment, user, flags, placement);
    if (!find_lower(l, size, alignment, &at))
        return refuse(l, size, alignment, flags);
    quire_result result = is_ready(l) ? QUIRE_SUCCESS : prepare(l);
    if (!result)
        occupy(l, &at, size, user, false, placement);
    return result;
}

/* ---- free --------------------------------------------------------------------------------- */

/* The live range with this slot and generation, or 0. */
static inline uint32_t find(const qi_linear *l, uint32_t slot, uint32_t generation)
{
    uint32_t number = slot - l->window;
    if (number >= l->space.pool.top) /* a slot below the window wraps to a large number */
        return 0;
    const qi_linear_record *record = &l->records[number];
    return record->epoch == l->epoch && record->generation == generation ? number : 0;
}

/* Updates the ends that the fit remembers after a range left the ring. */
static inline void move_ends(qi_linear *l, uint32_t number, uint32_t below, uint32_t above)
{
    if (number == l->upper)
        l->upper = above;
    if (number == l->newest) /* 0 below: the only one, or the only one after a wrap */
        l->newest = below ? below : l->records[l->upper].before;
    if (number != l->oldest)
        return;
    if (above != l->upper)
        l->oldest = above;
    else /* it was the last one before a wrap, or the only one */
        l->oldest = l->newest ? l->records[0].next : 0;
}

static void give_number(qi_linear *l, uint32_t number)
{
    l->records[number].next = l->space.pool.unused;
    l->space.pool.unused = number;
    l->space.pool.spare++;
}

/* A claimed range has epoch 0, which no space has: it is stale but still in the ring. */
static bool linear_claim(quire_space *space, uint32_t slot, uint32_t generation)
{
    qi_linear *l = qi_linear_of(space);
    uint32_t number = find(l, slot, generation);
    if (!number)
        return false;
    qi_linear_record *record = &l->records[number];
    record->epoch = 0;
    space->live_count--;
    space->live_bytes -= record->size;
    space->padding_bytes -= record->left_padding;
    return true;
}

static void linear_unclaim(quire_space *space, uint32_t slot)
{
    qi_linear *l = qi_linear_of(space);
    qi_linear_record *record = &l->records[slot - l->window];
    record->epoch = l->epoch;
    space->live_count++;
    space->live_bytes += record->size;
    space->padding_bytes += record->left_padding;
}

/* The range becomes one gap with the gaps on its sides, so their number changes by +1, 0 or -1. */
static void linear_release_claimed(quire_space *space, uint32_t slot)
{
    qi_linear *l = qi_linear_of(space);
    uint32_t number = slot - l->window;
    const qi_linear_record *record = &l->records[number];
    uint32_t below = record->before, above = record->next;
    l->gaps++;
    l->gaps -= qi_linear_begin(record) != qi_linear_end(&l->records[below]);
    l->gaps -= qi_linear_end(record) != qi_linear_begin(&l->records[above]);
    l->records[below].next = above;
    l->records[above].before = below;
    move_ends(l, number, below, above);
    give_number(l, number);
}

static bool linear_release(quire_space *space, uint32_t slot, uint32_t generation)
{
    if (!linear_claim(space, slot, generation))
        return false;
    linear_release_claimed(space, slot);
    return true;
}

/* Constant time: links the two ends of the ring into the chain of unused numbers. */
static void linear_clear(quire_space *space)
{
    qi_linear *l = qi_linear_of(space);
    qi_linear_record *own = &l->records[0];
    if (own->next) {
        l->records[own->before].next = space->pool.unused;
        space->pool.unused = own->next;
        space->pool.spare += (uint32_t)space->live_count;
    }
    own->next = own->before = 0;
    l->oldest = l->newest = l->upper = 0;
    l->gaps = space->region_count;
    l->epoch++;
    space->live_count = space->live_bytes = space->padding_bytes = 0;
}

static bool linear_get(const quire_space *space, uint32_t slot, uint32_t generation,
                       quire_placement *placement)
{
    const qi_linear *l = qi_linear_of_const(space);
    uint32_t number = find(l, slot, generation);
    if (number)
        qi_linear_describe(l, number, placement);
    return number != 0;
}

static bool linear_set_user(quire_space *space, uint32_t slot, uint32_t generation, uint64_t user)
{
    qi_linear *l = qi_linear_of(space);
    uint32_t number = find(l, slot, generation);
    if (number)
        l->records[number].user = user;
    return number != 0;
}

/* ---- creation and the region -------------------------------------------------------------- */

/* Record 0 exists from the start; without a region it has size 0. */
static quire_result linear_init(quire_space *space, const quire_space_options *options)
{
    (void)options;
    qi_linear *l = qi_linear_of(space);
    qi_pool_init(&space->pool, sizeof *l->records);
    l->epoch = 1;
    return prepare(l);
}

static void linear_finish(quire_space *space)
{
    qi_pool_finish(&space->pool, &space->host);
}

/* Record 0 gets the end of the region and leads back to its start; see qi_linear_end. */
static quire_result linear_add_region(quire_space *space, uint32_t number)
{
    qi_linear *l = qi_linear_of(space);
    const qi_region *region = &space->regions[number];
    l->records[0].offset = region->start + region->size;
    l->records[0].size = UINT64_C(0) - region->size;
    l->gaps = 1;
    return QUIRE_SUCCESS;
}

static bool linear_region_is_empty(const quire_space *space, uint32_t region)
{
    (void)region;
    return space->live_count == 0;
}

static void linear_remove_region(quire_space *space, uint32_t region)
{
    (void)region;
    qi_linear *l = qi_linear_of(space);
    l->records[0].offset = l->records[0].size = 0;
    l->gaps = 0;
}

/* ---- the table ---------------------------------------------------------------------- */

static uint64_t linear_free_count(const quire_space *space)
{
    return qi_linear_of_const(space)->gaps;
}

const qi_fit qi_linear_fit = {
    .state_size = sizeof(qi_linear),
    .default_granule = 1,
    .least_granule = 1,
    .max_granule = 1,
    .max_granules = UINT64_C(1) << 62,
    .max_regions = 1,
    .init = linear_init,
    .finish = linear_finish,
    .add_region = linear_add_region,
    .region_is_empty = linear_region_is_empty,
    .remove_region = linear_remove_region,
    .has_upper_end = true,
    .refuses_at_once = true,
    .clears_at_once = true,
    .allocate = linear_allocate,
    .claim = linear_claim,
    .unclaim = linear_unclaim,
    .release_claimed = linear_release_claimed,
    .release = linear_release,
    .get = linear_get,
    .set_user = linear_set_user,
    .clear = linear_clear,
    .largest_free = linear_largest_free,
    .free_count = linear_free_count,
    .walk = linear_walk,
    .check = qi_linear_check,
    .in_use = linear_in_use,
    .trim = linear_trim,
};
