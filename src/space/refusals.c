/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * refusals.c - a refused size lowers the limit of its alignment and of all larger ones. The
 * sentence of a refusal says whether the range can never fit, or the space is exhausted or
 * fragmented, and the largest free range. Sizes have no unit, because a space may divide anything.
 */
#include "src/space/refusals.h"

#include "src/base/result.h"
#include "src/space/space.h"

static void reset(qi_refusals *refusals)
{
    for (uint32_t i = 0; i < QI_ALIGNMENT_COUNT; i++)
        refusals->least_size[0][i] = refusals->least_size[1][i] = UINT64_MAX;
    refusals->any = true;
}

void qi_refusals_add(qi_refusals *refusals, uint64_t size, uint64_t alignment, bool optimal)
{
    if (!refusals->any)
        reset(refusals);
    uint64_t *least = refusals->least_size[optimal];
    for (uint32_t i = qi_lowest_bit(alignment); i < QI_ALIGNMENT_COUNT; i++)
        if (size < least[i])
            least[i] = size;
}

/* ---- the sentence ------------------------------------------------------------------------- */

static uint64_t free_bytes(const quire_space *space)
{
    return space->region_bytes - space->live_bytes - space->padding_bytes;
}

/*
 * The numbers of the last refusal remain right while the space remembers refusals, which every free
 * ends, and has as many free bytes, which every allocation changes. A program that repeats a
 * refused request therefore pays for the look-up once.
 */
static const qi_room *room_of(quire_space *space)
{
    uint64_t free = free_bytes(space), largest = 0;
    if (space->refusals.any && space->room.free == free)
        return &space->room;
    for (uint32_t i = 0; i < space->region_capacity; i++)
        if (space->regions[i].used && space->regions[i].size > largest)
            largest = space->regions[i].size;
    space->room = (qi_room){
        .free = free, .largest_free = space->fit->largest_free(space), .largest_region = largest};
    return &space->room;
}

/* Bytes of the block that serves the request, or of the range. */
static uint64_t needed_for(const quire_space *space, uint64_t size)
{
    uint64_t block = space->fit->block_size ? space->fit->block_size(space, size) : size;
    return block ? block : UINT64_MAX;
}

static quire_result never_fits(const quire_space *space, uint64_t size, uint64_t largest)
{
    uint64_t needed = needed_for(space, size);
    if (!space->region_count)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE, "no free range of %u: the space has no region",
                            size);
    if (size <= largest)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                            "%u can never fit: it needs a block of %u, and the largest region has "
                            "%u",
                            size, needed, largest);
    if (space->region_count == 1)
        return qi_fail_with(QUIRE_ERROR_NO_SPACE, "%u can never fit: the space has %u", size,
                            largest);
    return qi_fail_with(QUIRE_ERROR_NO_SPACE, "%u can never fit: the largest of %u region%s has %u",
                        size, space->region_count, largest);
}

/* The largest free range is left out: a bounded search must not take longer for its sentence. */
static quire_result refuse_bounded(const quire_space *space, uint64_t size, uint64_t alignment)
{
    return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                        "the bounded search found no free range of %u at a multiple of %u; %u free "
                        "in %u region%s",
                        size, alignment, free_bytes(space), space->region_count);
}

quire_result qi_space_no_room(quire_space *space, uint64_t size, uint64_t alignment, uint32_t flags)
{
    static const char exhausted[] = "no free range of %u at a multiple of %u: the space is "
                                    "exhausted, with %u free in %u region%s; largest free range %u";
    static const char fragmented[] =
        "no free range of %u at a multiple of %u: the space is "
        "fragmented, with %u free in %u region%s; largest free range %u";
    static const char misplaced[] =
        "no free range of %u at a multiple of %u: none that is large enough "
        "has such a place, with %u free in %u region%s; largest free range %u";
    if (flags & QI_TRY)
        return QUIRE_ERROR_NO_SPACE;
    if (!(flags & QI_EXHAUSTIVE) && size <= space->region_bytes)
        return refuse_bounded(space, size, alignment);
    const qi_room *room = room_of(space);
    if (needed_for(space, size) > room->largest_region)
        return never_fits(space, size, room->largest_region);
    const char *pattern = size > room->free           ? exhausted
                          : size > room->largest_free ? fragmented
                                                      : misplaced;
    return qi_fail_with(QUIRE_ERROR_NO_SPACE, pattern, size, alignment, room->free,
                        space->region_count, room->largest_free);
}

quire_result qi_space_no_room_for(quire_space *space, uint64_t count, uint64_t size,
                                  uint64_t alignment)
{
    const qi_room *room = room_of(space);
    if (needed_for(space, size) > room->largest_region)
        return never_fits(space, size, room->largest_region);
    return qi_fail_with(QUIRE_ERROR_NO_SPACE,
                        "no room for %u range%s of %u at a multiple of %u; %u free in %u region%s, "
                        "largest free range %u",
                        count, size, alignment, room->free, space->region_count,
                        room->largest_free);
}
