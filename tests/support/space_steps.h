/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_steps.h - steps that tests of spaces share. Each of them must succeed.
 */
#ifndef QUIRE_TESTS_SUPPORT_SPACE_STEPS_H
#define QUIRE_TESTS_SUPPORT_SPACE_STEPS_H

#include <string.h>

#include "quire/space.h"
#include "tests/support/unit.h"

/* The first three take many regions. */
static const quire_fit FITS[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum { FIT_COUNT = 4, REGIONS_FIT_COUNT = 3 };

/* Every fit, and slabs. */
static const quire_space_options SPACES[] = {{.fit.algorithm = QUIRE_FIT_SEGREGATED},
                                             {.fit.algorithm = QUIRE_FIT_FIRST},
                                             {.fit.algorithm = QUIRE_FIT_BUDDY},
                                             {.fit.algorithm = QUIRE_FIT_LINEAR},
                                             {.fit.slabs = true}};
enum { SPACE_COUNT = 5 };

/* On the host memory of the test. */
static inline quire_space *new_space(quire_space_options options)
{
    quire_space *space = NULL;
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static inline quire_space *space_number(int number, uint64_t size)
{
    quire_space_options options = SPACES[number];
    options.size = size;
    return new_space(options);
}

/* With the default granule. */
static inline quire_space *space_of(quire_fit fit, uint64_t size)
{
    return new_space((quire_space_options){.fit.algorithm = fit, .size = size});
}

/* Checks the records after it. */
static inline uint32_t add_region(quire_space *space, uint64_t size, uint64_t base)
{
    uint32_t region = UINT32_MAX;
    CHECK_OK(quire_space_add_region(space, size, base, &region));
    CHECK_OK(quire_space_check(space));
    return region;
}

/* The call writes every field. */
static inline quire_placement take_with(quire_space *space, quire_range_options options)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at);
    CHECK_OK(quire_space_allocate_with(space, &options, &at));
    CHECK_EQ(at.reserved, 0);
    return at;
}

static inline quire_placement take_aligned(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at);
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    CHECK_EQ(at.reserved, 0);
    return at;
}

static inline quire_placement take_bytes(quire_space *space, uint64_t size)
{
    return take_aligned(space, size, 1);
}

/* No free range holds the request. */
static inline void expect_no_space(quire_space *space, quire_range_options options)
{
    quire_placement at;
    CHECK_FAILS(quire_space_allocate_with(space, &options, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(at.range.id, 0);
}

/* Checks the records after it. */
static inline void give(quire_space *space, quire_range range)
{
    CHECK_OK(quire_space_free(space, range));
    CHECK_OK(quire_space_check(space));
}

/* Every function that takes a range rejects it. */
static inline void expect_rejected(quire_space *space, quire_range range, quire_result code)
{
    static const quire_placement none;
    quire_placement at;
    memset(&at, 0xff, sizeof at);
    CHECK_FAILS(quire_space_free_batch(space, &range, 1), code);
    CHECK_FAILS(quire_space_set_user(space, range, 1), code);
    CHECK_FAILS(quire_space_get(space, range, &at), code);
    CHECK(!memcmp(&at, &none, sizeof at));
    CHECK_FAILS(quire_space_free(space, range), code);
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
