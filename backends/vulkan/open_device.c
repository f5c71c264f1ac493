/*
 * open_device.c - a device of quire's own: one queue that can compute, and every feature and
 * extension that the backend uses and the physical device has.
 */
#include <string.h>

#include "backends/vulkan/open.h"
#include "backends/vulkan/result.h"
#include "src/base/result.h"

/* Loads the functions that select a device and create it. */
static quire_result load_functions(opening *o)
{
    const struct {
        const char *name;
        PFN_vkVoidFunction *target;
    } table[] = {
        {"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction *)&o->list_devices},
        {"vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction *)&o->list_device_extensions},
        {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction *)&o->get_properties},
        {"vkGetPhysicalDeviceFeatures2", (PFN_vkVoidFunction *)&o->get_features},
        {"vkGetPhysicalDeviceQueueFamilyProperties", (PFN_vkVoidFunction *)&o->get_families},
        {"vkCreateDevice", (PFN_vkVoidFunction *)&o->create_device},
        {"vkDestroyDevice", (PFN_vkVoidFunction *)&o->destroy_device},
        {"vkGetDeviceQueue", (PFN_vkVoidFunction *)&o->get_queue},
    };
    quire_result result = QUIRE_SUCCESS;
    for (size_t i = 0; i < sizeof table / sizeof *table && !result; i++)
        result = qi_vulkan_load_instance_function(o, o->vulkan->own_instance, table[i].name,
                                                  table[i].target);
    return result;
}

/* Finds a queue family that computes. Such a family also transfers. */
static quire_result find_family(const opening *o, uint32_t *family)
{
    VkQueueFamilyProperties families[QI_VULKAN_MAX_FAMILIES];
    uint32_t count = 0;
    o->get_families(o->physical_device, &count, NULL);
    count = count < QI_VULKAN_MAX_FAMILIES ? count : QI_VULKAN_MAX_FAMILIES;
    o->get_families(o->physical_device, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT && families[i].queueCount) {
            *family = i;
            return QUIRE_SUCCESS;
        }
    return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the device has no queue family that supports compute");
}

/* ---- extensions and features ----------------------------------------------------------------- */

/* Takes the extensions that the backend uses. A later version contains some of them. */
static void take_extensions(qi_vulkan_extensions *e, uint32_t version)
{
    static const char *const plain[] = {
        VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
        VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
        "VK_KHR_external_memory_win32",
        "VK_KHR_portability_subset",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        qi_vulkan_extensions_take(e, plain[i]);
    /* The next extensions depend on others. */
    if (qi_vulkan_extensions_offer(e, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
        qi_vulkan_extensions_take(e, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    if (qi_vulkan_extensions_take(e, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        qi_vulkan_extensions_take(e, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
    if (version < VK_API_VERSION_1_2) {
        qi_vulkan_extensions_take(e, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
        qi_vulkan_extensions_take(e, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    }
    if (version < VK_API_VERSION_1_3)
        qi_vulkan_extensions_take(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
}

/* Puts a struct in front of the features' pNext chain. */
static void chain(opening *o, void *link, VkStructureType type)
{
    VkBaseOutStructure *added = link;
    added->sType = type;
    added->pNext = o->features.pNext;
    o->features.pNext = added;
}

/* Queries the features that the backend uses. vkCreateDevice then receives the same structs and
   enables what they report, except for the features that cost speed or are of no use here. */
static void choose_features(opening *o, const qi_vulkan_extensions *e, uint32_t version)
{
    o->features =
        (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    if (version >= VK_API_VERSION_1_2 ||
        qi_vulkan_extensions_has_taken(e, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME))
        chain(o, &o->address, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
    if (version >= VK_API_VERSION_1_2 ||
        qi_vulkan_extensions_has_taken(e, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
        chain(o, &o->timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    if (version >= VK_API_VERSION_1_3 ||
        qi_vulkan_extensions_has_taken(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
        chain(o, &o->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    if (qi_vulkan_extensions_has_taken(e, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        chain(o, &o->priority, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
    if (qi_vulkan_extensions_has_taken(e, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME))
        chain(o, &o->pageable,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT);
    o->get_features(o->physical_device, &o->features);
    o->features.features.robustBufferAccess = VK_FALSE;
    o->address.bufferDeviceAddressCaptureReplay = VK_FALSE;
    o->address.bufferDeviceAddressMultiDevice = VK_FALSE;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* The device has the lower of the two versions of instance and physical device. */
static quire_result create_device(opening *o, qi_vulkan_extensions *e)
{
    static const float priority = 1;
    VkPhysicalDeviceProperties properties;
    o->get_properties(o->physical_device, &properties);
    uint32_t version = properties.apiVersion < o->version ? properties.apiVersion : o->version;
    take_extensions(e, version);
    choose_features(o, e, version);
    memcpy(o->device_extensions, e->taken, sizeof e->taken);
    o->queue_info = (VkDeviceQueueCreateInfo){
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = o->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    o->device_info = (VkDeviceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &o->features,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &o->queue_info,
        .enabledExtensionCount = e->taken_count,
        .ppEnabledExtensionNames = o->device_extensions,
    };
    VkDevice device = NULL;
    VkResult code =
        o->create_device(o->physical_device, &o->device_info, o->vulkan->callbacks, &device);
    if (code)
        return qi_vulkan_fail(code, "vkCreateDevice on '%s'", properties.deviceName);
    o->vulkan->own_device = device;
    o->vulkan->destroy_device = o->destroy_device;
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_open_device(opening *o)
{
    qi_vulkan_extensions extensions = {.offered = NULL};
    quire_result result = load_functions(o);
    if (!result)
        result = qi_vulkan_select(o);
    if (!result)
        result = find_family(o, &o->family);
    if (!result)
        result = qi_vulkan_extensions_read(o, o->physical_device, &extensions);
    if (result)
        return result;
    result = create_device(o, &extensions);
    qi_vulkan_extensions_release(o, &extensions);
    return result;
}
