/*
 * functions.h - the table of the Vulkan functions that the backend calls.
 *
 * Each device has its own table, filled from the get_instance_proc_addr it was opened with. Devices
 * of different loaders, layers or test drivers can therefore exist at the same time. A missing
 * required function is an error that names it; a missing optional one is NULL.
 */
#ifndef QUIRE_BACKENDS_VULKAN_FUNCTIONS_H
#define QUIRE_BACKENDS_VULKAN_FUNCTIONS_H

#include <vulkan/vulkan_core.h>

#include "quire/base.h"

#define QI_VULKAN_INSTANCE_FUNCTIONS(X)                                                            \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceQueueFamilyProperties2)                                                     \
    X(GetPhysicalDeviceImageFormatProperties2)                                                     \
    X(GetPhysicalDeviceExternalBufferProperties)

#define QI_VULKAN_DEVICE_FUNCTIONS(X)                                                              \
    X(AllocateMemory)                                                                              \
    X(FreeMemory)                                                                                  \
    X(MapMemory)                                                                                   \
    X(UnmapMemory)                                                                                 \
    X(FlushMappedMemoryRanges)                                                                     \
    X(InvalidateMappedMemoryRanges)                                                                \
    X(CreateBuffer)                                                                                \
    X(DestroyBuffer)                                                                               \
    X(GetBufferMemoryRequirements2)                                                                \
    X(BindBufferMemory)                                                                            \
    X(CreateImage)                                                                                 \
    X(DestroyImage)                                                                                \
    X(GetImageMemoryRequirements2)                                                                 \
    X(GetImageSubresourceLayout)                                                                   \
    X(GetImageSparseMemoryRequirements2)                                                           \
    X(BindImageMemory)                                                                             \
    X(CreateImageView)                                                                             \
    X(DestroyImageView)                                                                            \
    X(CreateSampler)                                                                               \
    X(DestroySampler)                                                                              \
    X(CreateCommandPool)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(ResetCommandPool)                                                                            \
    X(AllocateCommandBuffers)                                                                      \
    X(BeginCommandBuffer)                                                                          \
    X(EndCommandBuffer)                                                                            \
    X(CmdCopyBuffer)                                                                               \
    X(CmdFillBuffer)                                                                               \
    X(CmdCopyBufferToImage)                                                                        \
    X(CmdCopyImageToBuffer)                                                                        \
    X(CmdPipelineBarrier)                                                                          \
    X(CreateFence)                                                                                 \
    X(DestroyFence)                                                                                \
    X(ResetFences)                                                                                 \
    X(WaitForFences)                                                                               \
    X(CreateSemaphore)                                                                             \
    X(DestroySemaphore)                                                                            \
    X(QueueSubmit)                                                                                 \
    X(QueueBindSparse)                                                                             \
    X(GetDeviceQueue)                                                                              \
    X(DeviceWaitIdle)                                                                              \
    X(DestroyDevice)

/* Called only if their version or extension is enabled. */
#define QI_VULKAN_OPTIONAL_FUNCTIONS(X)                                                            \
    X(GetBufferDeviceAddress)                                                                      \
    X(GetDeviceBufferMemoryRequirements)                                                           \
    X(GetDeviceImageMemoryRequirements)                                                            \
    X(GetSemaphoreCounterValue)                                                                    \
    X(WaitSemaphores)                                                                              \
    X(SetDebugUtilsObjectNameEXT)                                                                  \
    X(GetMemoryFdKHR)                                                                              \
    X(GetMemoryFdPropertiesKHR)                                                                    \
    X(GetMemoryHostPointerPropertiesEXT)                                                           \
    X(SetDeviceMemoryPriorityEXT)

typedef struct qi_vulkan_functions {
    PFN_vkGetDeviceProcAddr GetDeviceProcAddr;
#define QI_VULKAN_MEMBER(name) PFN_vk##name name;
    QI_VULKAN_INSTANCE_FUNCTIONS(QI_VULKAN_MEMBER)
    QI_VULKAN_DEVICE_FUNCTIONS(QI_VULKAN_MEMBER)
    QI_VULKAN_OPTIONAL_FUNCTIONS(QI_VULKAN_MEMBER)
#undef QI_VULKAN_MEMBER
} qi_vulkan_functions;

/* Fills the table. `get_device` may be NULL. INVALID_ARGUMENT names the first missing function. */
QUIRE_MUST_USE quire_result qi_vulkan_load(qi_vulkan_functions *functions, VkInstance instance,
                                           VkDevice device, PFN_vkGetInstanceProcAddr get_instance,
                                           PFN_vkGetDeviceProcAddr get_device);

#endif
