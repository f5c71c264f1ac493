/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.h - the array in which a fit keeps its nodes. The pool owns the array; a space owns the
 * pool.
 *
 * Nodes have 32-bit numbers. Number 0 means none; its node is scratch that a fit may write and must
 * not read a meaning from. Every node type starts with a qi_pool_item, so that growing and
 * trimming, which are rare, are shared code. A fit takes and returns numbers inline, on its own
 * node type.
 *
 * The generation of a node is odd while a live range uses it and rises by one with each change, so
 * that a handle with an old generation is recognized as stale. (The linear fit counts only uses and
 * recognizes live ranges by their epoch.) A number whose generations are used up is retired: it is
 * never taken again. No lock: the caller of the space serializes all calls.
 *
 * Invariant: every number from 1 to top - 1 is in use, in the chain of unused numbers, or retired.
 */
#ifndef QUIRE_SRC_SPACE_POOL_H
#define QUIRE_SRC_SPACE_POOL_H

#include "src/base/handle.h"
#include "src/base/host_memory.h"

typedef struct qi_pool_item {
    uint32_t generation;
    uint32_t next; /* the next unused number while this one is unused */
} qi_pool_item;

typedef struct qi_pool {
    void *items;
    size_t item_size;
    uint32_t capacity;
    uint32_t top;              /* numbers from 1 below top were taken before; 0: no array yet */
    uint32_t unused;           /* first of the chain of unused numbers below top */
    uint32_t spare;            /* numbers that can be taken without growing */
    uint32_t retired;          /* numbers that are never taken again */
    uint32_t keeper;           /* the number that stopped the last trim */
    uint32_t first_generation; /* even; of numbers beyond the array, above all discarded ones */
} qi_pool;

void qi_pool_init(qi_pool *pool, size_t item_size);
void qi_pool_finish(qi_pool *pool, qi_host *host);

/*
 * Grows the array so that at least one more number is spare. Fails with OUT_OF_HOST_MEMORY or
 * TOO_MANY_ALLOCATIONS and then changes nothing. Moves the nodes: pointers to them become invalid.
 */
QUIRE_MUST_USE quire_result qi_pool_grow(qi_pool *pool, qi_host *host);

/* The capacity after the next growth, in nodes. */
uint32_t qi_pool_next_capacity(const qi_pool *pool);

/*
 * Shrinks the array to the highest number for which `in_use` returns true. The generations of the
 * numbers beyond are discarded; when these numbers are taken again, all start at the highest of the
 * discarded generations. A number with a very high generation stays, because it would use up the
 * generations of the others.
 */
void qi_pool_trim(qi_pool *pool, qi_host *host, bool (*in_use)(const void *owner, uint32_t number),
                  const void *owner);

/* Sorts the chain of unused numbers: the lowest is taken next. */
void qi_pool_sort(qi_pool *pool, bool (*in_use)(const void *owner, uint32_t number),
                  const void *owner);

/*
 * Verifies that every number is exactly one of in use, in the chain of unused numbers, or retired.
 * Returns null, or a sentence that names the contradiction, and sets *number. Requires that top is
 * not above capacity.
 */
const char *qi_pool_damage(const qi_pool *pool, bool (*in_use)(const void *owner, uint32_t number),
                           const void *owner, uint32_t *number);

/*
 * Resets every number, as if none had ever been taken. Requires that none is in use and that the
 * owner's later handles differ from the earlier ones.
 */
void qi_pool_renew(qi_pool *pool);

/* Numbers that are taken and not returned. */
static inline uint32_t qi_pool_used(const qi_pool *pool)
{
    return pool->capacity ? pool->capacity - 1 - pool->spare - pool->retired : 0;
}

#endif
