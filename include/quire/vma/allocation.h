/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/allocation.h - allocations: making, freeing, information, host access. Part of
 * quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_ALLOCATION_H
#define QUIRE_VMA_ALLOCATION_H

#include "quire/vma/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- allocating and freeing ----------------------------------------------------------------- */

/*
 * vmaAllocateMemoryPages makes all or none. As in VMA it reads one VkMemoryRequirements and one
 * VmaAllocationCreateInfo, which all have in common. vmaAllocateDedicatedMemory is
 * vmaAllocateMemory with VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT; resource.h says what
 * pMemoryAllocateNext may be. vmaFreeMemory also frees an allocation that is still mapped by
 * vmaMapMemory, and prints a line. NULL frees nothing.
 */

QUIRE_API VkResult quire_vma_allocate_memory(VmaAllocator allocator,
                                             const VkMemoryRequirements *pVkMemoryRequirements,
                                             const VmaAllocationCreateInfo *pCreateInfo,
                                             VmaAllocation *pAllocation,
                                             VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_allocate_dedicated_memory(
    VmaAllocator allocator, const VkMemoryRequirements *pVkMemoryRequirements,
    const VmaAllocationCreateInfo *pCreateInfo, const void *pMemoryAllocateNext,
    VmaAllocation *pAllocation, VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_allocate_memory_pages(
    VmaAllocator allocator, const VkMemoryRequirements *pVkMemoryRequirements,
    const VmaAllocationCreateInfo *pCreateInfo, size_t allocationCount, VmaAllocation *pAllocations,
    VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_allocate_memory_for_buffer(VmaAllocator allocator, VkBuffer buffer,
                                                        const VmaAllocationCreateInfo *pCreateInfo,
                                                        VmaAllocation *pAllocation,
                                                        VmaAllocationInfo *pAllocationInfo);
QUIRE_API VkResult quire_vma_allocate_memory_for_image(VmaAllocator allocator, VkImage image,
                                                       const VmaAllocationCreateInfo *pCreateInfo,
                                                       VmaAllocation *pAllocation,
                                                       VmaAllocationInfo *pAllocationInfo);
QUIRE_API void quire_vma_free_memory(VmaAllocator allocator, VmaAllocation allocation);
QUIRE_API void quire_vma_free_memory_pages(VmaAllocator allocator, size_t allocationCount,
                                           const VmaAllocation *pAllocations);

static inline VkResult vmaAllocateMemory(VmaAllocator allocator,
                                         const VkMemoryRequirements *pVkMemoryRequirements,
                                         const VmaAllocationCreateInfo *pCreateInfo,
                                         VmaAllocation *pAllocation,
                                         VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_allocate_memory(allocator, pVkMemoryRequirements, pCreateInfo, pAllocation,
                                     pAllocationInfo);
}

static inline VkResult vmaAllocateDedicatedMemory(VmaAllocator allocator,
                                                  const VkMemoryRequirements *pVkMemoryRequirements,
                                                  const VmaAllocationCreateInfo *pCreateInfo,
                                                  void *pMemoryAllocateNext,
                                                  VmaAllocation *pAllocation,
                                                  VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_allocate_dedicated_memory(allocator, pVkMemoryRequirements, pCreateInfo,
                                               pMemoryAllocateNext, pAllocation, pAllocationInfo);
}

static inline VkResult vmaAllocateMemoryPages(VmaAllocator allocator,
                                              const VkMemoryRequirements *pVkMemoryRequirements,
                                              const VmaAllocationCreateInfo *pCreateInfo,
                                              size_t allocationCount, VmaAllocation *pAllocations,
                                              VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_allocate_memory_pages(allocator, pVkMemoryRequirements, pCreateInfo,
                                           allocationCount, pAllocations, pAllocationInfo);
}

static inline VkResult vmaAllocateMemoryForBuffer(VmaAllocator allocator, VkBuffer buffer,
                                                  const VmaAllocationCreateInfo *pCreateInfo,
                                                  VmaAllocation *pAllocation,
                                                  VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_allocate_memory_for_buffer(allocator, buffer, pCreateInfo, pAllocation,
                                                pAllocationInfo);
}

static inline VkResult vmaAllocateMemoryForImage(VmaAllocator allocator, VkImage image,
                                                 const VmaAllocationCreateInfo *pCreateInfo,
                                                 VmaAllocation *pAllocation,
                                                 VmaAllocationInfo *pAllocationInfo)
{
    return quire_vma_allocate_memory_for_image(allocator, image, pCreateInfo, pAllocation,
                                               pAllocationInfo);
}

static inline void vmaFreeMemory(VmaAllocator allocator, VmaAllocation allocation)
{
    quire_vma_free_memory(allocator, allocation);
}

static inline void vmaFreeMemoryPages(VmaAllocator allocator, size_t allocationCount,
                                      const VmaAllocation *pAllocations)
{
    quire_vma_free_memory_pages(allocator, allocationCount, pAllocations);
}

/* ---- information ---------------------------------------------------------------------------- */

QUIRE_API void quire_vma_get_allocation_info(VmaAllocator allocator, VmaAllocation allocation,
                                             VmaAllocationInfo *pAllocationInfo);
QUIRE_API void quire_vma_get_allocation_info2(VmaAllocator allocator, VmaAllocation allocation,
                                              VmaAllocationInfo2 *pAllocationInfo);
/* Finds the allocator of the handle among all of the process. A bad handle prints a line, and the
   output is zeros. */
QUIRE_API void quire_vma_get_info_of_handle(VmaAllocation allocation,
                                            VmaAllocationInfo *pAllocationInfo);
QUIRE_API void quire_vma_set_allocation_user_data(VmaAllocator allocator, VmaAllocation allocation,
                                                  void *pUserData);
QUIRE_API void quire_vma_set_allocation_name(VmaAllocator allocator, VmaAllocation allocation,
                                             const char *pName);
QUIRE_API void quire_vma_get_allocation_memory_properties(VmaAllocator allocator,
                                                          VmaAllocation allocation,
                                                          VkMemoryPropertyFlags *pFlags);

static inline void vmaGetAllocationInfo(VmaAllocator allocator, VmaAllocation allocation,
                                        VmaAllocationInfo *pAllocationInfo)
{
    quire_vma_get_allocation_info(allocator, allocation, pAllocationInfo);
}

static inline void vmaGetAllocationInfo2(VmaAllocator allocator, VmaAllocation allocation,
                                         VmaAllocationInfo2 *pAllocationInfo)
{
    quire_vma_get_allocation_info2(allocator, allocation, pAllocationInfo);
}

static inline void vmaSetAllocationUserData(VmaAllocator allocator, VmaAllocation allocation,
                                            void *pUserData)
{
    quire_vma_set_allocation_user_data(allocator, allocation, pUserData);
}

static inline void vmaSetAllocationName(VmaAllocator allocator, VmaAllocation allocation,
                                        const char *pName)
{
    quire_vma_set_allocation_name(allocator, allocation, pName);
}

static inline void vmaGetAllocationMemoryProperties(VmaAllocator allocator,
                                                    VmaAllocation allocation,
                                                    VkMemoryPropertyFlags *pFlags)
{
    quire_vma_get_allocation_memory_properties(allocator, allocation, pFlags);
}

/* ---- host access ---------------------------------------------------------------------------- */

/*
 * Maps are counted. The plural functions take NULL as `offsets` for 0 and as `sizes` for
 * VK_WHOLE_SIZE. The copies map, copy, and flush or invalidate.
 */

QUIRE_API VkResult quire_vma_map_memory(VmaAllocator allocator, VmaAllocation allocation,
                                        void **ppData);
QUIRE_API void quire_vma_unmap_memory(VmaAllocator allocator, VmaAllocation allocation);
QUIRE_API VkResult quire_vma_flush_allocation(VmaAllocator allocator, VmaAllocation allocation,
                                              VkDeviceSize offset, VkDeviceSize size);
QUIRE_API VkResult quire_vma_invalidate_allocation(VmaAllocator allocator, VmaAllocation allocation,
                                                   VkDeviceSize offset, VkDeviceSize size);
QUIRE_API VkResult quire_vma_flush_allocations(VmaAllocator allocator, uint32_t allocationCount,
                                               const VmaAllocation *allocations,
                                               const VkDeviceSize *offsets,
                                               const VkDeviceSize *sizes);
QUIRE_API VkResult quire_vma_invalidate_allocations(VmaAllocator allocator,
                                                    uint32_t allocationCount,
                                                    const VmaAllocation *allocations,
                                                    const VkDeviceSize *offsets,
                                                    const VkDeviceSize *sizes);
QUIRE_API VkResult quire_vma_copy_memory_to_allocation(VmaAllocator allocator,
                                                       const void *pSrcHostPointer,
                                                       VmaAllocation dstAllocation,
                                                       VkDeviceSize dstAllocationLocalOffset,
                                                       VkDeviceSize size);
QUIRE_API VkResult quire_vma_copy_allocation_to_memory(VmaAllocator allocator,
                                                       VmaAllocation srcAllocation,
                                                       VkDeviceSize srcAllocationLocalOffset,
                                                       void *pDstHostPointer, VkDeviceSize size);

static inline VkResult vmaMapMemory(VmaAllocator allocator, VmaAllocation allocation, void **ppData)
{
    return quire_vma_map_memory(allocator, allocation, ppData);
}

static inline void vmaUnmapMemory(VmaAllocator allocator, VmaAllocation allocation)
{
    quire_vma_unmap_memory(allocator, allocation);
}

static inline VkResult vmaFlushAllocation(VmaAllocator allocator, VmaAllocation allocation,
                                          VkDeviceSize offset, VkDeviceSize size)
{
    return quire_vma_flush_allocation(allocator, allocation, offset, size);
}

static inline VkResult vmaInvalidateAllocation(VmaAllocator allocator, VmaAllocation allocation,
                                               VkDeviceSize offset, VkDeviceSize size)
{
    return quire_vma_invalidate_allocation(allocator, allocation, offset, size);
}

static inline VkResult vmaFlushAllocations(VmaAllocator allocator, uint32_t allocationCount,
                                           const VmaAllocation *allocations,
                                           const VkDeviceSize *offsets, const VkDeviceSize *sizes)
{
    return quire_vma_flush_allocations(allocator, allocationCount, allocations, offsets, sizes);
}

static inline VkResult vmaInvalidateAllocations(VmaAllocator allocator, uint32_t allocationCount,
                                                const VmaAllocation *allocations,
                                                const VkDeviceSize *offsets,
                                                const VkDeviceSize *sizes)
{
    return quire_vma_invalidate_allocations(allocator, allocationCount, allocations, offsets,
                                            sizes);
}

static inline VkResult vmaCopyMemoryToAllocation(VmaAllocator allocator,
                                                 const void *pSrcHostPointer,
                                                 VmaAllocation dstAllocation,
                                                 VkDeviceSize dstAllocationLocalOffset,
                                                 VkDeviceSize size)
{
    return quire_vma_copy_memory_to_allocation(allocator, pSrcHostPointer, dstAllocation,
                                               dstAllocationLocalOffset, size);
}

static inline VkResult vmaCopyAllocationToMemory(VmaAllocator allocator,
                                                 VmaAllocation srcAllocation,
                                                 VkDeviceSize srcAllocationLocalOffset,
                                                 void *pDstHostPointer, VkDeviceSize size)
{
    return quire_vma_copy_allocation_to_memory(allocator, srcAllocation, srcAllocationLocalOffset,
                                               pDstHostPointer, size);
}

#ifdef __cplusplus
}
#endif

#endif
