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
