/*
 * space_range.c - the limits of sizes and alignments of ranges, and numbers after a clear.
 */
#include "quire/space.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum { FITS = sizeof fits / sizeof *fits, SEVERAL = 3 }; /* SEVERAL: the fits with many regions */

static quire_space *make_space(quire_fit fit, uint64_t size, uint64_t granule)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit = {.algorithm = fit, .granule = granule}, .size = size};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_placement take(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at); /* the call writes every field */
    CHECK_OK(quire_space_allocate(space, size, alignment, user, &at));
    CHECK_EQ(at.reserved, 0);
    return at;
}

static bool is_zero(const quire_placement *at)
{
    const quire_placement none = {0};
    return !memcmp(at, &none, sizeof none);
}

/* ---- sizes and alignments ------------------------------------------------------------------ */

static void expect_refused(quire_space *space, uint64_t size, uint64_t alignment, quire_result code)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at);
    CHECK_FAILS(quire_space_allocate(space, size, alignment, 9, &at), code);
    CHECK(is_zero(&at));
    memset(&at, 0xff, sizeof at);
    const quire_range_options bounded = {size, alignment, 9, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(space, &bounded, &at), code);
    CHECK(is_zero(&at));
}

UNIT(space_range, sizes_that_cannot_fit_are_rejected_up_to_2_to_the_64)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20, 0);
        const uint64_t sizes[] = {(1 << 20) + 1,     UINT32_MAX,        UINT64_C(1) << 32,
                                  UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX - 255,
                                  UINT64_MAX - 1,    UINT64_MAX};
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            expect_refused(space, sizes[j], 1, QUIRE_ERROR_NO_SPACE);
            expect_refused(space, sizes[j], 2 << 20, QUIRE_ERROR_NO_SPACE);
        }
        expect_refused(space, 0, 1, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(take(space, 1 << 20, 1 << 20, 0).offset, 0);
        expect_refused(space, 1, 1, QUIRE_ERROR_NO_SPACE);
        CHECK_HAS(quire_last_error(), " 1 at a multiple of 1");
        end_space(space);
    }
}

UNIT(space_range, an_alignment_is_a_power_of_two_up_to_the_maximum)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 8 << 20, 0);
        const uint64_t wrong[] = {3,         5, 96, 255, (2 << 20) - 1, 4 << 20, UINT64_C(1) << 63,
                                  UINT64_MAX};
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++)
            expect_refused(space, 100, wrong[j], QUIRE_ERROR_INVALID_ARGUMENT);
        expect_refused(space, 100, 96, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_STR(quire_last_error(), "alignment 96 is not a power of two");
        CHECK_EQ(take(space, 100, 0, 0).offset, 0); /* 0 means 1 */
        for (uint64_t alignment = 1; alignment <= 2 << 20; alignment *= 2)
            CHECK_EQ(take(space, 100, alignment, 0).offset % alignment, 0);
        end_space(space);
    }
}

/* ---- clearing ------------------------------------------------------------------------------ */

/* Numbers 1 and 2 belonged to a region; now they belong to ranges. */
UNIT(space_range, numbers_are_reused_after_a_clear)
{
    for (int i = 0; i < SEVERAL; i++) {
        quire_space *space = make_space(fits[i], 1 << 16, 0);
        uint32_t region = 0;
        quire_space_stats stats;
        CHECK_OK(quire_space_add_region(space, 1 << 16, 0, &region));
        CHECK_OK(quire_space_remove_region(space, 0));
        for (int j = 0; j < 10; j++)
            take(space, 256, 1, 0);
        CHECK_OK(quire_space_clear(space));
        CHECK_OK(quire_space_get_stats(space, &stats));
        CHECK_EQ(stats.live_count, 0);
        CHECK_EQ(stats.largest_free, 1 << 16);
        end_space(space);
    }
}
