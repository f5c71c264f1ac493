/*
 * space_region.c - regions of a space: their numbers, their native bases, and that ranges stay
 * within them.
 */
#include "src/space/space.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST};

static quire_space *make_space(quire_fit fit, uint64_t max_alignment)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit = {.algorithm = fit, .max_alignment = max_alignment}};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static uint32_t add(quire_space *space, uint64_t size, uint64_t base)
{
    uint32_t region = 99;
    CHECK_OK(quire_space_add_region(space, size, base, &region));
    CHECK_OK(quire_space_check(space));
    return region;
}

static void drop(quire_space *space, uint32_t region)
{
    CHECK_OK(quire_space_remove_region(space, region));
    CHECK_OK(quire_space_check(space));
}

static quire_placement take(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    return at;
}

/* ---- numbers ------------------------------------------------------------------------------- */

UNIT(space_region, a_thousand_regions_are_added_and_removed)
{
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_space(fits[i], 1);
        quire_range ranges[1000];
        for (uint32_t j = 0; j < 1000; j++)
            CHECK_EQ(add(space, 1024, 0), j);
        for (int j = 0; j < 1000; j++)
            ranges[j] = take(space, 1024, 1).range;
        CHECK_EQ(stats_of(space).free_bytes, 0);
        for (int j = 0; j < 1000; j++)
            CHECK_OK(quire_space_free(space, ranges[j]));
        for (uint32_t j = 0; j < 1000; j += 2)
            drop(space, j);
        CHECK_EQ(stats_of(space).free_bytes, 500 * 1024);
        for (uint32_t j = 1; j < 1000; j += 2)
            drop(space, j);
        CHECK_EQ(stats_of(space).region_bytes, 0);
        CHECK_EQ(add(space, 1024, 0), 0);
        end_space(space);
    }
}

/* ---- bases --------------------------------------------------------------------------------- */

static void expect_aligned(quire_space *space, uint64_t size, uint64_t base)
{
    uint32_t region = add(space, size, base);
    for (uint64_t alignment = 1; alignment <= 65536; alignment *= 2) {
        quire_placement at = take(space, 300, alignment);
        CHECK_EQ(at.region, region);
        CHECK_EQ((base + at.offset) % alignment, 0);
        CHECK(at.offset + at.size <= size);
        CHECK_OK(quire_space_free(space, at.range));
    }
    drop(space, region);
}

UNIT(space_region, alignments_hold_for_the_native_address)
{
    const uint64_t bases[] = {
        0, 256, 0x12300, 0x7f0001234500, UINT64_MAX - 0xfffffffffff, UINT64_C(0x8000000000000100)};
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_space(fits[i], 65536);
        for (size_t j = 0; j < sizeof bases / sizeof *bases; j++)
            expect_aligned(space, 256 * 1024, bases[j]);
        end_space(space);
    }
}

/* ---- borders ------------------------------------------------------------------------------- */

UNIT(space_region, an_address_on_the_line_is_reused)
{
    quire_space *space = make_space(QUIRE_FIT_SEGREGATED, 1);
    const uint64_t half = UINT64_C(256) * (UINT32_MAX / 2 + 1); /* of the line, rounded up */
    uint32_t region = add(space, half, 0), refused = 99;
    for (int i = 0; i < 10; i++) {
        CHECK_FAILS(quire_space_add_region(space, half, 0, &refused), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_EQ(refused, 0);
        drop(space, region);
        region = add(space, half, 0);
    }
    CHECK_EQ(add(space, half - 256, 0), 1);
    CHECK_FAILS(quire_space_add_region(space, 256, 0, &refused), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(stats_of(space).region_count, 2);
    end_space(space);
}

UNIT(space_region, the_line_left_is_the_size_of_a_region_that_always_fits)
{
    const uint64_t bases[] = {0, 256, UINT64_C(0x7fff000000000100)};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            quire_space *space = make_space(fits[i], 65536);
            uint64_t whole = qi_space_line_left(space);
            add(space, 256, bases[0]);
            CHECK(qi_space_line_left(space) < whole);
            add(space, qi_space_line_left(space), bases[j]);
            CHECK(qi_space_line_left(space) <= 65536);
            end_space(space);
        }
    }
}

/* ---- invalid calls ------------------------------------------------------------------------- */

UNIT(space_region, size_and_base_are_whole_granules)
{
    quire_space *space = make_space(QUIRE_FIT_SEGREGATED, 0);
    const uint64_t wrong[][2] = {{0, 0},
                                 {0, 256},
                                 {1, 0},
                                 {255, 0},
                                 {257, 0},
                                 {256, 1},
                                 {256, 255},
                                 {256, 257},
                                 {UINT64_MAX, 0},
                                 {256, UINT64_MAX},
                                 {512, UINT64_MAX - 255},
                                 {UINT64_MAX - 255, 512}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t region = 77;
        CHECK_FAILS(quire_space_add_region(space, wrong[i][0], wrong[i][1], &region),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(region, 0);
    }
    CHECK_EQ(stats_of(space).region_count, 0);
    uint32_t region = 0;
    CHECK_FAILS(quire_space_add_region(space, 100, 0x1234, &region), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "a region of 100 bytes at 0x1234");
    CHECK_HAS(quire_last_error(), "fit.granule, 256 here");
    end_space(space);
}

/* The end, base + size, is 2^64 there, which no number of 64 bits has. */
UNIT(space_region, a_region_may_have_the_last_address)
{
    enum { SIZE = 1 << 16 };
    const quire_fit all[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                             QUIRE_FIT_LINEAR};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        quire_space *space = make_space(all[i], SIZE);
        const uint64_t granule = stats_of(space).granule, base = 0 - (uint64_t)SIZE;
        uint32_t region = 77;
        CHECK_FAILS(quire_space_add_region(space, SIZE + granule, base, &region),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "reaches beyond the last address");
        CHECK_FAILS(quire_space_add_region(space, SIZE, base + granule, &region),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        add(space, SIZE, base);
        CHECK_EQ(take(space, SIZE, SIZE).offset, 0);
        CHECK_OK(quire_space_clear(space));
        CHECK_EQ(take(space, SIZE / 2, 1).offset, 0);
        CHECK_EQ(take(space, SIZE / 2, SIZE / 2).offset, SIZE / 2);
        CHECK_OK(quire_space_clear(space));
        drop(space, 0);
        end_space(space);
    }
}

UNIT(space_region, only_existing_regions_can_be_removed)
{
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_space(fits[i], 0);
        CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_INVALID_ARGUMENT);
        add(space, 256, 0);
        add(space, 256, 0);
        const uint32_t wrong[] = {2, 3, 4, 1000, UINT32_MAX};
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++)
            CHECK_FAILS(quire_space_remove_region(space, wrong[j]), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "no region 4294967295");
        quire_placement live = take(space, 256, 1);
        CHECK_FAILS(quire_space_remove_region(space, live.region), QUIRE_ERROR_BUSY);
        CHECK_HAS(quire_last_error(), " still has live ranges");
        CHECK_OK(quire_space_free(space, live.range));
        drop(space, 0);
        CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(stats_of(space).region_count, 1);
        end_space(space);
    }
}

UNIT(space_region, ranges_of_a_removed_region_stay_stale_when_its_number_is_reused)
{
    for (int i = 0; i < 2; i++) {
        quire_space *space = make_space(fits[i], 0);
        quire_range old[50];
        add(space, 1 << 16, 0);
        for (int j = 0; j < 50; j++)
            old[j] = take(space, 256, 1).range;
        for (int j = 0; j < 50; j++)
            CHECK_OK(quire_space_free(space, old[j]));
        drop(space, 0);
        CHECK_EQ(add(space, 1 << 16, 0), 0);
        for (int j = 0; j < 50; j++)
            take(space, 256, 1);
        for (int j = 0; j < 50; j++)
            CHECK_FAILS(quire_space_free(space, old[j]), QUIRE_ERROR_STALE_HANDLE);
        end_space(space);
    }
}
