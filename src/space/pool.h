/*
 * pool.h - the indexed array that a fit keeps its nodes in.
 *
 * Nodes are named by 32-bit numbers; number 0 is none and its node is scratch that may be written
 * but means nothing. Every node type begins with a qi_pool_item, so that growth and trimming, which
 * are rare, are shared code, while the fits take and give numbers inline on their own node type.
 *
 * A node's generation is odd while a live range uses it, and rises by one at each change, so that a
 * handle with an old generation can be told (the linear fit counts uses alone and tells live ranges
 * otherwise). A number whose generation is used up is never handed out again (retired). Not
 * thread-safe.
 */
#ifndef QUIRE_SRC_SPACE_POOL_H
#define QUIRE_SRC_SPACE_POOL_H

#include "src/base/handle.h"
#include "src/base/host_memory.h"

typedef struct qi_pool_item {
    uint32_t generation;
    uint32_t next; /* the next unused number, while this one is unused */
} qi_pool_item;

typedef struct qi_pool {
    void *items;
    size_t item_size;
    uint32_t capacity;
    uint32_t top;              /* numbers below, but 0, were used at least once; 0: no array yet */
    uint32_t unused;           /* first of the chain of unused numbers below top */
    uint32_t spare;            /* numbers that can be taken without growing */
    uint32_t retired;          /* numbers that can never be taken again */
    uint32_t keeper;           /* the number that kept the last trim from shrinking the array */
    uint32_t first_generation; /* even; of numbers beyond the array, above all forgotten ones */
} qi_pool;

void qi_pool_init(qi_pool *pool, size_t item_size);
void qi_pool_finish(qi_pool *pool, qi_host *host);

/*
 * Grows the array so that at least one more number is spare. Fails with OUT_OF_HOST_MEMORY or
 * TOO_MANY_ALLOCATIONS and changes nothing then. Moves the nodes: pointers to them end here.
 */
QUIRE_MUST_USE quire_result qi_pool_grow(qi_pool *pool, qi_host *host);

/* What the next growth makes of the array, in nodes. */
uint32_t qi_pool_next_capacity(const qi_pool *pool);

/*
 * Shrinks the array to the highest number in use, told by `in_use`. Numbers beyond it are forgotten
 * and start above the highest generation of them all when they come again; one that is so worn that
 * this would wear out the others stays.
 */
void qi_pool_trim(qi_pool *pool, qi_host *host, bool (*in_use)(const void *owner, uint32_t number),
                  const void *owner);

/* Makes the lowest unused number the next to be taken, and so on. */
void qi_pool_sort(qi_pool *pool, bool (*in_use)(const void *owner, uint32_t number),
                  const void *owner);

/*
 * Verifies that every number is in use, in the chain of unused ones or retired, exactly one of
 * these. A sentence on what is wrong, and the number, or NULL. top must not be above capacity.
 */
const char *qi_pool_damage(const qi_pool *pool, bool (*in_use)(const void *owner, uint32_t number),
                           const void *owner, uint32_t *number);

/*
 * Makes every number new, as if none had ever been taken. For owners with none in use, whose
 * handles tell the numbers from those of before.
 */
void qi_pool_renew(qi_pool *pool);

/* Numbers taken and not given back. */
static inline uint32_t qi_pool_used(const qi_pool *pool)
{
    return pool->capacity ? pool->capacity - 1 - pool->spare - pool->retired : 0;
}

#endif
