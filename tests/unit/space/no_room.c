/*
 * no_room.c - the sentence of a refused request: can never fit, exhausted, fragmented or misplaced,
 * with the numbers of that moment, also if the space remembers the refusal.
 */
#include "src/space/space.h"
#include "tests/support/unit.h"

static quire_space *make(quire_fit algorithm, uint64_t size)
{
    quire_space *space = NULL;
    CHECK_OK(
        quire_space_create(&(quire_space_options){.size = size,
                                                  .host_memory = unit_memory(),
                                                  .fit = {.algorithm = algorithm, .granule = 1}},
                           &space));
    return space;
}

static quire_range take(quire_space *space, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, 1, 0, &at));
    return at.range;
}

static void expect(quire_space *space, uint64_t size, uint64_t alignment, const char *sentence)
{
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(space, size, alignment, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), sentence);
}

static const quire_fit FITS[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
enum { FIT_COUNT = sizeof FITS / sizeof *FITS };

UNIT(no_room, a_request_above_every_region_can_never_fit)
{
    uint32_t region;
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make(FITS[i], 4096);
        expect(space, 4097, 1, "4097 can never fit: the space has 4096");
        expect(space, UINT64_MAX, 1, "18446744073709551615 can never fit: the space has 4096");
        CHECK_OK(quire_space_add_region(space, 8192, 0, &region));
        expect(space, 8193, 1, "8193 can never fit: the largest of 2 regions has 8192");
        CHECK_OK(quire_space_remove_region(space, region));
        CHECK_OK(quire_space_remove_region(space, 0));
        expect(space, 1, 1, "no free range of 1: the space has no region");
        quire_space_destroy(&space);
    }
}

UNIT(no_room, a_linear_space_says_what_can_never_fit)
{
    quire_space *space = make(QUIRE_FIT_LINEAR, 4096);
    expect(space, 4097, 1, "4097 can never fit: the space has 4096");
    quire_space_destroy(&space);
}

UNIT(no_room, a_block_larger_than_the_region_can_never_fit)
{
    quire_space *space = make(QUIRE_FIT_BUDDY, 768);
    expect(space, 600, 1,
           "600 can never fit: it needs a block of 1024, and the largest region has 768");
    quire_space_destroy(&space);
}

UNIT(no_room, an_exhausted_space_and_a_fragmented_one_are_told_apart)
{
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make(FITS[i], 4096);
        quire_range parts[4];
        for (int k = 0; k < 4; k++)
            parts[k] = take(space, 1024);
        CHECK_OK(quire_space_free(space, parts[0]));
        expect(space, 2048, 1,
               "no free range of 2048 at a multiple of 1: the space is exhausted, with 1024 free "
               "in 1 region; largest free range 1024");
        CHECK_OK(quire_space_free(space, parts[2]));
        expect(space, 2048, 1,
               "no free range of 2048 at a multiple of 1: the space is fragmented, with 2048 free "
               "in 1 region; largest free range 1024");
        quire_space_destroy(&space);
    }
}

UNIT(no_room, padding_does_not_count_as_free)
{
    quire_space *space = make(QUIRE_FIT_FIRST, 1000);
    quire_placement at;
    take(space, 10);
    CHECK_OK(quire_space_allocate(space, 100, 256, 0, &at));
    expect(space, 700, 1,
           "no free range of 700 at a multiple of 1: the space is exhausted, with 644 free in 1 "
           "region; largest free range 644");
    quire_space_destroy(&space);
}

UNIT(no_room, a_large_range_at_the_wrong_place_is_named)
{
    quire_space *space = make(QUIRE_FIT_FIRST, 4096);
    take(space, 100);
    expect(space, 3500, 1024,
           "no free range of 3500 at a multiple of 1024: none that is large enough has such a "
           "place, with 3996 free in 1 region; largest free range 3996");
    quire_space_destroy(&space);
}

/* A remembered refusal has the numbers of its own moment. */
UNIT(no_room, the_numbers_follow_allocations_between_refusals)
{
    for (int i = 0; i < FIT_COUNT; i++) {
        quire_space *space = make(FITS[i], 4096);
        take(space, 2048);
        for (int k = 0; k < 2; k++)
            expect(space, 4096, 1,
                   "no free range of 4096 at a multiple of 1: the space is exhausted, with 2048 "
                   "free in 1 region; largest free range 2048");
        quire_range last = take(space, 1024);
        expect(space, 4096, 1,
               "no free range of 4096 at a multiple of 1: the space is exhausted, with 1024 free "
               "in 1 region; largest free range 1024");
        CHECK_OK(quire_space_free(space, last));
        expect(space, 4096, 1,
               "no free range of 4096 at a multiple of 1: the space is exhausted, with 2048 free "
               "in 1 region; largest free range 2048");
        quire_space_destroy(&space);
    }
}

UNIT(no_room, a_bounded_search_claims_no_cause)
{
    quire_space *space = make(QUIRE_FIT_SEGREGATED, 4096);
    quire_placement at;
    take(space, 4000);
    quire_range_options options = {.size = 200, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(space, &options, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "the bounded search found no free range of 200 at a multiple of "
                                  "1; 96 free in 1 region");
    options.size = 5000;
    CHECK_FAILS(quire_space_allocate_with(space, &options, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "5000 can never fit: the space has 4096");
    quire_space_destroy(&space);
}

UNIT(no_room, a_batch_says_how_many_ranges_it_needed)
{
    quire_space *space = make(QUIRE_FIT_SEGREGATED, 4096);
    quire_placement at[5];
    CHECK_FAILS(quire_space_allocate_batch(space, 1000, 1, at, 5), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no room for 5 ranges of 1000 at a multiple of 1; 4096 free in 1 "
                                  "region, largest free range 4096");
    CHECK_FAILS(quire_space_allocate_batch(space, 5000, 1, at, 2), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "5000 can never fit: the space has 4096");
    quire_space_destroy(&space);
}

/* A batch is first refused without a sentence, which looks nothing up. */
UNIT(no_room, the_numbers_of_a_batch_are_of_that_moment)
{
    quire_space *space = make(QUIRE_FIT_SEGREGATED, 4096);
    quire_placement at;
    quire_range first = take(space, 1024), second = take(space, 1024), third = take(space, 1024);
    quire_range last = take(space, 1024);
    CHECK_FAILS(quire_space_allocate_batch(space, 64, 1, &at, 1), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no room for 1 range of 64 at a multiple of 1; 0 free in 1 "
                                  "region, largest free range 0");
    CHECK_OK(quire_space_free(space, first));
    CHECK_OK(quire_space_free(space, second));
    expect(space, 2049, 1,
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
    quire_space_destroy(&space);
}
