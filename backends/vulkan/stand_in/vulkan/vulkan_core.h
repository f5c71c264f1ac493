/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_core.h - a substitute for Khronos's header on machines without it: the types that
 * quire/vulkan.h and quire/vulkan_sparse.h use. With it the functions of an absent backend compile.
 * Structs are incomplete, except for those that the headers contain by value.
 */
#ifndef QUIRE_BACKENDS_VULKAN_STAND_IN_H
#define QUIRE_BACKENDS_VULKAN_STAND_IN_H

#include <stdint.h>

#define VK_NULL_HANDLE 0

typedef struct VkInstance_T *VkInstance;
typedef struct VkPhysicalDevice_T *VkPhysicalDevice;
typedef struct VkDevice_T *VkDevice;
typedef struct VkQueue_T *VkQueue;

/* 64-bit integers. Khronos's header defines them as pointers on some platforms. */
typedef uint64_t VkDeviceMemory, VkBuffer, VkImage, VkImageView, VkSampler, VkSemaphore;
typedef uint64_t VkDeviceSize, VkDeviceAddress;

typedef uint32_t VkBufferUsageFlags, VkExternalMemoryHandleTypeFlags, VkImageAspectFlags;
typedef uint32_t VkQueueFlags, VkSampleCountFlags;
typedef enum VkFormat { VK_FORMAT_UNDEFINED = 0, VK_FORMAT_MOST = 0x7fffffff } VkFormat;
typedef enum VkImageLayout {
    VK_IMAGE_LAYOUT_UNDEFINED = 0,
    VK_IMAGE_LAYOUT_GENERAL = 1,
    VK_IMAGE_LAYOUT_MOST = 0x7fffffff
} VkImageLayout;
typedef enum VkSamplerAddressMode {
    VK_SAMPLER_ADDRESS_MODE_MOST = 0x7fffffff
} VkSamplerAddressMode;
typedef enum VkExternalMemoryHandleTypeFlagBits {
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_MOST = 0x7fffffff
} VkExternalMemoryHandleTypeFlagBits;

typedef struct VkOffset3D {
    int32_t x, y, z;
} VkOffset3D;
typedef struct VkExtent3D {
    uint32_t width, height, depth;
} VkExtent3D;

typedef struct VkAllocationCallbacks VkAllocationCallbacks;
typedef struct VkInstanceCreateInfo VkInstanceCreateInfo;
typedef struct VkDeviceCreateInfo VkDeviceCreateInfo;
typedef struct VkBufferCreateInfo VkBufferCreateInfo;
typedef struct VkImageCreateInfo VkImageCreateInfo;
typedef struct VkMemoryRequirements2 VkMemoryRequirements2;
typedef struct VkPhysicalDeviceFeatures2 VkPhysicalDeviceFeatures2;

typedef void (*PFN_vkVoidFunction)(void);
typedef PFN_vkVoidFunction (*PFN_vkGetInstanceProcAddr)(VkInstance, const char *);
typedef PFN_vkVoidFunction (*PFN_vkGetDeviceProcAddr)(VkDevice, const char *);

#endif
