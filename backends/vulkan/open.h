/*
 * open.h - creates an instance and a device of quire's own, for quire_vulkan_open.
 *
 * Layers, lowest first: open_extensions.c, then open_instance.c, open_select.c and open_device.c.
 */
#ifndef QUIRE_BACKENDS_VULKAN_OPEN_H
#define QUIRE_BACKENDS_VULKAN_OPEN_H

#include "backends/vulkan/vulkan.h"

enum { QI_VULKAN_MAX_EXTENSIONS = 16, QI_VULKAN_MAX_FAMILIES = 32 };

/*
 * What quire_vulkan_open needs while it runs. The create infos keep the values that they were used
 * with, because the backend reads from them what is enabled. Everything that is created is stored
 * in `vulkan` immediately, so that after a failure the caller destroys it with the state.
 */
typedef struct opening {
    qi_vulkan *vulkan;
    const quire_vulkan_settings *settings;
    quire_log log;
    PFN_vkGetInstanceProcAddr get_instance;
    const char *wanted; /* index or part of the name of a device; NULL: the best */
    uint32_t version;   /* of the instance, and the maximum of the device */
    bool has_messages;  /* VK_EXT_debug_utils is enabled */

    VkApplicationInfo application;
    VkInstanceCreateInfo instance_info;
    const char *instance_extensions[QI_VULKAN_MAX_EXTENSIONS];

    VkPhysicalDevice physical_device;
    uint32_t family; /* queue family */
    VkDeviceQueueCreateInfo queue_info;
    VkDeviceCreateInfo device_info;
    const char *device_extensions[QI_VULKAN_MAX_EXTENSIONS];
    VkPhysicalDeviceFeatures2 features; /* the structs below are chained to it if available */
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

/* ---- open_extensions.c ----------------------------------------------------------------------- */

/* The extensions that the loader or a driver offers, and those that quire enables. */
typedef struct qi_vulkan_extensions {
    VkExtensionProperties *offered;
    uint32_t offered_count;
    uint32_t capacity; /* of `offered` */
    const char *taken[QI_VULKAN_MAX_EXTENSIONS];
    uint32_t taken_count;
} qi_vulkan_extensions;

/* Lists the extensions of a device, or of the loader if `device` is NULL. */
QUIRE_MUST_USE quire_result qi_vulkan_extensions_read(opening *o, VkPhysicalDevice device,
                                                      qi_vulkan_extensions *extensions);
void qi_vulkan_extensions_release(opening *o, qi_vulkan_extensions *extensions);

bool qi_vulkan_extensions_offer(const qi_vulkan_extensions *extensions, const char *name);

/* Enables an extension if it is offered, and returns whether it is. */
bool qi_vulkan_extensions_take(qi_vulkan_extensions *extensions, const char *name);
bool qi_vulkan_extensions_has_taken(const qi_vulkan_extensions *extensions, const char *name);

/* Loads a function that needs no device. UNSUPPORTED: the loader does not have it. */
QUIRE_MUST_USE quire_result qi_vulkan_load_instance_function(const opening *o, VkInstance instance,
                                                             const char *name,
                                                             PFN_vkVoidFunction *out);

/* ---- open_instance.c ------------------------------------------------------------------------- */

/* Creates an instance of version 1.1 to 1.3, and a messenger if there is a log. */
QUIRE_MUST_USE quire_result qi_vulkan_open_instance(opening *o);

/* ---- open_select.c --------------------------------------------------------------------------- */

/* Sets physical_device to the wanted one. UNSUPPORTED lists the devices that exist. */
QUIRE_MUST_USE quire_result qi_vulkan_select(opening *o);

/* ---- open_device.c --------------------------------------------------------------------------- */

/* Selects a physical device and creates a device with one queue that can compute. */
QUIRE_MUST_USE quire_result qi_vulkan_open_device(opening *o);

#endif
