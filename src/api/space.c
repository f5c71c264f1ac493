/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space.c - the public functions of quire/space.h: check pointers, region numbers and option
 * structs, and call the core in src/space, which checks everything else. A space has no lock; the
 * caller serializes all calls on one space.
 */
#include "src/space/space.h"

#include "src/base/result.h"

/* ---- creation ----------------------------------------------------------------------------- */

quire_result quire_space_create(const quire_space_options *options, quire_space **space)
{
    if (!space)
        return qi_fail_null("quire_space_create", "space");
    return qi_space_create(options, space);
}

void quire_space_destroy(quire_space **space)
{
    if (!space)
        return;
    quire_space *destroyed = *space;
    *space = NULL;
    qi_space_destroy(destroyed);
}

quire_result quire_space_clear(quire_space *space)
{
    if (!space)
        return qi_fail_null("quire_space_clear", "space");
    qi_space_clear(space);
    return QUIRE_SUCCESS;
}

void quire_space_trim(quire_space *space)
{
    if (space)
        qi_space_trim(space);
}

/* ---- regions ------------------------------------------------------------------------------ */

quire_result quire_space_add_region(quire_space *space, uint64_t size, uint64_t base,
                                    uint32_t *region)
{
    if (region)
        *region = 0;
    if (!space || !region)
        return qi_fail_null("quire_space_add_region", !space ? "space" : "region");
    return qi_space_add_region(space, size, base, region);
}

quire_result quire_space_remove_region(quire_space *space, uint32_t region)
{
    if (!space || !qi_space_has_region(space, region))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_remove_region: no region %u",
                            region);
    return qi_space_remove_region(space, region);
}

quire_result quire_space_resize_region(quire_space *space, uint32_t region, uint64_t size)
{
    if (!space || !qi_space_has_region(space, region))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_resize_region: no region %u",
                            region);
    return qi_space_resize_region(space, region, size);
}

/* ---- allocate ----------------------------------------------------------------------------- */

static quire_result refuse_null(const char *call, const char *argument, quire_placement *placement)
{
    if (placement)
        *placement = (quire_placement){0};
    return qi_fail_null(call, argument);
}

quire_result quire_space_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                  uint64_t user, quire_placement *placement)
{
    if (!space || !placement)
        return refuse_null("quire_space_allocate", !space ? "space" : "placement", placement);
    return space->allocate_range(space, size, alignment, user, QI_EXHAUSTIVE, placement);
}

quire_result quire_space_allocate_with(quire_space *space, const quire_range_options *options,
                                       quire_placement *placement)
{
    if (!space || !options || !placement)
        return refuse_null("quire_space_allocate_with",
                           !space     ? "space"
                           : !options ? "options"
                                      : "placement",
                           placement);
    *placement = (quire_placement){0};
    quire_result result = qi_check_unused(options, "quire_range_options");
    if (result)
        return result;
    if (options->upper && !space->fit->has_upper_end)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "only the linear fit has an upper end");
    if (options->lowest && !space->fit->has_lowest)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "only the segregated and first fits place at the lowest address");
    uint32_t flags = (options->bounded ? 0 : QI_EXHAUSTIVE) | (options->optimal ? QI_OPTIMAL : 0) |
                     (options->upper ? QI_UPPER : 0);
    if (options->lowest) /* the hot calls of the segregated fit know only the direct choice */
        return qi_space_allocate(space, options->size, options->alignment, options->user,
                                 flags | QI_EXHAUSTIVE | QI_LOWEST, placement);
    return space->allocate_range(space, options->size, options->alignment, options->user, flags,
                                 placement);
}

/* Zeroes the placements except their user values. */
static void zero(quire_placement *placements, uint64_t count)
{
    for (uint64_t i = 0; placements && i < count; i++)
        placements[i] = (quire_placement){.user = placements[i].user};
}

quire_result quire_space_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                        quire_placement *placements, uint64_t count)
{
    zero(placements, count);
    if (!space || (!placements && count))
        return qi_fail_null("quire_space_allocate_batch", !space ? "space" : "placements");
    quire_result result =
        qi_space_allocate_batch(space, size, alignment, QI_EXHAUSTIVE, placements, count);
    if (!result)
        return QUIRE_SUCCESS;
    zero(placements, count);
    if (result == QUIRE_ERROR_NO_SPACE)
        return qi_space_no_room_for(space, count, size, alignment);
    return result;
}

/* ---- free and look-up --------------------------------------------------------------------- */

quire_result quire_space_free(quire_space *space, quire_range range)
{
    return space ? space->free_range(space, range) : qi_fail_null("quire_space_free", "space");
}

quire_result quire_space_free_batch(quire_space *space, const quire_range *ranges, uint64_t count)
{
    if (!space || (!ranges && count))
        return qi_fail_null("quire_space_free_batch", !space ? "space" : "ranges");
    return qi_space_free_batch(space, ranges, count);
}

quire_result quire_space_get(const quire_space *space, quire_range range,
                             quire_placement *placement)
{
    if (!placement)
        return qi_fail_null("quire_space_get", "placement");
    *placement = (quire_placement){0};
    return space ? qi_space_get(space, range, placement) : qi_fail_null("quire_space_get", "space");
}

quire_result quire_space_set_user(quire_space *space, quire_range range, uint64_t user)
{
    return space ? qi_space_set_user(space, range, user)
                 : qi_fail_null("quire_space_set_user", "space");
}

/* ---- inspection --------------------------------------------------------------------------- */

quire_result quire_space_get_stats(const quire_space *space, quire_space_stats *stats)
{
    if (stats)
        *stats = (quire_space_stats){0};
    if (!space || !stats)
        return qi_fail_null("quire_space_get_stats", !space ? "space" : "stats");
    qi_space_get_stats(space, stats);
    return QUIRE_SUCCESS;
}

quire_result quire_space_walk(const quire_space *space,
                              bool (*visit)(void *user, const quire_space_item *item), void *user)
{
    if (!space || !visit)
        return qi_fail_null("quire_space_walk", !space ? "space" : "visit");
    qi_space_walk(space, visit, user);
    return QUIRE_SUCCESS;
}

quire_result quire_space_check(const quire_space *space)
{
    if (!space)
        return qi_fail_null("quire_space_check", "space");
    return qi_space_check(space);
}
