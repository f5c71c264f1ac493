/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buddy.c - the buddy fit: full passes, worn numbers, and regions: their host memory, and their
 * size for a request. (tests/plain/space_model.c compares the place of every block with an oracle.)
 */
#include "src/space/buddy/buddy.h"

#include "src/base/handle.h"
#include "tests/support/space_steps.h"

static quire_space *make_space(uint64_t size, uint64_t max_alignment)
{
    return new_space((quire_space_options){
        .fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 1, .max_alignment = max_alignment},
        .size = size});
}

/* Leaves the granule at 512 free, between a live one and ones that are not aligned to 512. */
static quire_space *make_hidden(void)
{
    quire_space *space = make_space(1024, 512);
    CHECK_EQ(take_aligned(space, 1, 512).offset, 0);
    quire_placement hidden = take_aligned(space, 1, 512);
    CHECK_EQ(hidden.offset, 512);
    CHECK_EQ(take_bytes(space, 1).offset, 1);
    CHECK_EQ(take_bytes(space, 1).offset, 513);
    give(space, hidden.range);
    return space;
}

UNIT(buddy, a_full_pass_finds_small_aligned_blocks)
{
    quire_space *space = make_hidden();
    quire_range_options wanted = {.size = 1, .alignment = 512, .bounded = true};
    expect_no_space(space, wanted);
    CHECK_EQ(stats_of(space).full_passes, 0);
    wanted.bounded = false;
    CHECK_EQ(take_with(space, wanted).offset, 512);
    CHECK_EQ(stats_of(space).full_passes, 1);
    CHECK_EQ(stats_of(space).full_pass_hits, 1);
    expect_no_space(space, wanted);
    CHECK_EQ(stats_of(space).full_passes, 2);
    CHECK_EQ(stats_of(space).full_pass_hits, 1);
    end_space(space);
}

/* ---- handles ------------------------------------------------------------------------------- */

static qi_buddy_node *node_of(quire_space *space, quire_range range)
{
    return &qi_buddy_of(space)->nodes[qi_handle_slot(range.id)];
}

UNIT(buddy, a_worn_number_is_retired)
{
    quire_space *space = make_space(4096, 1);
    quire_range range = take_bytes(space, 100).range;
    uint32_t slot = qi_handle_slot(range.id);
    give(space, range);
    node_of(space, range)->generation = QI_LAST_GENERATION - 1;
    range = take_bytes(space, 100).range;
    CHECK_EQ(range.id, qi_handle(space->tag, QI_LAST_GENERATION, slot));
    give(space, range);
    CHECK_EQ(space->pool.retired, 1);
    for (int i = 0; i < 200; i++)
        CHECK(qi_handle_slot(take_bytes(space, 1).range.id) != slot);
    CHECK_FAILS(quire_space_free(space, range), QUIRE_ERROR_STALE_HANDLE);
    end_space(space);
}

/* ---- regions ------------------------------------------------------------------------------- */

UNIT(buddy, regions_allocate_and_release_their_bitmaps)
{
    quire_space *space = make_space(0, 1);
    add_region(space, 1, 0);
    uint64_t before = unit_memory_state()->bytes;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(add_region(space, 1 << 20, 0), 1);
        uint64_t cost = unit_memory_state()->bytes - before;
        CHECK(cost > 2 * (1 << 20) / 8 && cost < 2 * (1 << 20) / 8 * 33 / 32);
        CHECK_OK(quire_space_remove_region(space, 1));
        CHECK_EQ(unit_memory_state()->bytes, before);
    }
    end_space(space);
}

/* The request of page.c before the backend has chosen the address of the page. */
UNIT(buddy, a_region_sized_for_a_request_holds_it)
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

UNIT(buddy, no_region_is_sized_for_a_request_that_overflows)
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
UNIT(buddy, among_many_regions_the_lowest_with_the_smallest_block_serves)
{
    enum { REGIONS = 4200 };
    quire_space *space = make_space(0, 1);
    uint32_t region = 0;
    for (uint32_t i = 0; i < REGIONS; i++)
        CHECK_OK(quire_space_add_region(space, i % 1000 == 999 ? 8 : 16, 0, &region));
    quire_placement at[REGIONS];
    for (uint32_t i = 0; i < REGIONS / 1000; i++)
        CHECK_EQ((at[i] = take_bytes(space, 5)).region, i * 1000 + 999);
    CHECK_EQ((at[4] = take_bytes(space, 5)).region, 0);
    CHECK_EQ(take_bytes(space, 5).region, 0);
    for (uint32_t i = 1; i < 3000; i++)
        CHECK_OK(quire_space_allocate(space, 16, 1, 0, &at[10]));
    CHECK_EQ(at[10].region, 3002); /* three of them are too small */
    give(space, at[1].range);
    CHECK_EQ(take_bytes(space, 8).region, 1999);
    CHECK_EQ(take_bytes(space, 8).region, 3003);
    CHECK_OK(quire_space_remove_region(space, 4199));
    CHECK_EQ(add_region(space, 4, 0), 4199);
    CHECK_EQ(take_bytes(space, 4).region, 4199);
    end_space(space);
}
