/*
 * space_memory.c - no host memory: a request, a region that is added and a trim fail as a whole,
 * with every fit, and succeed afterwards.
 */
#include "src/space/space.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum { FITS = sizeof fits / sizeof *fits, SEVERAL = 3 }; /* SEVERAL: the fits with many regions */

static quire_space *make_space(quire_fit fit, uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit = {.algorithm = fit, .granule = 1, .max_alignment = 1},
                                   .size = size,
                                   .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

UNIT(space_memory, allocating_without_host_memory_changes_nothing)
{
    enum { COUNT = 3000 };
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20);
        uint64_t refused = 0, growths = 0;
        for (uint64_t j = 0; j < COUNT; j++) {
            bool upper = fits[i] == QUIRE_FIT_LINEAR && j % 2;
            quire_range_options options = {.size = 16, .upper = upper};
            quire_placement at;
            quire_space_stats before = stats_of(space), after;
            test_memory_fail(unit_memory_state(), 1, true);
            quire_result result = quire_space_allocate_with(space, &options, &at);
            test_memory_fail(unit_memory_state(), 0, false);
            if (result) {
                CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
                CHECK_HAS(quire_last_error(), "ranges");
                CHECK_EQ(at.range.id | at.size, 0);
                after = stats_of(space);
                CHECK(!memcmp(&before, &after, sizeof before));
                CHECK_OK(quire_space_check(space));
                refused++;
                CHECK_OK(quire_space_allocate_with(space, &options, &at));
            }
            uint64_t step = fits[i] == QUIRE_FIT_LINEAR ? j / 2 : j;
            CHECK_EQ(at.offset, upper ? (1 << 20) - (step + 1) * 16 : step * 16);
        }
        for (qi_pool pool = {.capacity = 32}; pool.capacity <= COUNT; growths++)
            pool.capacity = qi_pool_next_capacity(&pool);
        CHECK_EQ(refused, growths);
        end_space(space);
    }
}

/* Adds a region while host memory fails from one call on. Returns whether it was refused. */
static bool add_fails(quire_fit fit, uint64_t regions, uint64_t call)
{
    quire_space *space = make_space(fit, 0);
    uint32_t region = 77;
    for (uint64_t i = 0; i < regions; i++)
        CHECK_OK(quire_space_add_region(space, 16 + i, 0, &region));
    shape before = shape_of(space);
    test_memory_fail(unit_memory_state(), call, true);
    quire_result result = quire_space_add_region(space, 100, 0, &region);
    test_memory_fail(unit_memory_state(), 0, false);
    if (result) {
        shape after = shape_of(space);
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_EQ(region, 0);
        shape_compare(&before, &after, false);
        CHECK_EQ(space->region_count, regions);
        CHECK_EQ(space->line.count, regions);
        shape_end(&after);
        CHECK_OK(quire_space_add_region(space, 100, 0, &region));
    }
    CHECK_EQ(region, regions);
    CHECK_EQ(take_bytes(space, 64).region, regions);
    shape_end(&before);
    end_space(space);
    return result != QUIRE_SUCCESS;
}

/* For the first region: regions, line, numbers, tables. They have to grow for some later ones. */
UNIT(space_memory, adding_a_region_without_host_memory_changes_nothing)
{
    static const uint64_t calls[SEVERAL][3] = {{5, 2, 3}, {3, 1, 2}, {6, 4, 5}};
    for (int i = 0; i < SEVERAL; i++)
        for (uint64_t regions = 0; regions < 9; regions += 4) {
            uint64_t count = 0;
            while (add_fails(fits[i], regions, count + 1))
                count++;
            CHECK_EQ(count, calls[i][regions / 4]);
        }
}

UNIT(space_memory, trimming_keeps_live_ranges_and_without_host_memory_everything)
{
    enum { PEAK = 3000 };
    static quire_placement live[PEAK];
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], PEAK * 16);
        for (int j = 0; j < PEAK; j++)
            live[j] = take_bytes(space, 16);
        for (int j = 0; j < PEAK; j++)
            if (j >= 40 || j % 2 == 0)
                CHECK_OK(quire_space_free(space, live[j].range));
        uint32_t capacity = space->pool.capacity;
        test_memory_fail(unit_memory_state(), 1, true);
        quire_space_trim(space);
        CHECK_EQ(space->pool.capacity, capacity);
        test_memory_fail(unit_memory_state(), 0, false);
        quire_space_trim(space);
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(space->pool.capacity, 64);
        for (int j = 1; j < 40; j += 2) {
            quire_placement at;
            CHECK_OK(quire_space_get(space, live[j].range, &at));
            CHECK(!memcmp(&at, &live[j], sizeof at));
        }
        for (int j = 40; j < PEAK; j++)
            take_bytes(space, 16);
        end_space(space);
    }
}
