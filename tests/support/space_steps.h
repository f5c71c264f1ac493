/*
 * space_steps.h - steps that tests of spaces share. Each of them must succeed.
 */
#ifndef QUIRE_TESTS_SUPPORT_SPACE_STEPS_H
#define QUIRE_TESTS_SUPPORT_SPACE_STEPS_H

#include "quire/space.h"
#include "tests/support/check.h"

static inline quire_placement take_bytes(quire_space *space, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, 1, 0, &at));
    return at;
}

static inline quire_space_stats stats_of(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(space, &stats));
    return stats;
}

static inline uint64_t largest_free_of(const quire_space *space)
{
    return stats_of(space).largest_free;
}

/* Checks the records, then destroys the space. */
static inline void end_space(quire_space *space)
{
    CHECK_OK(quire_space_check(space));
    quire_space_destroy(&space);
}

#endif
