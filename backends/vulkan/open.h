/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * open.h - the record that the stages of quire_vulkan_open share, while they create an instance and
 * a device of quire's own.
 */
#ifndef QUIRE_BACKENDS_VULKAN_OPEN_H
#define QUIRE_BACKENDS_VULKAN_OPEN_H

#include "backends/vulkan/features.h"

enum {
    QI_VULKAN_MAX_EXTENSIONS = 16, /* that quire itself enables */
    QI_VULKAN_MAX_FAMILIES = 32,   /* the bits of a mask */
    QI_VULKAN_MAX_QUEUES = QUIRE_VULKAN_MAX_QUEUES + 2,
    QI_VULKAN_MAX_RAISED = 64, /* more than the features that quire can set in a chain */
};

/* A queue that will be created. */
typedef struct qi_vulkan_choice {
    VkQueueFlags wanted; /* that its family must have */
    uint32_t family;
} qi_vulkan_choice;

/*
 * What quire_vulkan_open needs while it runs. The create infos keep the values that they were used
 * with, because the backend reads from them what is enabled. Everything that is created is stored
 * in `vulkan` immediately, so that after a failure the caller destroys it with the state.
 */
struct opening {
    qi_vulkan *vulkan;
    const quire_vulkan_options *options;
    quire_log log;
    PFN_vkGetInstanceProcAddr get_instance;
    const char *wanted; /* index or part of the name of a device; NULL: the best */
    uint32_t version;   /* of the instance, and the maximum of the device */
    bool has_messages;  /* VK_EXT_debug_utils is enabled */

    VkApplicationInfo application;
    VkInstanceCreateInfo instance_info;
    qi_vulkan_extensions of_instance;

    VkPhysicalDevice physical_device;
    uint32_t device_version; /* the lower one of physical device and instance */
    VkDeviceCreateInfo device_info;
    qi_vulkan_extensions of_device;

    /* Queues. `used` counts the queues of each family. */
    VkQueueFamilyProperties families[QI_VULKAN_MAX_FAMILIES];
    uint32_t family_count;
    uint32_t used[QI_VULKAN_MAX_FAMILIES];
    VkDeviceQueueCreateInfo queue_infos[QI_VULKAN_MAX_FAMILIES];
    /* the device's queue, those of the program, and the sparse queue if there is one */
    qi_vulkan_choice queues[QI_VULKAN_MAX_QUEUES];
    uint32_t queue_count;
    bool has_sparse_queue;

    /* Members of the caller's chain that quire changed from VK_FALSE to VK_TRUE. */
    VkBool32 *raised[QI_VULKAN_MAX_RAISED];
    uint32_t raised_count;
    VkPhysicalDeviceFeatures2 features; /* the structs below are chained to it if available */
    VkPhysicalDeviceBufferDeviceAddressFeatures address;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceMemoryPriorityFeaturesEXT priority;
    VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT pageable;
    qi_vulkan_zero_features zero;

    PFN_vkEnumerateInstanceExtensionProperties list_instance_extensions;
    PFN_vkEnumeratePhysicalDevices list_devices;
    PFN_vkEnumerateDeviceExtensionProperties list_device_extensions;
    PFN_vkGetPhysicalDeviceProperties get_properties;
    PFN_vkGetPhysicalDeviceFeatures2 get_features;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties get_families;
    PFN_vkCreateDevice create_device;
    PFN_vkDestroyDevice destroy_device;
    PFN_vkGetDeviceQueue get_queue;
};

/* Creates an instance of version 1.1 to 1.3, or 1.4 if the chain has its features, and a messenger
   if there is a log. */
QUIRE_MUST_USE quire_result qi_vulkan_open_instance(opening *o);

/* Selects a physical device and creates a device with its queues. */
QUIRE_MUST_USE quire_result qi_vulkan_open_device(opening *o);

#endif
