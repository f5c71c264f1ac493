/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_trim.c - a trim releases host memory that a past peak left unused; old handles stay stale.
 */
#include <stdlib.h>

#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"

enum { PEAK = 4000 };

static quire_range ranges[PEAK];

static quire_space *make_space(quire_fit fit)
{
    return space_of(fit, 4 << 20);
}

static quire_range take(quire_space *space)
{
    return take_bytes(space, 256).range;
}

static void fill(quire_space *space)
{
    for (int i = 0; i < PEAK; i++)
        ranges[i] = take(space);
}

/* Not in the order of the addresses. */
static void free_all(quire_space *space)
{
    for (int i = 0; i < PEAK; i++)
        CHECK_OK(quire_space_free(space, ranges[(i * 7 + 1) % PEAK]));
}

static uint64_t metadata(const quire_space *space)
{
    CHECK_EQ(stats_of(space).metadata_bytes, unit_memory_state()->bytes);
    return stats_of(space).metadata_bytes;
}

static void trim(quire_space *space)
{
    quire_space_trim(space);
    CHECK_OK(quire_space_check(space));
}

UNIT(space_trim, a_trim_releases_a_peak_and_returns_the_bytes)
{
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i]);
        uint64_t before = metadata(space);
        fill(space);
        uint64_t peak = metadata(space);
        free_all(space);
        CHECK_EQ(metadata(space), peak);
        trim(space);
        CHECK_EQ(metadata(space), before);
        CHECK(stats_of(space).metadata_peak >= peak);
        end_space(space);
    }
}

/* For every number that the last free range may have. */
UNIT(space_trim, after_a_clear_a_trim_releases_the_whole_peak)
{
    for (int i = 0; i < REGIONS_FIT_COUNT * 20; i++) {
        quire_space *space = make_space(FITS[i % REGIONS_FIT_COUNT]);
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

/* ---- old handles --------------------------------------------------------------------------- */

static void expect_all_stale(quire_space *space, const quire_range *old, int count)
{
    for (int i = 0; i < count; i++)
        CHECK_FAILS(quire_space_free(space, old[i]), QUIRE_ERROR_STALE_HANDLE);
}

UNIT(space_trim, old_ranges_stay_stale_after_a_trim)
{
    static quire_range old[PEAK];
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i]);
        fill(space);
        memcpy(old, ranges, sizeof old);
        free_all(space);
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
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i]);
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
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i]);
        fill(space);
        free_all(space);
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

/* Nothing is released while there is no host memory for smaller records. */
UNIT(space_trim, removing_a_region_releases_records_when_nearly_all_are_unused)
{
    for (uint32_t i = 0; i < 2 * REGIONS_FIT_COUNT; i++) {
        quire_space *space = make_space(FITS[i / 2]);
        uint64_t before = metadata(space);
        uint32_t region = add_region(space, 256, 0);
        fill(space);
        free_all(space);
        test_memory_fail(unit_memory_state(), i % 2, i % 2);
        CHECK_OK(quire_space_remove_region(space, region));
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(i % 2 ? metadata(space) > before : metadata(space) == before);
        CHECK_EQ(space->region_count, 1);
        take(space);
        end_space(space);
    }
}
