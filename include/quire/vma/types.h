/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/types.h - handles, flags and structs of VMA 3.4, with their names, members and values.
 * Part of quire/quire_vma.h.
 *
 * The comments say what quire does with a value where this is not what the name says.
 */
#ifndef QUIRE_VMA_TYPES_H
#define QUIRE_VMA_TYPES_H

#include <stddef.h>
#include <vulkan/vulkan_core.h>

#include "quire/base.h"
#include "quire/vma/macros.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- handles -------------------------------------------------------------------------------- */

VK_DEFINE_HANDLE(VmaAllocator)
/*
 * Handles of a pool and of an allocation are numbers in the form of a pointer. They name a record
 * of the allocator and its generation, so that a handle that was destroyed, or that belongs to
 * another allocator, is found at its next use. They point to nothing.
 */
VK_DEFINE_HANDLE(VmaPool)
VK_DEFINE_HANDLE(VmaAllocation)
VK_DEFINE_HANDLE(VmaDefragmentationContext)
VK_DEFINE_HANDLE(VmaVirtualBlock)
VK_DEFINE_NON_DISPATCHABLE_HANDLE(VmaVirtualAllocation)

/* ---- flags ---------------------------------------------------------------------------------- */

typedef enum VmaAllocatorCreateFlagBits {
    VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT = 0x00000001, /* quire locks all the same */
    /* These two are part of Vulkan 1.1, the least version of quire. */
    VMA_ALLOCATOR_CREATE_KHR_DEDICATED_ALLOCATION_BIT = 0x00000002,
    VMA_ALLOCATOR_CREATE_KHR_BIND_MEMORY2_BIT = 0x00000004,
    VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT = 0x00000008,
    VMA_ALLOCATOR_CREATE_AMD_DEVICE_COHERENT_MEMORY_BIT = 0x00000010,
    VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT = 0x00000020,
    VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT = 0x00000040,
    VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE4_BIT = 0x00000080,
    VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE5_BIT = 0x00000100,
    VMA_ALLOCATOR_CREATE_KHR_EXTERNAL_MEMORY_WIN32_BIT = 0x00000200, /* FEATURE_NOT_PRESENT */
    VMA_ALLOCATOR_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaAllocatorCreateFlagBits;
typedef VkFlags VmaAllocatorCreateFlags;

typedef enum VmaMemoryUsage {
    VMA_MEMORY_USAGE_UNKNOWN = 0,
    VMA_MEMORY_USAGE_GPU_ONLY = 1,
    VMA_MEMORY_USAGE_CPU_ONLY = 2,
    VMA_MEMORY_USAGE_CPU_TO_GPU = 3,
    VMA_MEMORY_USAGE_GPU_TO_CPU = 4,
    VMA_MEMORY_USAGE_CPU_COPY = 5,
    VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED = 6,
    VMA_MEMORY_USAGE_AUTO = 7,
    VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE = 8,
    VMA_MEMORY_USAGE_AUTO_PREFER_HOST = 9,
    VMA_MEMORY_USAGE_MAX_ENUM = 0x7FFFFFFF
} VmaMemoryUsage;

typedef enum VmaAllocationCreateFlagBits {
    VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT = 0x00000001,
    VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT = 0x00000002,
    VMA_ALLOCATION_CREATE_MAPPED_BIT = 0x00000004,
    VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT = 0x00000020,
    VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT = 0x00000040, /* virtual blocks only */
    VMA_ALLOCATION_CREATE_DONT_BIND_BIT = 0x00000080,
    VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT = 0x00000100,
    VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT = 0x00000200, /* every allocation can */
    VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT = 0x00000400,
    VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT = 0x00000800,
    VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT = 0x00001000,
    /* quire's search takes little time and leaves little unused: it serves both of these. */
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT = 0x00010000,
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT = 0x00020000,
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT = 0x00040000, /* virtual blocks only */
    VMA_ALLOCATION_CREATE_STRATEGY_BEST_FIT_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT,
    VMA_ALLOCATION_CREATE_STRATEGY_FIRST_FIT_BIT = VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT,
    VMA_ALLOCATION_CREATE_STRATEGY_MASK = 0x00070000,
    VMA_ALLOCATION_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaAllocationCreateFlagBits;
typedef VkFlags VmaAllocationCreateFlags;

typedef enum VmaPoolCreateFlagBits {
    VMA_POOL_CREATE_IGNORE_BUFFER_IMAGE_GRANULARITY_BIT = 0x00000002, /* respected all the same */
    VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT = 0x00000004,
    VMA_POOL_CREATE_ALGORITHM_MASK = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT,
    VMA_POOL_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaPoolCreateFlagBits;
typedef VkFlags VmaPoolCreateFlags;

typedef enum VmaVirtualBlockCreateFlagBits {
    VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT = 0x00000001,
    VMA_VIRTUAL_BLOCK_CREATE_ALGORITHM_MASK = VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT,
    VMA_VIRTUAL_BLOCK_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaVirtualBlockCreateFlagBits;
typedef VkFlags VmaVirtualBlockCreateFlags;

typedef enum VmaVirtualAllocationCreateFlagBits {
    VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT = VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT =
        VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT =
        VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT =
        VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT,
    VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MASK = VMA_ALLOCATION_CREATE_STRATEGY_MASK,
    VMA_VIRTUAL_ALLOCATION_CREATE_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaVirtualAllocationCreateFlagBits;
typedef VkFlags VmaVirtualAllocationCreateFlags;

/* ---- leaks ---------------------------------------------------------------------------------- */

/*
 * Receives a line, without a line end, about what lives when its owner is to be destroyed. Called
 * by the thread that destroys. It must not call quire. NULL: the lines go to stderr.
 */
typedef void (*quire_vma_leak_log)(const char *line);

/* As in VMA, a program can define where they go, in the file that destroys. */
#if defined(VMA_LEAK_LOG_FORMAT) || defined(VMA_DEBUG_LOG_FORMAT)
static inline void quire_vma_log_leak(const char *line)
{
    (void)line;
#ifdef VMA_LEAK_LOG_FORMAT
    VMA_LEAK_LOG_FORMAT("%s", line);
#else
    VMA_DEBUG_LOG_FORMAT("%s", line);
#endif
}
#define QUIRE_VMA_LEAK_LOG quire_vma_log_leak
#else
#define QUIRE_VMA_LEAK_LOG QUIRE_NULL
#endif

/* ---- the allocator -------------------------------------------------------------------------- */

typedef void(VKAPI_PTR *PFN_vmaAllocateDeviceMemoryFunction)(VmaAllocator allocator,
                                                             uint32_t memoryType,
                                                             VkDeviceMemory memory,
                                                             VkDeviceSize size, void *pUserData);
typedef void(VKAPI_PTR *PFN_vmaFreeDeviceMemoryFunction)(VmaAllocator allocator,
                                                         uint32_t memoryType, VkDeviceMemory memory,
                                                         VkDeviceSize size, void *pUserData);

typedef struct VmaDeviceMemoryCallbacks {
    PFN_vmaAllocateDeviceMemoryFunction pfnAllocate; /* after vkAllocateMemory; NULL: none */
    PFN_vmaFreeDeviceMemoryFunction pfnFree;         /* before vkFreeMemory; NULL: none */
    void *pUserData;
} VmaDeviceMemoryCallbacks;

/*
 * A function that is set here is called; every other one comes from vkGetInstanceProcAddr and
 * vkGetDeviceProcAddr. Without vkGetInstanceProcAddr it is that of the system's loader. Where
 * VMA_DYNAMIC_VULKAN_FUNCTIONS is 0 these two members are not read.
 */
typedef struct VmaVulkanFunctions {
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
    PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr;
    PFN_vkGetPhysicalDeviceProperties vkGetPhysicalDeviceProperties;
    PFN_vkGetPhysicalDeviceMemoryProperties vkGetPhysicalDeviceMemoryProperties;
    PFN_vkAllocateMemory vkAllocateMemory;
    PFN_vkFreeMemory vkFreeMemory;
    PFN_vkMapMemory vkMapMemory;
    PFN_vkUnmapMemory vkUnmapMemory;
    PFN_vkFlushMappedMemoryRanges vkFlushMappedMemoryRanges;
    PFN_vkInvalidateMappedMemoryRanges vkInvalidateMappedMemoryRanges;
    PFN_vkBindBufferMemory vkBindBufferMemory;
    PFN_vkBindImageMemory vkBindImageMemory;
    PFN_vkGetBufferMemoryRequirements vkGetBufferMemoryRequirements;
    PFN_vkGetImageMemoryRequirements vkGetImageMemoryRequirements;
    PFN_vkCreateBuffer vkCreateBuffer;
    PFN_vkDestroyBuffer vkDestroyBuffer;
    PFN_vkCreateImage vkCreateImage;
    PFN_vkDestroyImage vkDestroyImage;
    PFN_vkCmdCopyBuffer vkCmdCopyBuffer;
    PFN_vkGetBufferMemoryRequirements2KHR vkGetBufferMemoryRequirements2KHR;
    PFN_vkGetImageMemoryRequirements2KHR vkGetImageMemoryRequirements2KHR;
    PFN_vkBindBufferMemory2KHR vkBindBufferMemory2KHR;
    PFN_vkBindImageMemory2KHR vkBindImageMemory2KHR;
    PFN_vkGetPhysicalDeviceMemoryProperties2KHR vkGetPhysicalDeviceMemoryProperties2KHR;
    PFN_vkGetDeviceBufferMemoryRequirementsKHR vkGetDeviceBufferMemoryRequirements;
    PFN_vkGetDeviceImageMemoryRequirementsKHR vkGetDeviceImageMemoryRequirements;
    void *vkGetMemoryWin32HandleKHR; /* quire has no handles of Windows here, and never calls it */
    PFN_vkGetPhysicalDeviceProperties2KHR vkGetPhysicalDeviceProperties2KHR;
} VmaVulkanFunctions;

typedef struct VmaAllocatorCreateInfo {
    VmaAllocatorCreateFlags flags;
    VkPhysicalDevice physicalDevice;
    VkDevice device;
    VkDeviceSize preferredLargeHeapBlockSize; /* bytes; 0: pages that follow use, up to 32 MiB */
    const VkAllocationCallbacks *pAllocationCallbacks;
    const VmaDeviceMemoryCallbacks *pDeviceMemoryCallbacks;
    const VkDeviceSize *pHeapSizeLimit; /* one for each heap; VK_WHOLE_SIZE: none */
    const VmaVulkanFunctions *pVulkanFunctions;
    VkInstance instance;
    uint32_t vulkanApiVersion; /* below 1.1, also 0: 1.1 */
    /* One for each memory type; 0: none. Those that are not 0 must be equal. */
    const VkExternalMemoryHandleTypeFlagsKHR *pTypeExternalMemoryHandleTypes;
} VmaAllocatorCreateInfo;

typedef struct VmaAllocatorInfo {
    VkInstance instance;
    VkPhysicalDevice physicalDevice;
    VkDevice device;
} VmaAllocatorInfo;

/* ---- statistics ----------------------------------------------------------------------------- */

typedef struct VmaStatistics {
    uint32_t blockCount; /* pages */
    uint32_t allocationCount;
    VkDeviceSize blockBytes;
    VkDeviceSize allocationBytes; /* as requested */
} VmaStatistics;

typedef struct VmaDetailedStatistics {
    VmaStatistics statistics;
    uint32_t unusedRangeCount;
    VkDeviceSize allocationSizeMin; /* VK_WHOLE_SIZE: there is no allocation */
    VkDeviceSize allocationSizeMax;
    VkDeviceSize unusedRangeSizeMin; /* VK_WHOLE_SIZE: there is no unused range */
    VkDeviceSize unusedRangeSizeMax;
} VmaDetailedStatistics;

typedef struct VmaTotalStatistics {
    VmaDetailedStatistics memoryType[VK_MAX_MEMORY_TYPES];
    VmaDetailedStatistics memoryHeap[VK_MAX_MEMORY_HEAPS];
    VmaDetailedStatistics total;
} VmaTotalStatistics;

typedef struct VmaBudget {
    VmaStatistics statistics;
    VkDeviceSize usage;  /* statistics.blockBytes without VK_EXT_memory_budget */
    VkDeviceSize budget; /* 80 % of the heap without VK_EXT_memory_budget */
} VmaBudget;

/* ---- allocations and pools ------------------------------------------------------------------ */

typedef struct VmaAllocationCreateInfo {
    VmaAllocationCreateFlags flags;
    VmaMemoryUsage usage;
    VkMemoryPropertyFlags requiredFlags;
    VkMemoryPropertyFlags preferredFlags;
    uint32_t memoryTypeBits; /* 0: all */
    VmaPool pool;            /* NULL: the allocator's own memories */
    void *pUserData;
    float priority;            /* of dedicated memory, with EXT_MEMORY_PRIORITY_BIT */
    VkDeviceSize minAlignment; /* bytes, a power of two; 0: what the object needs */
} VmaAllocationCreateInfo;

typedef struct VmaPoolCreateInfo {
    uint32_t memoryTypeIndex;
    VmaPoolCreateFlags flags;
    /* Bytes. Larger allocations are OUT_OF_DEVICE_MEMORY. 0: no limit, and pages as in the
       allocator's own memories. */
    VkDeviceSize blockSize;
    size_t minBlockCount;
    size_t maxBlockCount; /* 0: no limit; without effect where blockSize is 0 */
    float priority;
    VkDeviceSize minAllocationAlignment; /* a power of two; 0: none */
    /* Must stay unchanged while the pool lives. A VkExportMemoryAllocateInfo must have the handle
       type that the allocator exports: opaque POSIX descriptors, unless
       pTypeExternalMemoryHandleTypes names others. */
    void *pMemoryAllocateNext;
} VmaPoolCreateInfo;

typedef struct VmaAllocationInfo {
    uint32_t memoryType;
    VkDeviceMemory deviceMemory;
    VkDeviceSize offset;
    VkDeviceSize size;
    void *pMappedData; /* NULL: neither MAPPED_BIT nor a map that has not ended */
    void *pUserData;
    const char *pName; /* valid until the name changes or the allocation is freed */
} VmaAllocationInfo;

typedef struct VmaAllocationInfo2 {
    VmaAllocationInfo allocationInfo;
    VkDeviceSize blockSize; /* bytes of the page */
    VkBool32 dedicatedMemory;
} VmaAllocationInfo2;

/* ---- defragmentation ------------------------------------------------------------------------ */

/* One algorithm serves all of them: the emptiest block is emptied first, and nothing moves unless a
   block becomes free. At most one bit; 0: likewise. */
typedef enum VmaDefragmentationFlagBits {
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FAST_BIT = 0x1,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_BALANCED_BIT = 0x2,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT = 0x4,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_EXTENSIVE_BIT = 0x8,
    VMA_DEFRAGMENTATION_FLAG_ALGORITHM_MASK = 0xF,
    VMA_DEFRAGMENTATION_FLAG_BITS_MAX_ENUM = 0x7FFFFFFF
} VmaDefragmentationFlagBits;
typedef VkFlags VmaDefragmentationFlags;

typedef enum VmaDefragmentationMoveOperation {
    VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY = 0,   /* the program has copied the contents */
    VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE = 1, /* the allocation stays */
    VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY = 2 /* the allocation is freed */
} VmaDefragmentationMoveOperation;

/* Whether the pass has enough moves; called between groups of up to 256 of them. */
typedef VkBool32(VKAPI_PTR *PFN_vmaCheckDefragmentationBreakFunction)(void *pUserData);

typedef struct VmaDefragmentationInfo {
    VmaDefragmentationFlags flags;
    VmaPool pool;                   /* NULL: the allocator's own memories, and no pool */
    VkDeviceSize maxBytesPerPass;   /* 0: no limit; a larger allocation moves alone */
    uint32_t maxAllocationsPerPass; /* 0: no limit */
    PFN_vmaCheckDefragmentationBreakFunction pfnBreakCallback; /* NULL: none */
    void *pBreakCallbackUserData;
} VmaDefragmentationInfo;

typedef struct VmaDefragmentationMove {
    VmaDefragmentationMoveOperation operation; /* COPY at first; the program may change it */
    VmaAllocation srcAllocation;
    VmaAllocation dstTmpAllocation; /* until vmaEndDefragmentationPass */
} VmaDefragmentationMove;

typedef struct VmaDefragmentationPassMoveInfo {
    uint32_t moveCount;
    VmaDefragmentationMove *pMoves; /* valid until vmaEndDefragmentationPass; NULL: no moves */
} VmaDefragmentationPassMoveInfo;

typedef struct VmaDefragmentationStats {
    VkDeviceSize bytesMoved;
    VkDeviceSize bytesFreed; /* of blocks that were freed */
    uint32_t allocationsMoved;
    uint32_t deviceMemoryBlocksFreed;
} VmaDefragmentationStats;

/* ---- virtual blocks ------------------------------------------------------------------------- */

typedef struct VmaVirtualBlockCreateInfo {
    VkDeviceSize size; /* above 0 */
    VmaVirtualBlockCreateFlags flags;
    const VkAllocationCallbacks *pAllocationCallbacks;
} VmaVirtualBlockCreateInfo;

typedef struct VmaVirtualAllocationCreateInfo {
    VkDeviceSize size;      /* above 0 */
    VkDeviceSize alignment; /* a power of two; 0: 1 */
    VmaVirtualAllocationCreateFlags flags;
    void *pUserData;
} VmaVirtualAllocationCreateInfo;

typedef struct VmaVirtualAllocationInfo {
    VkDeviceSize offset;
    VkDeviceSize size;
    void *pUserData;
} VmaVirtualAllocationInfo;

#ifdef __cplusplus
}
#endif

#endif
