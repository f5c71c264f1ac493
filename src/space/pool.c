/*
 * pool.c - see pool.h.
 */
#include "src/space/pool.h"

#include "src/base/result.h"

/* Small enough that a space with ten ranges costs one kilobyte or two. */
enum { FIRST_CAPACITY = 32 };

static qi_pool_item *item_at(const qi_pool *pool, uint32_t number)
{
    return (qi_pool_item *)((char *)pool->items + (size_t)number * pool->item_size);
}

void qi_pool_init(qi_pool *pool, size_t item_size)
{
    *pool = (qi_pool){.item_size = item_size, .top = 1};
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

quire_result qi_pool_grow(qi_pool *pool, qi_host *host)
{
    uint32_t old = pool->capacity;
    uint32_t capacity = old ? old * 2 : FIRST_CAPACITY;
    if (old >= QI_SLOT_COUNT)
        return qi_fail_with(QUIRE_ERROR_TOO_MANY_ALLOCATIONS,
                            "the space has %u ranges, as many as it can number", old);
    void *items = qi_host_resize(host, pool->items, old, capacity, pool->item_size);
    if (!items)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "%b of host memory for the records of %u ranges are not to be had",
                            (uint64_t)capacity * pool->item_size, capacity);
    pool->items = items;
    pool->capacity = capacity;
    pool->spare += capacity - (old ? old : 1); /* number 0 is never taken */
    set_first_generations(pool, old);
    return QUIRE_SUCCESS;
}

static void rebuild_unused_chain(qi_pool *pool, bool (*in_use)(const void *, uint32_t),
                                 const void *owner)
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

void qi_pool_trim(qi_pool *pool, qi_host *host, bool (*in_use)(const void *, uint32_t),
                  const void *owner)
{
    uint32_t top = pool->top;
    uint32_t generation = pool->first_generation;
    while (top > 1 && !in_use(owner, top - 1) &&
           item_at(pool, top - 1)->generation <= QI_LAST_GENERATION) {
        if (item_at(pool, top - 1)->generation > generation)
            generation = item_at(pool, top - 1)->generation;
        top--;
    }
    uint32_t capacity = FIRST_CAPACITY;
    while (capacity < top)
        capacity *= 2;
    if (capacity >= pool->capacity)
        return;
    void *items = qi_host_resize(host, pool->items, pool->capacity, capacity, pool->item_size);
    if (!items)
        return;
    pool->items = items;
    pool->capacity = capacity;
    pool->top = top;
    pool->first_generation = generation;
    set_first_generations(pool, top);
    rebuild_unused_chain(pool, in_use, owner);
}
