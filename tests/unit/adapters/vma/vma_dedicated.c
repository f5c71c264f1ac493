/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_dedicated.c - the functions that always allocate dedicated memory.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name) VMA_CASE(vma_dedicated, name, NULL, 0)
static const VmaAllocationCreateInfo AUTO = {.usage = VMA_MEMORY_USAGE_AUTO};
static const VkMemoryRequirements NEEDS = {
    .size = 1000, .alignment = 16, .memoryTypeBits = UINT32_MAX};

static void check_dedicated(VmaAllocation a, VkExternalMemoryHandleTypeFlags exportable)
{
    VmaAllocationInfo2 info;
    fv_memory_info memory;
    vmaGetAllocationInfo2(v.allocator, a, &info);
    CHECK(info.dedicatedMemory);
    CHECK(fv_memory_of(v.vulkan.driver, info.allocationInfo.deviceMemory, &memory));
    CHECK_EQ(memory.exportable, exportable);
}

CASE(memory_of_its_own_without_the_flag)
{
    const VkBufferCreateInfo buffer_info = vma_fixture_buffer_info(1000);
    const VkImageCreateInfo image_info = vma_fixture_image_info(16, VK_IMAGE_TILING_OPTIMAL);
    const VmaAllocationCreateInfo raw = {.memoryTypeBits = UINT32_MAX};
    VmaAllocation a, b, c;
    VkBuffer buffer;
    VkImage image;
    CHECK_VK(vmaCreateDedicatedBuffer(v.allocator, &buffer_info, &AUTO, NULL, &buffer, &a, NULL));
    CHECK_VK(vmaCreateDedicatedImage(v.allocator, &image_info, &AUTO, NULL, &image, &b, NULL));
    CHECK_VK(vmaAllocateDedicatedMemory(v.allocator, &NEEDS, &raw, NULL, &c, NULL));
    check_dedicated(a, 0);
    check_dedicated(b, 0);
    check_dedicated(c, 0);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaDestroyImage(v.allocator, image, b);
    vmaFreeMemory(v.allocator, c);
}

/* Only the last memory type exports: the chain decides, not the order of the types. */
UNIT(vma_dedicated, a_chain_of_an_export_selects_a_type_that_exports)
{
    VkExternalMemoryHandleTypeFlags types[VK_MAX_MEMORY_TYPES] = {0};
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkPhysicalDeviceMemoryProperties memory;
    VmaAllocation a;
    VmaAllocationInfo info;
    const VmaAllocationCreateInfo raw = {.preferredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    vma_fixture_begin(&v, NULL, 0);
    FV(&v.vulkan, vkGetPhysicalDeviceMemoryProperties)(v.vulkan.physical, &memory);
    uint32_t last = fv_fixture_coherent(&v.vulkan);
    types[last] = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    v.info.pTypeExternalMemoryHandleTypes = types;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    CHECK_VK(vmaAllocateDedicatedMemory(v.allocator, &NEEDS, &raw, &exported, &a, &info));
    CHECK_EQ(info.memoryType, last);
    check_dedicated(a, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
    vmaFreeMemory(v.allocator, a);
    exported.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    CHECK_EQ(vmaAllocateDedicatedMemory(v.allocator, &NEEDS, &raw, &exported, &a, NULL), MISSING);
    CHECK_HAS(quire_last_error(), "this allocator exports 0x1");
    vma_fixture_close(&v);
}

CASE(other_chains_are_refused_with_a_sentence)
{
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkImportMemoryFdInfoKHR imported = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR};
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    const VkImageCreateInfo image_info = vma_fixture_image_info(16, VK_IMAGE_TILING_OPTIMAL);
    VmaAllocationCreateInfo options = AUTO;
    VkBuffer buffer;
    VkImage image;
    VmaAllocation a;
    CHECK_EQ(vmaCreateDedicatedBuffer(v.allocator, &info, &options, &imported, &buffer, &a, NULL),
             MISSING);
    CHECK_HAS(quire_last_error(), "not sType 1000074000");
    CHECK_EQ(vmaCreateDedicatedBuffer(v.allocator, &info, &options, &exported, &buffer, &a, NULL),
             MISSING);
    CHECK_HAS(quire_last_error(), "this allocator exports 0x0");
    exported.pNext = &imported;
    CHECK_EQ(
        vmaCreateDedicatedImage(v.allocator, &image_info, &options, &exported, &image, &a, NULL),
        MISSING);
    CHECK(!buffer && !image && !a);
    CHECK_VK(vmaCreatePool(v.allocator, &(VmaPoolCreateInfo){.memoryTypeIndex = 0}, &options.pool));
    CHECK_EQ(vmaCreateDedicatedBuffer(v.allocator, &info, &options, &exported, &buffer, &a, NULL),
             MISSING);
    CHECK_HAS(quire_last_error(), "with a pool");
    vmaDestroyPool(v.allocator, options.pool);
    CHECK_EQ(vmaCreateDedicatedBuffer(v.allocator, &info, NULL, NULL, &buffer, &a, NULL), INVALID);
    CHECK_EQ(vmaCreateDedicatedBuffer(NULL, &info, &AUTO, NULL, &buffer, &a, NULL), INVALID);
}

CASE(the_alignment_of_the_options_holds)
{
    VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO, .minAlignment = 64 << 10};
    VkBuffer buffers[3];
    VmaAllocation a[3];
    VmaAllocationInfo placed;
    for (int i = 0; i < 3; i++) {
        a[i] = vma_fixture_buffer(&v, 100, &options, &buffers[i]);
        vmaGetAllocationInfo(v.allocator, a[i], &placed);
        CHECK_EQ(placed.offset % (64 << 10), 0);
    }
    for (int i = 0; i < 3; i++)
        vmaDestroyBuffer(v.allocator, buffers[i], a[i]);
    options.minAlignment = 3;
    vma_fixture_refuse(&v, 100, &options, INVALID);
    CHECK_HAS(quire_last_error(), "no power of two");
}
