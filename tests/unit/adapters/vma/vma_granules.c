/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_granules.c - images of optimal tiling where bufferImageGranularity is large: they have pages
 * for themselves and are not rounded, unless the program may bind something else to their memory.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static const VkDeviceSize KIB = 1024, GRANULE = 64 * 1024;
static const VmaAllocationCreateInfo AUTO = {.usage = VMA_MEMORY_USAGE_AUTO};

static vma_fixture v;

/* An image of 4 KiB. */
static VkResult make_image(const VmaAllocationCreateInfo *options, VkImage *made, VmaAllocation *a)
{
    const VkImageCreateInfo info = vma_fixture_image_info(32, VK_IMAGE_TILING_OPTIMAL);
    return vmaCreateImage(v.allocator, &info, options, made, a, NULL);
}

#define CASE(name)                                                                                 \
    UNIT_WITHIN(vma_granules, name, vma_fixture_open_granular(&v, GRANULE), vma_fixture_close(&v))

CASE(images_and_buffers_share_no_memory_and_lose_no_bytes)
{
    enum { COUNT = 40 };
    VkImage images[COUNT];
    VkBuffer buffers[COUNT];
    VmaAllocation a[COUNT], b[COUNT];
    for (int i = 0; i < COUNT; i++) {
        CHECK_VK(make_image(&AUTO, &images[i], &a[i]));
        b[i] = vma_fixture_buffer(&v, 3 * KIB, &AUTO, &buffers[i]);
        CHECK_EQ(vma_fixture_info(&v, a[i]).size, 4 * KIB);
        CHECK(vma_fixture_info(&v, a[i]).deviceMemory == vma_fixture_info(&v, a[0]).deviceMemory);
        CHECK(vma_fixture_info(&v, a[i]).offset < COUNT * GRANULE / 4); /* with red zones, too */
        CHECK(vma_fixture_info(&v, b[i]).deviceMemory != vma_fixture_info(&v, a[0]).deviceMemory);
    }
    CHECK_EQ(fv_live(v.vulkan.driver, FV_MEMORY), 2);
    for (int i = 0; i < COUNT; i++) {
        vmaDestroyImage(v.allocator, images[i], a[i]);
        vmaDestroyBuffer(v.allocator, buffers[i], b[i]);
    }
}

/* The tiling of what is bound there is not known. */
CASE(memory_for_any_object_keeps_whole_granules)
{
    const VmaAllocationCreateInfo aliased = {.flags = VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT,
                                             .usage = VMA_MEMORY_USAGE_AUTO};
    VkImage image, other;
    VmaAllocation a[3];
    CHECK_VK(make_image(&aliased, &image, &a[0]));
    const VkImageCreateInfo info = vma_fixture_image_info(32, VK_IMAGE_TILING_OPTIMAL);
    CHECK_VK(FV(&v.vulkan, vkCreateImage)(v.vulkan.device, &info, NULL, &other));
    CHECK_VK(vmaAllocateMemoryForImage(
        v.allocator, other,
        &(VmaAllocationCreateInfo){.preferredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT}, &a[1],
        NULL));
    a[2] = vma_fixture_hold(&v, 3 * KIB, &AUTO);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(vma_fixture_info(&v, a[i]).offset % GRANULE, 0);
    CHECK(vma_fixture_info(&v, a[0]).offset / GRANULE !=
          vma_fixture_info(&v, a[1]).offset / GRANULE);
    FV(&v.vulkan, vkDestroyImage)(v.vulkan.device, other, NULL);
    vmaFreeMemory(v.allocator, a[1]);
    vmaDestroyImage(v.allocator, image, a[0]);
}

UNIT(vma_granules, never_allocate_and_dont_bind_hold_there_too)
{
    const VmaAllocationCreateInfo never = {.flags = VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT,
                                           .usage = VMA_MEMORY_USAGE_AUTO},
                                  unbound = {.flags = VMA_ALLOCATION_CREATE_DONT_BIND_BIT,
                                             .usage = VMA_MEMORY_USAGE_AUTO};
    VkImage first, second, none;
    VmaAllocation a, b, c;
    vma_fixture_open_granular(&v, GRANULE);
    CHECK_EQ(make_image(&never, &none, &c), FULL);
    CHECK(!none && !c);
    CHECK_VK(make_image(&unbound, &first, &a));
    CHECK(!fv_place_of(v.vulkan.driver, (uint64_t)(uintptr_t)first).memory);
    CHECK_VK(vmaBindImageMemory(v.allocator, a, first));
    CHECK_VK(make_image(&never, &second, &b));
    CHECK(vma_fixture_info(&v, a).deviceMemory == vma_fixture_info(&v, b).deviceMemory);
    vmaDestroyImage(v.allocator, first, a);
    vmaDestroyImage(v.allocator, second, b);
    vma_fixture_close(&v);
}
