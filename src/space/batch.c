/*
 * batch.c - allocates several equal ranges, all or none. Uses one search for up to QI_MAX_BATCH
 * ranges if the fit has a batch search, and single allocations otherwise.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/space/space.h"

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
