/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_access.c - maps, persistent mapping, flush and invalidate, copies.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name) VMA_CASE(vma_access, name, NULL, 0)
static const VmaAllocationCreateInfo UPLOAD = {
    .flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT,
    .usage = VMA_MEMORY_USAGE_AUTO};
static const VmaAllocationCreateInfo MAPPED = {
    .flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT,
    .usage = VMA_MEMORY_USAGE_AUTO};
static const VmaAllocationCreateInfo DEVICE = {
    .usage = VMA_MEMORY_USAGE_AUTO, .requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};

static void *mapped_data(VmaAllocation a)
{
    VmaAllocationInfo info;
    vmaGetAllocationInfo(v.allocator, a, &info);
    return info.pMappedData;
}

/* ---- maps ----------------------------------------------------------------------------------- */

CASE(maps_are_counted)
{
    void *first, *second;
    VmaAllocation a = vma_fixture_hold(&v, 1000, &UPLOAD);
    CHECK(!mapped_data(a));
    CHECK_VK(vmaMapMemory(v.allocator, a, &first));
    CHECK_VK(vmaMapMemory(v.allocator, a, &second));
    CHECK_EQ((uintptr_t)first, (uintptr_t)second);
    memset(first, 7, 1000);
    vmaUnmapMemory(v.allocator, a);
    CHECK_EQ((uintptr_t)mapped_data(a), (uintptr_t)first);
    vmaUnmapMemory(v.allocator, a);
    CHECK(!mapped_data(a));
    vmaUnmapMemory(v.allocator, a); /* one too many: printed, without effect */
    CHECK_HAS(quire_last_error(), "is not mapped");
    CHECK_VK(vmaMapMemory(v.allocator, a, &second));
    CHECK_EQ((uintptr_t)first, (uintptr_t)second);
    vmaUnmapMemory(v.allocator, a);
}

/* The line names the fault, and nothing is lost. */
CASE(an_allocation_that_is_still_mapped_is_freed_with_a_line)
{
    VkBuffer buffer;
    VmaAllocationInfo info;
    void *data;
    VmaAllocation a = vma_fixture_buffer(&v, 1000, &UPLOAD, &buffer);
    CHECK_VK(vmaMapMemory(v.allocator, a, &data));
    CHECK_VK(vmaMapMemory(v.allocator, a, &data));
    vmaDestroyBuffer(v.allocator, buffer, a);
    CHECK_HAS(quire_last_error(), "2 calls of vmaUnmapMemory are missing");
    CHECK_EQ(fv_live(v.vulkan.driver, FV_BUFFER), 0);
    vmaGetAllocationInfo(v.allocator, a, &info);
    CHECK_HAS(quire_last_error(), "the allocation was freed before");
}

CASE(persistent_mapping_lasts_until_the_free)
{
    VkBuffer buffer;
    VmaAllocationInfo info;
    void *data;
    const VkBufferCreateInfo create = vma_fixture_buffer_info(1000);
    VmaAllocation a, b;
    CHECK_VK(vmaCreateBuffer(v.allocator, &create, &MAPPED, &buffer, &a, &info));
    CHECK(info.pMappedData);
    CHECK_VK(vmaMapMemory(v.allocator, a, &data));
    CHECK_EQ((uintptr_t)data, (uintptr_t)info.pMappedData);
    vmaUnmapMemory(v.allocator, a);
    vmaUnmapMemory(v.allocator, a); /* one too many: printed, without effect */
    CHECK_HAS(quire_last_error(), "is not mapped");
    CHECK_EQ((uintptr_t)mapped_data(a), (uintptr_t)info.pMappedData);
    memset(data, 3, 1000);
    b = vma_fixture_hold(&v, 1000, &MAPPED);
    CHECK(mapped_data(b) != data);
    vmaDestroyBuffer(v.allocator, buffer, a);
}

CASE(dedicated_memory_is_mapped_as_well)
{
    VmaAllocationCreateInfo options = MAPPED;
    options.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    VmaAllocation a = vma_fixture_hold(&v, 1000, &options);
    CHECK(mapped_data(a));
    memset(mapped_data(a), 1, 1000);
}

/* As in VMA the flag has no effect there. */
UNIT(vma_access, memory_that_cannot_be_mapped_has_no_pointer)
{
    VmaAllocationCreateInfo options = DEVICE;
    void *data;
    options.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT |
                    VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
                    VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT;
    vma_fixture_open(&v, "nvidia-bar", 0);
    options.memoryTypeBits = 0;
    for (uint32_t i = 0; i < VK_MAX_MEMORY_TYPES; i++) {
        VkMemoryPropertyFlags flags;
        vmaGetMemoryTypeProperties(v.allocator, i, &flags);
        if (flags == VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
            options.memoryTypeBits |= UINT32_C(1) << i;
    }
    VmaAllocation a = vma_fixture_hold(&v, 1000, &options);
    CHECK(!mapped_data(a));
    CHECK_EQ(vmaMapMemory(v.allocator, a, &data), VK_ERROR_MEMORY_MAP_FAILED);
    CHECK(!data);
    CHECK_EQ(vmaCopyMemoryToAllocation(v.allocator, "data", a, 0, 4), VK_ERROR_MEMORY_MAP_FAILED);
    CHECK_VK(vmaFlushAllocation(v.allocator, a, 0, VK_WHOLE_SIZE));
    vma_fixture_close(&v);
}

/* ---- flush, invalidate, copies -------------------------------------------------------------- */

/* A buffer of memory that is not coherent, in which the driver shows what was not flushed. */
static VmaAllocation incoherent_buffer(VkBuffer *buffer)
{
    VmaAllocationCreateInfo options = {.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    vma_fixture_open_driver(&v, "incoherent", FV_STALE);
    for (uint32_t i = 0; i < VK_MAX_MEMORY_TYPES; i++) {
        VkMemoryPropertyFlags flags;
        vmaGetMemoryTypeProperties(v.allocator, i, &flags);
        if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
            !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT))
            options.memoryTypeBits |= UINT32_C(1) << i;
    }
    CHECK(options.memoryTypeBits);
    return vma_fixture_buffer(&v, 1000, &options, buffer);
}

UNIT(vma_access, what_is_copied_is_read_back)
{
    VkBuffer buffer;
    char text[32] = "";
    VmaAllocation a = incoherent_buffer(&buffer);
    CHECK_VK(vmaCopyMemoryToAllocation(v.allocator, "some bytes", a, 100, 11));
    CHECK_VK(vmaCopyAllocationToMemory(v.allocator, a, 100, text, 11));
    CHECK_STR(text, "some bytes");
    CHECK(fv_calls(v.vulkan.driver, "vkFlushMappedMemoryRanges") > 0);
    CHECK(fv_calls(v.vulkan.driver, "vkInvalidateMappedMemoryRanges") > 0);
    CHECK_VK(vmaCopyMemoryToAllocation(v.allocator, NULL, a, 0, 0));
    CHECK_EQ(vmaCopyMemoryToAllocation(v.allocator, text, a, 1000, 32), INVALID);
    CHECK_EQ(vmaCopyMemoryToAllocation(v.allocator, text, a, UINT64_MAX, 32), INVALID);
    CHECK_EQ(vmaCopyAllocationToMemory(v.allocator, a, 0, NULL, 1), INVALID);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vma_fixture_close(&v);
}

UNIT(vma_access, ranges_are_flushed_and_invalidated)
{
    VkBuffer buffer;
    void *data;
    VmaAllocation a = incoherent_buffer(&buffer);
    const VmaAllocation twice[] = {a, a};
    const VkDeviceSize offsets[] = {0, 500}, sizes[] = {100, VK_WHOLE_SIZE};
    CHECK_VK(vmaMapMemory(v.allocator, a, &data));
    memset(data, 1, 1000);
    fv_reset_counters(v.vulkan.driver);
    CHECK_VK(vmaFlushAllocation(v.allocator, a, 10, 20));
    CHECK_VK(vmaFlushAllocation(v.allocator, a, 0, VK_WHOLE_SIZE));
    CHECK_VK(vmaFlushAllocations(v.allocator, 2, twice, offsets, sizes));
    CHECK_VK(vmaInvalidateAllocation(v.allocator, a, 0, VK_WHOLE_SIZE));
    CHECK_VK(vmaInvalidateAllocations(v.allocator, 2, twice, NULL, NULL));
    CHECK_EQ(fv_calls(v.vulkan.driver, "vkFlushMappedMemoryRanges"), 4);
    CHECK_EQ(fv_calls(v.vulkan.driver, "vkInvalidateMappedMemoryRanges"), 3);
    CHECK_VK(vmaFlushAllocation(v.allocator, a, 0, 0)); /* nothing */
    CHECK_VK(vmaFlushAllocations(v.allocator, 0, NULL, NULL, NULL));
    CHECK_EQ(fv_calls(v.vulkan.driver, "vkFlushMappedMemoryRanges"), 4);
    CHECK_EQ(vmaFlushAllocation(v.allocator, a, 5000, 1), INVALID);
    CHECK_EQ(vmaInvalidateAllocation(v.allocator, a, 0, 5000), INVALID);
    CHECK_EQ(vmaFlushAllocations(v.allocator, 1, NULL, NULL, NULL), INVALID);
    vmaUnmapMemory(v.allocator, a);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vma_fixture_close(&v);
}
