/*
 * linear.c - where the linear fit places ranges, as a stack, a ring and two stacks; ranges freed
 * out of order; what it rejects and reports. (Clearing is in linear_clear.c.)
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

static quire_space_stats stats_of(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_check(space));
    CHECK_OK(quire_space_get_stats(space, &stats));
    return stats;
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

/* ---- a stack ------------------------------------------------------------------------------- */

UNIT(linear, ranges_are_adjacent_up_to_the_last_byte)
{
    quire_space *space = make_space(1000);
    for (uint64_t i = 0; i < 9; i++)
        CHECK_EQ(take(space, 100, 1).offset, i * 100);
    expect_full(space, 101, false);
    CHECK_EQ(stats_of(space).largest_free, 100);
    CHECK_EQ(take(space, 100, 1).offset, 900);
    CHECK_EQ(stats_of(space).free_count, 0);
    CHECK_EQ(stats_of(space).largest_free, 0);
    expect_full(space, 1, false);
    expect_full(space, 1, true);
    end_space(space);
}

UNIT(linear, freeing_the_newest_range_moves_the_end_back_over_padding_and_gaps)
{
    quire_space *space = make_space(1000);
    quire_placement a = take(space, 10, 1), b = take(space, 20, 64), c = take(space, 30, 1);
    CHECK_EQ(b.offset, 64);
    CHECK_EQ(b.left_padding, 54);
    CHECK_EQ(c.offset, 84);
    give(space, c);
    CHECK_EQ(take(space, 5, 1).offset, 84);
    CHECK_OK(quire_space_clear(space));
    a = take(space, 10, 1), b = take(space, 20, 64), c = take(space, 30, 1);
    give(space, b);
    CHECK_EQ(stats_of(space).free_count, 2); /* the gap exists, but no request gets it yet */
    CHECK_EQ(take(space, 1, 1).offset, 114);
    CHECK_EQ(stats_of(space).live_count, 3);
    end_space(space);
    space = make_space(1000);
    a = take(space, 10, 1), b = take(space, 20, 64), c = take(space, 30, 1);
    give(space, b);
    give(space, c); /* now it is adjacent to the newest range */
    CHECK_EQ(stats_of(space).free_count, 1);
    CHECK_EQ(take(space, 1, 1).offset, a.offset + 10);
    end_space(space);
}

UNIT(linear, padding_follows_the_native_address_and_belongs_to_the_range)
{
    quire_space *space = make_space(0);
    uint32_t region = 9;
    CHECK_OK(quire_space_add_region(space, 1 << 20, 0x12345, &region));
    for (uint64_t alignment = 1; alignment <= 65536; alignment *= 2) {
        quire_placement at = take(space, 3, alignment);
        CHECK_EQ((0x12345 + at.offset) % alignment, 0);
        CHECK(at.left_padding < alignment);
        at = take_upper(space, 3, alignment);
        CHECK_EQ((0x12345 + at.offset) % alignment, 0);
        CHECK_EQ(at.left_padding, 0);
    }
    quire_space_stats stats = stats_of(space);
    CHECK_EQ(stats.live_bytes + stats.padding_bytes + stats.free_bytes, 1 << 20);
    CHECK(stats.padding_bytes > 0);
    end_space(space);
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

/* ---- a ring -------------------------------------------------------------------------------- */

UNIT(linear, it_wraps_when_the_oldest_ranges_are_freed)
{
    quire_space *space = make_space(1000);
    quire_placement a = take(space, 400, 1), b = take(space, 400, 1);
    expect_full(space, 300, false);
    give(space, a);
    CHECK_EQ(stats_of(space).largest_free, 400);
    quire_placement c = take(space, 300, 1);
    CHECK_EQ(c.offset, 0); /* the 200 bytes at the end stay a gap */
    CHECK_EQ(stats_of(space).free_count, 2);
    CHECK_EQ(stats_of(space).free_bytes, 300);
    CHECK_EQ(stats_of(space).largest_free, 200); /* for an upper range */
    expect_full(space, 101, false);
    CHECK_EQ(take(space, 100, 1).offset, 300);
    expect_full(space, 1, false);
    give(space, b); /* the last one before the wrap */
    CHECK_EQ(take(space, 600, 1).offset, 400);
    CHECK_EQ(stats_of(space).free_bytes, 0);
    end_space(space);
}

UNIT(linear, a_small_request_uses_the_end_before_it_wraps)
{
    quire_space *space = make_space(1000);
    quire_placement a = take(space, 500, 1);
    take(space, 400, 1);
    give(space, a);
    CHECK_EQ(take(space, 100, 1).offset, 900);
    CHECK_EQ(take(space, 100, 1).offset, 0);
    CHECK_EQ(take(space, 400, 1).offset, 100); /* exactly up to the oldest range */
    CHECK_EQ(stats_of(space).free_count, 0);
    end_space(space);
}

UNIT(linear, freeing_after_a_wrap_returns_to_the_end)
{
    quire_space *space = make_space(1000);
    quire_placement a = take(space, 400, 1), b = take(space, 400, 1);
    give(space, a);
    quire_placement c = take(space, 300, 1), d = take(space, 50, 1);
    give(space, c);
    CHECK_EQ(take(space, 1, 1).offset, 350); /* after d, not at its start */
    give(space, d);
    CHECK_EQ(stats_of(space).live_count, 2);
    end_space(space);
    space = make_space(1000);
    a = take(space, 400, 1), b = take(space, 400, 1);
    give(space, a);
    c = take(space, 300, 1), d = take(space, 50, 1);
    give(space, d);
    give(space, c);
    CHECK_EQ(take(space, 200, 1).offset, b.offset + 400);
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

UNIT(linear, an_empty_region_starts_at_0_again)
{
    quire_space *space = make_space(1000);
    quire_placement a = take(space, 400, 1), b = take(space, 400, 1);
    give(space, a);
    give(space, b);
    quire_placement whole = take(space, 1000, 1);
    CHECK_EQ(whole.offset, 0);
    give(space, whole);
    quire_placement high = take_upper(space, 100, 1);
    a = take(space, 500, 1);
    give(space, a); /* the upper stack does not hold the lower end */
    CHECK_EQ(take(space, 900, 1).offset, 0);
    CHECK_EQ(high.offset, 900);
    end_space(space);
}

/* ---- two stacks ---------------------------------------------------------------------------- */

UNIT(linear, two_stacks_meet_in_the_middle)
{
    quire_space *space = make_space(1000);
    quire_placement high = take_upper(space, 100, 1), low = take(space, 300, 1);
    CHECK_EQ(high.offset, 900);
    quire_placement second = take_upper(space, 250, 64);
    CHECK_EQ(second.offset, 640); /* 10 bytes stay free above it */
    CHECK_EQ(stats_of(space).free_count, 2);
    CHECK_EQ(stats_of(space).padding_bytes, 0);
    expect_full(space, 341, true);
    expect_full(space, 341, false);
    quire_placement third = take(space, 340, 1);
    CHECK_EQ(third.offset, 300);
    expect_full(space, 1, false);
    expect_full(space, 1, true);
    CHECK_EQ(stats_of(space).largest_free, 0);
    CHECK_EQ(stats_of(space).free_bytes, 10);
    give(space, second);
    CHECK_EQ(take_upper(space, 260, 1).offset, 640); /* the 10 bytes are free again */
    give(space, third);
    give(space, low);
    CHECK_EQ(take(space, 640, 1).offset, 0);
    end_space(space);
}

UNIT(linear, below_an_upper_range_nothing_wraps)
{
    quire_space *space = make_space(1000);
    quire_placement high = take_upper(space, 100, 1), a = take(space, 400, 1);
    take(space, 450, 1);
    give(space, a);
    expect_full(space, 100, false);
    CHECK_EQ(stats_of(space).largest_free, 50);
    give(space, high);
    CHECK_EQ(take(space, 200, 1).offset, 0);
    end_space(space);
}

UNIT(linear, an_upper_range_lies_above_a_ring_that_has_wrapped)
{
    quire_space *space = make_space(1000);
    quire_placement a = take(space, 400, 1), b = take(space, 400, 1);
    give(space, a);
    quire_placement c = take(space, 300, 1), high = take_upper(space, 150, 1);
    CHECK_EQ(high.offset, 850);
    expect_full(space, 51, true);
    CHECK_EQ(take(space, 100, 1).offset, 300);
    give(space, b);
    CHECK_EQ(take(space, 400, 1).offset, 400);
    give(space, c);
    expect_full(space, 51, false); /* the start is free, and an upper range exists */
    end_space(space);
}

UNIT(linear, upper_ranges_freed_out_of_order_are_reusable_when_the_newest_is_freed)
{
    quire_space *space = make_space(1000);
    quire_placement a = take_upper(space, 100, 1), b = take_upper(space, 200, 1),
                    c = take_upper(space, 300, 1);
    give(space, b);
    CHECK_EQ(stats_of(space).largest_free, 400);
    CHECK_EQ(take_upper(space, 10, 1).offset, 390);
    CHECK_OK(quire_space_clear(space));
    a = take_upper(space, 100, 1), b = take_upper(space, 200, 1), c = take_upper(space, 300, 1);
    give(space, b);
    give(space, c);
    CHECK_EQ(take_upper(space, 10, 1).offset, 890);
    give(space, a);
    CHECK_EQ(stats_of(space).free_count, 2);
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
