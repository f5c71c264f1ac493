/*
 * buddy_region.c - regions of the buddy fit: how they are cut and found, clearing, trimming, and
 * that nothing changes when host memory is exhausted.
 */
#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/support/buddy.h"

/* ---- regions ------------------------------------------------------------------------------- */

static const struct {
    uint64_t size, base, blocks[16];
} cuts[] = {
    {1, 0, {1}},
    {1024, 0, {1024}},
    {1023, 0, {512, 256, 128, 64, 32, 16, 8, 4, 2, 1}},
    {1000, 3, {1, 4, 8, 16, 32, 64, 128, 256, 256, 128, 64, 32, 8, 2, 1}},
    {1024, 128, {128, 256, 512, 128}},
    {768, 256, {512, 256}}, /* a multiple of the largest alignment, which is 256 */
    {7, 1, {1, 2, 4}},
    {3, 255, {1, 2}},
};

enum { CUTS = sizeof cuts / sizeof *cuts };

UNIT(buddy_region, regions_allocate_and_release_their_bitmaps)
{
    quire_space *space = make_space(0, 1);
    add(space, 1, 0);
    uint64_t before = unit_memory_state()->bytes;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(add(space, 1 << 20, 0), 1);
        uint64_t cost = unit_memory_state()->bytes - before;
        CHECK(cost > 2 * (1 << 20) / 8 && cost < 2 * (1 << 20) / 8 * 33 / 32);
        CHECK_OK(quire_space_remove_region(space, 1));
        CHECK_EQ(unit_memory_state()->bytes, before);
    }
    end_space(space);
}

/* The request of page.c before the backend has chosen the address of the page. */
UNIT(buddy_region, a_region_sized_for_a_request_holds_it)
{
    const uint64_t largest = 256;
    for (uint64_t step = 1; step <= 512; step *= 8)
        for (uint64_t size = 1; size < 3000; size = size * 3 / 2 + 1)
            for (uint64_t alignment = 1; alignment <= largest; alignment *= 4)
                for (uint64_t base = 0; base < 3 * largest; base += step) {
                    quire_space *space = make_space(0, largest);
                    quire_placement at;
                    uint64_t bytes = 0;
                    uint32_t region = 0;
                    CHECK(!qi_space_region_overflows(space, size, alignment, step, &bytes));
                    CHECK(bytes >= size && bytes < 4 * (size + alignment));
                    CHECK_OK(quire_space_add_region(space, bytes, base, &region));
                    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
                    CHECK_EQ((base + at.offset) % alignment, 0);
                    quire_space_destroy(&space);
                }
}

UNIT(buddy_region, no_region_is_sized_for_a_request_that_overflows)
{
    quire_space *space = make_space(0, 256);
    uint64_t bytes = 0;
    CHECK(!qi_space_region_overflows(space, UINT64_C(1) << 63, 1, 256, &bytes));
    CHECK_EQ(bytes, UINT64_C(1) << 63);
    CHECK(qi_space_region_overflows(space, (UINT64_C(1) << 63) + 1, 1, 256, &bytes));
    CHECK(qi_space_region_overflows(space, UINT64_MAX, 1, 256, &bytes));
    end_space(space);
}

/* Above 64, and above 4096, the bitmaps of regions have further levels. */
UNIT(buddy_region, among_many_regions_the_lowest_with_the_smallest_block_serves)
{
    enum { REGIONS = 4200 };
    quire_space *space = make_space(0, 1);
    uint32_t region = 0;
    for (uint32_t i = 0; i < REGIONS; i++)
        CHECK_OK(quire_space_add_region(space, i % 1000 == 999 ? 8 : 16, 0, &region));
    quire_placement at[REGIONS];
    for (uint32_t i = 0; i < REGIONS / 1000; i++)
        CHECK_EQ((at[i] = take(space, 5, 1)).region, i * 1000 + 999);
    CHECK_EQ((at[4] = take(space, 5, 1)).region, 0);
    CHECK_EQ(take(space, 5, 1).region, 0);
    for (uint32_t i = 1; i < 3000; i++)
        CHECK_OK(quire_space_allocate(space, 16, 1, 0, &at[10]));
    CHECK_EQ(at[10].region, 3002); /* three of them are too small */
    give(space, at[1].range);
    CHECK_EQ(take(space, 8, 1).region, 1999);
    CHECK_EQ(take(space, 8, 1).region, 3003);
    CHECK_OK(quire_space_remove_region(space, 4199));
    CHECK_EQ(add(space, 4, 0), 4199);
    CHECK_EQ(take(space, 4, 1).region, 4199);
    end_space(space);
}

/* ---- clearing and trimming ---------------------------------------------------------------- */

UNIT(buddy_region, clearing_frees_every_range_without_host_memory)
{
    quire_space *space = make_space(0, 256);
    quire_range ranges[100];
    for (int i = 0; i < CUTS; i++)
        add(space, cuts[i].size, cuts[i].base);
    for (int i = 0; i < 100; i++)
        ranges[i] = take(space, 1 + (uint64_t)i % 20, 1 + (i % 3 == 0)).range;
    uint64_t calls = unit_memory_state()->calls;
    CHECK_OK(quire_space_clear(space));
    CHECK_EQ(unit_memory_state()->calls, calls);
    for (int i = 0; i < 100; i++)
        CHECK_FAILS(quire_space_free(space, ranges[i]), QUIRE_ERROR_STALE_HANDLE);
    for (int i = 0; i < CUTS; i++)
        expect_free(space, (uint32_t)i, cuts[i].blocks);
    CHECK_EQ(qi_handle_slot(take(space, 1, 1).range.id), 1); /* the lowest number again */
    end_space(space);
}

/* ---- host memory is exhausted -------------------------------------------------------------- */

UNIT(buddy_region, allocating_without_host_memory_changes_nothing)
{
    quire_space *space = make_space(4096, 1);
    uint64_t refused = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        quire_placement at;
        quire_space_stats before = stats_of(space);
        test_memory_fail(unit_memory_state(), 1, true);
        quire_result result = quire_space_allocate(space, 3, 1, 0, &at);
        test_memory_fail(unit_memory_state(), 0, false);
        if (result) {
            quire_space_stats after = stats_of(space);
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(!memcmp(&before, &after, sizeof before));
            refused++;
            at = take(space, 3, 1);
        }
        CHECK_EQ(at.offset, i * 4);
    }
    CHECK(refused >= 4 && refused <= 10); /* the array doubles */
    end_space(space);
}

UNIT(buddy_region, adding_a_region_without_host_memory_changes_nothing)
{
    for (uint64_t regions = 0; regions < 9; regions += 4) { /* the tables have to grow */
        uint64_t call = 1;
        for (bool done = false; !done; call++) {
            quire_space *space = make_space(0, 1);
            uint32_t region = 77;
            for (uint64_t i = 0; i < regions; i++)
                add(space, 16 + i, 0);
            quire_space_stats before = stats_of(space);
            test_memory_fail(unit_memory_state(), call, true);
            quire_result result = quire_space_add_region(space, 100, 0, &region);
            test_memory_fail(unit_memory_state(), 0, false);
            done = !result;
            if (result) {
                CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
                CHECK_EQ(region, 0);
                CHECK_EQ(stats_of(space).region_bytes, before.region_bytes);
                CHECK_EQ(stats_of(space).free_count, before.free_count);
                CHECK_OK(quire_space_check(space));
                CHECK_OK(quire_space_add_region(space, 100, 0, &region));
            }
            CHECK_EQ(region, regions);
            CHECK_EQ(take(space, 64, 1).region, regions);
            end_space(space);
        }
        CHECK(call > 4); /* region table, order bitmaps, regions, bitmaps */
    }
}

UNIT(buddy_region, trimming_keeps_live_ranges)
{
    enum { PEAK = 3000 };
    static quire_range ranges[PEAK];
    quire_space *space = make_space(PEAK * 4, 1);
    for (int i = 0; i < PEAK; i++)
        CHECK((ranges[i] = take(space, 4, 1).range).id != 0);
    for (int i = 0; i < PEAK; i++)
        if (i >= 40 || i % 2 == 0)
            CHECK_OK(quire_space_free(space, ranges[i]));
    test_memory_fail(unit_memory_state(), 1, true);
    quire_space_trim(space);
    CHECK(space->pool.capacity >= PEAK);
    test_memory_fail(unit_memory_state(), 0, false);
    quire_space_trim(space);
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(space->pool.capacity, 64);
    for (uint64_t i = 1; i < 40; i += 2) {
        quire_placement at;
        CHECK_OK(quire_space_get(space, ranges[i], &at));
        CHECK_EQ(at.size, 4);
    }
    for (int i = 0; i < 1000; i++)
        take(space, 4, 1);
    end_space(space);
}
