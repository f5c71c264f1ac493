/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_coalescing.c - a freed range is held back until 32 more were freed, and then coalesces
 * with its neighbours. In a space whose records exceed the caches a free waits for several records
 * to arrive from memory; here they are prefetched in time. A deferred range is neither live nor
 * free: its identity is stale, and no neighbour coalesces with it. Everything but allocating and
 * freeing flushes the deferred ranges first, and so does a search that finds nothing.
 *
 * Smaller spaces pay nothing for it. The function that frees is replaced when the pool of nodes
 * outgrows defer_from, and put back when a trim makes the pool smaller. While fewer nodes are in
 * use, that function frees what is still deferred, and defers nothing.
 */
#include "src/space/segregated/lists.h"
#include "src/space/segregated/slabs.h"

/* A flush empties the whole ring, so that the newest place shows whether any node waits. */
static bool has_deferred(const qi_segregated *s)
{
    return s->deferred[(s->deferred_total - 1) % QI_DEFERRED_FREES] != 0;
}

void qi_segregated_defer_free(qi_segregated *s, uint32_t number)
{
    if (qi_pool_used(&s->space.pool) < s->defer_from) {
        if (has_deferred(s))
            qi_segregated_flush_deferred(&s->space);
        qi_node_free(s, number);
        return;
    }
    uint32_t *place = &s->deferred[s->deferred_total % QI_DEFERRED_FREES], oldest = *place;
    uint32_t older = s->deferred[(s->deferred_total + QI_DEFERRED_FREES / 2) % QI_DEFERRED_FREES];
    *place = number;
    s->deferred_total++;
    qi_node_prefetch_neighbours(s, number);
    qi_node_prefetch_lists(s, older); /* node 0 is its own neighbour */
    if (oldest)
        qi_node_free(s, oldest);
}

/* free_range of a large space; see qi_segregated_fast_free. */
static quire_result deferring_free(quire_space *space, quire_range range)
{
    qi_segregated *s = qi_segregated_of(space);
    uint32_t slot = 0;
    if (!qi_node_claim(s, range, &slot))
        return qi_space_free(space, range);
    qi_segregated_defer_free(s, slot);
    return QUIRE_SUCCESS;
}

void qi_segregated_choose_free(qi_segregated *s)
{
    quire_result (*chosen)(quire_space *, quire_range) =
        qi_segregated_defers(s) ? deferring_free : qi_segregated_fast_free;
    if (s->slabs)
        s->slabs->free_range = chosen;
    else
        qi_space_set_free(&s->space, chosen);
}

void qi_segregated_flush_deferred(quire_space *space)
{
    qi_segregated *s = qi_segregated_of(space);
    for (uint32_t i = 0; qi_segregated_defers(s) && i < QI_DEFERRED_FREES; i++) {
        uint32_t *place = &s->deferred[s->deferred_total++ % QI_DEFERRED_FREES], oldest = *place;
        *place = 0;
        if (oldest)
            qi_node_free(s, oldest);
    }
}
