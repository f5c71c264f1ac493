/*
 * range.c - the ranges of a space: the public calls check every argument, name what is wrong with
 * it, and hand the rest to the fit.
 */
#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/space/fit.h"

/* Ranges of a batch whose records are fetched together. */
enum { FETCH_GROUP = 16 };

quire_result qi_space_no_room(const quire_space *space, uint64_t size, uint64_t alignment,
                              uint32_t how)
{
    if (how & QI_TRY)
        return QUIRE_ERROR_NO_SPACE;
    return qi_fail_with(
        QUIRE_ERROR_NO_SPACE,
        "no free range for %b at a multiple of %u; %b are free in %u region%s", size, alignment,
        space->region_bytes - space->live_bytes - space->padding_bytes, space->region_count);
}

static quire_result refuse_request(const quire_space *space, uint64_t size, uint64_t alignment)
{
    if (!size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a range of size 0 is asked for");
    if (!qi_is_power_of_two(alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            alignment);
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                        "alignment %u is above the space's largest, %u", alignment,
                        space->max_alignment);
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
    if (!size || !qi_is_power_of_two(alignment) || alignment > space->max_alignment)
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
    quire_result result = qi_check_unused(options, "quire_range_options");
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
    uint32_t slot = qi_handle_slot(range.id), generation = qi_handle_generation(range.id);
    quire_placement at;
    if (is_ours(space, range) && space->fit->reserve_user &&
        space->fit->get(space, slot, generation, &at)) {
        quire_result result = space->fit->reserve_user(space, slot, user);
        if (result)
            return result;
    }
    if (is_ours(space, range) && space->fit->set_user(space, slot, generation, user))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}
