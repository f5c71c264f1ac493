/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_heaps.c - heaps that several memory types share, and their budgets: what one type gives back,
 * another one can use.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

enum { MIB = 1 << 20, HEAP = 4 * MIB };

static vma_fixture v;

/* Opens an allocator whose heaps have 4 MiB each. */
static void open_small(uint32_t driver_flags)
{
    VkDeviceSize limits[VK_MAX_MEMORY_HEAPS];
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++)
        limits[i] = HEAP;
    vma_fixture_begin(&v, NULL, driver_flags);
    v.info.pHeapSizeLimit = limits;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    v.info.pHeapSizeLimit = NULL;
}

static VkResult take(uint32_t type, VkDeviceSize size, VmaAllocationCreateFlags flags,
                     VmaAllocation *allocation)
{
    const VkMemoryRequirements needs = {
        .size = size, .alignment = 256, .memoryTypeBits = UINT32_C(1) << type};
    const VmaAllocationCreateInfo options = {.flags = flags};
    return vmaAllocateMemory(v.allocator, &needs, &options, allocation, NULL);
}

/* Writes two types of one heap. */
static void find_pair(uint32_t types[2])
{
    const VkPhysicalDeviceMemoryProperties *memory;
    vmaGetMemoryProperties(v.allocator, &memory);
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++)
        for (uint32_t k = 0; k < i; k++)
            if (memory->memoryTypes[i].heapIndex == memory->memoryTypes[k].heapIndex &&
                !(memory->memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT)) {
                types[0] = k;
                types[1] = i;
                return;
            }
    CHECK(false);
}

UNIT(vma_heaps, a_type_uses_what_another_gave_back)
{
    const VmaAllocationCreateFlags ways[] = {0, VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT};
    uint32_t types[2];
    for (size_t i = 0; i < 2; i++) {
        VmaAllocation a[2];
        open_small(0);
        find_pair(types);
        CHECK_VK(take(types[0], 3 * MIB, ways[i], &a[0]));
        CHECK_EQ(take(types[1], 3 * MIB, ways[i], &a[1]), FULL);
        vmaFreeMemory(v.allocator, a[0]);
        CHECK_VK(take(types[1], 3 * MIB, ways[i], &a[1]));
        vmaFreeMemory(v.allocator, a[1]);
        vma_fixture_close(&v);
    }
}

UNIT(vma_heaps, a_type_uses_what_a_pool_gave_back)
{
    uint32_t types[2];
    VmaPool pool;
    VmaAllocation a;
    open_small(0);
    find_pair(types);
    VmaPoolCreateInfo info = {.memoryTypeIndex = types[0], .blockSize = 3 * MIB};
    VmaAllocationCreateInfo options = {.pool = NULL};
    const VkMemoryRequirements needs = {
        .size = MIB, .alignment = 256, .memoryTypeBits = UINT32_MAX};
    CHECK_VK(vmaCreatePool(v.allocator, &info, &pool));
    options.pool = pool;
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &options, &a, NULL));
    vmaFreeMemory(v.allocator, a);
    CHECK_VK(take(types[1], 3 * MIB, 0, &a));
    vmaFreeMemory(v.allocator, a);
    vmaDestroyPool(v.allocator, pool);

    /* minBlockCount blocks stay, whatever others need. */
    info.minBlockCount = 1;
    VmaStatistics statistics;
    CHECK_VK(vmaCreatePool(v.allocator, &info, &pool));
    CHECK_EQ(take(types[1], 3 * MIB, 0, &a), FULL);
    vmaGetPoolStatistics(v.allocator, pool, &statistics);
    CHECK_EQ(statistics.blockCount, 1);
    vmaDestroyPool(v.allocator, pool);
    info.minBlockCount = SIZE_MAX;
    CHECK_EQ(vmaCreatePool(v.allocator, &info, &pool), FULL);
    vma_fixture_close(&v);
}

/* Without VK_EXT_memory_budget the budget is four fifths of the heap: 3.2 MiB. */
UNIT(vma_heaps, within_budget_without_the_extension)
{
    const VmaAllocationCreateFlags within = VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;
    const VmaAllocationCreateFlags dedicated = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    uint32_t types[2];
    VmaAllocation a, b;
    open_small(0);
    find_pair(types);
    CHECK_VK(take(types[0], 2 * MIB, within | dedicated, &a));
    CHECK_EQ(take(types[0], 3 * MIB / 2, within | dedicated, &b), FULL);
    CHECK_HAS(quire_last_error(), "WITHIN_BUDGET");
    CHECK_EQ(take(types[0], 3 * MIB / 2, within, &b), FULL);
    CHECK_VK(take(types[0], 3 * MIB / 2, dedicated, &b));
    vmaFreeMemory(v.allocator, a);
    vmaFreeMemory(v.allocator, b);
    /* Empty pages do not count. */
    CHECK_VK(take(types[1], 3 * MIB, within | dedicated, &a));
    vmaFreeMemory(v.allocator, a);
    vma_fixture_close(&v);
}

/* Also memory that is dedicated because the driver requires it. */
UNIT(vma_heaps, within_budget_of_required_memory)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(2 * MIB);
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO,
                                             .flags = VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT,
                                             .memoryTypeBits = 1};
    VkBuffer buffers[2];
    VmaAllocation a[2];
    open_small(FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS);
    CHECK_VK(vmaCreateBuffer(v.allocator, &info, &options, &buffers[0], &a[0], NULL));
    vma_fixture_refuse(&v, 2 * MIB, &options, FULL);
    vmaDestroyBuffer(v.allocator, buffers[0], a[0]);
    vma_fixture_close(&v);
}
