/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocator.h - the allocator: a quire device, one memory for each memory type that is used, pools,
 * and the records of allocations.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_ALLOCATOR_H
#define QUIRE_SRC_ADAPTERS_VMA_ALLOCATOR_H

#include "src/adapters/vma/base.h"
#include "src/adapters/vma/table.h"

/* ---- functions of Vulkan ------------------------------------------------------------------ */

/* Those that the adapter calls. X(name without vk, required) */
#define QI_VMA_DEVICE_FUNCTIONS(X)                                                                 \
    X(CreateBuffer, true)                                                                          \
    X(DestroyBuffer, true)                                                                         \
    X(CreateImage, true)                                                                           \
    X(DestroyImage, true)                                                                          \
    X(GetBufferMemoryRequirements2, true)                                                          \
    X(GetImageMemoryRequirements2, true)                                                           \
    X(BindBufferMemory, true)                                                                      \
    X(BindImageMemory, true)                                                                       \
    X(BindBufferMemory2, true)                                                                     \
    X(BindImageMemory2, true)                                                                      \
    X(GetDeviceBufferMemoryRequirements, false)                                                    \
    X(GetDeviceImageMemoryRequirements, false)
#define QI_VMA_INSTANCE_FUNCTIONS(X)                                                               \
    X(GetPhysicalDeviceProperties, true)                                                           \
    X(GetPhysicalDeviceMemoryProperties, true)

typedef struct qi_vma_functions {
#define QI_VMA_MEMBER(name, required) PFN_vk##name name;
    QI_VMA_DEVICE_FUNCTIONS(QI_VMA_MEMBER)
    QI_VMA_INSTANCE_FUNCTIONS(QI_VMA_MEMBER)
#undef QI_VMA_MEMBER
    bool has_memory_fd; /* the device has VK_KHR_external_memory_fd enabled */
} qi_vma_functions;

/* ---- the allocator ------------------------------------------------------------------------ */

/* A memory of the allocator's own. The memories of one type differ by the priority of their
   dedicated pages. */
typedef struct qi_vma_memory {
    struct qi_vma_memory *next;
    quire_memory *memory;
    uint32_t type;
    float priority; /* 0: the default */
} qi_vma_memory;

/* A defragmentation that has not ended: see defragmentation.c. */
typedef struct qi_vma_context {
    qi_vma_record record; /* first member */
    struct qi_vma_defragmentation *defragmentation;
} qi_vma_context;

struct VmaAllocator_T {
    VmaAllocator next_allocator; /* in the list of all allocators of the process */
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VmaAllocatorCreateFlags flags;
    qi_vma_host host;
    quire_device *quire;
    qi_vma_functions f;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory; /* a limit of a heap is its size */
    uint32_t usable_types;                   /* mask */
    VkExternalMemoryHandleTypeFlags exported;
    uint32_t exporting_types; /* mask */
    VkDeviceSize block_size;  /* preferredLargeHeapBlockSize */

    pthread_mutex_t mutex;   /* the list, creation and destruction of pools */
    qi_vma_memory *memories; /* newest first; under the mutex */
    _Atomic(quire_memory *) of_type[VK_MAX_MEMORY_TYPES]; /* of default priority, once it exists */
    qi_vma_table allocations;
    qi_vma_table pools;
    qi_vma_table defragmentations;
};

/* The alignment that keeps objects of optimal tiling apart from linear ones; at least 1. */
static inline VkDeviceSize qi_vma_granularity(VmaAllocator allocator)
{
    VkDeviceSize granularity = allocator->properties.limits.bufferImageGranularity;
    return granularity ? granularity : 1;
}

/* Rounds up to a multiple of a power of two, if there is such a number. */
static inline VkDeviceSize qi_vma_rounded(VkDeviceSize size, VkDeviceSize granularity)
{
    VkDeviceSize up = (size + granularity - 1) & ~(granularity - 1);
    return up < size ? size : up;
}

static inline VkMemoryPropertyFlags qi_vma_flags_of_type(VmaAllocator allocator, uint32_t type)
{
    return allocator->memory.memoryTypes[type].propertyFlags;
}

/* The bytes of a heap that may be used if the driver does not say it. */
static inline VkDeviceSize qi_vma_usual_budget(VmaAllocator allocator, uint32_t heap)
{
    return allocator->memory.memoryHeaps[heap].size * 8 / 10;
}

/* Whether the allocator exists; sets the last error otherwise. */
bool qi_vma_is_allocator(VmaAllocator allocator);

#endif
