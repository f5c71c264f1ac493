/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/virtual_block.h - virtual blocks. Part of quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_VIRTUAL_BLOCK_H
#define QUIRE_VMA_VIRTUAL_BLOCK_H

#include "quire/vma/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- virtual blocks ------------------------------------------------------------------------- */

/*
 * A virtual block allocates ranges of numbers, in any unit: it is a space of quire (quire/space.h)
 * with granules of 1. Offsets and sizes are exact.
 *
 * vmaCreateVirtualBlock: the size is 1 to 2^62. LINEAR_ALGORITHM_BIT makes a stack, a ring and a
 * double stack (QUIRE_FIT_LINEAR). Every other block up to 2^32 - 1 has the segregated fit, and a
 * larger one the first fit. In linear blocks, but for upper allocations, and with the first fit the
 * gap that an alignment leaves belongs to the allocation after it. Host memory comes from
 * pAllocationCallbacks; NULL: malloc. Fails with OUT_OF_DEVICE_MEMORY (the size is above 2^62),
 * OUT_OF_HOST_MEMORY, FEATURE_NOT_PRESENT (an unknown flag), VALIDATION_FAILED_EXT.
 *
 * vmaDestroyVirtualBlock: NULL has no effect. While allocations live the block stays, and a line on
 * stderr has their number. vmaClearVirtualBlock frees them all.
 *
 * vmaVirtualAllocate: the alignment is a power of two up to 2^30. STRATEGY_MIN_OFFSET_BIT takes the
 * lowest offset; up to 2^32 - 1 this takes time proportional to the ranges below it. The other two
 * strategies have no effect, and in a linear block none has. UPPER_ADDRESS_BIT requires a linear
 * block. A failure sets the allocation to null and the offset to VK_WHOLE_SIZE. Fails with
 * OUT_OF_DEVICE_MEMORY (no free range can hold the request), OUT_OF_HOST_MEMORY, TOO_MANY_OBJECTS
 * (67 million ranges, live and free), FEATURE_NOT_PRESENT (an unknown flag, a larger alignment),
 * VALIDATION_FAILED_EXT.
 *
 * An allocation that was freed, or that belongs to another block, has no effect and gives a line on
 * stderr. vmaGetVirtualAllocationInfo then returns the offset VK_WHOLE_SIZE and the size 0.
 * vmaVirtualFree ignores a null allocation. A block is a pointer: it must not be used after its
 * destruction.
 *
 * Statistics: a block counts as one block of its size. Every byte outside of allocations is unused.
 * vmaCalculateVirtualBlockStatistics visits every range; the others take constant time.
 *
 * Thread-safety: calls on one block must not overlap.
 */

QUIRE_API VkResult quire_vma_create_virtual_block(const VmaVirtualBlockCreateInfo *pCreateInfo,
                                                  VmaVirtualBlock *pVirtualBlock);
QUIRE_API void quire_vma_destroy_virtual_block(VmaVirtualBlock virtualBlock,
                                               quire_vma_leak_log log);
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
    quire_vma_destroy_virtual_block(virtualBlock, QUIRE_VMA_LEAK_LOG);
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

/* ---- text ----------------------------------------------------------------------------------- */

/*
 * vmaBuildVirtualBlockStatsString writes JSON with the members of VMA: the statistics, and with
 * `detailedMap` every range and its user data. The program frees it with
 * vmaFreeVirtualBlockStatsString; it is NULL if host memory is exhausted.
 */
QUIRE_API void quire_vma_build_virtual_block_stats_string(VmaVirtualBlock virtualBlock,
                                                          char **ppStatsString,
                                                          VkBool32 detailedMap);
QUIRE_API void quire_vma_free_virtual_block_stats_string(VmaVirtualBlock virtualBlock,
                                                         char *pStatsString);

static inline void vmaBuildVirtualBlockStatsString(VmaVirtualBlock virtualBlock,
                                                   char **ppStatsString, VkBool32 detailedMap)
{
    quire_vma_build_virtual_block_stats_string(virtualBlock, ppStatsString, detailedMap);
}

static inline void vmaFreeVirtualBlockStatsString(VmaVirtualBlock virtualBlock, char *pStatsString)
{
    quire_vma_free_virtual_block_stats_string(virtualBlock, pStatsString);
}

#ifdef __cplusplus
}
#endif

#endif
