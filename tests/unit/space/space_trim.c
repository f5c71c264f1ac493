/*
 * space_trim.c - a trim releases host memory that a past peak left unused; old handles stay stale.
 */
#include <stdlib.h>

#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

enum { PEAK = 4000 };

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum {
    FITS = sizeof fits / sizeof *fits,
    SEVERAL = 3
}; /* SEVERAL: the fits that reuse gaps, in many regions */

static quire_range ranges[PEAK];

static quire_space *make_space(quire_fit fit)
{
    quire_space *space = NULL;
    quire_space_options options = {
        .fit.algorithm = fit, .size = 4 << 20, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_range take(quire_space *space)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, 256, 1, 3, &at));
    return at.range;
}

static void fill(quire_space *space)
{
    for (int i = 0; i < PEAK; i++)
        ranges[i] = take(space);
}

static void free_from(quire_space *space, int first)
{
    for (int i = first; i < PEAK; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
}

static void trim(quire_space *space)
{
    quire_space_trim(space);
    CHECK_OK(quire_space_check(space));
}

static uint64_t metadata(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(space, &stats));
    CHECK_EQ(stats.metadata_bytes, unit_memory_state()->bytes);
    return stats.metadata_bytes;
}

UNIT(space_trim, a_trim_releases_a_peak_and_returns_the_bytes)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        uint64_t before = metadata(space);
        fill(space);
        uint64_t peak = metadata(space);
        free_from(space, 0);
        CHECK_EQ(metadata(space), peak);
        trim(space);
        CHECK_EQ(metadata(space), before);
        quire_space_stats stats;
        CHECK_OK(quire_space_get_stats(space, &stats));
        CHECK(stats.metadata_peak >= peak);
        end_space(space);
    }
}

/* For every number that the last free range may have. */
UNIT(space_trim, after_a_clear_a_trim_releases_the_whole_peak)
{
    for (int i = 0; i < SEVERAL * 20; i++) {
        quire_space *space = make_space(fits[i % SEVERAL]);
        uint64_t before = metadata(space);
        test_random random = {(uint64_t)i};
        fill(space);
        for (int k = 0; k < 4 * PEAK; k++) { /* the order of the numbers becomes random */
            quire_range *one = &ranges[random_below(&random, PEAK)];
            quire_range *other = &ranges[random_below(&random, PEAK)];
            CHECK_OK(quire_space_free(space, *one));
            if (other != one)
                CHECK_OK(quire_space_free(space, *other));
            *one = take(space);
            if (other != one)
                *other = take(space);
        }
        CHECK_OK(quire_space_clear(space));
        CHECK_OK(quire_space_check(space));
        trim(space);
        CHECK_EQ(metadata(space), before);
        for (int k = 0; k < PEAK; k++)
            CHECK_FAILS(quire_space_free(space, ranges[k]), QUIRE_ERROR_STALE_HANDLE);
        fill(space);
        end_space(space);
    }
}

UNIT(space_trim, live_ranges_keep_offset_and_user_value)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        fill(space);
        uint64_t peak = metadata(space);
        free_from(space, 100);
        trim(space);
        CHECK(metadata(space) < peak / 4);
        for (uint64_t j = 0; j < 100; j++) {
            quire_placement at;
            CHECK_OK(quire_space_get(space, ranges[j], &at));
            CHECK_EQ(at.offset, j * 256);
            CHECK_EQ(at.user, 3);
            CHECK_OK(quire_space_free(space, ranges[j]));
        }
        end_space(space);
    }
}

UNIT(space_trim, a_high_number_in_use_keeps_the_records_below)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        fill(space);
        uint64_t peak = metadata(space);
        for (int j = 0; j < PEAK - 1; j++)
            CHECK_OK(quire_space_free(space, ranges[j]));
        trim(space);
        CHECK_EQ(metadata(space), peak);
        quire_placement at;
        CHECK_OK(quire_space_get(space, ranges[PEAK - 1], &at));
        CHECK_EQ(at.offset, (PEAK - 1) * 256);
        end_space(space);
    }
}

UNIT(space_trim, a_trim_may_release_nothing)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = NULL;
        quire_space_options options = {.fit.algorithm = fits[i], .host_memory = unit_memory()};
        CHECK_OK(quire_space_create(&options, &space));
        uint64_t before = metadata(space);
        trim(space);
        CHECK_EQ(metadata(space), before);
        end_space(space);
        space = make_space(fits[i]);
        before = metadata(space);
        trim(space);
        trim(space);
        CHECK_EQ(metadata(space), before);
        end_space(space);
    }
}

/* ---- old handles --------------------------------------------------------------------------- */

static void expect_all_stale(quire_space *space, const quire_range *old, int count)
{
    for (int i = 0; i < count; i++)
        CHECK_FAILS(quire_space_free(space, old[i]), QUIRE_ERROR_STALE_HANDLE);
}

UNIT(space_trim, old_ranges_stay_stale_after_a_trim)
{
    static quire_range old[PEAK];
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        fill(space);
        memcpy(old, ranges, sizeof old);
        free_from(space, 0);
        trim(space);
        expect_all_stale(space, old, PEAK);
        fill(space); /* the same numbers are in use again, and new ones after them */
        expect_all_stale(space, old, PEAK);
        CHECK_EQ(space->live_count, PEAK);
        end_space(space);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = ((const quire_range *)a)->id, y = ((const quire_range *)b)->id;
    return (x > y) - (x < y);
}

/* Peaks of changing height, trimmed each time: no id is handed out twice. */
UNIT(space_trim, no_id_is_handed_out_twice)
{
    enum { ROUNDS = 30, MOST = 2000 };
    static quire_range all[ROUNDS * MOST];
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        test_random r = {22};
        size_t count = 0;
        for (int round = 0; round < ROUNDS; round++) {
            size_t first = count, peak = random_size(&r, MOST);
            while (count < first + peak)
                all[count++] = take(space);
            for (size_t j = count; j-- > first;)
                CHECK_OK(quire_space_free(space, all[j]));
            trim(space);
        }
        qsort(all, count, sizeof *all, compare);
        for (size_t j = 1; j < count; j++)
            CHECK(all[j - 1].id != all[j].id);
        end_space(space);
    }
}

/* ---- wear ---------------------------------------------------------------------------------- */

/* The generation of a spare number; nodes of every fit begin with it. */
static uint32_t *generation_of(const quire_space *space, uint32_t number)
{
    return (uint32_t *)(void *)((char *)space->pool.items + number * space->pool.item_size);
}

static void take_and_give_100(quire_space *space)
{
    for (int i = 0; i < 100; i++)
        ranges[i] = take(space);
    for (int i = 0; i < 100; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
}

/*
 * A number that was used tens of millions of times is above the numbers in use when the records are
 * trimmed. Afterwards the space must work as before and not wear out a number with each allocation.
 */
UNIT(space_trim, one_worn_number_does_not_make_the_records_grow)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i]);
        fill(space);
        free_from(space, 0);
        *generation_of(space, PEAK / 2) = QI_LAST_GENERATION - 1;
        trim(space);
        take_and_give_100(space);
        uint64_t before = metadata(space);
        for (int round = 0; round < 200; round++)
            take_and_give_100(space);
        CHECK_EQ(metadata(space), before);
        CHECK(space->pool.retired <= 1);
        end_space(space);
    }
}

/* ---- automatic trimming -------------------------------------------------------------------- */

UNIT(space_trim, removing_a_region_releases_records_when_nearly_all_are_unused)
{
    for (int i = 0; i < SEVERAL; i++) {
        quire_space *space = make_space(fits[i]);
        uint32_t region = 0;
        uint64_t before = metadata(space);
        CHECK_OK(quire_space_add_region(space, 256, 0, &region));
        fill(space);
        free_from(space, 0);
        CHECK_OK(quire_space_remove_region(space, region));
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(metadata(space), before);
        end_space(space);
    }
}

UNIT(space_trim, removing_a_region_does_not_need_host_memory)
{
    for (int i = 0; i < SEVERAL; i++) {
        quire_space *space = make_space(fits[i]);
        uint32_t region = 0;
        CHECK_OK(quire_space_add_region(space, 256, 0, &region));
        fill(space);
        free_from(space, 0);
        test_memory_fail(unit_memory_state(), 1, true);
        CHECK_OK(quire_space_remove_region(space, region));
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_OK(quire_space_check(space));
        CHECK_EQ(space->region_count, 1);
        take(space);
        end_space(space);
    }
}
