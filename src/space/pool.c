/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.c - the array of nodes doubles while it is small and then grows by a fraction; a trim cuts
 * its unused end and sorts the chain of unused numbers (see pool.h).
 */
#include "src/space/pool.h"

#include "src/base/result.h"

/*
 * Capacities. The first is small enough that a space with ten ranges costs one or two KiB. Small
 * arrays double; larger ones grow by an eighth and then by a sixteenth, so that a large space does
 * not hold twice the nodes it needs.
 */
enum { FIRST_CAPACITY = 32, DOUBLED_BELOW = 1024, EIGHTH_BELOW = 65536, ROUNDED_TO = 64 };

/*
 * All numbers beyond the array start at one generation, so that discarding a number with a high
 * generation uses up those of the others. With this limit every number keeps at least half of its
 * generations.
 */
enum { MAX_DISCARDED = QI_LAST_GENERATION / 2 };

static qi_pool_item *item_at(const qi_pool *pool, uint32_t number)
{
    return (void *)((char *)pool->items + (size_t)number * pool->item_size);
}

void qi_pool_init(qi_pool *pool, size_t item_size)
{
    *pool = (qi_pool){.item_size = item_size};
}

void qi_pool_finish(qi_pool *pool, qi_host *host)
{
    qi_host_release(host, pool->items, pool->capacity, pool->item_size);
    qi_pool_init(pool, pool->item_size);
}

static void set_first_generations(qi_pool *pool, uint32_t from)
{
    for (uint32_t i = from; i < pool->capacity; i++)
        item_at(pool, i)->generation = pool->first_generation;
}

static uint32_t capacity_after(uint32_t capacity)
{
    if (!capacity)
        return FIRST_CAPACITY;
    if (capacity < DOUBLED_BELOW)
        return capacity * 2;
    uint32_t larger = capacity + capacity / (capacity < EIGHTH_BELOW ? 8 : 16) + ROUNDED_TO - 1;
    larger -= larger % ROUNDED_TO;
    return larger < QI_SLOT_COUNT ? larger : QI_SLOT_COUNT;
}

uint32_t qi_pool_next_capacity(const qi_pool *pool)
{
    return capacity_after(pool->capacity);
}

quire_result qi_pool_grow(qi_pool *pool, qi_host *host)
{
    uint32_t old = pool->capacity, capacity = capacity_after(old);
    if (old >= QI_SLOT_COUNT)
        return qi_fail_with(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                            "the space has %u range%s, as many as it can number", old);
    void *items = qi_host_resize(host, pool->items, old, capacity, pool->item_size);
    if (!items)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the records of %u range%s: %b", capacity,
                            (uint64_t)capacity * pool->item_size);
    pool->items = items;
    pool->capacity = capacity;
    pool->keeper = 0;
    pool->top += !old; /* number 0 is never taken */
    pool->spare += capacity - (old ? old : 1);
    set_first_generations(pool, old);
    return QUIRE_SUCCESS;
}

/* Rebuilds the chain from the highest number down, and counts spare and retired numbers again. */
void qi_pool_sort(qi_pool *pool, bool (*in_use)(const void *, uint32_t), const void *owner)
{
    pool->unused = 0;
    pool->spare = pool->capacity - pool->top;
    pool->retired = 0;
    for (uint32_t i = pool->top; i-- > 1;) {
        if (in_use(owner, i))
            continue;
        if (item_at(pool, i)->generation > QI_LAST_GENERATION) {
            pool->retired++;
            continue;
        }
        item_at(pool, i)->next = pool->unused;
        pool->unused = i;
        pool->spare++;
    }
}

void qi_pool_renew(qi_pool *pool)
{
    pool->first_generation = 0;
    pool->unused = pool->retired = pool->keeper = 0;
    pool->top = 1;
    pool->spare = pool->capacity - 1;
    set_first_generations(pool, 0);
}

/* The highest generation of the numbers from `first` on. */
static uint32_t highest_generation(const qi_pool *pool, uint32_t first)
{
    uint32_t highest = pool->first_generation;
    for (uint32_t i = first; i < pool->capacity; i++)
        if (item_at(pool, i)->generation > highest)
            highest = item_at(pool, i)->generation;
    return highest;
}

/* Whether a trim keeps a number: it is in use, or its generation is above MAX_DISCARDED. */
static bool must_stay(const qi_pool *pool, bool (*in_use)(const void *, uint32_t),
                      const void *owner, uint32_t number)
{
    return number && (in_use(owner, number) || item_at(pool, number)->generation > MAX_DISCARDED);
}

/* Keeps the array if the smaller one cannot be allocated. */
void qi_pool_trim(qi_pool *pool, qi_host *host, bool (*in_use)(const void *, uint32_t),
                  const void *owner)
{
    uint32_t top = pool->top;
    if (pool->keeper < top && must_stay(pool, in_use, owner, pool->keeper))
        return; /* the number that stopped the last trim stops this one too */
    while (top > 1 && !must_stay(pool, in_use, owner, top - 1))
        top--;
    uint32_t capacity = FIRST_CAPACITY;
    while (capacity < top)
        capacity = capacity_after(capacity);
    pool->keeper = capacity >= pool->capacity ? top - 1 : 0;
    if (capacity >= pool->capacity)
        return;
    uint32_t generation = highest_generation(pool, capacity);
    void *items = qi_host_resize(host, pool->items, pool->capacity, capacity, pool->item_size);
    if (!items)
        return;
    pool->items = items;
    pool->capacity = capacity;
    pool->top = top;
    pool->first_generation = generation;
    qi_pool_sort(pool, in_use, owner);
}

/* ---- the check ---------------------------------------------------------------------------- */

/* Whether the chain holds exactly the spare numbers below top. Follows damaged links safely. */
static bool chain_is_sound(const qi_pool *pool, bool (*in_use)(const void *, uint32_t),
                           const void *owner, uint32_t *number)
{
    uint32_t left = pool->spare - (pool->capacity - pool->top);
    if (left > pool->top) /* also true if the difference wrapped */
        return false;
    for (uint32_t i = pool->unused; i; i = item_at(pool, i)->next) {
        *number = i;
        if (i >= pool->top || left-- == 0 || in_use(owner, i) ||
            item_at(pool, i)->generation > QI_LAST_GENERATION)
            return false;
    }
    return left == 0;
}

const char *qi_pool_damage(const qi_pool *pool, bool (*in_use)(const void *, uint32_t),
                           const void *owner, uint32_t *number)
{
    *number = 0;
    if (pool->first_generation & 1 || pool->first_generation > MAX_DISCARDED)
        return "new numbers would start with a generation in use or used up";
    if (!chain_is_sound(pool, in_use, owner, number))
        return "the chain of unused numbers is broken";
    uint32_t used = 0, retired = 0;
    for (uint32_t i = 0; i < pool->capacity; i++) {
        bool is_used = in_use(owner, i), is_old = item_at(pool, i)->generation > QI_LAST_GENERATION;
        *number = i;
        if (item_at(pool, i)->generation > QI_LAST_GENERATION + 1)
            return "a generation is above the last one";
        if ((i == 0 || i >= pool->top) && (is_used || is_old))
            return "a number that was never taken is in use";
        used += is_used;
        retired += is_old && !is_used;
    }
    *number = 0;
    if (used != qi_pool_used(pool) || retired != pool->retired)
        return "the number of numbers in use or retired is wrong";
    return NULL;
}
