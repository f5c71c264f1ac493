/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * range.c - allocates, frees and looks up ranges for every fit: checks the arguments, says in the
 * error which of them is wrong, and calls the fit. Several equal ranges, all or none, take one
 * search for up to QI_MAX_BATCH of them if the fit has a batch search, and single allocations
 * otherwise.
 */
#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/space/space.h"

/* Ranges of a batch whose records are prefetched together; they all stay in the first cache. */
enum { PREFETCH_GROUP = 16 };

static quire_result refuse_request(const quire_space *space, uint64_t size, uint64_t alignment)
{
    if (!size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the size of the range is 0");
    if (!qi_is_power_of_two(alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            alignment);
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                        "alignment %u is above the space's fit.max_alignment, %u", alignment,
                        space->max_alignment);
}

/*
 * For fits that do not examine the neighbours of a range: an image of optimal tiling gets whole
 * stretches of the granularity, so that nothing else shares one. Returns true on overflow.
 */
static bool widening_overflows(const quire_space *space, uint64_t *size, uint64_t *alignment)
{
    if (*alignment <= space->kind_mask)
        *alignment = space->kind_mask + 1;
    return qi_align_up_overflows(*size, space->kind_mask + 1, size);
}

/* See usual_free in space.h. */
static quire_result forget_and_free(quire_space *space, quire_range range)
{
    qi_space_forget_refusals(space);
    return space->free_range(space, range);
}

quire_result qi_space_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t flags, quire_placement *placement)
{
    *placement = (quire_placement){0};
    alignment += !alignment; /* 0 means 1 */
    if (!size || !qi_is_power_of_two(alignment) || alignment > space->max_alignment)
        return refuse_request(space, size, alignment);
    bool optimal = flags & QI_OPTIMAL && space->kind_mask;
    if (optimal && !space->fit->keeps_kinds_apart) {
        optimal = false;
        if (widening_overflows(space, &size, &alignment))
            return qi_space_no_room(space, size, alignment, flags);
    }
    if (qi_refusals_cover(&space->refusals, size, alignment, optimal))
        return qi_space_no_room(space, size, alignment, flags | QI_EXHAUSTIVE);
    quire_result result = space->fit->allocate(space, size, alignment, user, flags, placement);
    if (result == QUIRE_ERROR_NO_SPACE && flags & QI_EXHAUSTIVE && !space->fit->refuses_at_once) {
        if (flags & QI_TRY) /* no sentence: the numbers of an earlier one may be out of date */
            space->room.free = UINT64_MAX;
        qi_refusals_add(&space->refusals, size, alignment, optimal);
        space->free_range = forget_and_free;
    }
    return result;
}

quire_result qi_space_allocate_elsewhere(quire_space *space, const qi_avoided *avoided,
                                         uint64_t size, uint64_t alignment, uint64_t user,
                                         uint32_t flags, quire_placement *placement)
{
    *placement = (quire_placement){0};
    if (size > space->region_bytes || alignment > space->max_alignment)
        return qi_space_no_room(space, size, alignment, QI_TRY);
    qi_space_flush_deferred(space);
    return space->fit->allocate_elsewhere(space, avoided, size, alignment, user, flags, placement);
}

/* ---- free --------------------------------------------------------------------------------- */

void qi_space_set_free(quire_space *space,
                       quire_result (*free_range)(quire_space *space, quire_range range))
{
    space->usual_free = free_range;
    if (!space->refusals.any)
        space->free_range = free_range;
}

/* Reports why a handle names no live range of this space. */
static quire_result refuse_range(const quire_space *space, quire_range range)
{
    if (!range.id)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the range is {0}, which names none");
    if (qi_handle_tag(range.id) != space->tag)
        return qi_fail_with(QUIRE_ERROR_FOREIGN_HANDLE, "range %x belongs to another space",
                            range.id);
    return qi_fail_with(QUIRE_ERROR_STALE_HANDLE, "range %x is not live: it was freed before",
                        range.id);
}

static bool is_own(const quire_space *space, quire_range range)
{
    return qi_handle_tag(range.id) == space->tag;
}

quire_result qi_space_free(quire_space *space, quire_range range)
{
    if (is_own(space, range) &&
        space->fit->release(space, qi_handle_slot(range.id), qi_handle_generation(range.id)))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}

/* In groups, so that a prefetched record is still in the cache when its range is released. */
static void release_all(quire_space *space, const quire_range *ranges, uint64_t count)
{
    const qi_fit *fit = space->fit;
    for (uint64_t begin = 0; begin < count; begin += PREFETCH_GROUP) {
        uint64_t end = count - begin < PREFETCH_GROUP ? count : begin + PREFETCH_GROUP;
        for (uint64_t i = begin; fit->prefetch && i < end; i++)
            fit->prefetch(space, qi_handle_slot(ranges[i].id));
        for (uint64_t i = begin; i < end; i++)
            fit->release_claimed(space, qi_handle_slot(ranges[i].id));
    }
}

/* Claims every range before it releases the first: a range named twice fails the second claim. */
quire_result qi_space_free_batch(quire_space *space, const quire_range *ranges, uint64_t count)
{
    const qi_fit *fit = space->fit;
    uint64_t claimed = 0;
    while (claimed < count && is_own(space, ranges[claimed]) &&
           fit->claim(space, qi_handle_slot(ranges[claimed].id),
                      qi_handle_generation(ranges[claimed].id)))
        claimed++;
    if (claimed < count) {
        const quire_range bad = ranges[claimed];
        bool occurs_twice = false;
        while (claimed-- > 0) {
            occurs_twice |= ranges[claimed].id == bad.id;
            fit->unclaim(space, qi_handle_slot(ranges[claimed].id));
        }
        if (occurs_twice)
            return qi_fail_with(QUIRE_ERROR_STALE_HANDLE,
                                "range %x occurs twice in the list: nothing is freed", bad.id);
        return refuse_range(space, bad);
    }
    qi_space_forget_refusals(space);
    release_all(space, ranges, count);
    return QUIRE_SUCCESS;
}

/* ---- look-up ------------------------------------------------------------------------------ */

quire_result qi_space_get(const quire_space *space, quire_range range, quire_placement *placement)
{
    *placement = (quire_placement){0};
    if (is_own(space, range) &&
        space->fit->get(space, qi_handle_slot(range.id), qi_handle_generation(range.id), placement))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}

/* Allocates storage only for a live range, so that a stale handle allocates nothing. */
quire_result qi_space_set_user(quire_space *space, quire_range range, uint64_t user)
{
    uint32_t slot = qi_handle_slot(range.id), generation = qi_handle_generation(range.id);
    quire_placement at;
    if (is_own(space, range) && space->fit->reserve_user &&
        space->fit->get(space, slot, generation, &at)) {
        quire_result result = space->fit->reserve_user(space, slot, user);
        if (result)
            return result;
    }
    if (is_own(space, range) && space->fit->set_user(space, slot, generation, user))
        return QUIRE_SUCCESS;
    return refuse_range(space, range);
}

/* ---- several at once ---------------------------------------------------------------------- */

/* Frees the first `count` ranges, the newest first. */
static void free_first(quire_space *space, quire_placement *placements, uint64_t count)
{
    while (count-- > 0)
        qi_ignore(
            space->free_range(space, placements[count].range)); /* live: allocated by this call */
}

static quire_result one_by_one(quire_space *space, uint64_t size, uint64_t alignment,
                               uint32_t flags, quire_placement *placements, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t user = placements[i].user;
        quire_result result =
            space->allocate_range(space, size, alignment, user, flags | QI_TRY, &placements[i]);
        if (result) { /* allocate_range zeroed the placement */
            placements[i].user = user;
            free_first(space, placements, i);
            return result;
        }
    }
    return QUIRE_SUCCESS;
}

/* Allocates up to QI_MAX_BATCH ranges, all or none. */
static quire_result together(quire_space *space, uint64_t size, uint64_t alignment, uint32_t flags,
                             quire_placement *placements, uint32_t count)
{
    alignment += !alignment;
    bool is_valid = size && alignment <= space->max_alignment && qi_is_power_of_two(alignment);
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (count > 1 && is_valid && space->fit->allocate_batch) {
        uint64_t user = placements[0].user;
        result = space->fit->allocate_batch(space, size, alignment, count, placements);
        if (result)
            placements[0].user = user;
    }
    if (result == QUIRE_ERROR_NO_SPACE)
        result = one_by_one(space, size, alignment, flags, placements, count);
    return result;
}

quire_result qi_space_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                     uint32_t flags, quire_placement *placements, uint64_t count)
{
    for (uint64_t done = 0, part; done < count; done += part) {
        part = count - done < QI_MAX_BATCH ? count - done : QI_MAX_BATCH;
        quire_result result =
            together(space, size, alignment, flags, placements + done, (uint32_t)part);
        if (result) {
            free_first(space, placements, done);
            return result;
        }
    }
    return QUIRE_SUCCESS;
}
