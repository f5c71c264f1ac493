/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * functions.h - the list of the device functions that the layer intercepts. The table of the next
 * layer's functions and the declarations of the layer's entry points are generated from it.
 */
#ifndef QUIRE_SRC_ADAPTERS_VULKAN_LAYER_FUNCTIONS_H
#define QUIRE_SRC_ADAPTERS_VULKAN_LAYER_FUNCTIONS_H

#include <vulkan/vulkan_core.h>

/* The structs of VK_KHR_map_memory2, which headers before 1.3.244 lack. */
typedef struct layer_map_info {
    VkStructureType sType;
    const void *pNext;
    VkFlags flags;
    VkDeviceMemory memory;
    VkDeviceSize offset;
    VkDeviceSize size;
} layer_map_info;

typedef struct layer_unmap_info {
    VkStructureType sType;
    const void *pNext;
    VkFlags flags;
    VkDeviceMemory memory;
} layer_unmap_info;

typedef VkResult(VKAPI_PTR *layer_pfn_MapMemory2)(VkDevice, const layer_map_info *, void **);
typedef VkResult(VKAPI_PTR *layer_pfn_UnmapMemory2)(VkDevice, const layer_unmap_info *);

/* X(name, function type) */
#define LAYER_CALLS(X)                                                                             \
    X(DestroyDevice, PFN_vkDestroyDevice)                                                          \
    X(AllocateMemory, PFN_vkAllocateMemory)                                                        \
    X(FreeMemory, PFN_vkFreeMemory)                                                                \
    X(MapMemory, PFN_vkMapMemory)                                                                  \
    X(UnmapMemory, PFN_vkUnmapMemory)                                                              \
    X(MapMemory2, layer_pfn_MapMemory2)                                                            \
    X(UnmapMemory2, layer_pfn_UnmapMemory2)                                                        \
    X(FlushMappedMemoryRanges, PFN_vkFlushMappedMemoryRanges)                                      \
    X(InvalidateMappedMemoryRanges, PFN_vkInvalidateMappedMemoryRanges)                            \
    X(GetDeviceMemoryCommitment, PFN_vkGetDeviceMemoryCommitment)                                  \
    X(GetDeviceMemoryOpaqueCaptureAddress, PFN_vkGetDeviceMemoryOpaqueCaptureAddress)              \
    X(SetDeviceMemoryPriorityEXT, PFN_vkSetDeviceMemoryPriorityEXT)                                \
    X(BindBufferMemory, PFN_vkBindBufferMemory)                                                    \
    X(BindImageMemory, PFN_vkBindImageMemory)                                                      \
    X(BindBufferMemory2, PFN_vkBindBufferMemory2)                                                  \
    X(BindImageMemory2, PFN_vkBindImageMemory2)                                                    \
    X(BindVideoSessionMemoryKHR, PFN_vkBindVideoSessionMemoryKHR)                                  \
    X(BindAccelerationStructureMemoryNV, PFN_vkBindAccelerationStructureMemoryNV)                  \
    X(QueueBindSparse, PFN_vkQueueBindSparse)                                                      \
    X(GetBufferMemoryRequirements, PFN_vkGetBufferMemoryRequirements)                              \
    X(GetImageMemoryRequirements, PFN_vkGetImageMemoryRequirements)                                \
    X(GetBufferMemoryRequirements2, PFN_vkGetBufferMemoryRequirements2)                            \
    X(GetImageMemoryRequirements2, PFN_vkGetImageMemoryRequirements2)                              \
    X(GetDeviceBufferMemoryRequirements, PFN_vkGetDeviceBufferMemoryRequirements)                  \
    X(GetDeviceImageMemoryRequirements, PFN_vkGetDeviceImageMemoryRequirements)                    \
    X(SetDebugUtilsObjectNameEXT, PFN_vkSetDebugUtilsObjectNameEXT)                                \
    X(SetDebugUtilsObjectTagEXT, PFN_vkSetDebugUtilsObjectTagEXT)                                  \
    X(DebugMarkerSetObjectNameEXT, PFN_vkDebugMarkerSetObjectNameEXT)                              \
    X(DebugMarkerSetObjectTagEXT, PFN_vkDebugMarkerSetObjectTagEXT)                                \
    X(SetPrivateData, PFN_vkSetPrivateData)                                                        \
    X(GetPrivateData, PFN_vkGetPrivateData)                                                        \
    X(DestroyPrivateDataSlot, PFN_vkDestroyPrivateDataSlot)

/* Y(name in the extension, name in the list above) */
#define LAYER_ALIASES(Y)                                                                           \
    Y(MapMemory2KHR, MapMemory2)                                                                   \
    Y(UnmapMemory2KHR, UnmapMemory2)                                                               \
    Y(GetDeviceMemoryOpaqueCaptureAddressKHR, GetDeviceMemoryOpaqueCaptureAddress)                 \
    Y(BindBufferMemory2KHR, BindBufferMemory2)                                                     \
    Y(BindImageMemory2KHR, BindImageMemory2)                                                       \
    Y(GetBufferMemoryRequirements2KHR, GetBufferMemoryRequirements2)                               \
    Y(GetImageMemoryRequirements2KHR, GetImageMemoryRequirements2)                                 \
    Y(GetDeviceBufferMemoryRequirementsKHR, GetDeviceBufferMemoryRequirements)                     \
    Y(GetDeviceImageMemoryRequirementsKHR, GetDeviceImageMemoryRequirements)                       \
    Y(SetPrivateDataEXT, SetPrivateData)                                                           \
    Y(GetPrivateDataEXT, GetPrivateData)                                                           \
    Y(DestroyPrivateDataSlotEXT, DestroyPrivateDataSlot)

/* The functions of the next layer. NULL: it does not have the function. */
typedef struct layer_functions {
#define X(name, type) type name;
    LAYER_CALLS(X)
#undef X
} layer_functions;

/* X(name): the instance functions of the next layer that quire and this layer call. */
#define LAYER_INSTANCE_CALLS(X)                                                                    \
    X(DestroyInstance)                                                                             \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceQueueFamilyProperties2)                                                     \
    X(GetPhysicalDeviceImageFormatProperties2)                                                     \
    X(GetPhysicalDeviceExternalBufferProperties)                                                   \
    X(SetDebugUtilsObjectNameEXT)                                                                  \
    X(SetDebugUtilsObjectTagEXT)

/* NULL: the next layer does not have the function. */
typedef struct layer_instance_functions {
#define X(name) PFN_vk##name name;
    LAYER_INSTANCE_CALLS(X)
#undef X
} layer_instance_functions;

/* The layer's entry points: layer_AllocateMemory and so on. */
#define X(name, type) extern __typeof__(*(type)0) layer_##name;
LAYER_CALLS(X)
#undef X

#endif
