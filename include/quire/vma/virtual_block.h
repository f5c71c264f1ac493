/*
 * quire/vma/virtual_block.h - virtual blocks. Part of quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_VIRTUAL_BLOCK_H
#define QUIRE_VMA_VIRTUAL_BLOCK_H

#include "quire/vma/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- virtual blocks ----------------------------------------------------------------------- */

/*
 * A virtual block is a space of quire (quire/space.h): it allocates numbers, not memory.
 * vmaDestroyVirtualBlock refuses while allocations live: the log has their number. The second
 * allocation handle of a failure is null, and the offset VK_WHOLE_SIZE.
 * Thread-safety: calls on one block must not overlap.
 */

QUIRE_API VkResult quire_vma_create_virtual_block(const VmaVirtualBlockCreateInfo *pCreateInfo,
                                                  VmaVirtualBlock *pVirtualBlock);
QUIRE_API void quire_vma_destroy_virtual_block(VmaVirtualBlock virtualBlock);
QUIRE_API VkBool32 quire_vma_is_virtual_block_empty(VmaVirtualBlock virtualBlock);
QUIRE_API void quire_vma_get_virtual_allocation_info(VmaVirtualBlock virtualBlock,
                                                     VmaVirtualAllocation allocation,
                                                     VmaVirtualAllocationInfo *pVirtualAllocInfo);
QUIRE_API VkResult quire_vma_virtual_allocate(VmaVirtualBlock virtualBlock,
                                              const VmaVirtualAllocationCreateInfo *pCreateInfo,
                                              VmaVirtualAllocation *pAllocation,
                                              VkDeviceSize *pOffset);
QUIRE_API void quire_vma_virtual_free(VmaVirtualBlock virtualBlock,
                                      VmaVirtualAllocation allocation);
QUIRE_API void quire_vma_clear_virtual_block(VmaVirtualBlock virtualBlock);
QUIRE_API void quire_vma_set_virtual_allocation_user_data(VmaVirtualBlock virtualBlock,
                                                          VmaVirtualAllocation allocation,
                                                          void *pUserData);
QUIRE_API void quire_vma_get_virtual_block_statistics(VmaVirtualBlock virtualBlock,
                                                      VmaStatistics *pStats);
QUIRE_API void quire_vma_calculate_virtual_block_statistics(VmaVirtualBlock virtualBlock,
                                                            VmaDetailedStatistics *pStats);

static inline VkResult vmaCreateVirtualBlock(const VmaVirtualBlockCreateInfo *pCreateInfo,
                                             VmaVirtualBlock *pVirtualBlock)
{
    return quire_vma_create_virtual_block(pCreateInfo, pVirtualBlock);
}

static inline void vmaDestroyVirtualBlock(VmaVirtualBlock virtualBlock)
{
    quire_vma_destroy_virtual_block(virtualBlock);
}

static inline VkBool32 vmaIsVirtualBlockEmpty(VmaVirtualBlock virtualBlock)
{
    return quire_vma_is_virtual_block_empty(virtualBlock);
}

static inline void vmaGetVirtualAllocationInfo(VmaVirtualBlock virtualBlock,
                                               VmaVirtualAllocation allocation,
                                               VmaVirtualAllocationInfo *pVirtualAllocInfo)
{
    quire_vma_get_virtual_allocation_info(virtualBlock, allocation, pVirtualAllocInfo);
}

static inline VkResult vmaVirtualAllocate(VmaVirtualBlock virtualBlock,
                                          const VmaVirtualAllocationCreateInfo *pCreateInfo,
                                          VmaVirtualAllocation *pAllocation, VkDeviceSize *pOffset)
{
    return quire_vma_virtual_allocate(virtualBlock, pCreateInfo, pAllocation, pOffset);
}

static inline void vmaVirtualFree(VmaVirtualBlock virtualBlock, VmaVirtualAllocation allocation)
{
    quire_vma_virtual_free(virtualBlock, allocation);
}

static inline void vmaClearVirtualBlock(VmaVirtualBlock virtualBlock)
{
    quire_vma_clear_virtual_block(virtualBlock);
}

static inline void vmaSetVirtualAllocationUserData(VmaVirtualBlock virtualBlock,
                                                   VmaVirtualAllocation allocation, void *pUserData)
{
    quire_vma_set_virtual_allocation_user_data(virtualBlock, allocation, pUserData);
}

static inline void vmaGetVirtualBlockStatistics(VmaVirtualBlock virtualBlock, VmaStatistics *pStats)
{
    quire_vma_get_virtual_block_statistics(virtualBlock, pStats);
}

static inline void vmaCalculateVirtualBlockStatistics(VmaVirtualBlock virtualBlock,
                                                      VmaDetailedStatistics *pStats)
{
    quire_vma_calculate_virtual_block_statistics(virtualBlock, pStats);
}

#ifdef __cplusplus
}
#endif

#endif
