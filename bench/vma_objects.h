/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_objects.h - what the scenarios of vma_program.c share: the allocator, buffers and images. It
 * is compiled twice like that file, so that its functions are static.
 *
 * A failure ends the process: all requests fit.
 */
#ifndef QUIRE_BENCH_VMA_OBJECTS_H
#define QUIRE_BENCH_VMA_OBJECTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/vma_program.h"

/* The driver has no symbols to link with. */
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#ifdef BENCH_PROGRAM_ON_QUIRE
#include "quire/quire_vma.h"
#define THE_PROGRAM vma_program_quire
#define THE_NAME "quire_vma.h"
#else
#include <vk_mem_alloc.h>
#define THE_PROGRAM vma_program_vma
#define THE_NAME "VMA"
#endif

#include "bench/vma_functions.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static inline void must(VkResult code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "bench_vma: " THE_NAME ": %s gives %d\n", what, code);
    exit(1);
}

#define MUST(call) must((call), #call)

/* SplitMix64. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* ---- the allocator -------------------------------------------------------------------------- */

static uint64_t host_calls;

static void *VKAPI_CALL count_allocation(void *user, size_t size, size_t alignment,
                                         VkSystemAllocationScope scope)
{
    (void)user;
    (void)scope;
    host_calls++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void VKAPI_CALL release_counted(void *user, void *pointer)
{
    (void)user;
    free(pointer);
}

static const VkAllocationCallbacks COUNTING = {.pfnAllocation = count_allocation,
                                               .pfnFree = release_counted};

static inline VmaAllocator open_allocator(const vma_run *run, VkDeviceSize block_size)
{
    const vma_driver *d = run->driver;
    const VmaVulkanFunctions functions =
        vma_functions_of(d->instance, d->of_instance, d->device, d->of_device);
    const VmaAllocatorCreateInfo info = {
        .physicalDevice = d->physical,
        .device = d->device,
        .instance = d->instance,
        .preferredLargeHeapBlockSize = block_size,
        .pAllocationCallbacks = run->counts_host ? &COUNTING : NULL,
        .pVulkanFunctions = &functions,
        .vulkanApiVersion = VK_API_VERSION_1_1,
    };
    VmaAllocator allocator;
    MUST(vmaCreateAllocator(&info, &allocator));
    return allocator;
}

/* ---- objects -------------------------------------------------------------------------------- */

/* A buffer, or an image, with its memory. */
typedef struct object {
    VkBuffer buffer;
    VkImage image;
    VmaAllocation allocation;
} object;

static const VmaAllocationCreateInfo
    ON_DEVICE = {.usage = VMA_MEMORY_USAGE_AUTO},
    TO_MAP = {.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT,
              .usage = VMA_MEMORY_USAGE_AUTO},
    MAPPED = {.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT |
                       VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT,
              .usage = VMA_MEMORY_USAGE_AUTO};

static inline void make_buffer(VmaAllocator allocator, VkDeviceSize size,
                               const VmaAllocationCreateInfo *how, object *made,
                               VmaAllocationInfo *info)
{
    const VkBufferCreateInfo buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = size,
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    made->image = VK_NULL_HANDLE;
    MUST(vmaCreateBuffer(allocator, &buffer, how, &made->buffer, &made->allocation, info));
}

static inline void make_image(VmaAllocator allocator, uint32_t width, uint32_t height, object *made)
{
    const VkImageCreateInfo image = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = VK_IMAGE_TYPE_2D,
                                     .format = VK_FORMAT_R8G8B8A8_UNORM,
                                     .extent = {width, height, 1},
                                     .mipLevels = 1,
                                     .arrayLayers = 1,
                                     .samples = VK_SAMPLE_COUNT_1_BIT,
                                     .tiling = VK_IMAGE_TILING_OPTIMAL,
                                     .usage = VK_IMAGE_USAGE_SAMPLED_BIT |
                                              VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    made->buffer = VK_NULL_HANDLE;
    MUST(vmaCreateImage(allocator, &image, &ON_DEVICE, &made->image, &made->allocation, NULL));
}

static inline void destroy_object(VmaAllocator allocator, const object *gone)
{
    if (gone->image)
        vmaDestroyImage(allocator, gone->image, gone->allocation);
    else
        vmaDestroyBuffer(allocator, gone->buffer, gone->allocation);
}

/* As in a game: 6 of 10 are buffers of 256 bytes to 256 KiB, 3 textures of 64 to 512 texels in
   each direction, 1 is a constant buffer that the host writes. */
static inline void make_any(VmaAllocator allocator, uint64_t random, object *made)
{
    uint64_t kind = random % 10, size = (256 + (random >> 8) % 256) << (random >> 16) % 10;
    if (kind < 6)
        make_buffer(allocator, size, &ON_DEVICE, made, NULL);
    else if (kind < 9)
        make_image(allocator, 64u << (random >> 24) % 4, 64u << (random >> 26) % 4, made);
    else
        make_buffer(allocator, 256 + (random >> 8) % 4096, &MAPPED, made, NULL);
}

#endif
