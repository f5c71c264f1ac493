/*
 * space.c - creating and destroying a space: every option with its limits, defaults, failed
 * creation, and the host memory of the records. (tests/plain/space_model.c compares places,
 * statistics and walks with an oracle.)
 */
#include "quire/space.h"

#include <stdio.h>

#include "tests/support/unit.h"

static const uint64_t GIB = UINT64_C(1) << 30;
static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum { FITS = sizeof fits / sizeof *fits };

static quire_space *make_space(quire_fit fit, uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {
        .fit.algorithm = fit, .size = size, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_space_stats stats_of(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_check(space));
    CHECK_OK(quire_space_get_stats(space, &stats));
    return stats;
}

static void expect_made(quire_space_options options)
{
    quire_space *space = NULL;
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    CHECK_OK(quire_space_check(space));
    quire_space_destroy(&space);
    CHECK(space == NULL);
}

/* The call fails with the code and the words, creates nothing and keeps no host memory. */
static void expect_refused(quire_space_options options, quire_result code, const char *words)
{
    quire_space *space = (quire_space *)(void *)&options; /* must become NULL */
    if (!options.host_memory)
        options.host_memory = unit_memory();
    CHECK_FAILS(quire_space_create(&options, &space), code);
    CHECK_HAS(quire_last_error(), words);
    CHECK(space == NULL);
    CHECK_EQ(unit_memory_state()->blocks, 0);
}

/* ---- options ------------------------------------------------------------------------------- */

UNIT(space, no_options_mean_a_segregated_space_without_regions)
{
    const quire_space_options empty = {0}, *const choices[] = {NULL, &empty};
    for (int i = 0; i < 2; i++) {
        quire_space *space = NULL;
        uint32_t region = 9;
        quire_placement at;
        CHECK_OK(quire_space_create(choices[i], &space));
        CHECK_EQ(stats_of(space).granule, 256);
        CHECK_EQ(stats_of(space).region_count, 0);
        CHECK_FAILS(quire_space_allocate(space, 1, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
        CHECK_OK(quire_space_add_region(space, 4 << 20, 0, &region));
        CHECK_OK(quire_space_allocate(space, 1, 2 << 20, 0, &at));
        CHECK_EQ(at.left_padding, 0);
        CHECK_FAILS(quire_space_allocate(space, 1, 4 << 20, 0, &at), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_STR(quire_last_error(),
                  "alignment 4194304 is above the space's fit.max_alignment, 2097152");
        quire_space_destroy(&space);
    }
}

static void expect_granule(quire_fit fit, uint64_t size, uint64_t granule)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = fit, .size = size};
    CHECK_OK(quire_space_create(&options, &space));
    CHECK_EQ(stats_of(space).granule, granule);
    CHECK_EQ(stats_of(space).region_bytes, size);
    CHECK_OK(quire_space_check(space));
    quire_space_destroy(&space);
}

UNIT(space, the_size_chooses_the_granule)
{
    const uint64_t gib4 = 4 * GIB; /* the line of granules of 1 byte ends one byte before it */
    const struct {
        uint64_t size, granule;
    } cases[] = {
        {1, 1},
        {255, 1},
        {1000, 1},
        {64 * GIB / 1024 + 1, 1},
        {gib4 - 1, 1},
        {gib4, 2},
        {2 * gib4 - 2, 2},
        {2 * gib4, 4},
        {3 * gib4, 4},
        {256 * gib4 - 256, 256},
        {256 * gib4, 512},
        {UINT32_MAX * GIB, GIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_granule(QUIRE_FIT_SEGREGATED, cases[i].size, cases[i].granule);
    expect_granule(QUIRE_FIT_FIRST, 1000, 1);
    expect_granule(QUIRE_FIT_FIRST, gib4 << 10, 1);
    expect_granule(QUIRE_FIT_LINEAR, gib4 << 10, 1);
    expect_granule(QUIRE_FIT_BUDDY, 1024, 256);
    expect_granule(QUIRE_FIT_BUDDY, 0, 256);
    expect_granule(QUIRE_FIT_SEGREGATED, 0, 256);
}

UNIT(space, a_size_that_is_no_multiple_of_its_granule_is_rejected)
{
    expect_refused((quire_space_options){.size = 4 * GIB + 1}, QUIRE_ERROR_INVALID_ARGUMENT,
                   "multiples of fit.granule, 2 here,");
    expect_refused((quire_space_options){.size = 8 * GIB - 1}, QUIRE_ERROR_INVALID_ARGUMENT,
                   "multiples of fit.granule, 4 here,");
    expect_refused((quire_space_options){.size = UINT32_MAX * GIB + 1}, QUIRE_ERROR_OUT_OF_RANGE,
                   "does not fit on the line");
}

UNIT(space, the_first_fit_has_a_granule_of_1_and_no_other)
{
    quire_space *space = make_space(QUIRE_FIT_FIRST, 100);
    CHECK_EQ(stats_of(space).granule, 1);
    quire_space_destroy(&space);
    expect_made((quire_space_options){.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 1}});
    expect_refused((quire_space_options){.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 2}},
                   QUIRE_ERROR_INVALID_ARGUMENT, "granule 2: this fit takes only 1");
    expect_refused((quire_space_options){.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 256}},
                   QUIRE_ERROR_INVALID_ARGUMENT, "granule 256");
}

UNIT(space, unknown_fits_are_rejected)
{
    for (int fit = 4; fit < 100; fit += 19) {
        char words[64];
        snprintf(words, sizeof words, "fit %d does not exist", fit);
        expect_refused((quire_space_options){.fit.algorithm = (quire_fit)fit},
                       QUIRE_ERROR_INVALID_ARGUMENT, words);
    }
    expect_refused((quire_space_options){.fit.algorithm = (quire_fit)-1},
                   QUIRE_ERROR_INVALID_ARGUMENT, "does not exist");
}

UNIT(space, a_granule_is_a_power_of_two_up_to_1_gib)
{
    for (uint64_t granule = 1; granule <= GIB; granule *= 2)
        expect_made((quire_space_options){.fit.granule = granule, .size = 7 * granule});
    const uint64_t wrong[] = {3,         255, 257, GIB - 1, GIB + 1, 2 * GIB, UINT64_C(1) << 63,
                              UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char words[96];
        snprintf(words, sizeof words,
                 "granule %" PRIu64 ": this fit takes a power of two up to "
                 "1073741824",
                 wrong[i]);
        expect_refused((quire_space_options){.fit.granule = wrong[i]}, QUIRE_ERROR_INVALID_ARGUMENT,
                       words);
    }
}

UNIT(space, the_largest_alignment_is_a_power_of_two_up_to_1_gib)
{
    for (int i = 0; i < FITS; i++) {
        for (uint64_t alignment = 1; alignment <= GIB; alignment *= 2)
            expect_made((quire_space_options){
                .fit = {.algorithm = fits[i], .max_alignment = alignment}, .size = 1 << 20});
        const uint64_t wrong[] = {3, 6, GIB - 1, GIB + 1, 2 * GIB, UINT64_C(1) << 63, UINT64_MAX};
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            char words[96];
            snprintf(words, sizeof words,
                     "largest alignment %" PRIu64 " is not a power of two up "
                     "to 1 GiB",
                     wrong[j]);
            expect_refused(
                (quire_space_options){.fit = {.algorithm = fits[i], .max_alignment = wrong[j]}},
                QUIRE_ERROR_INVALID_ARGUMENT, words);
        }
    }
}

UNIT(space, reserved_words_must_be_zero)
{
    for (int i = 0; i < 4; i++) {
        char words[64];
        quire_space_options options = {.size = 256};
        options.unused[i] = UINT64_C(1) << (16 * i);
        snprintf(words, sizeof words, "quire_space_options.unused[%d] is not zero", i);
        expect_refused(options, QUIRE_ERROR_INVALID_ARGUMENT, words);
    }
    expect_refused((quire_space_options){.fit.unused = {1}}, QUIRE_ERROR_INVALID_ARGUMENT,
                   "quire_fit_options.unused[0] is not zero");
    expect_refused((quire_space_options){.fit.unused = {0, 1}}, QUIRE_ERROR_INVALID_ARGUMENT,
                   "quire_fit_options.unused[1] is not zero");
}

UNIT(space, incomplete_callbacks_are_rejected)
{
    quire_host_memory half = *unit_memory();
    half.release = NULL;
    expect_refused((quire_space_options){.host_memory = &half}, QUIRE_ERROR_INVALID_ARGUMENT,
                   "both allocate and release");
}

UNIT(space, the_size_must_be_whole_granules)
{
    expect_refused((quire_space_options){.fit.granule = 256, .size = 255},
                   QUIRE_ERROR_INVALID_ARGUMENT,
                   "a region of 255 bytes at 0x0: both must be multiples of fit.granule, 256 here");
    expect_refused((quire_space_options){.fit.granule = 256, .size = UINT64_MAX},
                   QUIRE_ERROR_INVALID_ARGUMENT, "18446744073709551615");
    expect_made((quire_space_options){.size = 256});
    expect_made((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = 1});
}

UNIT(space, the_size_is_limited_by_the_line)
{
    for (uint64_t granule = 1; granule <= GIB; granule *= 1024) {
        uint64_t most = UINT32_MAX * granule;
        expect_made((quire_space_options){.fit.granule = granule, .size = most});
        expect_refused((quire_space_options){.fit.granule = granule, .size = most + granule},
                       QUIRE_ERROR_OUT_OF_RANGE, "does not fit on the line: 0 of");
    }
    expect_refused((quire_space_options){.size = UINT64_MAX - 255}, QUIRE_ERROR_OUT_OF_RANGE,
                   "does not fit on the line");
    expect_refused((quire_space_options){.size = UINT64_MAX}, QUIRE_ERROR_OUT_OF_RANGE,
                   "does not fit on the line");
    expect_made((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = UINT64_C(1) << 62});
    expect_refused(
        (quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = (UINT64_C(1) << 62) + 1},
        QUIRE_ERROR_OUT_OF_RANGE, "of 4611686018427387904 are taken");
    expect_refused((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = UINT64_MAX},
                   QUIRE_ERROR_OUT_OF_RANGE, "does not fit on the line");
}

/* ---- creation and destruction -------------------------------------------------------------- */

/* Fails every host allocation of a creation in turn; returns their number. */
static uint64_t fail_each_creation(quire_fit fit)
{
    for (uint64_t call = 1;; call++) {
        quire_space *space = NULL;
        quire_space_options options = {
            .fit.algorithm = fit, .size = 4096, .host_memory = unit_memory()};
        test_memory_fail(unit_memory_state(), call, false);
        quire_result result = quire_space_create(&options, &space);
        test_memory_fail(unit_memory_state(), 0, false);
        if (!result) {
            quire_space_destroy(&space);
            return call - 1;
        }
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(space == NULL);
        CHECK_EQ(unit_memory_state()->blocks, 0);
    }
}

UNIT(space, a_creation_without_host_memory_leaks_nothing)
{
    CHECK(fail_each_creation(QUIRE_FIT_SEGREGATED) >= 4);
    CHECK(fail_each_creation(QUIRE_FIT_FIRST) >= 4);
    CHECK(fail_each_creation(QUIRE_FIT_BUDDY) >= 6);
}

UNIT(space, destroying_frees_live_ranges_and_accepts_null)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20);
        quire_placement at;
        for (int j = 0; j < 100; j++)
            CHECK_OK(quire_space_allocate(space, 1000, 256, 0, &at));
        quire_space_destroy(&space);
        CHECK(space == NULL);
        CHECK_EQ(unit_memory_state()->blocks, 0);
        quire_space_destroy(&space);
        quire_space_destroy(NULL);
    }
}

/* ---- statistics ---------------------------------------------------------------------------- */

UNIT(space, metadata_is_the_host_memory_of_the_callbacks)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20);
        quire_placement at;
        for (int j = 0; j < 500; j++) {
            CHECK_OK(quire_space_allocate(space, 1, 1, 0, &at));
            quire_space_stats stats = stats_of(space);
            CHECK_EQ(stats.metadata_bytes, unit_memory_state()->bytes);
            CHECK(stats.metadata_peak >= stats.metadata_bytes);
        }
        quire_space_destroy(&space);
    }
}
