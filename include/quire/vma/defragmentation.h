/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/defragmentation.h - moves allocations out of the emptiest blocks, so that these become
 * free. Part of quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_DEFRAGMENTATION_H
#define QUIRE_VMA_DEFRAGMENTATION_H

#include "quire/vma/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A pass offers moves: vmaBeginDefragmentationPass returns VK_INCOMPLETE with at least one of them,
 * or VK_SUCCESS if no further block can become free. The program makes an object on each
 * dstTmpAllocation, copies the contents, and calls vmaEndDefragmentationPass once the copies are
 * complete: srcAllocation keeps its handle, user data, name and maps, and has the memory of the
 * target from then on. Blocks that are empty then are freed. It returns VK_INCOMPLETE if an
 * allocation was copied or destroyed, otherwise VK_SUCCESS. Blocks of moves that are ignored are
 * not offered again unless another block becomes free.
 *
 * Allocations without dedicated memory move, mapped ones too. An image that quire keeps in a page
 * of images (docs/adapters/vma.md) stays. Other threads may allocate and free meanwhile.
 *
 * FEATURE_NOT_PRESENT: a linear pool, unknown flags. VALIDATION_FAILED_EXT: a bad handle, several
 * algorithms, a pass that has not ended, or a memory that another context defragments.
 */

QUIRE_API VkResult quire_vma_begin_defragmentation(VmaAllocator allocator,
                                                   const VmaDefragmentationInfo *pInfo,
                                                   VmaDefragmentationContext *pContext);
QUIRE_API void quire_vma_end_defragmentation(VmaAllocator allocator,
                                             VmaDefragmentationContext context,
                                             VmaDefragmentationStats *pStats);
QUIRE_API VkResult quire_vma_begin_defragmentation_pass(VmaAllocator allocator,
                                                        VmaDefragmentationContext context,
                                                        VmaDefragmentationPassMoveInfo *pPassInfo);
QUIRE_API VkResult quire_vma_end_defragmentation_pass(VmaAllocator allocator,
                                                      VmaDefragmentationContext context,
                                                      VmaDefragmentationPassMoveInfo *pPassInfo);

static inline VkResult vmaBeginDefragmentation(VmaAllocator allocator,
                                               const VmaDefragmentationInfo *pInfo,
                                               VmaDefragmentationContext *pContext)
{
    return quire_vma_begin_defragmentation(allocator, pInfo, pContext);
}

static inline void vmaEndDefragmentation(VmaAllocator allocator, VmaDefragmentationContext context,
                                         VmaDefragmentationStats *pStats)
{
    quire_vma_end_defragmentation(allocator, context, pStats);
}

static inline VkResult vmaBeginDefragmentationPass(VmaAllocator allocator,
                                                   VmaDefragmentationContext context,
                                                   VmaDefragmentationPassMoveInfo *pPassInfo)
{
    return quire_vma_begin_defragmentation_pass(allocator, context, pPassInfo);
}

static inline VkResult vmaEndDefragmentationPass(VmaAllocator allocator,
                                                 VmaDefragmentationContext context,
                                                 VmaDefragmentationPassMoveInfo *pPassInfo)
{
    return quire_vma_end_defragmentation_pass(allocator, context, pPassInfo);
}

#ifdef __cplusplus
}
#endif

#endif
