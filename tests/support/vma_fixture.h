/*
 * vma_fixture.h - an allocator of quire_vma.h on a fake Vulkan driver.
 */
#ifndef QUIRE_TESTS_SUPPORT_VMA_FIXTURE_H
#define QUIRE_TESTS_SUPPORT_VMA_FIXTURE_H

/* The tests are not linked with a Vulkan loader. */
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#include "quire/quire_vma.h"
#include "tests/support/vulkan/fixture.h"

typedef struct vma_fixture {
    fv_fixture vulkan;
    VmaVulkanFunctions functions; /* the two getters of the driver */
    VmaAllocatorCreateInfo info;  /* of the allocator, for tests that create another one */
    VmaAllocator allocator;
} vma_fixture;

/* Opens a driver with a layout (NULL: "amd-bar"), and an allocator on Vulkan 1.3 with flags. */
void vma_fixture_open(vma_fixture *v, const char *layout, VmaAllocatorCreateFlags flags);

/* The same without an allocator: `info` is filled in. */
void vma_fixture_begin(vma_fixture *v, const char *layout, uint32_t driver_flags);

/* A driver with this bufferImageGranularity, in bytes, and an allocator. */
void vma_fixture_open_granular(vma_fixture *v, uint64_t granularity);

/* Destroys everything that exists. Fails if the driver has a message or an object is left. */
void vma_fixture_close(vma_fixture *v);

/* A buffer for storage and copies. A failure fails the test. */
VmaAllocation vma_fixture_buffer(vma_fixture *v, VkDeviceSize size,
                                 const VmaAllocationCreateInfo *options, VkBuffer *buffer);

VkBufferCreateInfo vma_fixture_buffer_info(VkDeviceSize size);
VkImageCreateInfo vma_fixture_image_info(uint32_t width, VkImageTiling tiling);

#endif
