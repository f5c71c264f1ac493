/*
 * linear.c - what the linear fit rejects and reports, its limits, and a ring of frames. (Clearing
 * is in linear_clear.c. tests/plain/linear_model.c compares every place with an oracle.)
 */
#include "src/space/linear/linear.h"

#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static quire_space *make_space(uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_LINEAR, .size = size};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_placement take(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    CHECK_OK(quire_space_check(space));
    return at;
}

static quire_placement take_upper(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    quire_range_options options = {.size = size, .alignment = alignment, .upper = true};
    CHECK_OK(quire_space_allocate_with(space, &options, &at));
    CHECK_OK(quire_space_check(space));
    return at;
}

static void give(quire_space *space, quire_placement at)
{
    CHECK_OK(quire_space_free(space, at.range));
    CHECK_OK(quire_space_check(space));
}

/* The request fails, lower and upper, and nothing changes. */
static void expect_full(quire_space *space, uint64_t size, bool upper)
{
    quire_placement at;
    quire_space_stats before = stats_of(space), after;
    quire_range_options options = {.size = size, .upper = upper};
    CHECK_FAILS(quire_space_allocate_with(space, &options, &at), QUIRE_ERROR_NO_SPACE);
    options.bounded = true;
    CHECK_FAILS(quire_space_allocate_with(space, &options, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(at.range.id, 0);
    after = stats_of(space);
    CHECK(!memcmp(&before, &after, sizeof before));
}

UNIT(linear, padding_that_does_not_fit_fails)
{
    quire_space *space = make_space(1000);
    quire_placement at;
    take(space, 705, 1);
    CHECK_FAILS(quire_space_allocate(space, 233, 256, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_STR(quire_last_error(), "no room for 233 at a multiple of 256 after the newest range: "
                                  "295 left there or by wrapping, 295 free in all");
    CHECK_EQ(take(space, 232, 256).offset, 768);
    CHECK_EQ(stats_of(space).free_count, 0);
    end_space(space);
}

/* Uploads of 1 to 3 frames in flight: no request of any size fails. */
UNIT(linear, a_ring_of_frames_wraps_without_end)
{
    enum { SIZE = 10000, FRAMES = 3, EACH = 11 };
    quire_space *space = make_space(SIZE);
    quire_range frames[FRAMES][EACH];
    uint64_t wraps = 0, last = 0;
    for (uint64_t frame = 0; frame < 3000; frame++) {
        quire_range *ranges = frames[frame % FRAMES];
        if (frame >= FRAMES)
            CHECK_OK(quire_space_free_batch(space, ranges, EACH));
        for (uint64_t i = 0; i < EACH; i++) {
            quire_placement at = take(space, 1 + (frame * 31 + i * 17) % 190, 16);
            wraps += at.offset < last;
            last = at.offset;
            ranges[i] = at.range;
        }
    }
    CHECK(wraps > 200);
    CHECK_EQ(space->pool.capacity, 64); /* 33 live ranges and one node for the region */
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
    quire_placement at = take(space, 1, 1), upper;
    CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_BUSY);
    give(space, at);
    upper = take_upper(space, 1, 1);
    CHECK_FAILS(quire_space_remove_region(space, 0), QUIRE_ERROR_BUSY);
    give(space, upper);
    CHECK_OK(quire_space_remove_region(space, 0));
    CHECK_EQ(stats_of(space).free_count, 0);
    CHECK_EQ(stats_of(space).largest_free, 0);
    expect_full(space, 1, false);
    expect_full(space, 1, true);
    CHECK_OK(quire_space_clear(space));
    CHECK_EQ(stats_of(space).free_count, 0);
    CHECK_OK(quire_space_add_region(space, 50, 7, &region));
    CHECK_EQ(region, 0);
    CHECK_EQ(take(space, 50, 1).offset, 0);
    CHECK_FAILS(quire_space_free(space, at.range), QUIRE_ERROR_STALE_HANDLE);
    end_space(space);
}

UNIT(linear, the_largest_region_and_its_last_byte)
{
    quire_space *space = make_space(UINT64_C(1) << 62);
    quire_placement low = take(space, UINT64_C(1) << 61, 1);
    CHECK_EQ(take_upper(space, UINT64_C(1) << 61, 1).offset, UINT64_C(1) << 61);
    expect_full(space, 1, false);
    expect_full(space, UINT64_MAX, true);
    give(space, low);
    expect_full(space, UINT64_MAX, false);
    CHECK_EQ(stats_of(space).largest_free, UINT64_C(1) << 61);
    end_space(space);
}

UNIT(linear, resource_kinds_are_separated_at_both_ends)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_LINEAR,
                                   .size = 65536,
                                   .buffer_image_granularity = 1024,
                                   .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    quire_placement at;
    take(space, 10, 1);
    take_upper(space, 10, 1);
    CHECK_OK(
        quire_space_allocate_with(space, &(quire_range_options){.size = 10, .optimal = true}, &at));
    CHECK_EQ(at.offset, 1024);
    CHECK_EQ(at.size, 1024);
    CHECK_OK(quire_space_allocate_with(
        space, &(quire_range_options){.size = 10, .optimal = true, .upper = true}, &at));
    CHECK_EQ(at.offset, 65536 - 2048);
    CHECK_EQ(take(space, 10, 1).offset, 2048);
    end_space(space);
}
