/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * refusals.c - what a space remembers of the requests that it refused: which later requests a
 * refusal covers, and what forgets it; and the sentence of a refusal, with the numbers of that
 * moment, also if the space remembers it. (tests/plain/space_model.c: a full search refuses only
 * what no free range holds.)
 */
#include "src/space/refusals.h"
#include "src/space/space.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"

enum { UNIT_SIZE = 4096, PARTS = 8 };

/* ---- the record ------------------------------------------------------------------------------ */

UNIT(refusals, nothing_is_covered_before_a_refusal)
{
    const qi_refusals none = {0};
    CHECK(!qi_refusals_cover(&none, UINT64_MAX, 1, false));
    CHECK(!qi_refusals_cover(&none, UINT64_MAX, 1 << 30, true));
}

UNIT(refusals, a_refusal_covers_what_is_as_large_and_as_aligned)
{
    qi_refusals refusals = {0};
    qi_refusals_add(&refusals, 1000, 64, false);
    CHECK(qi_refusals_cover(&refusals, 1000, 64, false));
    CHECK(qi_refusals_cover(&refusals, UINT64_MAX, 64, false));
    CHECK(qi_refusals_cover(&refusals, 1000, 1 << 30, false));
    CHECK(!qi_refusals_cover(&refusals, 999, 64, false));
    CHECK(!qi_refusals_cover(&refusals, 999, 1 << 30, false));
    CHECK(!qi_refusals_cover(&refusals, UINT64_MAX - 1, 32, false));
    CHECK(!qi_refusals_cover(&refusals, 1000, 64, true));
}

UNIT(refusals, refusals_of_each_alignment_and_tiling_are_kept)
{
    qi_refusals refusals = {0};
    test_random random = {8};
    struct {
        uint64_t size, alignment;
        bool optimal;
    } added[40];
    for (int count = 0; count < 40; count++) {
        added[count].size = random_size(&random, 1 << 20);
        added[count].alignment = UINT64_C(1) << random_below(&random, 31);
        added[count].optimal = random_below(&random, 2);
        qi_refusals_add(&refusals, added[count].size, added[count].alignment, added[count].optimal);
        for (int step = 0; step < 200; step++) {
            uint64_t size = random_size(&random, 1 << 20);
            uint64_t alignment = UINT64_C(1) << random_below(&random, 31);
            bool optimal = random_below(&random, 2), covered = false;
            for (int i = 0; i <= count; i++)
                covered |= size >= added[i].size && alignment >= added[i].alignment &&
                           optimal == added[i].optimal;
            CHECK_EQ(qi_refusals_cover(&refusals, size, alignment, optimal), covered);
        }
    }
}

/* ---- a space that remembers ------------------------------------------------------------------ */

/* The linear fit refuses in constant time and remembers nothing. */

typedef struct bench {
    quire_space *space;
    quire_range parts[PARTS];
} bench;

/* A region of PARTS parts, all live. */
static bench make_full(quire_fit fit)
{
    bench b = {.space = space_of(fit, (uint64_t)PARTS * UNIT_SIZE)};
    for (int i = 0; i < PARTS; i++)
        b.parts[i] = take_bytes(b.space, UNIT_SIZE).range;
    return b;
}

static void refuse(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(space, size, alignment, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK(space->refusals.any);
}

/* Two parts that are no neighbours are free, and a request for two is refused. */
static bench make_refused(quire_fit fit)
{
    bench b = make_full(fit);
    CHECK_OK(quire_space_free(b.space, b.parts[0]));
    CHECK_OK(quire_space_free(b.space, b.parts[2]));
    refuse(b.space, 2 * UNIT_SIZE, 1);
    return b;
}

UNIT(refusals, what_a_refusal_covers_is_refused_without_a_search)
{
    bench b = make_refused(QUIRE_FIT_SEGREGATED);
    CHECK_EQ(b.space->full_passes, 1);
    b.space->max_looked_at = 0;
    const char *const sentence =
        "no free range of 8192 at a multiple of 1: the space is fragmented, with 8192 free";
    for (int i = 0; i < 1000; i++) {
        refuse(b.space, 2 * UNIT_SIZE, 1);
        CHECK_HAS(quire_last_error(), sentence);
    }
    refuse(b.space, 3 * UNIT_SIZE + 77, 4096);
    CHECK_HAS(quire_last_error(),
              "no free range of 12365 at a multiple of 4096: the space is exhausted, with 8192");
    quire_placement at;
    const quire_range_options bounded = {.size = 2 * UNIT_SIZE, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(b.space, &bounded, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(b.space->full_passes, 1);
    CHECK_EQ(b.space->max_looked_at, 0);
    end_space(b.space);
}

UNIT(refusals, what_no_refusal_covers_is_searched)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        bench b = make_refused(FITS[i]);
        quire_placement at;
        CHECK_OK(quire_space_allocate(b.space, UNIT_SIZE, 4 * UNIT_SIZE, 0, &at)); /* part 0 */
        CHECK(b.space->refusals.any); /* an allocation makes no room */
        refuse(b.space, UNIT_SIZE, 4 * UNIT_SIZE);
        take_bytes(b.space, UNIT_SIZE); /* part 2 */
        CHECK_OK(quire_space_free(b.space, at.range));
        take_bytes(b.space, UNIT_SIZE);
        end_space(b.space);
    }
}

/* ---- what makes room ------------------------------------------------------------------------- */

static void free_one(bench *b)
{
    CHECK_OK(quire_space_free(b->space, b->parts[1]));
}

static void free_some(bench *b)
{
    const quire_range ranges[] = {b->parts[3], b->parts[1]};
    CHECK_OK(quire_space_free_batch(b->space, ranges, 2));
}

static void clear(bench *b)
{
    CHECK_OK(quire_space_clear(b->space));
}

static void add_room(bench *b)
{
    add_region(b->space, (uint64_t)2 * UNIT_SIZE, 0);
}

static void grow_region(bench *b)
{
    if (b->space->fit->resize_region)
        CHECK_OK(quire_space_resize_region(b->space, 0, (uint64_t)(PARTS + 2) * UNIT_SIZE));
    else
        add_room(b); /* the buddy fit */
}

static void (*const rooms[])(bench *) = {free_one, free_some, clear, add_room, grow_region};

UNIT(refusals, whatever_makes_room_forgets_them)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++)
        for (size_t j = 0; j < sizeof rooms / sizeof *rooms; j++) {
            bench b = make_refused(FITS[i]);
            rooms[j](&b);
            CHECK(!b.space->refusals.any);
            take_bytes(b.space, 2 * UNIT_SIZE);
            end_space(b.space);
        }
}

UNIT(refusals, calls_that_make_no_room_keep_them)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        bench b = make_refused(FITS[i]);
        quire_placement at;
        const quire_range wrong[] = {b.parts[1], b.parts[1]};
        CHECK_FAILS(quire_space_free_batch(b.space, wrong, 2), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_space_remove_region(b.space, 0), QUIRE_ERROR_BUSY);
        CHECK_FAILS(quire_space_add_region(b.space, 0, 0, &(uint32_t){0}),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_OK(quire_space_get(b.space, b.parts[1], &at));
        CHECK_OK(quire_space_set_user(b.space, b.parts[1], 7));
        quire_space_trim(b.space);
        CHECK(b.space->refusals.any);
        refuse(b.space, 2 * UNIT_SIZE, 1);
        end_space(b.space);
    }
}

UNIT(refusals, a_wrong_free_is_reported_while_there_are_refusals)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        bench b = make_refused(FITS[i]);
        CHECK_FAILS(quire_space_free(b.space, b.parts[0]), QUIRE_ERROR_STALE_HANDLE);
        refuse(b.space, 2 * UNIT_SIZE, 1);
        CHECK_FAILS(quire_space_free(b.space, (quire_range){0}), QUIRE_ERROR_INVALID_ARGUMENT);
        end_space(b.space);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

UNIT(refusals, a_batch_searches_fully_and_remembers)
{
    bench b = make_refused(QUIRE_FIT_SEGREGATED);
    quire_placement at[2] = {{.user = 1}, {.user = 2}};
    uint64_t passes = b.space->full_passes;
    for (int i = 0; i < 10; i++)
        CHECK_FAILS(quire_space_allocate_batch(b.space, UNIT_SIZE, 4 * UNIT_SIZE, at + 1, 1),
                    i ? QUIRE_ERROR_NO_SPACE : QUIRE_SUCCESS);
    CHECK_EQ(b.space->full_passes, passes + 1);
    CHECK_FAILS(quire_space_allocate_batch(b.space, 2 * UNIT_SIZE, 1, at, 2), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(at[1].user, 2);
    end_space(b.space);
}

/* ---- slabs ----------------------------------------------------------------------------------- */

UNIT(refusals, a_slab_serves_its_class_whatever_was_refused)
{
    quire_space *space =
        new_space((quire_space_options){.fit = {.slabs = true, .granule = 1}, .size = 4 * 4096});
    for (int i = 0; i < 3; i++)
        CHECK_EQ(take_bytes(space, 4096).size, 4096); /* three of the four slots of a slab */
    refuse(space, 1, 1);
    quire_range last = take_bytes(space, 4096).range;
    refuse(space, 4096, 1);
    refuse(space, 1, 1);
    CHECK_EQ(space->full_passes, 1);
    CHECK_OK(quire_space_free(space, last));
    CHECK(!space->refusals.any);
    take_bytes(space, 4096);
    end_space(space);
}

/* ---- tilings --------------------------------------------------------------------------------- */

enum { STRETCH = 1024 };

static quire_result ask(quire_space *space, uint64_t size, bool optimal)
{
    quire_placement at;
    const quire_range_options options = {.size = size, .optimal = optimal};
    return quire_space_allocate_with(space, &options, &at);
}

/* One stretch is left, and a linear range is in it. The fits that cannot look at neighbours widen
   an optimal request to whole stretches. */
UNIT(refusals, a_refused_optimal_request_leaves_linear_ones)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        quire_space *space = new_space((quire_space_options){
            .fit.algorithm = FITS[i], .size = STRETCH, .buffer_image_granularity = STRETCH});
        CHECK_OK(ask(space, 256, false));
        CHECK_FAILS(ask(space, 256, true), QUIRE_ERROR_NO_SPACE);
        CHECK(space->refusals.any);
        CHECK_FAILS(ask(space, 512, true), QUIRE_ERROR_NO_SPACE);
        CHECK_OK(ask(space, 512, false));
        end_space(space);
    }
}

/* ---- the sentence: can never fit, exhausted, fragmented or misplaced ------------------------- */

static quire_space *make_fine(quire_fit fit, uint64_t size)
{
    return new_space((quire_space_options){.fit = {.algorithm = fit, .granule = 1}, .size = size});
}

static quire_range take(quire_space *space, uint64_t size)
{
    return take_bytes(space, size).range;
}

static void expect_sentence(quire_space *space, uint64_t size, uint64_t alignment,
                            const char *sentence)
{
    expect_no_space(space, (quire_range_options){.size = size, .alignment = alignment});
    CHECK_STR(quire_last_error(), sentence);
}

UNIT(refusals, a_request_above_every_region_can_never_fit)
{
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make_fine(FITS[i], 4096);
        expect_sentence(space, 4097, 1, "4097 can never fit: the space has 4096");
        if (FITS[i] == QUIRE_FIT_LINEAR) {
            end_space(space);
            continue;
        }
        expect_sentence(space, UINT64_MAX, 1,
                        "18446744073709551615 can never fit: the space has 4096");
        uint32_t region = add_region(space, 8192, 0);
        expect_sentence(space, 8193, 1, "8193 can never fit: the largest of 2 regions has 8192");
        CHECK_OK(quire_space_remove_region(space, region));
        CHECK_OK(quire_space_remove_region(space, 0));
        expect_sentence(space, 1, 1, "no free range of 1: the space has no region");
        end_space(space);
    }
}

UNIT(refusals, a_block_larger_than_the_region_can_never_fit)
{
    quire_space *space = make_fine(QUIRE_FIT_BUDDY, 768);
    expect_sentence(space, 600, 1,
                    "600 can never fit: it needs a block of 1024, and the largest region has 768");
    end_space(space);
}

UNIT(refusals, an_exhausted_space_and_a_fragmented_one_are_told_apart)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        quire_space *space = make_fine(FITS[i], 4096);
        quire_range parts[4];
        for (int k = 0; k < 4; k++)
            parts[k] = take(space, 1024);
        CHECK_OK(quire_space_free(space, parts[0]));
        expect_sentence(
            space, 2048, 1,
            "no free range of 2048 at a multiple of 1: the space is exhausted, with 1024 free "
            "in 1 region; largest free range 1024");
        CHECK_OK(quire_space_free(space, parts[2]));
        expect_sentence(
            space, 2048, 1,
            "no free range of 2048 at a multiple of 1: the space is fragmented, with 2048 free "
            "in 1 region; largest free range 1024");
        end_space(space);
    }
}

UNIT(refusals, padding_does_not_count_as_free)
{
    quire_space *space = make_fine(QUIRE_FIT_FIRST, 1000);
    take(space, 10);
    take_aligned(space, 100, 256);
    expect_sentence(
        space, 700, 1,
        "no free range of 700 at a multiple of 1: the space is exhausted, with 644 free in 1 "
        "region; largest free range 644");
    end_space(space);
}

UNIT(refusals, a_large_range_at_the_wrong_place_is_named)
{
    quire_space *space = make_fine(QUIRE_FIT_FIRST, 4096);
    take(space, 100);
    expect_sentence(
        space, 3500, 1024,
        "no free range of 3500 at a multiple of 1024: none that is large enough has such a "
        "place, with 3996 free in 1 region; largest free range 3996");
    end_space(space);
}

/* A remembered refusal has the numbers of its own moment. */
UNIT(refusals, the_numbers_follow_allocations_between_refusals)
{
    for (int i = 0; i < REGIONS_FIT_COUNT; i++) {
        quire_space *space = make_fine(FITS[i], 4096);
        take(space, 2048);
        for (int k = 0; k < 2; k++)
            expect_sentence(
                space, 4096, 1,
                "no free range of 4096 at a multiple of 1: the space is exhausted, with 2048 "
                "free in 1 region; largest free range 2048");
        quire_range last = take(space, 1024);
        expect_sentence(
            space, 4096, 1,
            "no free range of 4096 at a multiple of 1: the space is exhausted, with 1024 free "
            "in 1 region; largest free range 1024");
        CHECK_OK(quire_space_free(space, last));
        expect_sentence(
            space, 4096, 1,
            "no free range of 4096 at a multiple of 1: the space is exhausted, with 2048 free "
            "in 1 region; largest free range 2048");
        end_space(space);
    }
}

UNIT(refusals, a_bounded_search_claims_no_cause)
{
    quire_space *space = make_fine(QUIRE_FIT_SEGREGATED, 4096);
    take(space, 4000);
    expect_no_space(space, (quire_range_options){.size = 200, .bounded = true});
    CHECK_STR(quire_last_error(), "the bounded search found no free range of 200 at a multiple of "
                                  "1; 96 free in 1 region");
    expect_no_space(space, (quire_range_options){.size = 5000, .bounded = true});
    CHECK_STR(quire_last_error(), "5000 can never fit: the space has 4096");
    end_space(space);
}

UNIT(refusals, a_batch_says_how_many_ranges_it_needed)
{
    quire_space *space = make_fine(QUIRE_FIT_SEGREGATED, 4096);
    quire_placement at[5];
    CHECK_FAILS(quire_space_allocate_batch(space, 1000, 1, at, 5), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no room for 5 ranges of 1000 at a multiple of 1; 4096 free in 1 "
                                  "region, largest free range 4096");
    CHECK_FAILS(quire_space_allocate_batch(space, 5000, 1, at, 2), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "5000 can never fit: the space has 4096");
    end_space(space);
}

/* A batch is first refused without a sentence, which looks nothing up. */
UNIT(refusals, the_numbers_of_a_batch_are_of_that_moment)
{
    quire_space *space = make_fine(QUIRE_FIT_SEGREGATED, 4096);
    quire_placement at;
    quire_range first = take(space, 1024), second = take(space, 1024), third = take(space, 1024);
    quire_range last = take(space, 1024);
    CHECK_FAILS(quire_space_allocate_batch(space, 64, 1, &at, 1), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no room for 1 range of 64 at a multiple of 1; 0 free in 1 "
                                  "region, largest free range 0");
    CHECK_OK(quire_space_free(space, first));
    CHECK_OK(quire_space_free(space, second));
    expect_sentence(
        space, 2049, 1,
        "no free range of 2049 at a multiple of 1: the space is exhausted, with 2048 free in 1 "
        "region; largest free range 2048");
    first = take(space, 2048);
    CHECK_OK(quire_space_free(space, third));
    CHECK_OK(quire_space_free(space, first));
    first = take(space, 1024); /* 2048 are free again, or in two parts */
    third = take(space, 1024);
    second = take(space, 1024);
    CHECK_OK(quire_space_free(space, first));
    CHECK_OK(quire_space_free(space, second));
    CHECK_FAILS(quire_space_allocate_batch(space, 2048, 1, &at, 1), QUIRE_ERROR_NO_SPACE);
    CHECK_HAS(quire_last_error(), "2048 free in 1 region, largest free range 1024");
    CHECK_OK(quire_space_free(space, third));
    CHECK_OK(quire_space_free(space, last));
    end_space(space);
}
