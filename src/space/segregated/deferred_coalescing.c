/*
 * deferred_coalescing.c - deferred coalescing: a freed range waits behind others before it merges with
 * its neighbours. In a space too large for the caches a free waits for three records to arrive;
 * here they are asked for on the way, and are there when it is the range's turn. A waiting
 * range is neither live nor free: its identity is stale, and nothing merges with it.
 */
#include "src/space/segregated/lists.h"

void qi_segregated_defer_free(qi_segregated *s, uint32_t number)
{
    if (s->space.pool.top < QI_DEFER_MIN_NODES) {
        qi_node_free(s, number);
        return;
    }
    uint32_t *place = &s->deferred[s->deferred_total % QI_DEFERRED_FREES], oldest = *place;
    uint32_t older = s->deferred[(s->deferred_total + QI_DEFERRED_FREES / 2) % QI_DEFERRED_FREES];
    *place = number;
    s->deferred_total++;
    qi_node_prefetch_neighbours(s, number);
    if (s->space.pool.top >= QI_PREFETCH_MIN_NODES)
        qi_node_prefetch_lists(s, older); /* node 0 has itself for neighbours */
    if (oldest)
        qi_node_free(s, oldest);
}

void qi_segregated_flush_deferred(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    for (uint32_t i = 0; s->deferred && i < QI_DEFERRED_FREES; i++) {
        uint32_t *place = &s->deferred[s->deferred_total++ % QI_DEFERRED_FREES], oldest = *place;
        *place = 0;
        if (oldest)
            qi_node_free(s, oldest);
    }
}
