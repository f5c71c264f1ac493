/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mock_vulkan.c - see mock_vulkan.h. VMA requires some functions that no measurement calls; calling
 * them aborts the program.
 */
#include "bench/mock_vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/mock_driver.h"

/* ---- called ------------------------------------------------------------------------------- */

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice device,
                                                 VkPhysicalDeviceProperties *properties)
{
    (void)device;
    memset(properties, 0, sizeof *properties);
    properties->apiVersion = VK_API_VERSION_1_0;
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    snprintf(properties->deviceName, sizeof properties->deviceName, "mock");
    properties->limits.maxMemoryAllocationCount = MOCK_MAX_PIECES;
    properties->limits.bufferImageGranularity = 1;
    properties->limits.nonCoherentAtomSize = 1;
}

static VKAPI_ATTR void VKAPI_CALL
get_memory_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *properties)
{
    (void)device;
    memset(properties, 0, sizeof *properties);
    properties->memoryHeapCount = properties->memoryTypeCount = 1;
    properties->memoryHeaps[0] = (VkMemoryHeap){MOCK_HEAP_SIZE, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    properties->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device,
                                                      const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *callbacks,
                                                      VkDeviceMemory *memory)
{
    (void)device;
    (void)callbacks;
    *memory = (VkDeviceMemory)mock_make(info->allocationSize);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *callbacks)
{
    (void)device;
    (void)callbacks;
    mock_give((uint64_t)memory);
}

/* ---- never called ------------------------------------------------------------------------- */

static void stop(void)
{
    fprintf(stderr, "bench_memory: VMA called a function that the mock driver lacks\n");
    abort();
}

/* The cast is safe, because the function ignores its arguments and does not return. */
#define NEVER(type) ((type)stop)

/* ---- the table ---------------------------------------------------------------------------- */

/* The functions of Vulkan 1.0. The other entries are NULL. */
static const VmaVulkanFunctions FUNCTIONS = {
    .vkGetPhysicalDeviceProperties = get_properties,
    .vkGetPhysicalDeviceMemoryProperties = get_memory_properties,
    .vkAllocateMemory = allocate_memory,
    .vkFreeMemory = free_memory,
    .vkMapMemory = NEVER(PFN_vkMapMemory),
    .vkUnmapMemory = NEVER(PFN_vkUnmapMemory),
    .vkFlushMappedMemoryRanges = NEVER(PFN_vkFlushMappedMemoryRanges),
    .vkInvalidateMappedMemoryRanges = NEVER(PFN_vkInvalidateMappedMemoryRanges),
    .vkBindBufferMemory = NEVER(PFN_vkBindBufferMemory),
    .vkBindImageMemory = NEVER(PFN_vkBindImageMemory),
    .vkGetBufferMemoryRequirements = NEVER(PFN_vkGetBufferMemoryRequirements),
    .vkGetImageMemoryRequirements = NEVER(PFN_vkGetImageMemoryRequirements),
    .vkCreateBuffer = NEVER(PFN_vkCreateBuffer),
    .vkDestroyBuffer = NEVER(PFN_vkDestroyBuffer),
    .vkCreateImage = NEVER(PFN_vkCreateImage),
    .vkDestroyImage = NEVER(PFN_vkDestroyImage),
    .vkCmdCopyBuffer = NEVER(PFN_vkCmdCopyBuffer),
};

VmaAllocatorCreateInfo mock_allocator_info(void)
{
    static int handle; /* VMA requires handles other than NULL and does not dereference them */
    return (VmaAllocatorCreateInfo){
        .instance = (VkInstance)&handle,
        .physicalDevice = (VkPhysicalDevice)&handle,
        .device = (VkDevice)&handle,
        .pVulkanFunctions = &FUNCTIONS,
        .vulkanApiVersion = VK_API_VERSION_1_0,
    };
}
