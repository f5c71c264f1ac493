/*
 * space.c - creates, destroys, clears and trims a space, and answers which sizes a fit hands out.
 * This is the only file of the common code that names the fits.
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
    if (space->pool.spare < nodes * space->region_count) /* almost all numbers are retired */
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
