/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * entries.h - the list of all functions of the fake driver.
 *
 * X(function, scope, core version that has it or 0, extension that has it or NONE, codes)
 *
 * The codes are those with which the function may fail according to vk.xml 1.3.239, without codes
 * that only unknown extensions cause. The table of vkGet*ProcAddr, the counters and the faults are
 * generated from this list.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_ENTRIES_H
#define QUIRE_TESTS_SUPPORT_VULKAN_ENTRIES_H

#include "tests/support/vulkan/layout.h"

#define FV_CODES(X)                                                                                \
    X(HOST, VK_ERROR_OUT_OF_HOST_MEMORY)                                                           \
    X(DEVICE, VK_ERROR_OUT_OF_DEVICE_MEMORY)                                                       \
    X(INIT, VK_ERROR_INITIALIZATION_FAILED)                                                        \
    X(LOST, VK_ERROR_DEVICE_LOST)                                                                  \
    X(MAP, VK_ERROR_MEMORY_MAP_FAILED)                                                             \
    X(LAYER, VK_ERROR_LAYER_NOT_PRESENT)                                                           \
    X(EXTENSION, VK_ERROR_EXTENSION_NOT_PRESENT)                                                   \
    X(FEATURE, VK_ERROR_FEATURE_NOT_PRESENT)                                                       \
    X(DRIVER, VK_ERROR_INCOMPATIBLE_DRIVER)                                                        \
    X(MANY, VK_ERROR_TOO_MANY_OBJECTS)                                                             \
    X(FORMAT, VK_ERROR_FORMAT_NOT_SUPPORTED)                                                       \
    X(EXTERNAL, VK_ERROR_INVALID_EXTERNAL_HANDLE)                                                  \
    X(OPAQUE, VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)

enum {
#define X(code, result) FV_INDEX_##code,
    FV_CODES(X)
#undef X
        FV_CODE_COUNT
};

enum {
#define X(code, result) FV_##code##_CODE = 1 << FV_INDEX_##code,
    FV_CODES(X)
#undef X
        FV_NO_CODES = 0,
    FV_MEMORY_CODES = FV_HOST_CODE | FV_DEVICE_CODE,
    FV_QUEUE_CODES = FV_MEMORY_CODES | FV_LOST_CODE,
    FV_EXTENSION_CODES = FV_MEMORY_CODES | FV_LAYER_CODE,
    FV_CREATE_CODES = FV_MEMORY_CODES | FV_INIT_CODE
};

typedef enum fv_scope { FV_GLOBAL, FV_OF_INSTANCE, FV_OF_PHYSICAL_DEVICE, FV_OF_DEVICE } fv_scope;

#define FV_1_0 VK_API_VERSION_1_0
#define FV_1_1 VK_API_VERSION_1_1
#define FV_1_2 VK_API_VERSION_1_2
#define FV_1_3 VK_API_VERSION_1_3

#define FV_ENTRIES(X)                                                                              \
    FV_INSTANCE_ENTRIES(X)                                                                         \
    FV_PHYSICAL_DEVICE_ENTRIES(X)                                                                  \
    FV_DEVICE_ENTRIES(X)                                                                           \
    FV_MEMORY_ENTRIES(X)                                                                           \
    FV_RESOURCE_ENTRIES(X)                                                                         \
    FV_COMMAND_ENTRIES(X)                                                                          \
    FV_QUEUE_ENTRIES(X)

#define FV_INSTANCE_ENTRIES(X)                                                                     \
    X(vkGetInstanceProcAddr, FV_GLOBAL, FV_1_0, NONE, FV_NO_CODES)                                 \
    X(vkEnumerateInstanceVersion, FV_GLOBAL, FV_1_1, NONE, FV_HOST_CODE)                           \
    X(vkEnumerateInstanceExtensionProperties, FV_GLOBAL, FV_1_0, NONE, FV_EXTENSION_CODES)         \
    X(vkEnumerateInstanceLayerProperties, FV_GLOBAL, FV_1_0, NONE, FV_MEMORY_CODES)                \
    X(vkCreateInstance, FV_GLOBAL, FV_1_0, NONE,                                                   \
      FV_CREATE_CODES | FV_LAYER_CODE | FV_EXTENSION_CODE | FV_DRIVER_CODE)                        \
    X(vkDestroyInstance, FV_OF_INSTANCE, FV_1_0, NONE, FV_NO_CODES)                                \
    X(vkEnumeratePhysicalDevices, FV_OF_INSTANCE, FV_1_0, NONE, FV_CREATE_CODES)                   \
    X(vkCreateDebugUtilsMessengerEXT, FV_OF_INSTANCE, 0, DEBUG_UTILS, FV_HOST_CODE)                \
    X(vkDestroyDebugUtilsMessengerEXT, FV_OF_INSTANCE, 0, DEBUG_UTILS, FV_NO_CODES)                \
    X(vkSubmitDebugUtilsMessageEXT, FV_OF_INSTANCE, 0, DEBUG_UTILS, FV_NO_CODES)

#define FV_PHYSICAL_DEVICE_ENTRIES(X)                                                              \
    X(vkGetPhysicalDeviceProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE, FV_NO_CODES)             \
    X(vkGetPhysicalDeviceProperties2, FV_OF_PHYSICAL_DEVICE, FV_1_1, PROPERTIES2, FV_NO_CODES)     \
    X(vkGetPhysicalDeviceFeatures, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE, FV_NO_CODES)               \
    X(vkGetPhysicalDeviceFeatures2, FV_OF_PHYSICAL_DEVICE, FV_1_1, PROPERTIES2, FV_NO_CODES)       \
    X(vkGetPhysicalDeviceMemoryProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE, FV_NO_CODES)       \
    X(vkGetPhysicalDeviceMemoryProperties2, FV_OF_PHYSICAL_DEVICE, FV_1_1, PROPERTIES2,            \
      FV_NO_CODES)                                                                                 \
    X(vkGetPhysicalDeviceQueueFamilyProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE, FV_NO_CODES)  \
    X(vkGetPhysicalDeviceQueueFamilyProperties2, FV_OF_PHYSICAL_DEVICE, FV_1_1, PROPERTIES2,       \
      FV_NO_CODES)                                                                                 \
    X(vkGetPhysicalDeviceFormatProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE, FV_NO_CODES)       \
    X(vkGetPhysicalDeviceFormatProperties2, FV_OF_PHYSICAL_DEVICE, FV_1_1, PROPERTIES2,            \
      FV_NO_CODES)                                                                                 \
    X(vkGetPhysicalDeviceImageFormatProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE,               \
      FV_MEMORY_CODES | FV_FORMAT_CODE)                                                            \
    X(vkGetPhysicalDeviceImageFormatProperties2, FV_OF_PHYSICAL_DEVICE, FV_1_1, PROPERTIES2,       \
      FV_MEMORY_CODES | FV_FORMAT_CODE)                                                            \
    X(vkGetPhysicalDeviceSparseImageFormatProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE,         \
      FV_NO_CODES)                                                                                 \
    X(vkGetPhysicalDeviceExternalBufferProperties, FV_OF_PHYSICAL_DEVICE, FV_1_1,                  \
      MEMORY_CAPABILITIES, FV_NO_CODES)                                                            \
    X(vkEnumerateDeviceExtensionProperties, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE,                   \
      FV_EXTENSION_CODES)                                                                          \
    X(vkCreateDevice, FV_OF_PHYSICAL_DEVICE, FV_1_0, NONE,                                         \
      FV_CREATE_CODES | FV_EXTENSION_CODE | FV_FEATURE_CODE | FV_MANY_CODE | FV_LOST_CODE)

#define FV_DEVICE_ENTRIES(X)                                                                       \
    X(vkGetDeviceProcAddr, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                \
    X(vkDestroyDevice, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                    \
    X(vkGetDeviceQueue, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                   \
    X(vkSetDebugUtilsObjectNameEXT, FV_OF_DEVICE, 0, DEBUG_UTILS, FV_MEMORY_CODES)                 \
    X(vkSetDebugUtilsObjectTagEXT, FV_OF_DEVICE, 0, DEBUG_UTILS, FV_MEMORY_CODES)

#define FV_MEMORY_ENTRIES(X)                                                                       \
    X(vkAllocateMemory, FV_OF_DEVICE, FV_1_0, NONE,                                                \
      FV_MEMORY_CODES | FV_EXTERNAL_CODE | FV_OPAQUE_CODE)                                         \
    X(vkFreeMemory, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                       \
    X(vkGetDeviceMemoryCommitment, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                        \
    X(vkGetDeviceMemoryOpaqueCaptureAddress, FV_OF_DEVICE, FV_1_2, ADDRESS, FV_NO_CODES)           \
    X(vkSetDeviceMemoryPriorityEXT, FV_OF_DEVICE, 0, PAGEABLE, FV_NO_CODES)                        \
    X(vkMapMemory, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES | FV_MAP_CODE)                      \
    X(vkUnmapMemory, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                      \
    X(vkFlushMappedMemoryRanges, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                      \
    X(vkInvalidateMappedMemoryRanges, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                 \
    X(vkGetMemoryFdKHR, FV_OF_DEVICE, 0, FD, FV_HOST_CODE | FV_MANY_CODE)                          \
    X(vkGetMemoryFdPropertiesKHR, FV_OF_DEVICE, 0, FD, FV_HOST_CODE | FV_EXTERNAL_CODE)            \
    X(vkGetMemoryHostPointerPropertiesEXT, FV_OF_DEVICE, 0, HOST_POINTER,                          \
      FV_HOST_CODE | FV_EXTERNAL_CODE)

#define FV_RESOURCE_ENTRIES(X)                                                                     \
    X(vkCreateBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES | FV_OPAQUE_CODE)                \
    X(vkDestroyBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                    \
    X(vkGetBufferMemoryRequirements, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                      \
    X(vkGetBufferMemoryRequirements2, FV_OF_DEVICE, FV_1_1, REQUIREMENTS2, FV_NO_CODES)            \
    X(vkGetDeviceBufferMemoryRequirements, FV_OF_DEVICE, FV_1_3, MAINTENANCE4, FV_NO_CODES)        \
    X(vkGetBufferDeviceAddress, FV_OF_DEVICE, FV_1_2, ADDRESS, FV_NO_CODES)                        \
    X(vkBindBufferMemory, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES | FV_OPAQUE_CODE)            \
    X(vkBindBufferMemory2, FV_OF_DEVICE, FV_1_1, BIND2, FV_MEMORY_CODES | FV_OPAQUE_CODE)          \
    X(vkCreateImage, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES | FV_OPAQUE_CODE)                 \
    X(vkDestroyImage, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                     \
    X(vkGetImageMemoryRequirements, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                       \
    X(vkGetImageMemoryRequirements2, FV_OF_DEVICE, FV_1_1, REQUIREMENTS2, FV_NO_CODES)             \
    X(vkGetDeviceImageMemoryRequirements, FV_OF_DEVICE, FV_1_3, MAINTENANCE4, FV_NO_CODES)         \
    X(vkGetImageSparseMemoryRequirements, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                 \
    X(vkGetImageSparseMemoryRequirements2, FV_OF_DEVICE, FV_1_1, REQUIREMENTS2, FV_NO_CODES)       \
    X(vkGetImageSubresourceLayout, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                        \
    X(vkBindImageMemory, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                              \
    X(vkBindImageMemory2, FV_OF_DEVICE, FV_1_1, BIND2, FV_MEMORY_CODES)                            \
    X(vkCreateImageView, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES | FV_OPAQUE_CODE)             \
    X(vkDestroyImageView, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                 \
    X(vkCreateSampler, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES | FV_OPAQUE_CODE)               \
    X(vkDestroySampler, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)

#define FV_COMMAND_ENTRIES(X)                                                                      \
    X(vkCreateCommandPool, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                            \
    X(vkDestroyCommandPool, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                               \
    X(vkResetCommandPool, FV_OF_DEVICE, FV_1_0, NONE, FV_DEVICE_CODE)                              \
    X(vkAllocateCommandBuffers, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                       \
    X(vkFreeCommandBuffers, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                               \
    X(vkBeginCommandBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                           \
    X(vkEndCommandBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                             \
    X(vkCmdCopyBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                    \
    X(vkCmdFillBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                    \
    X(vkCmdCopyBufferToImage, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                             \
    X(vkCmdCopyImageToBuffer, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                             \
    X(vkCmdClearColorImage, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                               \
    X(vkCmdPipelineBarrier, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)

#define FV_QUEUE_ENTRIES(X)                                                                        \
    X(vkQueueSubmit, FV_OF_DEVICE, FV_1_0, NONE, FV_QUEUE_CODES)                                   \
    X(vkQueueBindSparse, FV_OF_DEVICE, FV_1_0, NONE, FV_QUEUE_CODES)                               \
    X(vkQueueWaitIdle, FV_OF_DEVICE, FV_1_0, NONE, FV_QUEUE_CODES)                                 \
    X(vkDeviceWaitIdle, FV_OF_DEVICE, FV_1_0, NONE, FV_QUEUE_CODES)                                \
    X(vkCreateFence, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                                  \
    X(vkDestroyFence, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                     \
    X(vkResetFences, FV_OF_DEVICE, FV_1_0, NONE, FV_DEVICE_CODE)                                   \
    X(vkWaitForFences, FV_OF_DEVICE, FV_1_0, NONE, FV_QUEUE_CODES)                                 \
    X(vkCreateSemaphore, FV_OF_DEVICE, FV_1_0, NONE, FV_MEMORY_CODES)                              \
    X(vkDestroySemaphore, FV_OF_DEVICE, FV_1_0, NONE, FV_NO_CODES)                                 \
    X(vkGetSemaphoreCounterValue, FV_OF_DEVICE, FV_1_2, TIMELINE, FV_QUEUE_CODES)                  \
    X(vkWaitSemaphores, FV_OF_DEVICE, FV_1_2, TIMELINE, FV_QUEUE_CODES)                            \
    X(vkSignalSemaphore, FV_OF_DEVICE, FV_1_2, TIMELINE, FV_MEMORY_CODES)

/* Y(name in the extension, function that it is an alias of) */
#define FV_ALIASES(Y)                                                                              \
    Y(vkGetPhysicalDeviceProperties2KHR, vkGetPhysicalDeviceProperties2)                           \
    Y(vkGetPhysicalDeviceFeatures2KHR, vkGetPhysicalDeviceFeatures2)                               \
    Y(vkGetPhysicalDeviceMemoryProperties2KHR, vkGetPhysicalDeviceMemoryProperties2)               \
    Y(vkGetPhysicalDeviceQueueFamilyProperties2KHR, vkGetPhysicalDeviceQueueFamilyProperties2)     \
    Y(vkGetPhysicalDeviceFormatProperties2KHR, vkGetPhysicalDeviceFormatProperties2)               \
    Y(vkGetPhysicalDeviceImageFormatProperties2KHR, vkGetPhysicalDeviceImageFormatProperties2)     \
    Y(vkGetPhysicalDeviceExternalBufferPropertiesKHR, vkGetPhysicalDeviceExternalBufferProperties) \
    Y(vkGetDeviceMemoryOpaqueCaptureAddressKHR, vkGetDeviceMemoryOpaqueCaptureAddress)             \
    Y(vkGetBufferMemoryRequirements2KHR, vkGetBufferMemoryRequirements2)                           \
    Y(vkGetDeviceBufferMemoryRequirementsKHR, vkGetDeviceBufferMemoryRequirements)                 \
    Y(vkGetBufferDeviceAddressKHR, vkGetBufferDeviceAddress)                                       \
    Y(vkBindBufferMemory2KHR, vkBindBufferMemory2)                                                 \
    Y(vkGetImageMemoryRequirements2KHR, vkGetImageMemoryRequirements2)                             \
    Y(vkGetDeviceImageMemoryRequirementsKHR, vkGetDeviceImageMemoryRequirements)                   \
    Y(vkGetImageSparseMemoryRequirements2KHR, vkGetImageSparseMemoryRequirements2)                 \
    Y(vkBindImageMemory2KHR, vkBindImageMemory2)                                                   \
    Y(vkGetSemaphoreCounterValueKHR, vkGetSemaphoreCounterValue)                                   \
    Y(vkWaitSemaphoresKHR, vkWaitSemaphores)                                                       \
    Y(vkSignalSemaphoreKHR, vkSignalSemaphore)

typedef enum fv_call {
#define X(function, scope, version, extension, codes) FV_CALL_##function,
    FV_ENTRIES(X)
#undef X
        FV_CALL_COUNT
} fv_call;

#endif
