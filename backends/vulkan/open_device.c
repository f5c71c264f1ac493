/*
 * open_device.c - a device of quire's own: its queues, and every feature and extension that the
 * backend uses and the physical device has, and those of the program.
 */
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

/* ---- extensions ------------------------------------------------------------------------------ */

/* Takes the extensions that the backend uses. A later version contains some of them. */
static void take_extensions(qi_vulkan_extensions *e, uint32_t version)
{
    static const char *const plain[] = {
        VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
        VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
        "VK_KHR_external_memory_win32",
        QI_VULKAN_ZERO_EXTENSION,
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
        if (!qi_vulkan_has_old_addresses(e))
            qi_vulkan_extensions_take(e, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
        qi_vulkan_extensions_take(e, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    }
    if (version < VK_API_VERSION_1_3)
        qi_vulkan_extensions_take(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
}

/* ---- the device ------------------------------------------------------------------------------ */

static quire_result create_device(opening *o, const char *name)
{
    o->device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    o->device_info.enabledExtensionCount = o->of_device.taken_count;
    o->device_info.ppEnabledExtensionNames = o->of_device.taken;
    VkDevice device = NULL;
    VkResult code =
        o->create_device(o->physical_device, &o->device_info, o->vulkan->callbacks, &device);
    if (code == VK_ERROR_FEATURE_NOT_PRESENT && o->options->chain)
        return qi_vulkan_refuse_features(o, name);
    if (code)
        return qi_vulkan_fail(code, "vkCreateDevice on '%s'", name);
    o->vulkan->own_device = device;
    o->vulkan->destroy_device = o->destroy_device;
    return QUIRE_SUCCESS;
}

/* The extensions determine the features, and the features the queues. */
static quire_result choose(opening *o, const char *name)
{
    const quire_vulkan_options *options = o->options;
    quire_result result = qi_vulkan_extensions_read(o, o->physical_device,
                                                    options->device_extension_count, &o->of_device);
    if (!result)
        result = qi_vulkan_extensions_require(&o->of_device, options->device_extensions,
                                              options->device_extension_count, name);
    if (result)
        return result;
    take_extensions(&o->of_device, o->device_version);
    result = qi_vulkan_choose_features(o);
    return result ? result : qi_vulkan_choose_queues(o);
}

/* The device has the lower of the two versions of instance and physical device. */
quire_result qi_vulkan_open_device(opening *o)
{
    VkPhysicalDeviceProperties properties;
    quire_result result = load_functions(o);
    if (!result)
        result = qi_vulkan_select(o);
    if (result)
        return result;
    o->get_properties(o->physical_device, &properties);
    o->device_version = properties.apiVersion < o->version ? properties.apiVersion : o->version;
    result = choose(o, properties.deviceName);
    return result ? result : create_device(o, properties.deviceName);
}
