/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_flags.c - flags of one allocation that change how it is served.
 */
#include <time.h>

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name, layout, flags) VMA_CASE(vma_flags, name, layout, flags)

static VkResult try(VkDeviceSize size, const VmaAllocationCreateInfo *options, VkBuffer *buffer,
                    VmaAllocation *allocation)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(size);
    return vmaCreateBuffer(v.allocator, &info, options, buffer, allocation, NULL);
}

CASE(within_budget_is_refused_beyond_the_budget, NULL, VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT)
{
    VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO,
                                       .requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    const VkPhysicalDeviceMemoryProperties *memory;
    VkBuffer buffer, second;
    VmaAllocation a, b;
    vmaGetMemoryProperties(v.allocator, &memory);
    for (uint32_t heap = 0; heap < memory->memoryHeapCount; heap++)
        fv_set_budget(v.vulkan.driver, 0, heap, 4 << 20, 0);
    options.flags = VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;
    CHECK_VK(try(1 << 20, &options, &buffer, &a));
    vma_fixture_refuse(&v, 6 << 20, &options, FULL);
    options.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    vma_fixture_refuse(&v, 6 << 20, &options, FULL);
    options.flags = 0;
    CHECK_VK(try(6 << 20, &options, &second, &b)); /* the budget is advice without the flag */
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaDestroyBuffer(v.allocator, second, b);
}

CASE(flags_without_a_counterpart_are_named, NULL, 0)
{
    const VmaAllocationCreateFlags missing[] = {0x8, 0x2000, 0x80000,
                                                VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        const VmaAllocationCreateInfo options = {.flags = missing[i],
                                                 .usage = VMA_MEMORY_USAGE_AUTO};
        vma_fixture_refuse(&v, 1000, &options, MISSING);
        CHECK_HAS(quire_last_error(),
                  i < 3 ? "allocation flags 0x" : "STRATEGY_MIN_OFFSET_BIT serves virtual blocks");
    }
    CHECK_EQ(fv_live(v.vulkan.driver, FV_BUFFER), 0);
}

CASE(strategies_are_served, NULL, 0)
{
    VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    options.flags = VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT;
    vma_fixture_hold(&v, 1000, &options);
    options.flags = VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT;
    vma_fixture_hold(&v, 1000, &options);
}

/* ---- full heaps ----------------------------------------------------------------------------- */

CASE(the_next_memory_type_serves_when_the_best_is_full, NULL, 0)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    const VkPhysicalDeviceMemoryProperties *memory;
    VmaAllocationInfo info;
    VkBuffer buffer;
    VmaAllocation a;
    vmaGetMemoryProperties(v.allocator, &memory);
    for (uint32_t heap = 0; heap < memory->memoryHeapCount; heap++)
        if (memory->memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            fv_set_capacity(v.vulkan.driver, 0, heap, 1 << 20);
    CHECK_VK(try(8 << 20, &options, &buffer, &a));
    vmaGetAllocationInfo(v.allocator, a, &info);
    CHECK(!(memory->memoryTypes[info.memoryType].propertyFlags &
            VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
    vmaDestroyBuffer(v.allocator, buffer, a);
    for (uint32_t heap = 0; heap < memory->memoryHeapCount; heap++)
        fv_set_capacity(v.vulkan.driver, 0, heap, 1 << 20);
    vma_fixture_refuse(&v, 16 << 20, &options, FULL);
}

CASE(contradictions_and_empty_requests_are_refused, NULL, 0)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    const VkMemoryRequirements empty = {.alignment = 1, .memoryTypeBits = UINT32_MAX};
    const VkMemoryRequirements odd = {.size = 1, .alignment = 3, .memoryTypeBits = UINT32_MAX};
    const VkMemoryRequirements good = {.size = 1, .alignment = 1, .memoryTypeBits = UINT32_MAX};
    const VmaAllocationCreateInfo any = {0};
    VmaAllocation a;
    vma_fixture_refuse(&v, 0, &options, VK_ERROR_INITIALIZATION_FAILED);
    CHECK_EQ(vmaAllocateMemory(v.allocator, &empty, &any, &a, NULL),
             VK_ERROR_INITIALIZATION_FAILED);
    CHECK_EQ(vmaAllocateMemory(v.allocator, &odd, &any, &a, NULL), INVALID);
    CHECK_EQ(vmaAllocateMemory(v.allocator, &good, NULL, &a, NULL), INVALID);
    CHECK_EQ(vmaAllocateMemory(v.allocator, &good, &any, NULL, NULL), INVALID);
    CHECK_EQ(vmaAllocateMemory(NULL, &good, &any, &a, NULL), INVALID);
    CHECK_EQ(vmaAllocateMemoryForBuffer(v.allocator, VK_NULL_HANDLE, &any, &a, NULL), INVALID);
    CHECK_EQ(vmaAllocateMemoryForImage(v.allocator, VK_NULL_HANDLE, &any, &a, NULL), INVALID);
    CHECK_EQ(vmaAllocateMemory(v.allocator, &good, &options, &a, NULL),
             MISSING); /* AUTO without an object */
}

/* ---- empty memory ---------------------------------------------------------------------------- */

/* In the allocator's own memory, or in a pool without a blockSize. */
static void release_with_a_later_frame(VmaPool pool)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO, .pool = pool};
    const struct timespec more_than_a_second = {.tv_sec = 1, .tv_nsec = 50000000};
    VkBuffer buffer;
    VmaAllocation a;
    CHECK_VK(try(8 << 20, &options, &buffer, &a));
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaSetCurrentFrameIndex(v.allocator, 1);
    CHECK_EQ(fv_live(v.vulkan.driver, FV_MEMORY), 1); /* a transient finds it again */
    nanosleep(&more_than_a_second, NULL);
    vmaSetCurrentFrameIndex(v.allocator, 2);
    CHECK_EQ(fv_live(v.vulkan.driver, FV_MEMORY), 0);
}

CASE(memory_that_stays_empty_is_released_with_a_later_frame, NULL, 0)
{
    const VmaPoolCreateInfo info = {.memoryTypeIndex = 0};
    VmaPool pool;
    release_with_a_later_frame(NULL);
    CHECK_VK(vmaCreatePool(v.allocator, &info, &pool));
    release_with_a_later_frame(pool);
    vmaDestroyPool(v.allocator, pool);
    vmaSetCurrentFrameIndex(NULL, 3);
}
