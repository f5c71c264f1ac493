/*
 * space.c - the public face of a space: checks every argument, keeps the regions and their places
 * on the line, and hands the rest to the fit. No lock, no log, no backend.
 */
#include "src/space/fit.h"

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"

/* Records are given back on their own once fewer than one in TRIM_FRACTION is in use. */
enum { FIRST_REGIONS = 4, TRIM_FRACTION = 8 };

/* Ranges of a batch whose records are fetched together. */
enum { FETCH_GROUP = 16 };

static const uint64_t DEFAULT_LARGEST_ALIGNMENT = UINT64_C(2) << 20;
static const uint64_t MOST_ALIGNMENT = UINT64_C(1) << 30;

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

quire_result qi_space_no_room(const quire_space *space, uint64_t size, uint64_t alignment,
                              uint32_t how)
{
    if (how & QI_TRY)
        return QUIRE_ERROR_NO_SPACE;
    return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                        "no free range for %b at a multiple of %u; %b are free in %u regions", size,
                        alignment, space->region_bytes - space->live_bytes - space->padding_bytes,
                        space->region_count);
}

quire_result qi_space_damaged(const char *what, uint32_t node)
{
    return qi_fail_text(QUIRE_ERROR_CORRUPTED, "space: %s (record %u)", what, node);
}

/* ---- creation ----------------------------------------------------------------------------- */

static quire_space_options resolve(const quire_space_options *options)
{
    quire_space_options out = options ? *options : (quire_space_options){0};
    const qi_fit *fit = fit_by_id(out.fit);
    if (!out.granule && fit)
        out.granule = fit->default_granule;
    if (!out.largest_alignment)
        out.largest_alignment = DEFAULT_LARGEST_ALIGNMENT;
    qi_raise(&out.largest_alignment, out.buffer_image_granularity);
    return out;
}

static quire_result validate(const quire_space_options *options)
{
    const qi_fit *fit = fit_by_id(options->fit);
    if (!fit)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no fit %u",
                            (uint64_t)options->fit);
    if (!qi_is_power_of_two(options->granule) || options->granule > fit->largest_granule)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "granule %u: this fit takes a power of two up to %u", options->granule,
                            fit->largest_granule);
    if (!qi_is_power_of_two(options->largest_alignment) ||
        options->largest_alignment > MOST_ALIGNMENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest alignment %u is not a power of two up to %b",
                            options->largest_alignment, MOST_ALIGNMENT);
    if ((options->least_fragmentation || options->deferred_coalescing || options->slabs) &&
        !fit->has_segregated_options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "least_fragmentation, deferred_coalescing and "
                                                     "slabs go with the segregated fit");
    if (options->buffer_image_granularity &&
        (!qi_is_power_of_two(options->buffer_image_granularity) ||
         options->buffer_image_granularity > MOST_ALIGNMENT))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "buffer-image granularity %u is not a power of two up to %b",
                            options->buffer_image_granularity, MOST_ALIGNMENT);
    return qi_check_reserved(options, "quire_space_options");
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
    space->largest_alignment = options->largest_alignment;
    if (options->buffer_image_granularity > options->granule)
        space->kind_mask = options->buffer_image_granularity - 1;
    space->tag = qi_tag_take();
    uint64_t limit = 0;
    if (qi_multiply_overflows(fit->most_granules, options->granule, &limit))
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

/*
 * A caller that only reads sees a space in which nothing is put off. Every space comes from the
 * heap, so that a pointer to a constant one is no promise that it cannot be written.
 */
static void settle(const quire_space *space)
{
    if (space->fit->settle)
        space->fit->settle((quire_space *)(uintptr_t)space);
}

/* ---- regions ------------------------------------------------------------------------------ */

/* The lowest region number not in use, with room for it made. */
static quire_result next_region(quire_space *space, uint32_t *number)
{
    uint32_t i = 0;
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
    *number = i;
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
    if (space->fit->most_regions && space->region_count >= space->fit->most_regions)
        return qi_fail_with(QUIRE_ERROR_WRONG_STATE,
                            "the space has %u region, as many as its fit takes: remove it before "
                            "adding another",
                            space->region_count);
    uint32_t number = 0;
    uint64_t start = 0;
    quire_result result = next_region(space, &number);
    if (!result)
        result =
            qi_line_place(&space->line, &space->host, size, base, space->largest_alignment, &start);
    if (result)
        return result;
    space->regions[number] = (qi_region){.start = start, .size = size, .used = true};
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
    settle(space);
    if (space->fit->shed)
        space->fit->shed(space);
    if (!space->fit->region_is_empty(space, region))
        return qi_fail_with(QUIRE_ERROR_BUSY, "region %u still has live ranges", region);
    space->fit->remove_region(space, region);
    qi_line_remove(&space->line, space->regions[region].start);
    space->regions[region].used = false;
    space->region_count--;
    space->region_bytes -= space->regions[region].size;
    if (qi_pool_used(&space->pool) < space->pool.capacity / TRIM_FRACTION)
        space->fit->trim(space);
    return QUIRE_SUCCESS;
}

/* ---- ranges ------------------------------------------------------------------------------- */

static quire_result refuse_request(const quire_space *space, uint64_t size, uint64_t alignment)
{
    if (!size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a range of size 0 is asked for");
    if (!qi_is_power_of_two(alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            alignment);
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                        "alignment %u is above the space's largest, %u", alignment,
                        space->largest_alignment);
}

/*
 * For fits that do not look at what lies beside a range: an image of optimal tiling takes whole
 * stretches of the granularity, which nothing else then shares.
 */
static quire_result allocate_apart(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint64_t user, uint32_t how, quire_placement *placement)
{
    uint64_t whole = size;
    if (alignment <= space->kind_mask)
        alignment = space->kind_mask + 1;
    if (qi_align_up_overflows(size, space->kind_mask + 1, &whole))
        return qi_space_no_room(space, size, alignment, how);
    return space->fit->allocate(space, whole, alignment, user, how, placement);
}

quire_result qi_space_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t how, quire_placement *placement)
{
    *placement = (quire_placement){0};
    alignment += !alignment;
    if (!size || !qi_is_power_of_two(alignment) || alignment > space->largest_alignment)
        return refuse_request(space, size, alignment);
    if (how & QI_OPTIMAL && space->kind_mask && !space->fit->keeps_kinds_apart)
        return allocate_apart(space, size, alignment, user, how, placement);
    return space->fit->allocate(space, size, alignment, user, how, placement);
}

static quire_result refuse_null(quire_placement *placement)
{
    if (placement)
        *placement = (quire_placement){0};
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                   "quire_space_allocate: space, options or placement is null");
}

quire_result quire_space_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                  uint64_t user, quire_placement *placement)
{
    if (!space || !placement)
        return refuse_null(placement);
    return space->allocate_range(space, size, alignment, user, 0, placement);
}

quire_result quire_space_allocate_exhaustive(quire_space *space, uint64_t size, uint64_t alignment,
                                             uint64_t user, quire_placement *placement)
{
    if (!space || !placement)
        return refuse_null(placement);
    return space->allocate_range(space, size, alignment, user, QI_EXHAUSTIVE, placement);
}

quire_result quire_space_allocate_with(quire_space *space, const quire_range_options *options,
                                       quire_placement *placement)
{
    if (!space || !options || !placement)
        return refuse_null(placement);
    *placement = (quire_placement){0};
    quire_result result = qi_check_reserved(options, "quire_range_options");
    if (result)
        return result;
    if (options->upper && !space->fit->has_upper_end)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "only the linear fit has an upper end");
    uint32_t how = (options->exhaustive ? QI_EXHAUSTIVE : 0) | (options->optimal ? QI_OPTIMAL : 0) |
                   (options->upper ? QI_UPPER : 0);
    return space->allocate_range(space, options->size, options->alignment, options->user, how,
                                 placement);
}

static quire_result refuse_range(const quire_space *space, quire_range range)
{
    if (!space || !range.id)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the space is null or the range is {0}, none");
    if (qi_handle_tag(range.id) != space->tag)
        return qi_fail_with(QUIRE_ERROR_FOREIGN_HANDLE, "range %x belongs to another space",
                            range.id);
    return qi_fail_with(QUIRE_ERROR_STALE_HANDLE, "range %x is not live: it was freed before",
                        range.id);
}

static bool is_ours(const quire_space *space, quire_range range)
{
    return space && qi_handle_tag(range.id) == space->tag;
}

quire_result quire_space_free(quire_space *space, quire_range range)
{
    return space ? space->free_range(space, range) : refuse_range(space, range);
}

quire_result qi_space_free(quire_space *space, quire_range range)
{
    if (is_ours(space, range) &&
        space->fit->release(space, qi_handle_slot(range.id), qi_handle_generation(range.id)))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}

/* In groups: what one asks for is still in the cache when it is its turn. */
static void release_all(quire_space *space, const quire_range *ranges, uint64_t count)
{
    const qi_fit *fit = space->fit;
    for (uint64_t begin = 0; begin < count; begin += FETCH_GROUP) {
        uint64_t end = count - begin < FETCH_GROUP ? count : begin + FETCH_GROUP;
        for (uint64_t i = begin; fit->fetch && i < end; i++)
            fit->fetch(space, qi_handle_slot(ranges[i].id));
        for (uint64_t i = begin; i < end; i++)
            fit->release_claimed(space, qi_handle_slot(ranges[i].id));
    }
}

quire_result quire_space_free_batch(quire_space *space, const quire_range *ranges, uint64_t count)
{
    if (!space || (!ranges && count))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_space_free_batch: space or ranges is null");
    const qi_fit *fit = space->fit;
    uint64_t claimed = 0;
    while (claimed < count && is_ours(space, ranges[claimed]) &&
           fit->claim(space, qi_handle_slot(ranges[claimed].id),
                      qi_handle_generation(ranges[claimed].id)))
        claimed++;
    if (claimed < count) {
        quire_range bad = ranges[claimed];
        while (claimed-- > 0)
            fit->unclaim(space, qi_handle_slot(ranges[claimed].id));
        return refuse_range(space, bad);
    }
    release_all(space, ranges, count);
    return QUIRE_SUCCESS;
}

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
    settle(space);
    space->fit->clear(space);
    if (!space->fit->clears_at_once)
        renumber(space);
    return QUIRE_SUCCESS;
}

quire_result quire_space_get(const quire_space *space, quire_range range,
                             quire_placement *placement)
{
    if (!placement)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_get: placement is null");
    *placement = (quire_placement){0};
    if (is_ours(space, range) &&
        space->fit->get(space, qi_handle_slot(range.id), qi_handle_generation(range.id), placement))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}

quire_result quire_space_set_user(quire_space *space, quire_range range, uint64_t user)
{
    if (is_ours(space, range) && space->fit->reserve_user) {
        quire_result result = space->fit->reserve_user(space, user);
        if (result)
            return result;
    }
    if (is_ours(space, range) &&
        space->fit->set_user(space, qi_handle_slot(range.id), qi_handle_generation(range.id), user))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}

/* ---- figures ------------------------------------------------------------------------------ */

quire_result quire_space_get_stats(const quire_space *space, quire_space_stats *stats)
{
    if (stats)
        *stats = (quire_space_stats){0};
    if (!space || !stats)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_space_get_stats: space or stats is null");
    settle(space);
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
        .most_looked_at = space->most_looked_at,
    };
    return QUIRE_SUCCESS;
}

bool qi_space_walk_region(const quire_space *space, uint32_t region,
                          bool (*visit)(void *user, const quire_space_item *item), void *user)
{
    settle(space);
    return space->fit->walk(space, region, visit, user);
}

quire_result quire_space_walk(const quire_space *space,
                              bool (*visit)(void *user, const quire_space_item *item), void *user)
{
    if (!space || !visit)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_walk: space or visit is null");
    for (uint32_t i = 0; i < space->region_capacity; i++)
        if (space->regions[i].used && !qi_space_walk_region(space, i, visit, user))
            break;
    return QUIRE_SUCCESS;
}

/* Every region in use has its place on the line, and nothing else is there. */
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
        return qi_space_damaged("the regions are not as many as counted", used);
    return QUIRE_SUCCESS;
}

quire_result quire_space_check(const quire_space *space)
{
    if (!space)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_space_check: space is null");
    if (space->pool.top > space->pool.capacity)
        return qi_space_damaged("more numbers are in use than there are records", space->pool.top);
    settle(space);
    quire_result result = space->fit->check(space);
    if (!result)
        result = check_places(space);
    if (result)
        return result;
    uint32_t number = 0;
    const char *damage = qi_pool_damage(&space->pool, space->fit->in_use, space, &number);
    return damage ? qi_space_damaged(damage, number) : QUIRE_SUCCESS;
}

void quire_space_trim(quire_space *space)
{
    if (!space)
        return;
    settle(space);
    space->fit->trim(space);
}

bool qi_space_region_overflows(const quire_space *space, uint64_t size, uint64_t alignment,
                               uint64_t base, uint64_t *bytes)
{
    uint64_t step = base > space->granule ? base : space->granule; /* regions begin at these */
    uint64_t range = 0, wanted = alignment > step ? alignment : step;
    if (!space->fit->block_size) {
        if (qi_align_up_overflows(size, space->granule, &range))
            return true;
    } else {
        range = space->fit->block_size(space, size);
        if (!range)
            return true;
        if (step < space->largest_alignment && range > wanted)
            wanted = range;
    }
    return qi_add_overflows(range, wanted - base, bytes);
}

uint64_t qi_space_line_left(const quire_space *space)
{
    uint64_t left = space->line.limit - qi_line_extent(&space->line);
    uint64_t step = space->largest_alignment; /* places lie apart by whole granules */
    uint64_t padding = step > space->granule ? step - space->granule : 0;
    return left > padding ? left - padding : 0;
}

uint64_t qi_space_line_most(const quire_space *space)
{
    uint64_t behind = space->line.limit - qi_line_extent(&space->line);
    return space->line.largest_gap > behind ? space->line.largest_gap : behind;
}
