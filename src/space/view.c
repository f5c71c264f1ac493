/*
 * view.c - reports the state of a space: statistics, a walk over its ranges, and the check of every
 * record.
 */
#include "src/base/result.h"
#include "src/space/space.h"

quire_result qi_space_damaged(const char *what, uint32_t node)
{
    return qi_fail_text(QUIRE_ERROR_CORRUPTED, "space: %s (record %u)", what, node);
}

uint64_t qi_space_largest_free(const quire_space *space)
{
    qi_space_flush_deferred(space);
    return space->fit->largest_free(space);
}

/* Computed on request, except the sums, which every operation updates. */
void qi_space_get_stats(const quire_space *space, quire_space_stats *stats)
{
    qi_space_flush_deferred(space);
    *stats = (quire_space_stats){
        .granule = space->granule,
        .region_bytes = space->region_bytes,
        .live_bytes = space->live_bytes,
        .padding_bytes = space->padding_bytes,
        .free_bytes = space->region_bytes - space->live_bytes - space->padding_bytes,
        .largest_free = space->fit->largest_free(space),
        .live_count = space->live_count,
        .free_count = space->fit->free_count(space),
        .region_count = space->region_count,
        .metadata_bytes = qi_atomic_load_u64(&space->host.bytes),
        .metadata_peak = qi_atomic_load_u64(&space->host.peak),
        .full_passes = space->full_passes,
        .full_pass_hits = space->full_pass_hits,
        .max_looked_at = space->max_looked_at,
    };
}

bool qi_space_walk_region(const quire_space *space, uint32_t region,
                          bool (*visit)(void *user, const quire_space_item *item), void *user)
{
    qi_space_flush_deferred(space);
    return space->fit->walk(space, region, visit, user);
}

void qi_space_walk(const quire_space *space,
                   bool (*visit)(void *user, const quire_space_item *item), void *user)
{
    for (uint32_t i = 0; i < space->region_capacity; i++)
        if (space->regions[i].used && !qi_space_walk_region(space, i, visit, user))
            return;
}

/* The stretches of the line are exactly the regions in use. */
static quire_result check_places(const quire_space *space)
{
    if (!qi_line_is_sound(&space->line))
        return qi_space_damaged("the places of regions overlap or leave the line", 0);
    uint32_t used = 0;
    for (uint32_t i = 0; i < space->region_capacity; i++) {
        const qi_region *region = &space->regions[i];
        if (region->used && !qi_line_has(&space->line, region->start, region->size))
            return qi_space_damaged("a region is not at its place on the line", i);
        used += region->used;
    }
    if (used != space->region_count || used != space->line.count)
        return qi_space_damaged("the number of regions is wrong", used);
    return QUIRE_SUCCESS;
}

/* Verifies what the fit's check relies on first: pool.top, then the fit, the line, the pool. */
quire_result qi_space_check(const quire_space *space)
{
    if (space->pool.top > space->pool.capacity)
        return qi_space_damaged("more numbers are in use than records exist", space->pool.top);
    for (uint32_t i = 0; i < space->region_hint; i++)
        if (i >= space->region_capacity || !space->regions[i].used)
            return qi_space_damaged("an unused region number is below the lowest unused one", i);
    qi_space_flush_deferred(space);
    quire_result result = space->fit->check(space);
    if (!result)
        result = check_places(space);
    if (result)
        return result;
    uint32_t number = 0;
    const char *damage = qi_pool_damage(&space->pool, space->fit->in_use, space, &number);
    return damage ? qi_space_damaged(damage, number) : QUIRE_SUCCESS;
}
