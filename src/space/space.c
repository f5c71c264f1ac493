/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space.c - creates, destroys, clears and trims a space, answers which sizes a fit hands out, and
 * reports the state: statistics, a walk over the ranges, and the check of every record. This is the
 * only file of the common code that names the fits.
 */
#include "src/space/space.h"

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"

static const uint64_t DEFAULT_LARGEST_ALIGNMENT = UINT64_C(2) << 20;
static const uint64_t MAX_ALIGNMENT = UINT64_C(1) << 30;

static const qi_fit *fit_by_id(quire_fit fit)
{
    switch (fit) {
    case QUIRE_FIT_SEGREGATED:
        return &qi_segregated_fit;
    case QUIRE_FIT_FIRST:
        return &qi_first_fit;
    case QUIRE_FIT_BUDDY:
        return &qi_buddy_fit;
    case QUIRE_FIT_LINEAR:
        return &qi_linear_fit;
    }
    return NULL;
}

/* ---- creation ----------------------------------------------------------------------------- */

/*
 * The default granule: the smallest of the fit with which the whole size fits on the line. No
 * granule serves a size above the longest line; the least one then gives OUT_OF_RANGE for any size.
 */
static uint64_t granule_for(const qi_fit *fit, uint64_t size)
{
    if (!size)
        return fit->default_granule;
    uint64_t granule = fit->least_granule;
    while (granule < fit->max_granule && (size - 1) / granule >= fit->max_granules)
        granule *= 2;
    return (size - 1) / granule >= fit->max_granules ? fit->least_granule : granule;
}

/* Fills in the defaults. An unknown fit keeps granule 0; validate() reports it. */
static quire_space_options resolve(const quire_space_options *options)
{
    quire_space_options out = options ? *options : (quire_space_options){0};
    const qi_fit *fit = fit_by_id(out.fit.algorithm);
    if (!out.fit.granule && fit)
        out.fit.granule = granule_for(fit, out.size);
    if (!out.fit.max_alignment)
        out.fit.max_alignment = DEFAULT_LARGEST_ALIGNMENT;
    qi_raise(&out.fit.max_alignment, out.buffer_image_granularity);
    return out;
}

static quire_result validate(const quire_space_options *options)
{
    const qi_fit *fit = fit_by_id(options->fit.algorithm);
    if (!fit)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "fit %u does not exist",
                            (uint64_t)options->fit.algorithm);
    if (fit->max_granule == 1 && options->fit.granule != 1)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "granule %u: this fit takes only 1",
                            options->fit.granule);
    if (!qi_is_power_of_two(options->fit.granule) || options->fit.granule > fit->max_granule)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "granule %u: this fit takes a power of two up to %u",
                            options->fit.granule, fit->max_granule);
    if (!qi_is_power_of_two(options->fit.max_alignment) ||
        options->fit.max_alignment > MAX_ALIGNMENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest alignment %u is not a power of two up to %b",
                            options->fit.max_alignment, MAX_ALIGNMENT);
    if ((options->fit.least_fragmentation || options->fit.slabs) && !fit->has_segregated_options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "least_fragmentation and slabs need the segregated fit");
    if (options->buffer_image_granularity &&
        (!qi_is_power_of_two(options->buffer_image_granularity) ||
         options->buffer_image_granularity > MAX_ALIGNMENT))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "buffer-image granularity %u is not a power of two up to %b",
                            options->buffer_image_granularity, MAX_ALIGNMENT);
    quire_result result = qi_check_unused(&options->fit, "quire_fit_options");
    return result ? result : qi_check_unused(options, "quire_space_options");
}

/* Creates a space without regions from valid options. */
static quire_result make(const quire_space_options *options, quire_space **out)
{
    const qi_fit *fit = fit_by_id(options->fit.algorithm);
    qi_host host;
    quire_result result = qi_host_init(&host, options->host_memory);
    if (result)
        return result;
    quire_space *space = qi_host_allocate(&host, 1, fit->state_size);
    if (!space)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a space: %b",
                            fit->state_size);
    space->host = host;
    space->fit = fit;
    space->granule = options->fit.granule;
    space->max_alignment = options->fit.max_alignment;
    if (options->buffer_image_granularity > options->fit.granule)
        space->kind_mask = options->buffer_image_granularity - 1;
    space->tag = qi_tag_take();
    uint64_t limit = 0;
    if (qi_multiply_overflows(fit->max_granules, options->fit.granule, &limit))
        limit = UINT64_MAX;
    qi_line_init(&space->line, limit);
    space->allocate_range = qi_space_allocate;
    qi_space_set_free(space, qi_space_free);
    result = fit->init(space, options);
    if (result) {
        qi_tag_give(space->tag);
        qi_host_release(&host, space, 1, fit->state_size);
        return result;
    }
    *out = space;
    return QUIRE_SUCCESS;
}

quire_result qi_space_create(const quire_space_options *options, quire_space **space)
{
    *space = NULL;
    quire_space_options resolved = resolve(options);
    quire_result result = validate(&resolved);
    quire_space *made = NULL;
    if (!result)
        result = make(&resolved, &made);
    if (!result && resolved.size) {
        uint32_t region = 0;
        result = qi_space_add_region(made, resolved.size, 0, &region);
        if (result) {
            qi_space_destroy(made);
            made = NULL;
        }
    }
    *space = made;
    return result;
}

void qi_space_destroy(quire_space *space)
{
    if (!space)
        return;
    space->fit->finish(space);
    qi_line_finish(&space->line, &space->host);
    qi_host_release(&space->host, space->regions, space->region_capacity, sizeof *space->regions);
    qi_tag_give(space->tag);
    qi_host host = space->host; /* the space holds the callbacks that release it */
    qi_host_release(&host, space, 1, space->fit->state_size);
}

/* ---- clearing and trimming ---------------------------------------------------------------- */

/*
 * Moves the regions of an empty space and their free ranges to the lowest node numbers, so that a
 * trim can shrink the pool. Needs no host memory: the numbers are spare, and the tables of the fit
 * were large enough before.
 */
static void renumber(quire_space *space)
{
    uint64_t nodes = space->fit->region_nodes;
    if (space->hole_nodes ||                             /* a region would lose its holes */
        space->pool.spare < nodes * space->region_count) /* almost all numbers are retired */
        return;
    for (uint32_t i = 0; nodes && i < space->region_capacity; i++)
        if (space->regions[i].used) {
            space->fit->remove_region(space, i);
            space->regions[i].node = 0;
        }
    qi_pool_sort(&space->pool, space->fit->in_use, space);
    for (uint32_t i = 0; nodes && i < space->region_capacity; i++)
        if (space->regions[i].used)
            qi_ignore(space->fit->add_region(space, i));
}

void qi_space_clear(quire_space *space)
{
    qi_space_flush_deferred(space);
    qi_space_forget_refusals(space);
    space->fit->clear(space);
    if (!space->fit->clears_at_once)
        renumber(space);
}

void qi_space_trim(quire_space *space)
{
    qi_space_flush_deferred(space);
    if (!space->live_count) {
        if (space->fit->release_cached)
            space->fit->release_cached(space);
        renumber(space);
    }
    space->fit->trim(space);
}

/* ---- sizes -------------------------------------------------------------------------------- */

bool qi_space_range_overflows(const quire_space *space, uint64_t size, uint64_t *range)
{
    if (!space->fit->block_size)
        return qi_align_up_overflows(size, space->granule, range);
    *range = space->fit->block_size(space, size);
    return !*range;
}

bool qi_space_region_overflows(const quire_space *space, uint64_t size, uint64_t alignment,
                               uint64_t base, uint64_t *bytes)
{
    uint64_t step = base > space->granule ? base : space->granule; /* regions start at multiples */
    uint64_t range = 0, wanted = alignment > step ? alignment : step;
    if (qi_space_range_overflows(space, size, &range))
        return true;
    if (space->fit->block_size && step < space->max_alignment && range > wanted)
        wanted = range; /* a block is aligned to its own size */
    return qi_add_overflows(range, wanted - base, bytes);
}

/* ---- state -------------------------------------------------------------------------------- */

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
