/*
 * deferred_coalescing.c - an option: a freed range is held back until 32 more were freed, and then
 * coalesces with its neighbours. In a space larger than the caches a free waits for three records
 * to arrive from memory; here they are prefetched in time. A deferred range is neither live nor
 * free: its identity is stale, and no neighbour coalesces with it. Everything but allocating and
 * freeing flushes the deferred ranges first.
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
        qi_node_prefetch_lists(s, older); /* node 0 is its own neighbour */
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
