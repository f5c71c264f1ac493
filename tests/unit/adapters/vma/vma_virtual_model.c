/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_virtual_model.c - random operations on virtual blocks against one owner for each unit.
 *
 * A block has 1,500 units. A unit is 1 byte, or a GiB and a byte, so that both fits are tested. A
 * seed of the loop reproduces a run.
 */
#include "quire/quire_vma.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { UNITS = 1500, MAX_LIVE = 200, WORLDS = 24, STEPS = TEST_ROUNDS(4000) };

typedef struct range {
    VmaVirtualAllocation allocation;
    uint32_t begin, end; /* units */
    uint16_t user;
} range;

static struct {
    test_random random;
    VmaVirtualBlock block;
    VkDeviceSize unit;
    bool is_linear, is_exact; /* the first fit has no gaps below what it places */
    uint16_t owner[UNITS + 1];
    range live[MAX_LIVE];
    uint32_t live_count;
    uint32_t served, refused, lowest;
} w;

/* ---- the oracle ----------------------------------------------------------------------------- */

/* The lowest unit at which a request fits, or UNITS. */
static uint32_t lowest_place(uint32_t size, uint32_t alignment)
{
    for (uint32_t begin = 0; begin + size <= UNITS; begin += alignment) {
        uint32_t end = begin;
        while (end < begin + size && !w.owner[end])
            end++;
        if (end == begin + size)
            return begin;
    }
    return UNITS;
}

static void own(const range *r, uint16_t owner)
{
    for (uint32_t i = r->begin; i < r->end; i++) {
        CHECK_EQ(w.owner[i] != 0, owner == 0);
        w.owner[i] = owner;
    }
}

static void lower(VkDeviceSize *least, VkDeviceSize value)
{
    *least = value < *least ? value : *least;
}

static void raise(VkDeviceSize *most, VkDeviceSize value)
{
    *most = value > *most ? value : *most;
}

static VmaDetailedStatistics expected_statistics(void)
{
    VmaDetailedStatistics s = {
        .statistics = {.blockCount = 1, .blockBytes = UNITS * w.unit},
        .allocationSizeMin = VK_WHOLE_SIZE,
        .unusedRangeSizeMin = VK_WHOLE_SIZE,
    };
    s.statistics.allocationCount = w.live_count;
    for (uint32_t i = 0; i < w.live_count; i++) {
        VkDeviceSize size = (w.live[i].end - w.live[i].begin) * w.unit;
        s.statistics.allocationBytes += size;
        lower(&s.allocationSizeMin, size);
        raise(&s.allocationSizeMax, size);
    }
    for (uint32_t i = 0; i < UNITS; i++) {
        uint32_t begin = i;
        while (i < UNITS && !w.owner[i])
            i++;
        if (i == begin)
            continue;
        s.unusedRangeCount++;
        lower(&s.unusedRangeSizeMin, (i - begin) * w.unit);
        raise(&s.unusedRangeSizeMax, (i - begin) * w.unit);
    }
    return s;
}

/* ---- operations ----------------------------------------------------------------------------- */

static void *user_data(uint16_t user)
{
    return (void *)(uintptr_t)user;
}

/* A unit that is no power of two cannot be the alignment of bytes. */
static void allocate(void)
{
    if (w.live_count == MAX_LIVE)
        return;
    uint32_t size = (uint32_t)random_size(&w.random, 60);
    uint32_t alignment = w.unit == 1 ? 1u << random_below(&w.random, 6) : 1;
    bool lowest = random_below(&w.random, 3) == 0,
         upper = w.is_linear && random_below(&w.random, 2);
    uint16_t user = (uint16_t)random_next(&w.random);
    const VmaVirtualAllocationCreateInfo info = {
        .size = size * w.unit,
        .alignment = alignment,
        .flags = (lowest ? VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT : 0u) |
                 (upper ? VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT : 0u),
        .pUserData = user_data(user),
    };
    uint32_t place = lowest_place(size, alignment);
    range *r = &w.live[w.live_count];
    VkDeviceSize offset = 0;
    VkResult result = vmaVirtualAllocate(w.block, &info, &r->allocation, &offset);
    if (result) {
        CHECK_EQ(result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        CHECK_EQ(offset, VK_WHOLE_SIZE);
        CHECK(w.is_linear || place == UNITS);
        w.refused++;
        return;
    }
    CHECK_EQ(offset % w.unit, 0);
    CHECK_EQ(offset % alignment, 0);
    CHECK(offset <= (UNITS - size) * w.unit);
    if (!w.is_linear && (lowest || w.is_exact)) {
        CHECK_EQ(offset, place * w.unit);
        w.lowest++;
    }
    r->begin = (uint32_t)(offset / w.unit);
    r->end = r->begin + size;
    r->user = user;
    own(r, (uint16_t)++w.live_count);
    w.served++;
}

static void release(void)
{
    if (!w.live_count)
        return;
    range *r = &w.live[random_below(&w.random, w.live_count)], *last = &w.live[--w.live_count];
    vmaVirtualFree(w.block, r->allocation);
    own(r, 0);
    *r = *last;
}

static void look(void)
{
    if (!w.live_count)
        return;
    range *r = &w.live[random_below(&w.random, w.live_count)];
    VmaVirtualAllocationInfo info;
    vmaGetVirtualAllocationInfo(w.block, r->allocation, &info);
    CHECK_EQ(info.offset, r->begin * w.unit);
    CHECK_EQ(info.size, (r->end - r->begin) * w.unit);
    CHECK(info.pUserData == user_data(r->user));
    vmaSetVirtualAllocationUserData(w.block, r->allocation, user_data(++r->user));
}

static void compare_statistics(void)
{
    VmaDetailedStatistics stats, expected = expected_statistics();
    vmaCalculateVirtualBlockStatistics(w.block, &stats);
    CHECK_EQ(stats.statistics.blockCount, 1);
    CHECK_EQ(stats.statistics.allocationCount, expected.statistics.allocationCount);
    CHECK_EQ(stats.statistics.blockBytes, expected.statistics.blockBytes);
    CHECK_EQ(stats.statistics.allocationBytes, expected.statistics.allocationBytes);
    CHECK_EQ(stats.unusedRangeCount, expected.unusedRangeCount);
    CHECK_EQ(stats.allocationSizeMin, expected.allocationSizeMin);
    CHECK_EQ(stats.allocationSizeMax, expected.allocationSizeMax);
    CHECK_EQ(stats.unusedRangeSizeMin, expected.unusedRangeSizeMin);
    CHECK_EQ(stats.unusedRangeSizeMax, expected.unusedRangeSizeMax);
    CHECK_EQ(vmaIsVirtualBlockEmpty(w.block), w.live_count == 0);
}

static void clear(void)
{
    vmaClearVirtualBlock(w.block);
    memset(w.owner, 0, sizeof w.owner);
    w.live_count = 0;
}

/* More is allocated than freed until the block is full, and then less. */
static void step(bool is_growing)
{
    uint64_t which = random_below(&w.random, 100);
    if (which < (is_growing ? 55 : 30))
        allocate();
    else if (which < 85)
        release();
    else if (which < 95)
        look();
    else if (which < 99)
        compare_statistics();
    else if (random_below(&w.random, 20) == 0)
        clear();
}

static void run_world(uint64_t seed)
{
    w.random.state = seed;
    w.is_linear = seed % 3 == 2;
    w.unit = seed % 3 == 1 ? (UINT64_C(1) << 30) + 1 : 1;
    w.is_exact = w.unit > 1;
    const VmaVirtualBlockCreateInfo info = {.size = UNITS * w.unit, .flags = w.is_linear};
    CHECK_EQ(vmaCreateVirtualBlock(&info, &w.block), VK_SUCCESS);
    clear();
    for (uint32_t i = 0; i < STEPS; i++)
        step(i / 500 % 2 == 0);
    clear();
    compare_statistics();
    vmaDestroyVirtualBlock(w.block);
}

UNIT(vma_virtual_model, blocks_match_the_oracle)
{
    for (uint64_t seed = 0; seed < WORLDS; seed++)
        run_world(seed);
    CHECK(w.served > 1000);
    CHECK(w.refused > 100);
    CHECK(w.lowest > 100);
}
