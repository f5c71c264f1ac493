/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_resource.c - buffers and images with their memory, aliases, binding, raw memory.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name, layout, flags) VMA_CASE(vma_resource, name, layout, flags)
static const VmaAllocationCreateInfo AUTO = {.usage = VMA_MEMORY_USAGE_AUTO};
static const VmaAllocationCreateInfo DEDICATED = {
    .flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT, .usage = VMA_MEMORY_USAGE_AUTO};

/* The object is bound where the allocation says. */
static void check_place(VmaAllocation allocation, uint64_t object)
{
    VmaAllocationInfo info = vma_fixture_info(&v, allocation);
    fv_place place = fv_place_of(v.vulkan.driver, object);
    CHECK_EQ((uintptr_t)place.memory, (uintptr_t)info.deviceMemory);
    CHECK_EQ(place.offset, info.offset);
    CHECK_EQ(place.memory_type, info.memoryType);
    CHECK(place.size <= info.size);
}

#define NUMBER(handle) ((uint64_t)(uintptr_t)(handle))

static VmaAllocation image(uint32_t width, VkImageTiling tiling,
                           const VmaAllocationCreateInfo *options, VkImage *image)
{
    const VkImageCreateInfo info = vma_fixture_image_info(width, tiling);
    VmaAllocation allocation;
    VmaAllocationInfo written;
    CHECK_VK(vmaCreateImage(v.allocator, &info, options, image, &allocation, &written));
    VmaAllocationInfo queried = vma_fixture_info(&v, allocation);
    CHECK_EQ((uintptr_t)written.deviceMemory, (uintptr_t)queried.deviceMemory);
    CHECK_EQ(written.offset, queried.offset);
    return allocation;
}

static void buffers_and_images_are_bound(const char *layout, uint32_t flags)
{
    VkBuffer buffers[2];
    VkImage images[3];
    VmaAllocation a[5];
    vma_fixture_open_driver(&v, layout, flags);
    a[0] = vma_fixture_buffer(&v, 1000, &AUTO, &buffers[0]);
    a[1] = image(64, VK_IMAGE_TILING_OPTIMAL, &AUTO, &images[0]);
    a[2] = vma_fixture_buffer(&v, 70000, &DEDICATED, &buffers[1]);
    a[3] = image(32, VK_IMAGE_TILING_LINEAR, &AUTO, &images[1]);
    a[4] = image(64, VK_IMAGE_TILING_OPTIMAL, &DEDICATED, &images[2]);
    check_place(a[0], NUMBER(buffers[0]));
    check_place(a[1], NUMBER(images[0]));
    check_place(a[2], NUMBER(buffers[1]));
    check_place(a[3], NUMBER(images[1]));
    check_place(a[4], NUMBER(images[2]));
    vmaDestroyBuffer(v.allocator, buffers[0], a[0]);
    vmaDestroyImage(v.allocator, images[0], a[1]);
    FV(&v.vulkan, vkDestroyBuffer)(v.vulkan.device, buffers[1], NULL);
    vmaFreeMemory(v.allocator, a[2]);
    vmaDestroyImage(v.allocator, images[1], a[3]);
    vmaDestroyImage(v.allocator, images[2], a[4]);
    vma_fixture_close(&v);
}

/* ---- placement ------------------------------------------------------------------------------ */

UNIT(vma_resource, objects_are_bound_where_their_allocations_say)
{
    buffers_and_images_are_bound(NULL, 0);
    buffers_and_images_are_bound(NULL, FV_ODD_SIZES | FV_LARGE_ALIGNMENTS | FV_FEW_TYPES);
    buffers_and_images_are_bound(NULL, FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS);
    buffers_and_images_are_bound(NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS);
}

static VmaAllocationInfo2 info2_of(VmaAllocation allocation)
{
    VmaAllocationInfo2 info;
    vmaGetAllocationInfo2(v.allocator, allocation, &info);
    return info;
}

CASE(a_dedicated_allocation_has_a_block_of_its_own, NULL, 0)
{
    VmaAllocation a = vma_fixture_hold(&v, 1000, &DEDICATED);
    VmaAllocation b = vma_fixture_hold(&v, 1000, &AUTO);
    VmaAllocation c = vma_fixture_hold(&v, 1000, &AUTO);
    CHECK(info2_of(a).dedicatedMemory);
    CHECK(!info2_of(b).dedicatedMemory);
    CHECK(info2_of(b).blockSize > 2000);
    CHECK(vma_fixture_info(&v, a).deviceMemory != vma_fixture_info(&v, b).deviceMemory);
    CHECK_EQ((uintptr_t)vma_fixture_info(&v, b).deviceMemory,
             (uintptr_t)vma_fixture_info(&v, c).deviceMemory);
}

/* Where the driver wants it, the memory is made for the object. */
UNIT(vma_resource, dedicated_memory_that_the_driver_prefers_names_the_object)
{
    fv_memory_info memory;
    vma_fixture_open_driver(&v, NULL, FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS);
    VmaAllocation a = vma_fixture_hold(&v, 1000, &AUTO);
    CHECK(info2_of(a).dedicatedMemory);
    CHECK_EQ(info2_of(a).blockSize, vma_fixture_info(&v, a).size);
    CHECK(fv_memory_of(v.vulkan.driver, vma_fixture_info(&v, a).deviceMemory, &memory));
    CHECK(memory.dedicated);
    vma_fixture_close(&v);
}

CASE(an_alignment_can_be_larger_than_that_of_the_buffer, NULL, 0)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(100);
    VkBuffer second;
    VmaAllocation a, b;
    a = vma_fixture_hold(&v, 100, &AUTO);
    CHECK_VK(vmaCreateBufferWithAlignment(v.allocator, &info, &AUTO, 65536, &second, &b, NULL));
    CHECK_EQ(vma_fixture_info(&v, b).offset % 65536, 0);
    CHECK(vma_fixture_info(&v, b).offset != vma_fixture_info(&v, a).offset ||
          vma_fixture_info(&v, b).deviceMemory != vma_fixture_info(&v, a).deviceMemory);
    vmaDestroyBuffer(v.allocator, second, b);
    CHECK_EQ(vmaCreateBufferWithAlignment(v.allocator, &info, &AUTO, 3, &second, &b, NULL),
             INVALID);
    CHECK(!second && !b);
}

/* Linear and optimal neighbours share no granule, also where the tiling is not known. */
CASE(objects_of_different_tiling_keep_apart, "nvidia-rebar", 0)
{
    enum { COUNT = 12 };
    VmaAllocation a[COUNT];
    VkBuffer buffers[COUNT] = {0};
    VkImage images[COUNT] = {0};
    const VkMemoryRequirements needs = {.size = 300, .alignment = 4, .memoryTypeBits = UINT32_MAX};
    const VmaAllocationCreateInfo raw = {.preferredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    const VkPhysicalDeviceProperties *properties;
    vmaGetPhysicalDeviceProperties(v.allocator, &properties);
    VkDeviceSize granule = properties->limits.bufferImageGranularity;
    CHECK(granule > 256);
    for (int i = 0; i < COUNT; i++)
        if (i % 3 == 0)
            a[i] = vma_fixture_buffer(&v, 300, &AUTO, &buffers[i]);
        else if (i % 3 == 1)
            a[i] = image(4, VK_IMAGE_TILING_OPTIMAL, &AUTO, &images[i]);
        else
            CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &raw, &a[i], NULL));
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            VmaAllocationInfo x = vma_fixture_info(&v, a[i]), y = vma_fixture_info(&v, a[j]);
            if (i % 3 == 0 && j % 3 != 0 && x.deviceMemory == y.deviceMemory) {
                CHECK(x.offset / granule > (y.offset + y.size - 1) / granule ||
                      (x.offset + x.size - 1) / granule < y.offset / granule);
            }
        }
    for (int i = 0; i < COUNT; i++)
        if (images[i])
            vmaDestroyImage(v.allocator, images[i], a[i]);
        else
            vmaDestroyBuffer(v.allocator, buffers[i], a[i]);
}

/* ---- memory first, binding later ------------------------------------------------------------ */

static VkBuffer make_buffer(VkDeviceSize size)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(size);
    VkBuffer buffer;
    CHECK_VK(FV(&v.vulkan, vkCreateBuffer)(v.vulkan.device, &info, NULL, &buffer));
    return buffer;
}

static void bind_later(uint32_t flags, const VmaAllocationCreateInfo *options)
{
    const VkImageCreateInfo image_info = vma_fixture_image_info(16, VK_IMAGE_TILING_OPTIMAL);
    VkImage made;
    VmaAllocation a, b;
    vma_fixture_open_driver(&v, NULL, flags);
    VkBuffer buffer = make_buffer(5000);
    CHECK_VK(FV(&v.vulkan, vkCreateImage)(v.vulkan.device, &image_info, NULL, &made));
    CHECK_VK(vmaAllocateMemoryForBuffer(v.allocator, buffer, options, &a, NULL));
    CHECK_VK(vmaAllocateMemoryForImage(v.allocator, made, options, &b, NULL));
    CHECK(!fv_place_of(v.vulkan.driver, NUMBER(buffer)).memory);
    CHECK_VK(vmaBindBufferMemory(v.allocator, a, buffer));
    CHECK_VK(vmaBindImageMemory(v.allocator, b, made));
    check_place(a, NUMBER(buffer));
    check_place(b, NUMBER(made));
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaDestroyImage(v.allocator, made, b);
    vma_fixture_close(&v);
}

UNIT(vma_resource, memory_of_an_object_is_bound_by_the_program)
{
    const VmaAllocationCreateInfo options = {.preferredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    const VmaAllocationCreateInfo dedicated = {.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT};
    bind_later(0, &options);
    bind_later(0, &dedicated);
    bind_later(FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS, &options);
}

CASE(an_object_can_be_left_unbound, NULL, 0)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    const VkImageCreateInfo image_info = vma_fixture_image_info(16, VK_IMAGE_TILING_OPTIMAL);
    VmaAllocationCreateInfo options = {.flags = VMA_ALLOCATION_CREATE_DONT_BIND_BIT,
                                       .usage = VMA_MEMORY_USAGE_AUTO};
    VkBuffer buffer;
    VkImage made;
    VmaAllocation a, b;
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        CHECK_VK(vmaCreateBuffer(v.allocator, &info, &options, &buffer, &a, NULL));
        CHECK_VK(vmaCreateImage(v.allocator, &image_info, &options, &made, &b, NULL));
        CHECK(!fv_place_of(v.vulkan.driver, NUMBER(buffer)).memory);
        CHECK(!fv_place_of(v.vulkan.driver, NUMBER(made)).memory);
        CHECK_VK(vmaBindBufferMemory2(v.allocator, a, 0, buffer, NULL));
        CHECK_VK(vmaBindImageMemory2(v.allocator, b, 0, made, NULL));
        check_place(a, NUMBER(buffer));
        vmaDestroyBuffer(v.allocator, buffer, a);
        vmaDestroyImage(v.allocator, made, b);
        options.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    }
}

CASE(a_binding_has_an_offset_and_a_chain, NULL, 0)
{
    const VkMemoryRequirements needs = {
        .size = 1 << 20, .alignment = 65536, .memoryTypeBits = UINT32_MAX};
    const VkBindBufferMemoryDeviceGroupInfo group = {
        .sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_DEVICE_GROUP_INFO};
    VmaAllocation a;
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &(VmaAllocationCreateInfo){0}, &a, NULL));
    VkBuffer first = make_buffer(1000), second = make_buffer(1000);
    CHECK_VK(vmaBindBufferMemory2(v.allocator, a, 65536, first, NULL));
    CHECK_VK(vmaBindBufferMemory2(v.allocator, a, 131072, second, &group));
    CHECK_EQ(fv_place_of(v.vulkan.driver, NUMBER(first)).offset,
             vma_fixture_info(&v, a).offset + 65536);
    CHECK_EQ(fv_place_of(v.vulkan.driver, NUMBER(second)).offset,
             vma_fixture_info(&v, a).offset + 131072);
    VkBuffer third = make_buffer(1000);
    CHECK_EQ(vmaBindBufferMemory2(v.allocator, a, 1 << 20, third, NULL), INVALID);
    CHECK_EQ(vmaBindBufferMemory(v.allocator, a, VK_NULL_HANDLE), INVALID);
    CHECK_EQ(vmaBindImageMemory(v.allocator, a, VK_NULL_HANDLE), INVALID);
    vmaDestroyBuffer(v.allocator, first, NULL);
    vmaDestroyBuffer(v.allocator, second, NULL);
    vmaDestroyBuffer(v.allocator, third, a);
}

/* ---- aliases -------------------------------------------------------------------------------- */

CASE(aliases_lie_in_one_allocation, NULL, 0)
{
    const VkMemoryRequirements needs = {
        .size = 1 << 20, .alignment = 65536, .memoryTypeBits = UINT32_MAX};
    const VmaAllocationCreateInfo options = {.flags = VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT,
                                             .preferredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    const VkImageCreateInfo image_info = vma_fixture_image_info(64, VK_IMAGE_TILING_OPTIMAL);
    VmaAllocation a;
    VkBuffer buffers[2];
    VkImage images[2];
    fv_allow(v.vulkan.driver, "fv-overlap");
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &options, &a, NULL));
    CHECK_VK(vmaCreateAliasingBuffer(v.allocator, a, &info, &buffers[0]));
    CHECK_VK(vmaCreateAliasingBuffer2(v.allocator, a, 4096, &info, &buffers[1]));
    CHECK_VK(vmaCreateAliasingImage(v.allocator, a, &image_info, &images[0]));
    CHECK_VK(vmaCreateAliasingImage2(v.allocator, a, 65536, &image_info, &images[1]));
    VkDeviceSize start = vma_fixture_info(&v, a).offset;
    CHECK_EQ(fv_place_of(v.vulkan.driver, NUMBER(buffers[0])).offset, start);
    CHECK_EQ(fv_place_of(v.vulkan.driver, NUMBER(buffers[1])).offset, start + 4096);
    CHECK_EQ(fv_place_of(v.vulkan.driver, NUMBER(images[0])).offset, start);
    CHECK_EQ(fv_place_of(v.vulkan.driver, NUMBER(images[1])).offset, start + 65536);
    VkBuffer none;
    CHECK_EQ(vmaCreateAliasingBuffer2(v.allocator, a, 1 << 20, &info, &none), INVALID);
    CHECK_EQ(vmaCreateAliasingBuffer(v.allocator, NULL, &info, &none), INVALID);
    CHECK(!none);
    vmaDestroyBuffer(v.allocator, buffers[0], NULL);
    vmaDestroyImage(v.allocator, images[0], NULL);
    vmaDestroyImage(v.allocator, images[1], NULL);
    vmaDestroyBuffer(v.allocator, buffers[1], a);
}

/* ---- many ----------------------------------------------------------------------------------- */

/* All have the same requirements and options, of which there is one each. */
CASE(pages_are_made_all_or_none, NULL, 0)
{
    enum { COUNT = 8 };
    VkMemoryRequirements needs = {.size = 65536, .alignment = 65536, .memoryTypeBits = UINT32_MAX};
    VmaAllocationCreateInfo options = {.pUserData = &needs};
    const VkPhysicalDeviceMemoryProperties *memory;
    VmaAllocation a[COUNT];
    VmaAllocationInfo infos[COUNT];
    CHECK_VK(vmaAllocateMemoryPages(v.allocator, &needs, &options, COUNT, a, infos));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(infos[i].size, 65536);
        CHECK_EQ((uintptr_t)infos[i].pUserData, (uintptr_t)&needs);
    }
    vmaFreeMemoryPages(v.allocator, COUNT, a);
    vmaGetMemoryProperties(v.allocator, &memory);
    for (uint32_t heap = 0; heap < memory->memoryHeapCount; heap++)
        fv_set_capacity(v.vulkan.driver, 0, heap, 5 << 20);
    needs.size = 2 << 20;
    CHECK_EQ(vmaAllocateMemoryPages(v.allocator, &needs, &options, COUNT, a, infos), FULL);
    for (int i = 0; i < COUNT; i++)
        CHECK(!a[i] && !infos[i].size);
    CHECK_VK(vmaAllocateMemoryPages(v.allocator, NULL, NULL, 0, NULL, NULL));
    CHECK_EQ(vmaAllocateMemoryPages(v.allocator, NULL, NULL, 1, a, NULL), INVALID);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* Each call of the driver fails in turn; afterwards nothing is left. */
CASE(each_failing_call_of_the_driver_is_an_error_and_leaves_nothing, NULL, 0)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    const VkImageCreateInfo image_info = vma_fixture_image_info(64, VK_IMAGE_TILING_OPTIMAL);
    const VmaAllocationCreateInfo options[] = {AUTO, DEDICATED};
    uint32_t failures = 0;
    for (uint64_t call = 1; call <= 16; call++) {
        VkBuffer buffer;
        VkImage made;
        VmaAllocation a, b;
        VmaAllocationInfo written;
        const VmaAllocationCreateInfo *o = &options[call % 2];
        CHECK(fv_fail(v.vulkan.driver, &(fv_fault){.call = (call + 1) / 2}));
        VkResult first = vmaCreateBuffer(v.allocator, &info, o, &buffer, &a, &written);
        VkResult second = vmaCreateImage(v.allocator, &image_info, o, &made, &b, NULL);
        fv_heal(v.vulkan.driver);
        failures += first != VK_SUCCESS;
        failures += second != VK_SUCCESS;
        if (first)
            CHECK(!buffer && !a && !written.size && *quire_last_error());
        if (second)
            CHECK(!made && !b);
        vmaDestroyBuffer(v.allocator, buffer, a);
        vmaDestroyImage(v.allocator, made, b);
        /* a page of a checked build keeps a buffer of quire's own */
        CHECK(fv_live(v.vulkan.driver, FV_BUFFER) <= fv_live(v.vulkan.driver, FV_MEMORY));
        CHECK_EQ(fv_live(v.vulkan.driver, FV_IMAGE), 0);
    }
    CHECK(failures > 3);
}
