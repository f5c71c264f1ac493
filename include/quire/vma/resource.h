/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/resource.h - buffers and images with their memory, aliases, binding. Part of
 * quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_RESOURCE_H
#define QUIRE_VMA_RESOURCE_H

#include "quire/vma/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- buffers -------------------------------------------------------------------------------- */

/*
 * The buffer belongs to the caller: vmaDestroyBuffer destroys it and frees the allocation, and
 * vkDestroyBuffer with vmaFreeMemory does the same. Both handles may be null.
 */

QUIRE_API VkResult quire_vma_create_buffer(VmaAllocator allocator,
                                           const VkBufferCreateInfo *pBufferCreateInfo,
                                           const VmaAllocationCreateInfo *pAllocationCreateInfo,
                                           VkBuffer *pBuffer, VmaAllocation *pAllocation,
                                           VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_create_buffer_with_alignment(
    VmaAllocator allocator, const VkBufferCreateInfo *pBufferCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, VkDeviceSize minAlignment,
    VkBuffer *pBuffer, VmaAllocation *pAllocation, VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_create_aliasing_buffer(VmaAllocator allocator,
                                                    VmaAllocation allocation,
                                                    const VkBufferCreateInfo *pBufferCreateInfo,
                                                    VkBuffer *pBuffer);
QUIRE_API VkResult quire_vma_create_aliasing_buffer2(VmaAllocator allocator,
                                                     VmaAllocation allocation,
                                                     VkDeviceSize allocationLocalOffset,
                                                     const VkBufferCreateInfo *pBufferCreateInfo,
                                                     VkBuffer *pBuffer);
QUIRE_API void quire_vma_destroy_buffer(VmaAllocator allocator, VkBuffer buffer,
                                        VmaAllocation allocation);

static inline VkResult vmaCreateBuffer(VmaAllocator allocator,
                                       const VkBufferCreateInfo *pBufferCreateInfo,
                                       const VmaAllocationCreateInfo *pAllocationCreateInfo,
                                       VkBuffer *pBuffer, VmaAllocation *pAllocation,
                                       VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_create_buffer(allocator, pBufferCreateInfo, pAllocationCreateInfo, pBuffer,
                                   pAllocation, pAllocationInfo);
}

static inline VkResult vmaCreateBufferWithAlignment(
    VmaAllocator allocator, const VkBufferCreateInfo *pBufferCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, VkDeviceSize minAlignment,
    VkBuffer *pBuffer, VmaAllocation *pAllocation, VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_create_buffer_with_alignment(allocator, pBufferCreateInfo,
                                                  pAllocationCreateInfo, minAlignment, pBuffer,
                                                  pAllocation, pAllocationInfo);
}

static inline VkResult vmaCreateAliasingBuffer(VmaAllocator allocator, VmaAllocation allocation,
                                               const VkBufferCreateInfo *pBufferCreateInfo,
                                               VkBuffer *pBuffer)
{
    return quire_vma_create_aliasing_buffer(allocator, allocation, pBufferCreateInfo, pBuffer);
}

static inline VkResult vmaCreateAliasingBuffer2(VmaAllocator allocator, VmaAllocation allocation,
                                                VkDeviceSize allocationLocalOffset,
                                                const VkBufferCreateInfo *pBufferCreateInfo,
                                                VkBuffer *pBuffer)
{
    return quire_vma_create_aliasing_buffer2(allocator, allocation, allocationLocalOffset,
                                             pBufferCreateInfo, pBuffer);
}

static inline void vmaDestroyBuffer(VmaAllocator allocator, VkBuffer buffer,
                                    VmaAllocation allocation)
{
    quire_vma_destroy_buffer(allocator, buffer, allocation);
}

/* ---- images --------------------------------------------------------------------------------- */

QUIRE_API VkResult quire_vma_create_image(VmaAllocator allocator,
                                          const VkImageCreateInfo *pImageCreateInfo,
                                          const VmaAllocationCreateInfo *pAllocationCreateInfo,
                                          VkImage *pImage, VmaAllocation *pAllocation,
                                          VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_create_aliasing_image(VmaAllocator allocator, VmaAllocation allocation,
                                                   const VkImageCreateInfo *pImageCreateInfo,
                                                   VkImage *pImage);
QUIRE_API VkResult quire_vma_create_aliasing_image2(VmaAllocator allocator,
                                                    VmaAllocation allocation,
                                                    VkDeviceSize allocationLocalOffset,
                                                    const VkImageCreateInfo *pImageCreateInfo,
                                                    VkImage *pImage);
QUIRE_API void quire_vma_destroy_image(VmaAllocator allocator, VkImage image,
                                       VmaAllocation allocation);

static inline VkResult vmaCreateImage(VmaAllocator allocator,
                                      const VkImageCreateInfo *pImageCreateInfo,
                                      const VmaAllocationCreateInfo *pAllocationCreateInfo,
                                      VkImage *pImage, VmaAllocation *pAllocation,
                                      VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_create_image(allocator, pImageCreateInfo, pAllocationCreateInfo, pImage,
                                  pAllocation, pAllocationInfo);
}

static inline VkResult vmaCreateAliasingImage(VmaAllocator allocator, VmaAllocation allocation,
                                              const VkImageCreateInfo *pImageCreateInfo,
                                              VkImage *pImage)
{
    return quire_vma_create_aliasing_image(allocator, allocation, pImageCreateInfo, pImage);
}

static inline VkResult vmaCreateAliasingImage2(VmaAllocator allocator, VmaAllocation allocation,
                                               VkDeviceSize allocationLocalOffset,
                                               const VkImageCreateInfo *pImageCreateInfo,
                                               VkImage *pImage)
{
    return quire_vma_create_aliasing_image2(allocator, allocation, allocationLocalOffset,
                                            pImageCreateInfo, pImage);
}

static inline void vmaDestroyImage(VmaAllocator allocator, VkImage image, VmaAllocation allocation)
{
    quire_vma_destroy_image(allocator, image, allocation);
}

/* ---- dedicated memory ----------------------------------------------------------------------- */

/*
 * vmaCreateDedicatedBuffer and vmaCreateDedicatedImage are vmaCreateBuffer and vmaCreateImage with
 * VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT. pMemoryAllocateNext is null or a
 * VkExportMemoryAllocateInfo with the handle types of pTypeExternalMemoryHandleTypes: the memory
 * then has a type that exports them. Other structs, such as those of imports, and one with a pool,
 * are FEATURE_NOT_PRESENT.
 */

QUIRE_API VkResult quire_vma_create_dedicated_buffer(
    VmaAllocator allocator, const VkBufferCreateInfo *pBufferCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, const void *pMemoryAllocateNext,
    VkBuffer *pBuffer, VmaAllocation *pAllocation, VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_create_dedicated_image(
    VmaAllocator allocator, const VkImageCreateInfo *pImageCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, const void *pMemoryAllocateNext,
    VkImage *pImage, VmaAllocation *pAllocation, VmaAllocationInfo *pAllocationInfo);

static inline VkResult vmaCreateDedicatedBuffer(
    VmaAllocator allocator, const VkBufferCreateInfo *pBufferCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, void *pMemoryAllocateNext,
    VkBuffer *pBuffer, VmaAllocation *pAllocation, VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_create_dedicated_buffer(allocator, pBufferCreateInfo, pAllocationCreateInfo,
                                             pMemoryAllocateNext, pBuffer, pAllocation,
                                             pAllocationInfo);
}

static inline VkResult vmaCreateDedicatedImage(VmaAllocator allocator,
                                               const VkImageCreateInfo *pImageCreateInfo,
                                               const VmaAllocationCreateInfo *pAllocationCreateInfo,
                                               void *pMemoryAllocateNext, VkImage *pImage,
                                               VmaAllocation *pAllocation,
                                               VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_create_dedicated_image(allocator, pImageCreateInfo, pAllocationCreateInfo,
                                            pMemoryAllocateNext, pImage, pAllocation,
                                            pAllocationInfo);
}

/* ---- binding -------------------------------------------------------------------------------- */

QUIRE_API VkResult quire_vma_bind_buffer_memory(VmaAllocator allocator, VmaAllocation allocation,
                                                VkBuffer buffer);
QUIRE_API VkResult quire_vma_bind_buffer_memory2(VmaAllocator allocator, VmaAllocation allocation,
                                                 VkDeviceSize allocationLocalOffset,
                                                 VkBuffer buffer, const void *pNext);
QUIRE_API VkResult quire_vma_bind_image_memory(VmaAllocator allocator, VmaAllocation allocation,
                                               VkImage image);
QUIRE_API VkResult quire_vma_bind_image_memory2(VmaAllocator allocator, VmaAllocation allocation,
                                                VkDeviceSize allocationLocalOffset, VkImage image,
                                                const void *pNext);

static inline VkResult vmaBindBufferMemory(VmaAllocator allocator, VmaAllocation allocation,
                                           VkBuffer buffer)
{
    return quire_vma_bind_buffer_memory(allocator, allocation, buffer);
}

static inline VkResult vmaBindBufferMemory2(VmaAllocator allocator, VmaAllocation allocation,
                                            VkDeviceSize allocationLocalOffset, VkBuffer buffer,
                                            const void *pNext)
{
    return quire_vma_bind_buffer_memory2(allocator, allocation, allocationLocalOffset, buffer,
                                         pNext);
}

static inline VkResult vmaBindImageMemory(VmaAllocator allocator, VmaAllocation allocation,
                                          VkImage image)
{
    return quire_vma_bind_image_memory(allocator, allocation, image);
}

static inline VkResult vmaBindImageMemory2(VmaAllocator allocator, VmaAllocation allocation,
                                           VkDeviceSize allocationLocalOffset, VkImage image,
                                           const void *pNext)
{
    return quire_vma_bind_image_memory2(allocator, allocation, allocationLocalOffset, image, pNext);
}

#ifdef __cplusplus
}
#endif

#endif
