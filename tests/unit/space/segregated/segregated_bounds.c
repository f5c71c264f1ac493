/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * segregated_bounds.c - the documented bounds of the segregated fit: free ranges examined, full
 * passes, host memory of its records; and the end of a free range from which a request is cut.
 * (tests/plain/space_model.c: no stretch ever holds ranges of two kinds, and nothing is refused
 * that would fit.)
 */
#include "src/space/segregated/segregated.h"
#include "tests/support/defer.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"

#define KIB UINT64_C(1024)
#define GIB (UINT64_C(1) << 30)

enum { HOLES = 50000, GRANULARITY = 4096 };

static quire_range ranges[100000];

static quire_space *make_space(quire_space_options options)
{
    options.fit.granule += options.fit.granule ? 0 : 256;
    return new_space(options);
}

/* ---- free ranges examined -------------------------------------------------------------------- */

/* Holes of one size, each between live ranges of the given sizes; nothing else is free. */
static void lay_holes(quire_space *space, uint64_t below, uint64_t hole, uint64_t above)
{
    for (uint64_t i = 0; i < HOLES; i++) {
        CHECK_EQ(take_bytes(space, below).offset, i * (below + hole + above));
        ranges[i] = take_bytes(space, hole).range;
        take_bytes(space, above);
    }
    for (int i = 0; i < HOLES; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
}

static void expect_bounded_refusal(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_range_options wanted = {.size = size, .alignment = alignment, .bounded = true};
    CHECK(stats_of(space).max_looked_at <= 1); /* the direct choice succeeded so far */
    expect_no_space(space, wanted);
    uint64_t looked = stats_of(space).max_looked_at;
    CHECK(looked > 1 && looked <= QI_MAX_EXAMINED);
    CHECK_EQ(stats_of(space).full_passes, 0);
    wanted.bounded = false;
    expect_no_space(space, wanted);
    CHECK_EQ(stats_of(space).max_looked_at, looked); /* a full pass is not counted */
    CHECK_EQ(stats_of(space).full_passes, 1);
    CHECK_EQ(stats_of(space).full_pass_hits, 0);
}

UNIT(segregated_bounds, fifty_thousand_misaligned_holes_are_not_all_examined)
{
    quire_space *space = make_space((quire_space_options){.size = HOLES * 16 * KIB});
    lay_holes(space, 4 * KIB, 8 * KIB, 4 * KIB);
    expect_bounded_refusal(space, 8 * KIB, 8 * KIB);
    end_space(space);
}

UNIT(segregated_bounds, fifty_thousand_holes_slightly_too_small_are_not_all_examined)
{
    quire_space *space = make_space((quire_space_options){.size = HOLES * 1000, .fit.granule = 1});
    lay_holes(space, 2, 995, 3);
    expect_bounded_refusal(space, 1000, 1);
    CHECK_EQ(qi_class_of_range(995).index, qi_class_of_range(1000).index);
    end_space(space);
}

UNIT(segregated_bounds, large_holes_slightly_too_small_are_not_all_examined_when_nearly_full)
{
    enum { LARGE = 64 }; /* of 4 MiB: the bounded search examines narrow places here too */
    quire_space *space = make_space((quire_space_options){.size = LARGE * 32 * KIB * KIB});
    for (int i = 0; i < LARGE; i++) {
        ranges[i] = take_bytes(space, 4096 * KIB - 256).range;
        take_bytes(space, 28 * KIB * KIB + 256);
    }
    for (int i = 0; i < LARGE; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
    expect_bounded_refusal(space, 4096 * KIB, 1);
    end_space(space);
}

static void live_nearly_full(quire_space_options options, bool deferred, uint64_t seed)
{
    enum { LIVE = 4096 };
    static quire_range live[LIVE];
    test_random random = {seed};
    quire_space *space = make_space(options);
    defer_frees(space, deferred ? 64 : UINT32_MAX);
    memset(live, 0, sizeof live);
    for (int step = 0; step < TEST_ROUNDS(120000); step++) {
        quire_range *range = &live[random_below(&random, LIVE)];
        bool full = space->live_bytes > options.size / 100 * 95;
        quire_placement at = {0};
        quire_range_options wanted = {.size = random_size(&random, 1024 * KIB),
                                      .alignment = UINT64_C(1) << random_below(&random, 22),
                                      .bounded = true,
                                      .optimal = random_below(&random, 2)};
        if (range->id)
            CHECK_OK(quire_space_free(space, *range));
        else if (!full && quire_space_allocate_with(space, &wanted, &at))
            CHECK_EQ(quire_last_result(), QUIRE_ERROR_NO_SPACE);
        *range = at.range;
        CHECK(space->max_looked_at <= QI_MAX_EXAMINED);
    }
    CHECK(stats_of(space).max_looked_at > QI_MAX_EXAMINED / 2);
    CHECK_EQ(stats_of(space).full_passes, 0);
    end_space(space);
}

UNIT(segregated_bounds, random_traffic_in_a_nearly_full_space_stays_below_the_bound)
{
    for (uint64_t i = 0; i < 8; i++)
        live_nearly_full((quire_space_options){.size = 128 * KIB * KIB,
                                               .fit.least_fragmentation = i & 1,
                                               .buffer_image_granularity = i & 4 ? 64 * KIB : 0},
                         i & 2, i);
}

/* Many free ranges in stretches of the other kind precede the one that fits. */
UNIT(segregated_bounds, a_full_search_passes_many_ranges_of_the_other_kind)
{
    enum { COUNT = 200, GOOD = 150, REST = GRANULARITY - 256 };
    quire_space *space = make_space((quire_space_options){.size = COUNT * GRANULARITY,
                                                          .buffer_image_granularity = GRANULARITY});
    for (uint64_t i = 0; i < COUNT; i++) {
        quire_range_options options = {.size = 256, .optimal = i == GOOD};
        CHECK_EQ(take_with(space, options).offset, i * GRANULARITY);
        options.size = REST;
        ranges[i] = take_with(space, options).range;
    }
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
    quire_range_options wanted = {.size = REST, .optimal = true, .bounded = true};
    expect_no_space(space, wanted);
    CHECK(space->max_looked_at > 0 && space->max_looked_at <= QI_MAX_EXAMINED);
    wanted.bounded = false;
    CHECK_EQ(take_with(space, wanted).offset, GOOD * GRANULARITY + 256);
    expect_no_space(space, wanted);
    CHECK_EQ(space->full_passes, 2);
    CHECK_EQ(space->full_pass_hits, 1);
    end_space(space);
}

/* ---- host memory ----------------------------------------------------------------------------- */

UNIT(segregated_bounds, ten_ranges_in_a_gibibyte_take_few_kilobytes)
{
    quire_space *space = make_space((quire_space_options){.size = GIB});
    for (int i = 0; i < 10; i++)
        take_bytes(space, 100 * KIB);
    CHECK_EQ(stats_of(space).metadata_bytes, 5400);
    end_space(space);
}

static quire_space *make_peak(test_random *random, int count)
{
    quire_space *space = make_space((quire_space_options){.size = 64 * GIB});
    for (int i = 0; i < count; i++)
        ranges[i] = take_bytes(space, 256 + random_below(random, 1024 * KIB - 255)).range;
    return space;
}

UNIT(segregated_bounds, a_range_takes_less_than_forty_eight_bytes)
{
    enum { COUNT = 100000 };
    test_random random = {5};
    quire_space *space = make_peak(&random, COUNT);
    CHECK(stats_of(space).metadata_bytes < 36 * COUNT);
    for (int i = 0; i < COUNT; i++) { /* holes have records too */
        uint64_t at = random_below(&random, COUNT);
        CHECK_OK(quire_space_free(space, ranges[at]));
        ranges[at] = take_bytes(space, 256 + random_below(&random, 1024 * KIB - 255)).range;
    }
    CHECK(stats_of(space).metadata_bytes < 48 * COUNT);
    end_space(space);
}

/* A record with a high number becomes the lowest one, and every freed range merges into it. */
UNIT(segregated_bounds, an_empty_space_releases_all_records_of_a_peak)
{
    enum { COUNT = 10000 };
    quire_space *space = make_space((quire_space_options){.size = COUNT * KIB});
    for (uint64_t i = 0; i < COUNT; i++) {
        quire_placement at = take_bytes(space, KIB);
        ranges[at.offset / KIB] = at.range;
    }
    for (int i = COUNT - 3; i < COUNT - 1; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
    CHECK_OK(quire_space_free(space, ranges[0]));
    quire_placement lowest = take_bytes(space, 256);
    CHECK_EQ(lowest.offset, 0);
    ranges[0] = take_bytes(space, 768).range;
    CHECK_OK(quire_space_free(space, ranges[COUNT - 1]));
    CHECK_OK(quire_space_free(space, lowest.range));
    for (int i = 0; i < COUNT - 3; i++)
        CHECK_OK(quire_space_free(space, ranges[i]));
    quire_space_trim(space);
    CHECK(stats_of(space).metadata_bytes < 16 * KIB);
    CHECK_EQ(take_bytes(space, COUNT * KIB).offset, 0);
    end_space(space);
}

/* ---- the upper end --------------------------------------------------------------------------- */

static void expect_at(quire_space *space, uint64_t size, uint64_t alignment, uint64_t offset)
{
    CHECK_EQ(take_aligned(space, size, alignment).offset, offset);
    CHECK_OK(quire_space_check(space));
}

UNIT(segregated_bounds, large_requests_use_the_upper_end_and_small_ones_the_lower)
{
    const uint64_t end = 1024 * KIB;
    quire_space *space =
        make_space((quire_space_options){.size = end, .fit.least_fragmentation = true});
    expect_at(space, 64 * KIB - 256, 1, 0);
    expect_at(space, 64 * KIB, 1, end - 64 * KIB);
    expect_at(space, 64 * KIB - 255, 1, end - 128 * KIB); /* rounded up it is large */
    expect_at(space, 256, 1, 64 * KIB - 256);
    expect_at(space, 100 * KIB, 64 * KIB, end - 256 * KIB); /* 228 KiB below, aligned down */
    expect_at(space, 28 * KIB, 1, end - 156 * KIB);         /* the rest above it */
    expect_at(space, 704 * KIB, 1, 64 * KIB);               /* a whole range */
    expect_no_space(space, (quire_range_options){.size = 1});
    end_space(space);
}

/* A batch is as large as its ranges, not as large as their sum. */
UNIT(segregated_bounds, a_batch_uses_the_end_that_its_ranges_use)
{
    const uint64_t end = 1024 * KIB;
    quire_placement at[8] = {0};
    quire_space *space =
        make_space((quire_space_options){.size = end, .fit.least_fragmentation = true});
    CHECK_OK(quire_space_allocate_batch(space, 64 * KIB, 1, at, 2));
    CHECK_EQ(at[0].offset + at[1].offset, 2 * end - 192 * KIB);
    CHECK_OK(quire_space_allocate_batch(space, 16 * KIB, 1, at, 8));
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(at[i].offset, i * 16 * KIB);
    CHECK_OK(quire_space_check(space));
    end_space(space);
}

UNIT(segregated_bounds, the_upper_end_is_aligned_at_native_addresses)
{
    quire_space *space = make_space((quire_space_options){.fit.least_fragmentation = true});
    uint32_t region = 0;
    CHECK_OK(quire_space_add_region(space, 1024 * KIB, 3 * 256, &region));
    expect_at(space, 64 * KIB, 64 * KIB, 960 * KIB - 3 * 256);
    expect_at(space, 64 * KIB, 4 * KIB, 896 * KIB - 3 * 256);
    end_space(space);
}

UNIT(segregated_bounds, the_upper_end_starts_at_sixty_four_kibibytes_for_every_granule)
{
    for (uint64_t granule = 1; granule <= 128 * KIB; granule *= 2) {
        quire_space *space = make_space((quire_space_options){
            .size = 1024 * KIB, .fit = {.granule = granule, .least_fragmentation = true}});
        if (granule < 64 * KIB)
            expect_at(space, 64 * KIB - granule, 1, 0);
        uint64_t size = granule > 64 * KIB ? granule : 64 * KIB;
        expect_at(space, 64 * KIB, 1, 1024 * KIB - size);
        end_space(space);
    }
}

UNIT(segregated_bounds, the_upper_end_is_cut_before_the_other_kind)
{
    const uint64_t end = 1024 * KIB, large = 64 * KIB;
    quire_space *space = make_space((quire_space_options){
        .size = end, .fit.least_fragmentation = true, .buffer_image_granularity = GRANULARITY});
    const quire_range_options image = {.size = large + 256, .optimal = true};
    CHECK_EQ(take_with(space, image).offset, end - large - 256);
    expect_at(space, large, 1, end - 2 * large - GRANULARITY);
    expect_at(space, large + 256, 1, end - 3 * large - GRANULARITY - 256);
    end_space(space);
}

UNIT(segregated_bounds, the_granularity_raises_the_largest_alignment)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        quire_space *space = new_space((quire_space_options){
            .fit.algorithm = FITS[i], .size = 16 << 20, .buffer_image_granularity = 8 << 20});
        quire_placement at;
        take_bytes(space, 256);
        CHECK_EQ(take_with(space, (quire_range_options){.size = 256, .optimal = true}).offset,
                 8 << 20);
        CHECK_FAILS(quire_space_allocate(space, 256, 16 << 20, 0, &at),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_FAILS(quire_space_allocate(space, 9 << 20, 8 << 20, 0, &at), QUIRE_ERROR_NO_SPACE);
        end_space(space);
    }
}

/* ---- the lowest address ---------------------------------------------------------------------- */

/* Holes of 8, 4 and 1 KiB: the direct choice is the last, which is the tightest. */
UNIT(segregated_bounds, the_lowest_address_is_served_on_request)
{
    for (int fragmentation = 0; fragmentation < 2; fragmentation++) {
        quire_space *space = make_space(
            (quire_space_options){.size = 1024 * KIB, .fit.least_fragmentation = fragmentation});
        quire_range hole[3];
        const uint64_t sizes[3] = {8 * KIB, 4 * KIB, KIB};
        for (int i = 0; i < 3; i++) {
            hole[i] = take_bytes(space, sizes[i]).range;
            take_bytes(space, 256);
        }
        for (int i = 0; i < 3; i++)
            CHECK_OK(quire_space_free(space, hole[i]));
        const struct {
            quire_range_options options;
            uint64_t offset;
        } rows[] = {
            {{.size = KIB, .lowest = true}, 0},
            {{.size = 4 * KIB, .alignment = 4 * KIB, .lowest = true}, 4 * KIB},
            {{.size = 64 * KIB, .bounded = true, .lowest = true}, 13 * KIB + 3 * 256},
        };
        for (int i = 0; i < 3; i++)
            CHECK_EQ(take_with(space, rows[i].options).offset, rows[i].offset);
        expect_no_space(space, (quire_range_options){.size = 1024 * KIB, .lowest = true});
        end_space(space);
    }
}
