/*
 * open.h - what opening a device goes by; the parts of open.c and select.c.
 */
#ifndef QUIRE_BACKENDS_VULKAN_OPEN_H
#define QUIRE_BACKENDS_VULKAN_OPEN_H

#include "backends/vulkan/vulkan.h"

enum { QI_VULKAN_MOST_EXTENSIONS = 16, QI_VULKAN_MOST_FAMILIES = 32 };

/* Lives during quire_vulkan_open. The infos stay as they were used, for qi_vulkan_make to read. */
typedef struct opening {
    qi_vulkan *vulkan;
    const quire_vulkan_settings *settings;
    quire_log log;
    PFN_vkGetInstanceProcAddr get_instance;
    const char *wanted; /* index or part of the name; NULL: the best */
    uint32_t version;   /* of instance and device */
    bool has_messages;

    VkApplicationInfo application;
    VkInstanceCreateInfo instance_info;
    const char *instance_extensions[QI_VULKAN_MOST_EXTENSIONS];

    VkPhysicalDevice physical_device;
    uint32_t family;
    VkDeviceQueueCreateInfo queue_info;
    VkDeviceCreateInfo device_info;
    const char *device_extensions[QI_VULKAN_MOST_EXTENSIONS];
    VkPhysicalDeviceFeatures2 features; /* and what is chained to it where the device has it: */
    VkPhysicalDeviceBufferDeviceAddressFeatures address;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceMemoryPriorityFeaturesEXT priority;
    VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT pageable;

    PFN_vkEnumerateInstanceExtensionProperties list_instance_extensions;
    PFN_vkEnumeratePhysicalDevices list_devices;
    PFN_vkEnumerateDeviceExtensionProperties list_device_extensions;
    PFN_vkGetPhysicalDeviceProperties get_properties;
    PFN_vkGetPhysicalDeviceFeatures2 get_features;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties get_families;
    PFN_vkCreateDevice create_device;
    PFN_vkDestroyDevice destroy_device;
    PFN_vkGetDeviceQueue get_queue;
} opening;

/* Sets physical_device to what is wanted. UNSUPPORTED says what there is. */
QUIRE_MUST_USE quire_result qi_vulkan_select(opening *o);

/* A family that computes, and so transfers too. */
QUIRE_MUST_USE quire_result qi_vulkan_find_family(const opening *o, uint32_t *family);

#endif
