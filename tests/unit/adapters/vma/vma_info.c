/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_info.c - information on allocations, names and user data, statistics, budgets.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name) VMA_CASE(vma_info, name, NULL, 0)
static const VmaAllocationCreateInfo AUTO = {.usage = VMA_MEMORY_USAGE_AUTO};

/* ---- names and user data -------------------------------------------------------------------- */

CASE(user_data_and_names_are_kept)
{
    char text[] = "vertices";
    VmaAllocationCreateInfo options = AUTO;
    options.pUserData = text;
    VmaAllocation a = vma_fixture_hold(&v, 1000, &options);
    CHECK_EQ((uintptr_t)vma_fixture_info(&v, a).pUserData, (uintptr_t)text);
    CHECK(!vma_fixture_info(&v, a).pName);
    vmaSetAllocationName(v.allocator, a, text);
    text[0] = 'x';
    CHECK_STR(vma_fixture_info(&v, a).pName, "vertices");
    vmaSetAllocationUserData(v.allocator, a, &v);
    CHECK_EQ((uintptr_t)vma_fixture_info(&v, a).pUserData, (uintptr_t)&v);
    vmaSetAllocationName(v.allocator, a, NULL);
    CHECK(!vma_fixture_info(&v, a).pName);
}

CASE(user_data_can_be_a_string_to_copy)
{
    char text[] = "old way";
    VmaAllocationCreateInfo options = AUTO;
    options.flags = VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT;
    options.pUserData = text;
    VmaAllocation a = vma_fixture_hold(&v, 1000, &options);
    text[0] = 'x';
    CHECK_STR(vma_fixture_info(&v, a).pName, "old way");
    CHECK(!vma_fixture_info(&v, a).pUserData);
}

/* quire's names are shorter than those of VMA. */
UNIT(vma_info, long_names_are_kept_whole)
{
    char name[1000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    vma_fixture_open(&v, NULL, 0);
    VmaAllocation a = vma_fixture_hold(&v, 1000, &AUTO);
    vmaSetAllocationName(v.allocator, a, name);
    CHECK_STR(vma_fixture_info(&v, a).pName, name);
    vma_fixture_close(&v);
}

/* ---- handles -------------------------------------------------------------------------------- */

CASE(handles_stay_valid_while_others_come_and_go)
{
    enum { COUNT = 300 };
    static VmaAllocation a[COUNT];
    static VkBuffer buffers[COUNT];
    VmaAllocationCreateInfo options = AUTO;
    for (int round = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < COUNT; i++)
            if (!a[i]) {
                options.pUserData = (void *)(i + 1);
                a[i] = vma_fixture_buffer(&v, 100 + i, &options, &buffers[i]);
            }
        for (uintptr_t i = 0; i < COUNT; i++) {
            CHECK_EQ((uintptr_t)vma_fixture_info(&v, a[i]).pUserData, i + 1);
            if (round == 2 || i % 3 == (uintptr_t)round) {
                vmaDestroyBuffer(v.allocator, buffers[i], a[i]);
                a[i] = NULL;
            }
        }
    }
}

/* Every function that takes an allocation, with a handle that is stale, null, or of another
   allocator. */
static void check_bad_handle(VmaAllocation a, const char *fault)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(100);
    VkMemoryPropertyFlags flags = 1;
    VmaAllocationInfo one = {.size = 1};
    VmaAllocationInfo2 two = {.blockSize = 1};
    VkBuffer buffer;
    void *data;
    char byte = 0;
    vmaGetAllocationInfo(v.allocator, a, &one);
    CHECK_HAS(quire_last_error(), fault);
    CHECK_EQ(one.size, 0);
    vmaGetAllocationInfo2(v.allocator, a, &two);
    CHECK_EQ(two.blockSize, 0);
    vmaGetAllocationMemoryProperties(v.allocator, a, &flags);
    CHECK_EQ(flags, 0);
    vmaSetAllocationName(v.allocator, a, "name");
    vmaSetAllocationUserData(v.allocator, a, &v);
    vmaUnmapMemory(v.allocator, a);
    vmaFreeMemory(v.allocator, a);
    vmaDestroyBuffer(v.allocator, VK_NULL_HANDLE, a);
    vmaDestroyImage(v.allocator, VK_NULL_HANDLE, a);
    CHECK_EQ(vmaMapMemory(v.allocator, a, &data), INVALID);
    CHECK_EQ(vmaFlushAllocation(v.allocator, a, 0, 1), INVALID);
    CHECK_EQ(vmaInvalidateAllocations(v.allocator, 1, &a, NULL, NULL), INVALID);
    CHECK_EQ(vmaCopyMemoryToAllocation(v.allocator, &byte, a, 0, 1), INVALID);
    CHECK_EQ(vmaCopyAllocationToMemory(v.allocator, a, 0, &byte, 1), INVALID);
    CHECK_EQ(vmaBindBufferMemory(v.allocator, a, VK_NULL_HANDLE), INVALID);
    CHECK_EQ(vmaCreateAliasingBuffer(v.allocator, a, &info, &buffer), INVALID);
    CHECK_HAS(quire_last_error(), fault);
}

CASE(bad_handles_are_found_in_every_function)
{
    VkBuffer buffer;
    VmaAllocator other;
    VmaAllocation a = vma_fixture_buffer(&v, 1000, &AUTO, &buffer);
    VmaAllocation live = vma_fixture_hold(&v, 1000, &AUTO);
    vmaDestroyBuffer(v.allocator, buffer, a);
    check_bad_handle(a, "the allocation was freed before");
    check_bad_handle(NULL, "the allocation is null");
    CHECK_VK(vmaCreateAllocator(&v.info, &other));
    VmaAllocator first = v.allocator;
    v.allocator = other;
    check_bad_handle(live, "the allocation belongs to another allocator");
    v.allocator = NULL;
    check_bad_handle(live, "the allocator is null");
    vmaDestroyAllocator(other);
    v.allocator = first;
    CHECK(vma_fixture_info(&v, live).size >= 1000);
}

/* ---- statistics ----------------------------------------------------------------------------- */

CASE(statistics_count_by_type_heap_and_in_total)
{
    VmaTotalStatistics all;
    const VkPhysicalDeviceMemoryProperties *memory;
    vmaCalculateStatistics(v.allocator, &all);
    CHECK_EQ(all.total.statistics.allocationCount, 0);
    CHECK_EQ(all.total.allocationSizeMin, VK_WHOLE_SIZE);
    CHECK_EQ(all.total.allocationSizeMax, 0);
    VmaAllocation a = vma_fixture_hold(&v, 1024, &AUTO);
    VmaAllocation b = vma_fixture_hold(&v, 65536, &AUTO);
    uint32_t type = vma_fixture_info(&v, a).memoryType;
    vmaGetMemoryProperties(v.allocator, &memory);
    vmaCalculateStatistics(v.allocator, &all);
    const VmaDetailedStatistics *views[] = {&all.total, &all.memoryType[type],
                                            &all.memoryHeap[memory->memoryTypes[type].heapIndex]};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(views[i]->statistics.allocationCount, 2);
        CHECK_EQ(views[i]->statistics.blockCount, 1);
        CHECK_EQ(views[i]->statistics.allocationBytes,
                 vma_fixture_info(&v, a).size + vma_fixture_info(&v, b).size);
        CHECK_EQ(views[i]->allocationSizeMin, vma_fixture_info(&v, a).size);
        CHECK_EQ(views[i]->allocationSizeMax, vma_fixture_info(&v, b).size);
        CHECK(views[i]->unusedRangeCount > 0);
        CHECK(views[i]->unusedRangeSizeMin <= views[i]->unusedRangeSizeMax);
        CHECK(views[i]->statistics.blockBytes > 65536 + 1024);
    }
}

UNIT(vma_info, budgets_come_from_the_driver_or_are_four_fifths_of_the_heap)
{
    VkBuffer buffer;
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    const VkPhysicalDeviceMemoryProperties *memory;
    vma_fixture_open(&v, NULL, 0);
    vmaGetMemoryProperties(v.allocator, &memory);
    VmaAllocation a = vma_fixture_buffer(&v, 1000, &AUTO, &buffer);
    VmaAllocationInfo info = vma_fixture_info(&v, a);
    uint32_t heap = memory->memoryTypes[info.memoryType].heapIndex;
    vmaGetHeapBudgets(v.allocator, budgets);
    CHECK_EQ(budgets[heap].statistics.allocationCount, 1);
    CHECK_EQ(budgets[heap].usage, budgets[heap].statistics.blockBytes);
    CHECK_EQ(budgets[heap].budget, memory->memoryHeaps[heap].size * 8 / 10);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vma_fixture_close(&v);

    vma_fixture_open(&v, NULL, VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT);
    fv_set_budget(v.vulkan.driver, 0, heap, 100 << 20, 0);
    VkDeviceMemory others = fv_fixture_memory(&v.vulkan, 7 << 20, info.memoryType);
    a = vma_fixture_buffer(&v, 1000, &AUTO, &buffer);
    vmaGetHeapBudgets(v.allocator, budgets);
    CHECK_EQ(budgets[heap].budget, 100 << 20);
    CHECK_EQ(budgets[heap].usage, (7 << 20) + budgets[heap].statistics.blockBytes);
    vmaDestroyBuffer(v.allocator, buffer, a);
    FV(&v.vulkan, vkFreeMemory)(v.vulkan.device, others, NULL);
    vma_fixture_close(&v);
}

CASE(functions_without_a_result_accept_null)
{
    vmaGetHeapBudgets(v.allocator, NULL);
    vmaCalculateStatistics(v.allocator, NULL);
    vmaCalculateStatistics(NULL, NULL);
    vmaGetAllocatorInfo(v.allocator, NULL);
    vmaGetMemoryProperties(NULL, NULL);
    vmaGetPoolStatistics(v.allocator, NULL, NULL);
    vmaCalculatePoolStatistics(v.allocator, NULL, NULL);
    vmaSetPoolName(v.allocator, NULL, "name");
    vmaGetPoolName(v.allocator, NULL, NULL);
    vmaFreeMemoryPages(v.allocator, 3, NULL);
    CHECK_EQ(vmaCheckCorruption(NULL, 1), INVALID);
}

/* ---- without an allocator ------------------------------------------------------------------- */

/* VmaAllocation_T of C++ asks for it. */
UNIT(vma_info, an_allocation_is_found_by_its_handle_alone)
{
    static vma_fixture other;
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST,
                                             .flags = VMA_ALLOCATION_CREATE_MAPPED_BIT |
                                                      VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT};
    VkBuffer buffers[2];
    VmaAllocationInfo expected, found;
    vma_fixture_open(&v, NULL, 0);
    vma_fixture_open(&other, NULL, 0);
    VmaAllocation a = vma_fixture_buffer(&v, 1000, &options, &buffers[0]);
    VmaAllocation b = vma_fixture_buffer(&other, 2048, &options, &buffers[1]);
    vmaGetAllocationInfo(v.allocator, a, &expected);
    quire_vma_get_info_of_handle(a, &found);
    CHECK(found.deviceMemory == expected.deviceMemory && found.offset == expected.offset);
    CHECK(found.pMappedData && found.pMappedData == expected.pMappedData);
    CHECK_EQ(found.size, expected.size);
    quire_vma_get_info_of_handle(b, &found);
    CHECK_EQ(found.size, 2048);
    vmaDestroyBuffer(v.allocator, buffers[0], a);
    vma_fixture_close(&v);
    quire_vma_get_info_of_handle(b, &found);
    CHECK_EQ(found.size, 2048);
    quire_vma_get_info_of_handle(a, &found); /* a line on stderr */
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(!found.size && !found.deviceMemory);
    vmaDestroyBuffer(other.allocator, buffers[1], b);
    vma_fixture_close(&other);
}
