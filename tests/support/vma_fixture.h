/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_fixture.h - an allocator of quire_vma.h on a fake Vulkan driver.
 */
#ifndef QUIRE_TESTS_SUPPORT_VMA_FIXTURE_H
#define QUIRE_TESTS_SUPPORT_VMA_FIXTURE_H

/* The tests are not linked with a Vulkan loader. */
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#include "quire/quire_vma.h"
#include "tests/support/vulkan/fixture.h"

enum { VMA_FIXTURE_HELD = 64 };

/* The results of what is refused. */
#define INVALID VK_ERROR_VALIDATION_FAILED_EXT
#define MISSING VK_ERROR_FEATURE_NOT_PRESENT
#define FULL VK_ERROR_OUT_OF_DEVICE_MEMORY

typedef struct vma_fixture {
    fv_fixture vulkan;
    VmaVulkanFunctions functions; /* the two getters of the driver */
    VmaAllocatorCreateInfo info;  /* of the allocator, for tests that create another one */
    VmaAllocator allocator;
    struct {
        VkBuffer buffer;
        VmaAllocation allocation;
    } held[VMA_FIXTURE_HELD];
    uint32_t held_count;
} vma_fixture;

/* Opens a driver with a layout (NULL: "amd-bar"), and an allocator on Vulkan 1.3 with flags. */
void vma_fixture_open(vma_fixture *v, const char *layout, VmaAllocatorCreateFlags flags);

/* The same without an allocator: `info` is filled in. */
void vma_fixture_begin(vma_fixture *v, const char *layout, uint32_t driver_flags);

/* The same with an allocator without flags. */
void vma_fixture_open_driver(vma_fixture *v, const char *layout, uint32_t driver_flags);

/* A driver with this bufferImageGranularity, in bytes, and an allocator. */
void vma_fixture_open_granular(vma_fixture *v, uint64_t granularity);

/* Destroys everything that exists. Fails if the driver has a message or an object is left. */
void vma_fixture_close(vma_fixture *v);

/* A buffer for storage and copies. A failure fails the test. */
VmaAllocation vma_fixture_buffer(vma_fixture *v, VkDeviceSize size,
                                 const VmaAllocationCreateInfo *options, VkBuffer *buffer);

/* The same with a buffer that vma_fixture_close destroys. */
VmaAllocation vma_fixture_hold(vma_fixture *v, VkDeviceSize size,
                               const VmaAllocationCreateInfo *options);

/* Destroys these buffers, for tests that end their pool. */
void vma_fixture_end_held(vma_fixture *v);

/* A buffer that must be refused with this result: nothing is made. */
void vma_fixture_refuse(vma_fixture *v, VkDeviceSize size, const VmaAllocationCreateInfo *options,
                        VkResult expected);

VmaAllocationInfo vma_fixture_info(vma_fixture *v, VmaAllocation allocation);

VkBufferCreateInfo vma_fixture_buffer_info(VkDeviceSize size);
VkImageCreateInfo vma_fixture_image_info(uint32_t width, VkImageTiling tiling);

/* The host memory of a program. A call fails, and all after it if requested. */
typedef struct vma_host {
    uint32_t calls, fail_at; /* counted from 1; 0: none */
    bool from_then;
    int32_t blocks;  /* that are live */
    uint32_t scopes; /* a bit for each VkSystemAllocationScope that was named */
    VkAllocationCallbacks callbacks;
} vma_host;

const VkAllocationCallbacks *vma_host_begin(vma_host *host, uint32_t fail_at, bool from_then);

/* A unit test on the allocator `v` of the file, which vma_fixture_open opens. */
#define VMA_CASE(suite, name, layout, flags)                                                       \
    UNIT_WITHIN(suite, name, vma_fixture_open(&v, layout, flags), vma_fixture_close(&v))

#endif
