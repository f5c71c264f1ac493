/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_virtual_misuse.c - virtual blocks: wrong arguments and handles change nothing and are named,
 * and so is host memory that the program's callbacks refuse.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static const VmaVirtualBlockCreateInfo one_mib = {.size = 1 << 20};

static VmaVirtualBlock make_block(void)
{
    VmaVirtualBlock block;
    CHECK_EQ(vmaCreateVirtualBlock(&one_mib, &block), VK_SUCCESS);
    return block;
}

static VmaVirtualAllocation take(VmaVirtualBlock block, VkDeviceSize size)
{
    const VmaVirtualAllocationCreateInfo info = {.size = size};
    VmaVirtualAllocation allocation;
    CHECK_EQ(vmaVirtualAllocate(block, &info, &allocation, NULL), VK_SUCCESS);
    return allocation;
}

static uint32_t live_count(VmaVirtualBlock block)
{
    VmaStatistics stats;
    vmaGetVirtualBlockStatistics(block, &stats);
    return stats.allocationCount;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void refuse_block(VmaVirtualBlockCreateInfo info, VkResult code, const char *part)
{
    VmaVirtualBlock block = (VmaVirtualBlock)(void *)&info;
    CHECK_EQ(vmaCreateVirtualBlock(&info, &block), code);
    CHECK(block == NULL);
    CHECK_HAS(quire_last_error(), part);
}

static void *no_memory(void *user, size_t size, size_t alignment, VkSystemAllocationScope scope)
{
    (void)user;
    (void)size;
    (void)alignment;
    (void)scope;
    return NULL;
}

UNIT(vma_virtual_misuse, wrong_blocks_are_refused)
{
    const VkAllocationCallbacks halves = {.pfnAllocation = no_memory};
    VmaVirtualBlock block = (VmaVirtualBlock)(void *)&block;
    CHECK_EQ(vmaCreateVirtualBlock(NULL, &block), VK_ERROR_VALIDATION_FAILED_EXT);
    CHECK(block == NULL);
    CHECK_EQ(vmaCreateVirtualBlock(&one_mib, NULL), VK_ERROR_VALIDATION_FAILED_EXT);
    refuse_block((VmaVirtualBlockCreateInfo){.size = 0}, VK_ERROR_VALIDATION_FAILED_EXT, "size");
    refuse_block((VmaVirtualBlockCreateInfo){.size = 1, .flags = 6}, VK_ERROR_FEATURE_NOT_PRESENT,
                 "0x6");
    refuse_block((VmaVirtualBlockCreateInfo){.size = 1, .pAllocationCallbacks = &halves},
                 VK_ERROR_VALIDATION_FAILED_EXT, "pfnFree");
    refuse_block((VmaVirtualBlockCreateInfo){.size = (UINT64_C(1) << 62) + 1},
                 VK_ERROR_OUT_OF_DEVICE_MEMORY, "");
    refuse_block((VmaVirtualBlockCreateInfo){.size = UINT64_MAX, .flags = 1},
                 VK_ERROR_OUT_OF_DEVICE_MEMORY, "");
}

UNIT(vma_virtual_misuse, a_block_with_allocations_stays)
{
    vmaDestroyVirtualBlock(NULL);
    VmaVirtualBlock block = make_block();
    VmaVirtualAllocation first = take(block, 1);
    take(block, 2);
    vmaDestroyVirtualBlock(block);
    CHECK_HAS(quire_last_error(), "live allocations, which vmaClearVirtualBlock frees: 2");
    CHECK_EQ(live_count(block), 2);
    vmaVirtualFree(block, first);
    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
}

UNIT(vma_virtual_misuse, null_blocks_and_outputs_are_named)
{
    VmaVirtualBlock block = make_block();
    VmaVirtualAllocation allocation = take(block, 5);
    VmaStatistics stats = {.blockCount = 9};
    VmaDetailedStatistics detailed = {.unusedRangeCount = 9};
    VmaVirtualAllocationInfo info = {.size = 9};
    CHECK(vmaIsVirtualBlockEmpty(NULL));
    vmaVirtualFree(NULL, VK_NULL_HANDLE);
    vmaVirtualFree(NULL, allocation);
    CHECK_HAS(quire_last_error(), "the block is null");
    vmaClearVirtualBlock(NULL);
    vmaSetVirtualAllocationUserData(NULL, allocation, &stats);
    vmaGetVirtualBlockStatistics(NULL, &stats);
    CHECK_EQ(stats.blockCount, 0);
    vmaCalculateVirtualBlockStatistics(NULL, &detailed);
    CHECK_EQ(detailed.unusedRangeCount, 0);
    CHECK_EQ(detailed.unusedRangeSizeMin, VK_WHOLE_SIZE);
    vmaGetVirtualAllocationInfo(NULL, allocation, &info);
    CHECK_EQ(info.size, 0);
    CHECK_EQ(info.offset, VK_WHOLE_SIZE);
    vmaGetVirtualBlockStatistics(block, NULL);
    CHECK_HAS(quire_last_error(), "the output is null");
    vmaCalculateVirtualBlockStatistics(block, NULL);
    vmaGetVirtualAllocationInfo(block, allocation, NULL);
    CHECK_EQ(live_count(block), 1);
    vmaVirtualFree(block, allocation);
    vmaDestroyVirtualBlock(block);
}

/* ---- allocations ---------------------------------------------------------------------------- */

UNIT(vma_virtual_misuse, wrong_requests_are_refused)
{
    const VkFlags upper = VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    const struct {
        VmaVirtualAllocationCreateInfo info;
        VkResult code;
        const char *part;
    } wrong[] = {
        {{.size = 0}, VK_ERROR_VALIDATION_FAILED_EXT, "size"},
        {{.size = 1, .alignment = 3}, VK_ERROR_VALIDATION_FAILED_EXT, "power of two"},
        {{.size = 1, .alignment = UINT64_MAX}, VK_ERROR_VALIDATION_FAILED_EXT, "power of two"},
        {{.size = 1, .alignment = UINT64_C(1) << 31}, VK_ERROR_FEATURE_NOT_PRESENT, "1 GiB"},
        {{.size = 1, .flags = 1}, VK_ERROR_FEATURE_NOT_PRESENT, "0x1"},
        {{.size = 1, .flags = 0x80000000u}, VK_ERROR_FEATURE_NOT_PRESENT, "0x80000000"},
        {{.size = 1, .flags = upper}, VK_ERROR_VALIDATION_FAILED_EXT, "LINEAR_ALGORITHM_BIT"},
        {{.size = UINT64_MAX}, VK_ERROR_OUT_OF_DEVICE_MEMORY, ""},
    };
    VmaVirtualBlock block = make_block();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        VmaVirtualAllocation allocation = (VmaVirtualAllocation)(uintptr_t)1;
        VkDeviceSize offset = 0;
        CHECK_EQ(vmaVirtualAllocate(block, &wrong[i].info, &allocation, &offset), wrong[i].code);
        CHECK_HAS(quire_last_error(), wrong[i].part);
        CHECK(allocation == VK_NULL_HANDLE);
        CHECK_EQ(offset, VK_WHOLE_SIZE);
    }
    CHECK(vmaIsVirtualBlockEmpty(block));
    vmaDestroyVirtualBlock(block);
}

UNIT(vma_virtual_misuse, null_arguments_of_an_allocation_are_refused)
{
    const VmaVirtualAllocationCreateInfo info = {.size = 1};
    VmaVirtualBlock block = make_block();
    VmaVirtualAllocation allocation = (VmaVirtualAllocation)(uintptr_t)1;
    VkDeviceSize offset = 0;
    CHECK_EQ(vmaVirtualAllocate(NULL, &info, &allocation, &offset), VK_ERROR_VALIDATION_FAILED_EXT);
    CHECK(allocation == VK_NULL_HANDLE);
    CHECK_EQ(offset, VK_WHOLE_SIZE);
    CHECK_EQ(vmaVirtualAllocate(block, NULL, &allocation, NULL), VK_ERROR_VALIDATION_FAILED_EXT);
    CHECK_EQ(vmaVirtualAllocate(block, &info, NULL, NULL), VK_ERROR_VALIDATION_FAILED_EXT);
    CHECK(vmaIsVirtualBlockEmpty(block));
    vmaDestroyVirtualBlock(block);
}

static void refuse_handle(VmaVirtualBlock block, VmaVirtualAllocation allocation, const char *part)
{
    VmaVirtualAllocationInfo info = {.size = 9};
    vmaVirtualFree(block, allocation);
    CHECK_HAS(quire_last_error(), part);
    vmaSetVirtualAllocationUserData(block, allocation, &info);
    CHECK_HAS(quire_last_error(), part);
    vmaGetVirtualAllocationInfo(block, allocation, &info);
    CHECK_HAS(quire_last_error(), part);
    CHECK_EQ(info.size, 0);
    CHECK_EQ(info.offset, VK_WHOLE_SIZE);
}

UNIT(vma_virtual_misuse, stale_and_foreign_handles_are_found)
{
    VmaVirtualBlock block = make_block(), other = make_block();
    VmaVirtualAllocation stale = take(block, 7);
    vmaVirtualFree(block, stale);
    VmaVirtualAllocation live = take(block, 7), foreign = take(other, 7);
    refuse_handle(block, stale, "not live");
    refuse_handle(block, foreign, "another space");
    VmaVirtualAllocationInfo info;
    vmaGetVirtualAllocationInfo(block, live, &info);
    CHECK(info.pUserData == NULL);
    CHECK_EQ(live_count(block), 1);
    CHECK_EQ(live_count(other), 1);
    vmaClearVirtualBlock(block);
    refuse_handle(block, live, "not live");
    vmaClearVirtualBlock(other);
    vmaDestroyVirtualBlock(block);
    vmaDestroyVirtualBlock(other);
}

/* ---- host memory ---------------------------------------------------------------------------- */

/* Returns whether a call of the program failed. What succeeded before stays. */
static bool work(vma_host *program, uint32_t fail_at, VkDeviceSize size, VkFlags flags)
{
    enum { COUNT = 200 };
    const VmaVirtualBlockCreateInfo info = {.size = size,
                                            .flags = flags,
                                            .pAllocationCallbacks =
                                                vma_host_begin(program, fail_at, false)};
    VmaVirtualBlock block;
    VkResult result = vmaCreateVirtualBlock(&info, &block);
    if (result) {
        CHECK_EQ(result, VK_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(block == NULL);
        return true;
    }
    uint32_t count = 0;
    for (; count < COUNT && !result; count += !result) {
        const VmaVirtualAllocationCreateInfo request = {.size = 3};
        VmaVirtualAllocation allocation;
        VkDeviceSize offset;
        result = vmaVirtualAllocate(block, &request, &allocation, &offset);
        CHECK_EQ(result ? VK_WHOLE_SIZE : 0, result ? offset : 0);
        CHECK(!result == (allocation != VK_NULL_HANDLE));
    }
    CHECK_EQ(result, count < COUNT ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS);
    CHECK_EQ(live_count(block), count);
    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
    return result != VK_SUCCESS;
}

UNIT(vma_virtual_misuse, every_host_allocation_may_fail)
{
    const VmaVirtualBlockCreateInfo blocks[] = {
        {.size = 1 << 20}, {.size = 1 << 20, .flags = 1}, {.size = UINT64_C(1) << 40}};
    for (int i = 0; i < 3; i++) {
        vma_host program;
        uint32_t fail_at = 1;
        for (; work(&program, fail_at, blocks[i].size, blocks[i].flags); fail_at++)
            CHECK_EQ(program.blocks, 0);
        CHECK_EQ(program.blocks, 0);
        CHECK_EQ(program.scopes, 1u << VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
        CHECK(fail_at > 3);
        CHECK_EQ(program.calls, fail_at - 1);
    }
}
