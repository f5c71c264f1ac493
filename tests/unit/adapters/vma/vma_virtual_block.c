/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_virtual_block.c - virtual blocks: sizes, offsets, alignment, user data, statistics, and the
 * algorithms. What must fail is in vma_virtual_misuse.c.
 */
#include "quire/quire_vma.h"
#include "tests/support/unit.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define TIB (KIB * GIB)

static VmaVirtualBlock block;

static void open_block(VkDeviceSize size, VkFlags flags)
{
    const VmaVirtualBlockCreateInfo info = {.size = size, .flags = flags};
    CHECK_EQ(vmaCreateVirtualBlock(&info, &block), VK_SUCCESS);
}

static void close_block(void)
{
    vmaClearVirtualBlock(block);
    CHECK(vmaIsVirtualBlockEmpty(block));
    vmaDestroyVirtualBlock(block);
}

static VmaVirtualAllocation take(VkDeviceSize size, VkDeviceSize alignment, VkFlags flags,
                                 VkDeviceSize *offset)
{
    const VmaVirtualAllocationCreateInfo info = {
        .size = size, .alignment = alignment, .flags = flags};
    VmaVirtualAllocation allocation;
    CHECK_EQ(vmaVirtualAllocate(block, &info, &allocation, offset), VK_SUCCESS);
    CHECK(allocation != VK_NULL_HANDLE);
    return allocation;
}

static void expect_at(VkDeviceSize size, VkDeviceSize alignment, VkFlags flags,
                      VkDeviceSize expected)
{
    VkDeviceSize offset = 0;
    take(size, alignment, flags, &offset);
    CHECK_EQ(offset, expected);
}

static void expect_full(VkDeviceSize size, VkFlags flags)
{
    const VmaVirtualAllocationCreateInfo info = {.size = size, .flags = flags};
    VmaVirtualAllocation allocation = (VmaVirtualAllocation)(uintptr_t)1;
    VkDeviceSize offset = 0;
    CHECK_EQ(vmaVirtualAllocate(block, &info, &allocation, &offset), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(allocation == VK_NULL_HANDLE);
    CHECK_EQ(offset, VK_WHOLE_SIZE);
    CHECK_EQ(vmaVirtualAllocate(block, &info, &allocation, NULL), VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

#define CASE(name, ...) UNIT_WITHIN(vma_virtual_block, name, open_block(__VA_ARGS__), close_block())

/* ---- allocations ---------------------------------------------------------------------------- */

UNIT(vma_virtual_block, every_size_is_exact_to_the_byte)
{
    const VkDeviceSize sizes[] = {1,           1000003,          UINT32_MAX, UINT64_C(1) << 32,
                                  4 * TIB + 3, UINT64_C(1) << 62};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (VkFlags flags = 0; flags < 2; flags++) {
            open_block(sizes[i], flags);
            expect_full(sizes[i] + 1, 0);
            expect_at(1, 0, 0, 0);
            if (sizes[i] > 1)
                expect_at(sizes[i] - 1, 1, 0, 1);
            expect_full(1, 0);
            close_block();
        }
}

CASE(a_block_of_terabytes_has_small_allocations, 16 * TIB, 0)
{
    expect_at(7, 1, 0, 0);
    expect_at(9 * TIB + 1, 1, 0, 7);
    expect_at(3, GIB, 0, 9 * TIB + GIB);
    VmaDetailedStatistics stats;
    vmaCalculateVirtualBlockStatistics(block, &stats);
    CHECK_EQ(stats.statistics.blockBytes, 16 * TIB);
    CHECK_EQ(stats.statistics.allocationBytes, 9 * TIB + 11);
    CHECK_EQ(stats.unusedRangeCount, 2);
    CHECK_EQ(stats.unusedRangeSizeMin, GIB - 8);
    CHECK_EQ(stats.unusedRangeSizeMax, 7 * TIB - GIB - 3);
}

/* ---- strategies ----------------------------------------------------------------------------- */

/* Holes of 8, 4 and 1 KiB: without a strategy the tightest serves. */
static void take_lowest_of(VkDeviceSize size)
{
    const VkFlags lowest = VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT;
    VmaVirtualAllocation holes[3];
    open_block(size, 0);
    for (uint32_t i = 0; i < 3; i++) {
        holes[i] = take((VkDeviceSize[]){8 * KIB, 4 * KIB, KIB}[i], 1, 0, NULL);
        take(1, 1, 0, NULL);
    }
    for (uint32_t i = 0; i < 3; i++)
        vmaVirtualFree(block, holes[i]);
    expect_at(KIB, 1, lowest, 0);
    expect_at(7 * KIB + 1, 1, lowest, 13 * KIB + 3);
    expect_at(7 * KIB, 1, lowest | VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT, KIB);
    close_block();
}

UNIT(vma_virtual_block, the_strategy_min_offset_takes_the_lowest)
{
    take_lowest_of(MIB);
    take_lowest_of(TIB);
}

/* ---- the linear algorithm ------------------------------------------------------------------- */

enum { LINEAR = VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT };

CASE(linear_is_a_double_stack, 1000, LINEAR)
{
    const VkFlags upper = VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    expect_at(100, 1, upper, 900);
    expect_at(100, 1, VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT, 0);
    expect_at(10, 64, upper, 832);
    expect_at(10, 64, VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT, 128);
    expect_full(695, upper);
    expect_at(694, 1, upper | VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT, 138);
    expect_full(1, 0);
}
