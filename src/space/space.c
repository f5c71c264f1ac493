/*
 * space.c - the public face of a space: checks every argument, keeps the regions and their places
 * on the line, and hands the rest to the fit. Its ranges are in range.c, what it tells of itself in
 * space_view.c. No lock, no log, no backend.
 */
#include "src/space/fit.h"

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"

/* Records are given back on their own once fewer than one in TRIM_FRACTION is in use. */
enum { FIRST_REGIONS = 4, TRIM_FRACTION = 8 };

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

static quire_space_options resolve(const quire_space_options *options)
{
    quire_space_options out = options ? *options : (quire_space_options){0};
    const qi_fit *fit = fit_by_id(out.fit);
    if (!out.granule && fit)
        out.granule = fit->default_granule;
    if (!out.max_alignment)
        out.max_alignment = DEFAULT_LARGEST_ALIGNMENT;
    qi_raise(&out.max_alignment, out.buffer_image_granularity);
    return out;
}

static quire_result validate(const quire_space_options *options)
{
    const qi_fit *fit = fit_by_id(options->fit);
    if (!fit)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no fit %u",
                            (uint64_t)options->fit);
    if (!qi_is_power_of_two(options->granule) || options->granule > fit->max_granule)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "granule %u: this fit takes a power of two up to %u", options->granule,
                            fit->max_granule);
    if (!qi_is_power_of_two(options->max_alignment) || options->max_alignment > MAX_ALIGNMENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest alignment %u is not a power of two up to %b",
                            options->max_alignment, MAX_ALIGNMENT);
    if ((options->least_fragmentation || options->deferred_coalescing || options->slabs) &&
        !fit->has_segregated_options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "least_fragmentation, deferred_coalescing and "
                                                     "slabs go with the segregated fit");
    if (options->buffer_image_granularity &&
        (!qi_is_power_of_two(options->buffer_image_granularity) ||
         options->buffer_image_granularity > MAX_ALIGNMENT))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "buffer-image granularity %u is not a power of two up to %b",
                            options->buffer_image_granularity, MAX_ALIGNMENT);
    return qi_check_unused(options, "quire_space_options");
}

static quire_result make(const quire_space_options *options, quire_space **out)
{
    const qi_fit *fit = fit_by_id(options->fit);
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
    space->granule = options->granule;
    space->max_alignment = options->max_alignment;
    if (options->buffer_image_granularity > options->granule)
        space->kind_mask = options->buffer_image_granularity - 1;
    space->tag = qi_tag_take();
    uint64_t limit = 0;
    if (qi_multiply_overflows(fit->max_granules, options->granule, &limit))
        limit = UINT64_MAX;
    qi_line_init(&space->line, limit);
    space->allocate_range = qi_space_allocate;
    space->free_range = qi_space_free;
    result = fit->init(space, options);
    if (result) {
        qi_tag_give(space->tag);
        qi_host_release(&host, space, 1, fit->state_size);
        return result;
    }
    *out = space;
    return QUIRE_SUCCESS;
}

quire_result quire_space_create(const quire_space_options *options, quire_space **space)
{
    if (!space)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_create: space is null");
    *space = NULL;
    quire_space_options resolved = resolve(options);
    quire_result result = validate(&resolved);
    quire_space *made = NULL;
    if (!result)
        result = make(&resolved, &made);
    if (!result && resolved.size) {
        uint32_t region = 0;
        result = quire_space_add_region(made, resolved.size, 0, &region);
        if (result)
            quire_space_destroy(&made);
    }
    *space = made;
    return result;
}

void quire_space_destroy(quire_space **space)
{
    if (!space || !*space)
        return;
    quire_space *ending = *space;
    *space = NULL;
    ending->fit->finish(ending);
    qi_line_finish(&ending->line, &ending->host);
    qi_host_release(&ending->host, ending->regions, ending->region_capacity,
                    sizeof *ending->regions);
    qi_tag_give(ending->tag);
    qi_host host = ending->host;
    qi_host_release(&host, ending, 1, ending->fit->state_size);
}

/* ---- regions ------------------------------------------------------------------------------ */

/* The lowest region number not in use, with room for it made. */
static quire_result next_region(quire_space *space, uint32_t *number)
{
    uint32_t i = space->region_hint;
    if (space->region_count == space->region_capacity) {
        uint32_t old = space->region_capacity, capacity = old ? old * 2 : FIRST_REGIONS;
        qi_region *regions =
            qi_host_resize(&space->host, space->regions, old, capacity, sizeof *regions);
        if (!regions)
            return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for the records of %u regions", capacity);
        space->regions = regions;
        space->region_capacity = capacity;
        i = old;
    }
    while (space->regions[i].used)
        i++;
    *number = space->region_hint = i;
    return QUIRE_SUCCESS;
}

quire_result quire_space_add_region(quire_space *space, uint64_t size, uint64_t base,
                                    uint32_t *region)
{
    if (region)
        *region = 0;
    if (!space || !region)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_space_add_region: space or region is null");
    if (!size || size & (space->granule - 1) || base & (space->granule - 1))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u bytes at %x: both must be multiples of the granule %u, "
                            "and the size above 0",
                            size, base, space->granule);
    if (!qi_range_fits(base, size - 1, UINT64_MAX))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u bytes at %x reaches beyond the last address", size,
                            base);
    if (space->fit->max_regions && space->region_count >= space->fit->max_regions)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "the space has %u region, as many as its fit takes: remove it before "
                            "adding another",
                            space->region_count);
    uint32_t number = 0;
    uint64_t start = 0;
    quire_result result = next_region(space, &number);
    if (!result)
        result =
            qi_line_place(&space->line, &space->host, size, base, space->max_alignment, &start);
    if (result)
        return result;
    space->regions[number] = (qi_region){.start = start, .size = size, .base = base, .used = true};
    result = space->fit->add_region(space, number);
    if (result) {
        qi_line_remove(&space->line, start);
        space->regions[number].used = false;
        return result;
    }
    space->region_count++;
    space->region_bytes += size;
    *region = number;
    return QUIRE_SUCCESS;
}

quire_result quire_space_remove_region(quire_space *space, uint32_t region)
{
    if (!space || region >= space->region_capacity || !space->regions[region].used)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_remove_region: no region %u",
                            region);
    qi_space_settle(space);
    if (space->fit->shed)
        space->fit->shed(space);
    if (!space->fit->region_is_empty(space, region))
        return qi_fail_with(QUIRE_ERROR_BUSY, "region %u still has live ranges", region);
    space->fit->remove_region(space, region);
    qi_line_remove(&space->line, space->regions[region].start);
    space->regions[region].used = false;
    if (region < space->region_hint)
        space->region_hint = region;
    space->region_count--;
    space->region_bytes -= space->regions[region].size;
    if (qi_pool_used(&space->pool) < space->pool.capacity / TRIM_FRACTION)
        space->fit->trim(space);
    return QUIRE_SUCCESS;
}

uint64_t qi_space_free_at_end(const quire_space *space, uint32_t region)
{
    if (!space->fit->free_at_end)
        return 0;
    qi_space_settle(space);
    return space->fit->free_at_end(space, region);
}

static quire_result grow_region(quire_space *space, uint32_t number, uint64_t size)
{
    qi_region *region = &space->regions[number];
    qi_space_settle(space); /* what waits at the end merges with what is added there */
    quire_result result = qi_line_resize(&space->line, region->start, size);
    if (result)
        return result;
    result = space->fit->resize_region(space, number, size);
    if (result) {
        qi_ignore(qi_line_resize(&space->line, region->start, region->size));
        return result;
    }
    space->region_bytes += size - region->size;
    region->size = size;
    return QUIRE_SUCCESS;
}

static bool note_live_end(void *user, const quire_space_item *item)
{
    uint64_t *end = user;
    if (!item->is_free)
        *end = item->offset + item->size;
    return true;
}

/* A slab ends where its last slot does, live or free. */
static quire_result refuse_to_shrink(const quire_space *space, uint32_t number, uint64_t size)
{
    uint64_t live_end = 0;
    qi_space_walk_region(space, number, note_live_end, &live_end);
    if (live_end > size)
        return qi_fail_with(QUIRE_ERROR_BUSY,
                            "region %u cannot shrink to %u bytes: live ranges reach beyond, the "
                            "last one to %u",
                            number, size, live_end);
    return qi_fail_with(QUIRE_ERROR_BUSY,
                        "region %u cannot shrink to %u bytes: no live range reaches beyond, but "
                        "the slab of one does, to %u",
                        number, size,
                        space->regions[number].size - qi_space_free_at_end(space, number));
}

static quire_result shrink_region(quire_space *space, uint32_t number, uint64_t size)
{
    qi_region *region = &space->regions[number];
    uint64_t taken = region->size - size;
    if (qi_space_free_at_end(space, number) < taken && space->fit->shed)
        space->fit->shed(space);
    if (qi_space_free_at_end(space, number) < taken)
        return refuse_to_shrink(space, number, size);
    qi_ignore(space->fit->resize_region(space, number, size));
    qi_ignore(qi_line_resize(&space->line, region->start, size));
    space->region_bytes -= taken;
    region->size = size;
    return QUIRE_SUCCESS;
}

quire_result quire_space_resize_region(quire_space *space, uint32_t region, uint64_t size)
{
    if (!space || region >= space->region_capacity || !space->regions[region].used)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_resize_region: no region %u",
                            region);
    const qi_region *resized = &space->regions[region];
    if (!size || size & (space->granule - 1))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u bytes: that must be a multiple of the granule %u, "
                            "above 0",
                            size, space->granule);
    if (!qi_range_fits(resized->base, size - 1, UINT64_MAX))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region of %u bytes at %x reaches beyond the last address", size,
                            resized->base);
    if (!space->fit->resize_region)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "quire_space_resize_region: regions of this fit stay as they were added");
    if (size == resized->size)
        return QUIRE_SUCCESS;
    return size > resized->size ? grow_region(space, region, size)
                                : shrink_region(space, region, size);
}

/* ---- clearing and trimming ---------------------------------------------------------------- */

/*
 * Puts the regions of an empty space and their free ranges on the lowest numbers, so that a trim
 * can shrink the records. Needs no host memory: numbers are spare, and the tables were there.
 */
static void renumber(quire_space *space)
{
    uint64_t nodes = space->fit->region_nodes;
    if (space->pool.spare < nodes * space->region_count) /* nearly all are worn out */
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

quire_result quire_space_clear(quire_space *space)
{
    if (!space)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_clear: space is null");
    qi_space_settle(space);
    space->fit->clear(space);
    if (!space->fit->clears_at_once)
        renumber(space);
    return QUIRE_SUCCESS;
}

void quire_space_trim(quire_space *space)
{
    if (!space)
        return;
    qi_space_settle(space);
    if (!space->live_count) {
        if (space->fit->shed)
            space->fit->shed(space);
        renumber(space);
    }
    space->fit->trim(space);
}

/* ---- what fits ---------------------------------------------------------------------------- */

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
    uint64_t step = base > space->granule ? base : space->granule; /* regions begin at these */
    uint64_t range = 0, wanted = alignment > step ? alignment : step;
    if (qi_space_range_overflows(space, size, &range))
        return true;
    if (space->fit->block_size && step < space->max_alignment && range > wanted)
        wanted = range;
    return qi_add_overflows(range, wanted - base, bytes);
}

uint64_t qi_space_line_left(const quire_space *space)
{
    uint64_t left = space->line.limit - qi_line_extent(&space->line);
    uint64_t step = space->max_alignment; /* places lie apart by whole granules */
    uint64_t padding = step > space->granule ? step - space->granule : 0;
    return left > padding ? left - padding : 0;
}

uint64_t qi_space_line_max(const quire_space *space)
{
    uint64_t behind = space->line.limit - qi_line_extent(&space->line);
    return space->line.largest_gap > behind ? space->line.largest_gap : behind;
}
