/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/allocator.h - the allocator, statistics, choice of memory types, pools. Part of
 * quire/quire_vma.h.
 */
#ifndef QUIRE_VMA_ALLOCATOR_H
#define QUIRE_VMA_ALLOCATOR_H

#include "quire/vma/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the allocator -------------------------------------------------------------------------- */

/*
 * vmaCreateAllocator opens a quire device on the handles. It fails with FEATURE_NOT_PRESENT for
 * pDeviceMemoryCallbacks and for flags that types.h marks so, with INCOMPATIBLE_DRIVER if the
 * device is below Vulkan 1.1, and with INITIALIZATION_FAILED if a function is missing.
 * vmaDestroyAllocator refuses while allocations or pools live. Lines name the first 16 allocations
 * of each memory and count the others: see quire_vma_leak_log.
 * vmaSetCurrentFrameIndex releases memory that has been empty for a second; programs call it in
 * each frame.
 */

QUIRE_API VkResult quire_vma_create_allocator(const VmaAllocatorCreateInfo *pCreateInfo,
                                              PFN_vkGetInstanceProcAddr linked, VkBool32 hasGetters,
                                              VmaAllocator *pAllocator);
QUIRE_API void quire_vma_destroy_allocator(VmaAllocator allocator, quire_vma_leak_log log);
QUIRE_API void quire_vma_get_allocator_info(VmaAllocator allocator,
                                            VmaAllocatorInfo *pAllocatorInfo);
QUIRE_API void quire_vma_get_physical_device_properties(
    VmaAllocator allocator, const VkPhysicalDeviceProperties **ppPhysicalDeviceProperties);
QUIRE_API void quire_vma_get_memory_properties(
    VmaAllocator allocator,
    const VkPhysicalDeviceMemoryProperties **ppPhysicalDeviceMemoryProperties);
QUIRE_API void quire_vma_get_memory_type_properties(VmaAllocator allocator,
                                                    uint32_t memoryTypeIndex,
                                                    VkMemoryPropertyFlags *pFlags);
QUIRE_API void quire_vma_set_current_frame_index(VmaAllocator allocator, uint32_t frameIndex);

/*
 * `linked` is the function that the program is linked with; NULL: none. `hasGetters` is VK_FALSE
 * where the file that calls the function says by VMA_DYNAMIC_VULKAN_FUNCTIONS that the getters in
 * pVulkanFunctions are not to be read: they may be uninitialized.
 */
static inline VkResult vmaCreateAllocator(const VmaAllocatorCreateInfo *pCreateInfo,
                                          VmaAllocator *pAllocator)
{
#if defined(VMA_DYNAMIC_VULKAN_FUNCTIONS) && !VMA_DYNAMIC_VULKAN_FUNCTIONS
    const VkBool32 hasGetters = VK_FALSE;
#else
    const VkBool32 hasGetters = VK_TRUE;
#endif
#if defined(VK_NO_PROTOTYPES) ||                                                                   \
    (defined(VMA_STATIC_VULKAN_FUNCTIONS) && !VMA_STATIC_VULKAN_FUNCTIONS)
    return quire_vma_create_allocator(pCreateInfo, QUIRE_NULL, hasGetters, pAllocator);
#else
    return quire_vma_create_allocator(pCreateInfo, vkGetInstanceProcAddr, hasGetters, pAllocator);
#endif
}

#ifdef VOLK_HEADER_VERSION
/* Fills in the getters of volk, which quire finds all functions by. volk.h is included before. */
static inline VkResult vmaImportVulkanFunctionsFromVolk(
    const VmaAllocatorCreateInfo *pAllocatorCreateInfo, VmaVulkanFunctions *pDstVulkanFunctions)
{
    static VmaVulkanFunctions none; /* an initializer would be a warning in C or in C++ */
    (void)pAllocatorCreateInfo;
    *pDstVulkanFunctions = none;
    pDstVulkanFunctions->vkGetInstanceProcAddr = vkGetInstanceProcAddr;
    pDstVulkanFunctions->vkGetDeviceProcAddr = vkGetDeviceProcAddr;
    return VK_SUCCESS;
}
#endif

static inline void vmaDestroyAllocator(VmaAllocator allocator)
{
    quire_vma_destroy_allocator(allocator, QUIRE_VMA_LEAK_LOG);
}

static inline void vmaGetAllocatorInfo(VmaAllocator allocator, VmaAllocatorInfo *pAllocatorInfo)
{
    quire_vma_get_allocator_info(allocator, pAllocatorInfo);
}

static inline void vmaGetPhysicalDeviceProperties(
    VmaAllocator allocator, const VkPhysicalDeviceProperties **ppPhysicalDeviceProperties)
{
    quire_vma_get_physical_device_properties(allocator, ppPhysicalDeviceProperties);
}

static inline void vmaGetMemoryProperties(
    VmaAllocator allocator,
    const VkPhysicalDeviceMemoryProperties **ppPhysicalDeviceMemoryProperties)
{
    quire_vma_get_memory_properties(allocator, ppPhysicalDeviceMemoryProperties);
}

static inline void vmaGetMemoryTypeProperties(VmaAllocator allocator, uint32_t memoryTypeIndex,
                                              VkMemoryPropertyFlags *pFlags)
{
    quire_vma_get_memory_type_properties(allocator, memoryTypeIndex, pFlags);
}

static inline void vmaSetCurrentFrameIndex(VmaAllocator allocator, uint32_t frameIndex)
{
    quire_vma_set_current_frame_index(allocator, frameIndex);
}

/* ---- statistics ----------------------------------------------------------------------------- */

/*
 * Heap budgets query the driver. vmaCheckCorruption verifies the records of the memories, and in a
 * checked build of quire the red zones: VK_ERROR_UNKNOWN means that something is damaged,
 * FEATURE_NOT_PRESENT that the build is not checked. vmaBuildStatsString writes what
 * quire_device_write_vma does, with the detailed map also without `detailedMap`: each memory is a
 * custom pool. The program frees the text; it is NULL if host memory is exhausted.
 */

QUIRE_API void quire_vma_calculate_statistics(VmaAllocator allocator, VmaTotalStatistics *pStats);
QUIRE_API void quire_vma_get_heap_budgets(VmaAllocator allocator, VmaBudget *pBudgets);
QUIRE_API void quire_vma_build_stats_string(VmaAllocator allocator, char **ppStatsString,
                                            VkBool32 detailedMap);
QUIRE_API void quire_vma_free_stats_string(VmaAllocator allocator, char *pStatsString);
QUIRE_API VkResult quire_vma_check_corruption(VmaAllocator allocator, uint32_t memoryTypeBits);

static inline void vmaCalculateStatistics(VmaAllocator allocator, VmaTotalStatistics *pStats)
{
    quire_vma_calculate_statistics(allocator, pStats);
}

static inline void vmaGetHeapBudgets(VmaAllocator allocator, VmaBudget *pBudgets)
{
    quire_vma_get_heap_budgets(allocator, pBudgets);
}

static inline void vmaBuildStatsString(VmaAllocator allocator, char **ppStatsString,
                                       VkBool32 detailedMap)
{
    quire_vma_build_stats_string(allocator, ppStatsString, detailedMap);
}

static inline void vmaFreeStatsString(VmaAllocator allocator, char *pStatsString)
{
    quire_vma_free_stats_string(allocator, pStatsString);
}

static inline VkResult vmaCheckCorruption(VmaAllocator allocator, uint32_t memoryTypeBits)
{
    return quire_vma_check_corruption(allocator, memoryTypeBits);
}

/* ---- memory types --------------------------------------------------------------------------- */

QUIRE_API VkResult quire_vma_find_memory_type_index(
    VmaAllocator allocator, uint32_t memoryTypeBits,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, uint32_t *pMemoryTypeIndex);
QUIRE_API VkResult quire_vma_find_memory_type_index_for_buffer_info(
    VmaAllocator allocator, const VkBufferCreateInfo *pBufferCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, uint32_t *pMemoryTypeIndex);
QUIRE_API VkResult quire_vma_find_memory_type_index_for_image_info(
    VmaAllocator allocator, const VkImageCreateInfo *pImageCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, uint32_t *pMemoryTypeIndex);

static inline VkResult vmaFindMemoryTypeIndex(VmaAllocator allocator, uint32_t memoryTypeBits,
                                              const VmaAllocationCreateInfo *pAllocationCreateInfo,
                                              uint32_t *pMemoryTypeIndex)
{
    return quire_vma_find_memory_type_index(allocator, memoryTypeBits, pAllocationCreateInfo,
                                            pMemoryTypeIndex);
}

static inline VkResult vmaFindMemoryTypeIndexForBufferInfo(
    VmaAllocator allocator, const VkBufferCreateInfo *pBufferCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, uint32_t *pMemoryTypeIndex)
{
    return quire_vma_find_memory_type_index_for_buffer_info(
        allocator, pBufferCreateInfo, pAllocationCreateInfo, pMemoryTypeIndex);
}

static inline VkResult vmaFindMemoryTypeIndexForImageInfo(
    VmaAllocator allocator, const VkImageCreateInfo *pImageCreateInfo,
    const VmaAllocationCreateInfo *pAllocationCreateInfo, uint32_t *pMemoryTypeIndex)
{
    return quire_vma_find_memory_type_index_for_image_info(allocator, pImageCreateInfo,
                                                           pAllocationCreateInfo, pMemoryTypeIndex);
}

/* ---- pools ---------------------------------------------------------------------------------- */

/*
 * A pool is a memory of quire. vmaDestroyPool refuses while allocations of the pool live: the log
 * names them.
 */

QUIRE_API VkResult quire_vma_create_pool(VmaAllocator allocator,
                                         const VmaPoolCreateInfo *pCreateInfo, VmaPool *pPool);
QUIRE_API void quire_vma_destroy_pool(VmaAllocator allocator, VmaPool pool, quire_vma_leak_log log);
QUIRE_API void quire_vma_get_pool_statistics(VmaAllocator allocator, VmaPool pool,
                                             VmaStatistics *pPoolStats);
QUIRE_API void quire_vma_calculate_pool_statistics(VmaAllocator allocator, VmaPool pool,
                                                   VmaDetailedStatistics *pPoolStats);
QUIRE_API VkResult quire_vma_check_pool_corruption(VmaAllocator allocator, VmaPool pool);
QUIRE_API void quire_vma_get_pool_name(VmaAllocator allocator, VmaPool pool, const char **ppName);
QUIRE_API void quire_vma_set_pool_name(VmaAllocator allocator, VmaPool pool, const char *pName);

static inline VkResult vmaCreatePool(VmaAllocator allocator, const VmaPoolCreateInfo *pCreateInfo,
                                     VmaPool *pPool)
{
    return quire_vma_create_pool(allocator, pCreateInfo, pPool);
}

static inline void vmaDestroyPool(VmaAllocator allocator, VmaPool pool)
{
    quire_vma_destroy_pool(allocator, pool, QUIRE_VMA_LEAK_LOG);
}

static inline void vmaGetPoolStatistics(VmaAllocator allocator, VmaPool pool,
                                        VmaStatistics *pPoolStats)
{
    quire_vma_get_pool_statistics(allocator, pool, pPoolStats);
}

static inline void vmaCalculatePoolStatistics(VmaAllocator allocator, VmaPool pool,
                                              VmaDetailedStatistics *pPoolStats)
{
    quire_vma_calculate_pool_statistics(allocator, pool, pPoolStats);
}

static inline VkResult vmaCheckPoolCorruption(VmaAllocator allocator, VmaPool pool)
{
    return quire_vma_check_pool_corruption(allocator, pool);
}

static inline void vmaGetPoolName(VmaAllocator allocator, VmaPool pool, const char **ppName)
{
    quire_vma_get_pool_name(allocator, pool, ppName);
}

static inline void vmaSetPoolName(VmaAllocator allocator, VmaPool pool, const char *pName)
{
    quire_vma_set_pool_name(allocator, pool, pName);
}

#ifdef __cplusplus
}
#endif

#endif
