/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space.c - creating and destroying a space: every option with its limits, defaults, failed
 * creation, and the host memory of the records. (tests/plain/space_model.c compares places,
 * statistics and walks with an oracle.)
 */
#include <stdio.h>

#include "tests/support/space_steps.h"

#define GIB (UINT64_C(1) << 30)

static void expect_made(quire_space_options options)
{
    end_space(new_space(options));
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
        quire_placement at;
        CHECK_OK(quire_space_create(choices[i], &space));
        CHECK_EQ(stats_of(space).granule, 256);
        CHECK_EQ(stats_of(space).region_count, 0);
        expect_no_space(space, (quire_range_options){.size = 1});
        add_region(space, 4 << 20, 0);
        CHECK_EQ(take_aligned(space, 1, 2 << 20).left_padding, 0);
        take_aligned(space, 1, 0); /* the alignment 0 means 1 */
        CHECK_FAILS(quire_space_allocate(space, 1, 4 << 20, 0, &at), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_STR(quire_last_error(),
                  "alignment 4194304 is above the space's fit.max_alignment, 2097152");
        CHECK_FAILS(quire_space_allocate(space, 1, 96, 0, &at), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_STR(quire_last_error(), "alignment 96 is not a power of two");
        end_space(space);
    }
}

UNIT(space, the_size_chooses_the_granule)
{
    static const struct {
        quire_fit fit;
        uint64_t size, granule;
    } rows[] = {
        {QUIRE_FIT_SEGREGATED, 0, 256},
        {QUIRE_FIT_SEGREGATED, 1, 1},
        {QUIRE_FIT_SEGREGATED, 255, 1},
        {QUIRE_FIT_SEGREGATED, 64 * GIB / 1024 + 1, 1},
        {QUIRE_FIT_SEGREGATED, 4 * GIB - 1, 1}, /* the end of the line of granules of 1 byte */
        {QUIRE_FIT_SEGREGATED, 4 * GIB, 2},
        {QUIRE_FIT_SEGREGATED, 8 * GIB - 2, 2},
        {QUIRE_FIT_SEGREGATED, 8 * GIB, 4},
        {QUIRE_FIT_SEGREGATED, 12 * GIB, 4},
        {QUIRE_FIT_SEGREGATED, 1024 * GIB - 256, 256},
        {QUIRE_FIT_SEGREGATED, 1024 * GIB, 512},
        {QUIRE_FIT_SEGREGATED, UINT32_MAX * GIB, GIB},
        {QUIRE_FIT_FIRST, 1000, 1},
        {QUIRE_FIT_FIRST, 4096 * GIB, 1},
        {QUIRE_FIT_LINEAR, 4096 * GIB, 1},
        {QUIRE_FIT_BUDDY, 1024, 256},
        {QUIRE_FIT_BUDDY, 0, 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        quire_space *space = space_of(rows[i].fit, rows[i].size);
        CHECK_EQ(stats_of(space).granule, rows[i].granule);
        CHECK_EQ(stats_of(space).region_bytes, rows[i].size);
        end_space(space);
    }
}

UNIT(space, options_at_their_limits)
{
    expect_made((quire_space_options){.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 1}});
    expect_made((quire_space_options){.size = 256});
    expect_made((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = 1});
    expect_made((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = UINT64_C(1) << 62});
    for (uint64_t granule = 1; granule <= GIB; granule *= 2) {
        expect_made((quire_space_options){.fit.granule = granule, .size = 7 * granule});
        expect_made((quire_space_options){.fit.granule = granule, .size = UINT32_MAX * granule});
        for (int i = 0; i < FIT_COUNT; i++)
            expect_made((quire_space_options){
                .fit = {.algorithm = FITS[i], .max_alignment = granule}, .size = 1 << 20});
    }
}

UNIT(space, options_that_are_refused)
{
    static const struct {
        quire_space_options options;
        const char *words;
    } invalid[] = {
        {{.size = 4 * GIB + 1}, "multiples of fit.granule, 2 here,"},
        {{.size = 8 * GIB - 1}, "multiples of fit.granule, 4 here,"},
        {{.fit.granule = 256, .size = 255},
         "a region of 255 bytes at 0x0: both must be multiples of fit.granule, 256 here"},
        {{.fit.granule = 256, .size = UINT64_MAX}, "18446744073709551615"},
        {{.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 2}}, "granule 2: this fit takes only 1"},
        {{.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 256}}, "granule 256"},
        {{.fit.algorithm = (quire_fit)4}, "fit 4 does not exist"},
        {{.fit.algorithm = (quire_fit)99}, "fit 99 does not exist"},
        {{.fit.algorithm = (quire_fit)-1}, "does not exist"},
        {{.unused = {1}}, "quire_space_options.unused[0] is not zero"},
        {{.unused = {0, 1 << 16}}, "quire_space_options.unused[1] is not zero"},
        {{.unused = {0, 0, UINT64_C(1) << 32}}, "quire_space_options.unused[2] is not zero"},
        {{.unused = {0, 0, 0, UINT64_C(1) << 48}}, "quire_space_options.unused[3] is not zero"},
        {{.fit.unused = {1}}, "quire_fit_options.unused[0] is not zero"},
        {{.fit.unused = {0, 1}}, "quire_fit_options.unused[1] is not zero"},
    };
    static const quire_space_options too_large[] = {
        {.size = UINT32_MAX * GIB + 1},
        {.size = UINT64_MAX - 255},
        {.size = UINT64_MAX},
        {.fit.algorithm = QUIRE_FIT_FIRST, .size = UINT64_MAX},
        {.fit.granule = 1, .size = UINT32_MAX + UINT64_C(1)},
        {.fit.granule = 1024, .size = (UINT32_MAX + UINT64_C(1)) * 1024},
        {.fit.granule = GIB, .size = (UINT32_MAX + UINT64_C(1)) * GIB},
    };
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        expect_refused(invalid[i].options, QUIRE_ERROR_INVALID_ARGUMENT, invalid[i].words);
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++)
        expect_refused(too_large[i], QUIRE_ERROR_OUT_OF_RANGE, "does not fit on the line: 0 of");
    expect_refused(
        (quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST, .size = (UINT64_C(1) << 62) + 1},
        QUIRE_ERROR_OUT_OF_RANGE, "of 4611686018427387904 are taken");
    quire_host_memory half = *unit_memory();
    half.release = NULL;
    expect_refused((quire_space_options){.host_memory = &half}, QUIRE_ERROR_INVALID_ARGUMENT,
                   "both allocate and release");
}

UNIT(space, granules_and_alignments_are_powers_of_two_up_to_1_gib)
{
    const uint64_t wrong[] = {3,         6, 255, 257, GIB - 1, GIB + 1, 2 * GIB, UINT64_C(1) << 63,
                              UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char words[96];
        snprintf(words, sizeof words,
                 "granule %" PRIu64 ": this fit takes a power of two up to 1073741824", wrong[i]);
        expect_refused((quire_space_options){.fit.granule = wrong[i]}, QUIRE_ERROR_INVALID_ARGUMENT,
                       words);
        snprintf(words, sizeof words,
                 "largest alignment %" PRIu64 " is not a power of two up to 1 GiB", wrong[i]);
        for (int j = 0; j < FIT_COUNT; j++)
            expect_refused(
                (quire_space_options){.fit = {.algorithm = FITS[j], .max_alignment = wrong[i]}},
                QUIRE_ERROR_INVALID_ARGUMENT, words);
    }
}

/* ---- creation and destruction -------------------------------------------------------------- */

/* Fails every host allocation of a creation in turn; returns their number. */
static uint64_t fail_each_creation(quire_space_options options)
{
    options.size = 1 << 20;
    options.host_memory = unit_memory();
    for (uint64_t call = 1;; call++) {
        quire_space *space = NULL;
        test_memory_fail(unit_memory_state(), call, false);
        quire_result result = quire_space_create(&options, &space);
        test_memory_fail(unit_memory_state(), 0, false);
        if (!result) {
            end_space(space);
            return call - 1;
        }
        CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(space == NULL);
        CHECK_EQ(unit_memory_state()->blocks, 0);
    }
}

UNIT(space, a_creation_without_host_memory_leaks_nothing)
{
    static const uint64_t least[SPACE_COUNT] = {4, 4, 6, 2, 5};
    for (int i = 0; i < SPACE_COUNT; i++)
        CHECK(fail_each_creation(SPACES[i]) >= least[i]);
}

UNIT(space, destroying_frees_live_ranges_and_accepts_null)
{
    for (int i = 0; i < SPACE_COUNT; i++) {
        quire_space *space = space_number(i, 1 << 20);
        for (int j = 0; j < 500; j++) {
            take_aligned(space, 1000, 256);
            CHECK_OK(quire_space_check(space));
            CHECK_EQ(stats_of(space).metadata_bytes, unit_memory_state()->bytes);
            CHECK(stats_of(space).metadata_peak >= stats_of(space).metadata_bytes);
        }
        quire_space_destroy(&space);
        CHECK(space == NULL);
        CHECK_EQ(unit_memory_state()->blocks, 0);
        quire_space_destroy(&space);
        quire_space_destroy(NULL);
    }
}
