/*
 * open.h - creates an instance and a device of quire's own, for quire_vulkan_open.
 *
 * Layers, lowest first: open_extensions.c, open_known.c, then open_instance.c, open_select.c,
 * open_features.c and open_queues.c, then open_device.c.
 */
#ifndef QUIRE_BACKENDS_VULKAN_OPEN_H
#define QUIRE_BACKENDS_VULKAN_OPEN_H

#include "backends/vulkan/vulkan.h"

enum {
    QI_VULKAN_MAX_EXTENSIONS = 16, /* that quire itself enables */
    QI_VULKAN_MAX_FAMILIES = 32,   /* the bits of a mask */
    QI_VULKAN_MAX_QUEUES = QUIRE_VULKAN_MAX_QUEUES + 2,
    QI_VULKAN_MAX_RAISED = 64, /* more than the features that quire can set in a chain */
};

/* The extensions that the loader or a driver offers, and those that are enabled. */
typedef struct qi_vulkan_extensions {
    VkExtensionProperties *offered;
    uint32_t offered_count;
    uint32_t capacity; /* of `offered` */
    const char **taken;
    uint32_t taken_count, taken_capacity;
} qi_vulkan_extensions;

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
typedef struct opening {
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
} opening;

/* ---- open_extensions.c ----------------------------------------------------------------------- */

/* Lists the extensions of a device, or of the loader if `device` is NULL, with room to take those
   of quire and `further` ones. The caller releases the lists, even after a failure. */
QUIRE_MUST_USE quire_result qi_vulkan_extensions_read(opening *o, VkPhysicalDevice device,
                                                      uint32_t further,
                                                      qi_vulkan_extensions *extensions);
void qi_vulkan_extensions_release(opening *o, qi_vulkan_extensions *extensions);

/* Enables the program's extensions. UNSUPPORTED names all that `owner` does not offer. */
QUIRE_MUST_USE quire_result qi_vulkan_extensions_require(qi_vulkan_extensions *extensions,
                                                         const char *const *names, uint32_t count,
                                                         const char *owner);

bool qi_vulkan_extensions_offer(const qi_vulkan_extensions *extensions, const char *name);

/* Enables an extension if it is offered, and returns whether it is. */
bool qi_vulkan_extensions_take(qi_vulkan_extensions *extensions, const char *name);
bool qi_vulkan_extensions_has_taken(const qi_vulkan_extensions *extensions, const char *name);

/* Whether the program enables VK_EXT_buffer_device_address. Vulkan permits neither
   VK_KHR_buffer_device_address nor the feature of Vulkan 1.2 beside it. */
bool qi_vulkan_has_old_addresses(const qi_vulkan_extensions *extensions);

/* Loads a function that needs no device. UNSUPPORTED: the loader does not have it. */
QUIRE_MUST_USE quire_result qi_vulkan_load_instance_function(const opening *o, VkInstance instance,
                                                             const char *name,
                                                             PFN_vkVoidFunction *out);

/* ---- open_known.c ---------------------------------------------------------------------------- */

/* A struct of features: a header, then VkBool32 members. */
typedef struct qi_vulkan_known {
    VkStructureType type;
    uint32_t version; /* the lowest version of a device that knows it; 0: of an extension */
    const char *name;
    uint32_t count; /* of the members */
    const char *const *members;
} qi_vulkan_known;

/* Returns the description of a struct, or NULL if it is not known. */
const qi_vulkan_known *qi_vulkan_find_known(VkStructureType type);

/* The features of Vulkan 1.4. Headers of 1.3 lack both names. */
#define QI_VULKAN_FEATURES_1_4 ((VkStructureType)55)
#define QI_VULKAN_VERSION_1_4 VK_MAKE_API_VERSION(0, 1, 4, 0)

/* ---- open_instance.c ------------------------------------------------------------------------- */

/* Creates an instance of version 1.1 to 1.3, or 1.4 if the chain has its features, and a messenger
   if there is a log. */
QUIRE_MUST_USE quire_result qi_vulkan_open_instance(opening *o);

/* ---- open_select.c --------------------------------------------------------------------------- */

/* Sets physical_device to the wanted one. UNSUPPORTED lists the devices that exist. */
QUIRE_MUST_USE quire_result qi_vulkan_select(opening *o);

/* ---- open_features.c ------------------------------------------------------------------------- */

/* INVALID_ARGUMENT if a struct occurs twice in the chain of the caller. Needs no device. */
QUIRE_MUST_USE quire_result qi_vulkan_check_chain(const void *chain);

/*
 * Determines the chain of VkDeviceCreateInfo: the structs of quire, then those of the caller, in
 * which it also sets features. UNSUPPORTED names the features in the caller's structs that the
 * device does not have.
 */
QUIRE_MUST_USE quire_result qi_vulkan_choose_features(opening *o);

/* Restores the caller's chain. */
void qi_vulkan_lower_features(opening *o);

/* UNSUPPORTED names the caller's structs in which only the driver can find the missing feature. */
QUIRE_MUST_USE quire_result qi_vulkan_refuse_features(const opening *o, const char *device);

/* ---- open_queues.c --------------------------------------------------------------------------- */

/* Chooses the family of each queue and fills queue_infos. Needs the features. UNSUPPORTED: the
   device does not have a wished queue. */
QUIRE_MUST_USE quire_result qi_vulkan_choose_queues(opening *o);

/* Gets the queues of the device that was created, and stores the further ones in its state. */
void qi_vulkan_get_queues(opening *o, quire_vulkan_queue *queue, quire_vulkan_queue *sparse_queue);

/* ---- open_device.c --------------------------------------------------------------------------- */

/* Selects a physical device and creates a device with its queues. */
QUIRE_MUST_USE quire_result qi_vulkan_open_device(opening *o);

#endif
