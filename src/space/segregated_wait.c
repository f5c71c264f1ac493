/*
 * segregated_wait.c - deferred coalescing: a freed range waits behind others before it merges with
 * its neighbours. In a space too large for the caches a free waits for three records to arrive;
 * here they are asked for when the range begins to wait and half way through, and are there when it
 * is its turn. A waiting range is neither live nor free: its identity is stale, and nothing merges
 * with it.
 */
#include "src/space/lists.h"

/* Below, all records are near enough, and what was just freed had better be used again at once. */
enum { FEWEST_NODES = 16000 };

void qi_segregated_put_off(qi_segregated *s, uint32_t number)
{
    if (s->space.pool.top < FEWEST_NODES) {
        qi_node_free(s, number);
        return;
    }
    uint32_t *place = &s->waiting[s->waited % QI_WAITING], oldest = *place;
    uint32_t middle = s->waiting[(s->waited + QI_WAITING / 2) % QI_WAITING];
    *place = number;
    s->waited++;
    __builtin_prefetch(&s->nodes[s->nodes[middle].before], 1); /* node 0 is there, too */
    __builtin_prefetch(&s->nodes[s->nodes[middle].after], 1);
    if (oldest)
        qi_node_free(s, oldest);
}

void qi_segregated_settle(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    for (uint32_t i = 0; s->waiting && i < QI_WAITING; i++) {
        uint32_t *place = &s->waiting[s->waited++ % QI_WAITING], oldest = *place;
        *place = 0;
        if (oldest)
            qi_node_free(s, oldest);
    }
}
