/*
 * resize.h - shared by the tests of regions that grow and shrink: the setups, and checked calls.
 */
#ifndef QUIRE_TESTS_SUPPORT_RESIZE_H
#define QUIRE_TESTS_SUPPORT_RESIZE_H

#include "src/space/space.h"
#include "tests/support/defer.h"
#include "tests/support/shape.h"
#include "tests/support/unit.h"

#define U UINT64_C(8192) /* above the maximum size of slots */
#define NO_ONE UINT32_MAX

/* The two fits whose regions can be resized, with each of their options. */
static const quire_space_options setups[] = {
    {.fit.algorithm = QUIRE_FIT_SEGREGATED},
    {.fit = {.algorithm = QUIRE_FIT_SEGREGATED, .slabs = true}},
    {.fit = {.algorithm = QUIRE_FIT_SEGREGATED, .least_fragmentation = true}},
    {.fit = {.algorithm = QUIRE_FIT_SEGREGATED, .slabs = true, .least_fragmentation = true}},
    {.fit.algorithm = QUIRE_FIT_FIRST},
};
enum { SETUPS = sizeof setups / sizeof *setups };

static inline quire_space *make_space(quire_space_options options, uint64_t size)
{
    quire_space *space = NULL;
    options.size = size;
    if (options.fit.algorithm == QUIRE_FIT_SEGREGATED)
        options.fit.granule = 256;   /* regions grow beyond the line of the default */
    options.fit.max_alignment = 256; /* regions lie close together */
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    if (options.fit.least_fragmentation) /* half of the setups defer their frees as well */
        defer_frees(space, 0);
    return space;
}

static inline void end_space(quire_space *space)
{
    CHECK_OK(quire_space_check(space));
    quire_space_destroy(&space);
}

static inline uint32_t add(quire_space *space, uint64_t size, uint64_t base)
{
    uint32_t region = NO_ONE;
    CHECK_OK(quire_space_add_region(space, size, base, &region));
    return region;
}

static inline quire_placement take(quire_space *space, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, 1, size, &at));
    return at;
}

static inline quire_space_stats stats_of(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(space, &stats));
    return stats;
}

static inline void resize(quire_space *space, uint32_t region, uint64_t size)
{
    uint64_t rest = space->region_bytes - space->regions[region].size;
    CHECK_OK(quire_space_resize_region(space, region, size));
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->regions[region].size, size);
    CHECK_EQ(stats_of(space).region_bytes, rest + size);
}

/* A failed call changes no range and no statistics, except for host memory that is kept for later.
   */
static inline void refuse(quire_space *space, uint32_t region, uint64_t size, quire_result code)
{
    shape before = shape_of(space);
    quire_space_stats old = stats_of(space);
    CHECK_FAILS(quire_space_resize_region(space, region, size), code);
    shape after = shape_of(space);
    quire_space_stats now = stats_of(space);
    shape_compare(&before, &after, true);
    old.metadata_bytes = now.metadata_bytes;
    old.metadata_peak = now.metadata_peak;
    CHECK(!memcmp(&old, &now, sizeof old));
    shape_end(&before);
    shape_end(&after);
}

static inline void expect_free(const quire_space *space, uint64_t count, uint64_t bytes)
{
    CHECK_EQ(stats_of(space).free_count, count);
    CHECK_EQ(stats_of(space).free_bytes, bytes);
}

#endif
