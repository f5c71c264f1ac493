/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear.c - what the linear fit rejects and reports, and its limits. (Clearing is in
 * linear_clear.c. tests/plain/linear_model.c compares every place with an oracle.)
 */
#include "src/space/linear/linear.h"

#include "tests/support/space_steps.h"

static quire_space *make_space(uint64_t size)
{
    return space_of(QUIRE_FIT_LINEAR, size);
}

static quire_placement take_upper(quire_space *space, uint64_t size)
{
    return take_with(space, (quire_range_options){.size = size, .upper = true});
}

/* The request fails, lower and upper, and nothing changes. */
static void expect_full(quire_space *space, uint64_t size, bool upper)
{
    quire_space_stats before = stats_of(space), after;
    expect_no_space(space, (quire_range_options){.size = size, .upper = upper});
    expect_no_space(space, (quire_range_options){.size = size, .upper = upper, .bounded = true});
    after = stats_of(space);
    CHECK(!memcmp(&before, &after, sizeof before));
}

UNIT(linear, padding_that_does_not_fit_fails)
{
    quire_space *space = make_space(1000);
    quire_placement at;
    take_bytes(space, 705);
    CHECK_FAILS(quire_space_allocate(space, 233, 256, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no room for 233 at a multiple of 256 after the newest range: "
                                  "295 left there or by wrapping, 295 free in all");
    CHECK_EQ(take_aligned(space, 232, 256).offset, 768);
    CHECK_EQ(stats_of(space).free_count, 0);
    end_space(space);
}

/* ---- the region ---------------------------------------------------------------------------- */

UNIT(linear, one_region_at_a_time_is_allowed)
{
    quire_space *space = make_space(1000);
    uint32_t region = 9;
    CHECK_FAILS(quire_space_add_region(space, 1000, 0, &region), QUIRE_ERROR_WRONG_STATE);
    CHECK_STR(quire_last_error(), "the space has 1 region, as many as its fit takes: remove it "
                                  "before adding another");
    CHECK_EQ(region, 0);
    quire_placement at = take_aligned(space, 1, 1), upper;
    CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_BUSY);
    give(space, at.range);
    upper = take_upper(space, 1);
    CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_BUSY);
    give(space, upper.range);
    CHECK_OK(quire_space_remove_region(space, 0));
    CHECK_EQ(stats_of(space).free_count, 0);
    CHECK_EQ(stats_of(space).largest_free, 0);
    expect_full(space, 1, false);
    expect_full(space, 1, true);
    CHECK_OK(quire_space_clear(space));
    CHECK_EQ(stats_of(space).free_count, 0);
    CHECK_OK(quire_space_add_region(space, 50, 7, &region));
    CHECK_EQ(region, 0);
    CHECK_EQ(take_bytes(space, 50).offset, 0);
    CHECK_FAILS(quire_space_free(space, at.range), QUIRE_ERROR_STALE_HANDLE);
    end_space(space);
}

UNIT(linear, the_largest_region_and_its_last_byte)
{
    quire_space *space = make_space(UINT64_C(1) << 62);
    quire_placement low = take_bytes(space, UINT64_C(1) << 61);
    CHECK_EQ(take_upper(space, UINT64_C(1) << 61).offset, UINT64_C(1) << 61);
    expect_full(space, 1, false);
    expect_full(space, UINT64_MAX, true);
    give(space, low.range);
    expect_full(space, UINT64_MAX, false);
    CHECK_EQ(stats_of(space).largest_free, UINT64_C(1) << 61);
    end_space(space);
}

UNIT(linear, resource_kinds_are_separated_at_both_ends)
{
    quire_space *space = new_space((quire_space_options){
        .fit.algorithm = QUIRE_FIT_LINEAR, .size = 65536, .buffer_image_granularity = 1024});
    quire_range_options image = {.size = 10, .optimal = true};
    take_bytes(space, 10);
    take_upper(space, 10);
    quire_placement at = take_with(space, image);
    CHECK_EQ(at.offset, 1024);
    CHECK_EQ(at.size, 1024);
    image.upper = true;
    CHECK_EQ(take_with(space, image).offset, 65536 - 2048);
    CHECK_EQ(take_bytes(space, 10).offset, 2048);
    end_space(space);
}
