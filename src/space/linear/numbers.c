/*
 * numbers.c - unused numbers form a chain, from which an allocation takes the head. Grows it,
 * resets all numbers when their generations are used up, and trims them.
 */
#include "src/base/result.h"
#include "src/space/linear/linear.h"

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
 * Used-up numbers stay in the chain until this function finds them, because a clear does not visit
 * its records. Numbers that were never taken pass through the chain too, so that an allocation
 * reads only the head of the chain.
 */
quire_result qi_linear_prepare(qi_linear *l)
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

bool qi_linear_in_use(const void *space, uint32_t number)
{
    const qi_linear *l = space;
    const qi_linear_record *records = l->space.pool.items; /* l->records may be outdated */
    return records[number].epoch == l->epoch;
}

/* The pool starts new numbers at an even generation: round up, which skips one use. */
void qi_linear_trim(quire_space *space)
{
    qi_linear *l = qi_linear_of(space);
    for (uint32_t i = 1; i < space->pool.top; i++)
        if (!qi_linear_in_use(space, i))
            l->records[i].generation += l->records[i].generation & 1;
    qi_pool_sort(&space->pool, qi_linear_in_use, space);
    qi_pool_trim(&space->pool, &space->host, qi_linear_in_use, space);
    l->records = space->pool.items;
}
