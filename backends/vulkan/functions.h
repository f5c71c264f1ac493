/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * functions.h - the Vulkan functions that the backend calls: their table, the system's loader, and
 * what their results mean.
 *
 * Each device has its own table, filled from the get_instance_proc_addr it was opened with. Devices
 * of different loaders, layers or test drivers can therefore exist at the same time. A missing
 * required function is an error that names it; a missing optional one is NULL.
 */
#ifndef QUIRE_BACKENDS_VULKAN_FUNCTIONS_H
#define QUIRE_BACKENDS_VULKAN_FUNCTIONS_H

#include <vulkan/vulkan_core.h>

#include "quire/backend.h"

/* ---- the table ---------------------------------------------------------------------------- */

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

/* ---- the loader --------------------------------------------------------------------------- */

/*
 * Returns the loader's vkGetInstanceProcAddr, or NULL if the system has no loader. The first
 * successful call loads it, and it stays loaded until the process ends. Thread-safe.
 */
PFN_vkGetInstanceProcAddr qi_vulkan_find_loader(void);

/*
 * Keeps the libraries of NVIDIA's driver in the process, if an instance has loaded them. The loader
 * unloads a driver with its last instance, and this one can be loaded 30 times only (driver 580,
 * seen on an H100): then vkCreateInstance is INCOMPATIBLE_DRIVER. Thread-safe.
 */
void qi_vulkan_keep_driver(void);

/* ---- results ------------------------------------------------------------------------------ */

/*
 * Records the failure of a Vulkan call as the thread's last error and returns the matching
 * quire_result. The message is "<formatted text>: VK_ERROR_...".
 */
quire_result qi_vulkan_fail(VkResult code, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Returns the quire_result for a VkResult other than VK_SUCCESS. */
quire_result qi_vulkan_result(VkResult code);

#endif
