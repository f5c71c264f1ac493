/*
 * functions.h - the functions of Vulkan that the adapter calls, and the way in which quire and the
 * adapter find functions that a program gives in VmaVulkanFunctions.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_FUNCTIONS_H
#define QUIRE_SRC_ADAPTERS_VMA_FUNCTIONS_H

#include "quire/vma/types.h"

/* X(name without vk, required) */
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

/*
 * While a thread is between begin and end, qi_vma_instance_function and qi_vma_device_function find
 * functions for it: first those of `given`, then those of its getters if it `has_getters`, then
 * those of `linked`, then those of the system's loader. A function of Vulkan 1.1 and later may have
 * its name of an extension.
 * Begin fails with INITIALIZATION_FAILED if there is no getter at all.
 */
VkResult qi_vma_functions_begin(const VmaVulkanFunctions *given, bool has_getters,
                                PFN_vkGetInstanceProcAddr linked, VkInstance instance);
void qi_vma_functions_end(void);
PFN_vkVoidFunction VKAPI_CALL qi_vma_instance_function(VkInstance instance, const char *name);
PFN_vkVoidFunction VKAPI_CALL qi_vma_device_function(VkDevice device, const char *name);

/* Loads the table, between begin and end. Fails with INITIALIZATION_FAILED and the name. */
VkResult qi_vma_functions_load(VkInstance instance, VkDevice device, qi_vma_functions *f);

#endif
