/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * open.c - an instance and a device of quire's own: selects the physical device, and enables
 * every feature and extension that the backend uses and the physical device has, and those of the
 * program.
 */
#include "backends/vulkan/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/functions.h"
#include "backends/vulkan/queues.h"
#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/text.h"

/* ---- functions by name -------------------------------------------------------------------- */

/* Loads a function that needs no device. UNSUPPORTED: the loader does not have it. */
static quire_result load_function(const opening *o, VkInstance instance, const char *name,
                                  PFN_vkVoidFunction *out)
{
    *out = o->get_instance(instance, name);
    return *out ? QUIRE_SUCCESS
                : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "the Vulkan loader has no %s", name);
}

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
        result = load_function(o, o->vulkan->own_instance, table[i].name, table[i].target);
    return result;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* The messenger's callback. `user` is the log. VK_FALSE lets the call continue that caused the
   message. */
static VKAPI_ATTR VkBool32 VKAPI_CALL write_message(
    VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
    const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)types;
    quire_log_level level = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
                                ? QUIRE_LOG_ERROR
                                : QUIRE_LOG_WARNING;
    const char *text = data->pMessage ? data->pMessage : "(no message)";
    const char *id = data->pMessageIdName ? data->pMessageIdName : "";
    /* Old validation layers put the message id into the text, new ones do not. */
    const char *missing = strstr(text, id) ? "" : id;
    qi_log_message(user, level, "vulkan", missing, text);
    return VK_FALSE;
}

/* Creates a messenger that writes errors and warnings to the device's log. A failure loses only
   these messages, so it is not reported. */
static void create_messenger(opening *o)
{
    qi_vulkan *vulkan = o->vulkan;
    PFN_vkCreateDebugUtilsMessengerEXT create = (PFN_vkCreateDebugUtilsMessengerEXT)o->get_instance(
        vulkan->own_instance, "vkCreateDebugUtilsMessengerEXT");
    vulkan->destroy_messenger = (PFN_vkDestroyDebugUtilsMessengerEXT)o->get_instance(
        vulkan->own_instance, "vkDestroyDebugUtilsMessengerEXT");
    if (!create || !vulkan->destroy_messenger)
        return;
    vulkan->log = qi_host_allocate(&vulkan->host, 1, sizeof *vulkan->log);
    if (!vulkan->log)
        return;
    *vulkan->log = o->log;
    const VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = write_message,
        .pUserData = vulkan->log,
    };
    if (create(vulkan->own_instance, &info, vulkan->callbacks, &vulkan->messenger))
        vulkan->messenger = VK_NULL_HANDLE;
}

/* ---- the instance ------------------------------------------------------------------------- */

/* The backend uses nothing of later versions; the program may use the features of 1.4. */
static uint32_t newest_version(const opening *o)
{
    for (const VkBaseInStructure *link = o->options->chain; link; link = link->pNext)
        if (link->sType == QI_VULKAN_FEATURES_1_4)
            return QI_VULKAN_VERSION_1_4;
    return VK_API_VERSION_1_3;
}

/* Without vkEnumerateInstanceVersion the loader is of Vulkan 1.0. */
static quire_result find_version(opening *o)
{
    PFN_vkEnumerateInstanceVersion enumerate =
        (PFN_vkEnumerateInstanceVersion)o->get_instance(NULL, "vkEnumerateInstanceVersion");
    uint32_t version = VK_API_VERSION_1_0;
    if (enumerate && enumerate(&version))
        version = VK_API_VERSION_1_0;
    if (version < VK_API_VERSION_1_1)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the Vulkan loader has version 1.0: the "
                                                "backend needs 1.1");
    uint32_t newest = newest_version(o);
    o->version = version < newest ? version : newest;
    return QUIRE_SUCCESS;
}

/* Portability drivers, MoltenVK for example, are listed only if the instance asks for them. */
static quire_result create_instance(opening *o, qi_vulkan_extensions *e)
{
    PFN_vkVoidFunction create = NULL;
    quire_result result = load_function(o, NULL, "vkCreateInstance", &create);
    if (result)
        return result;
    result =
        qi_vulkan_extensions_require(e, o->options->instance_extensions,
                                     o->options->instance_extension_count, "the Vulkan loader");
    if (result)
        return result;
    o->has_messages =
        o->log.write && qi_vulkan_extensions_take(e, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    bool is_portable = qi_vulkan_extensions_take(e, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    o->application = (VkApplicationInfo){
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "quire",
        .apiVersion = o->version,
    };
    o->instance_info = (VkInstanceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .flags = is_portable ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
        .pApplicationInfo = &o->application,
        .enabledExtensionCount = e->taken_count,
        .ppEnabledExtensionNames = e->taken,
    };
    VkInstance instance = NULL; /* undefined after a failure */
    VkResult code =
        ((PFN_vkCreateInstance)create)(&o->instance_info, o->vulkan->callbacks, &instance);
    if (code)
        return qi_vulkan_fail(code, "vkCreateInstance");
    o->vulkan->own_instance = instance;
    qi_vulkan_keep_driver();
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_open_instance(opening *o)
{
    PFN_vkVoidFunction list = NULL, destroy = NULL;
    quire_result result = find_version(o);
    if (!result)
        result = load_function(o, NULL, "vkEnumerateInstanceExtensionProperties", &list);
    if (result)
        return result;
    o->list_instance_extensions = (PFN_vkEnumerateInstanceExtensionProperties)list;
    result =
        qi_vulkan_extensions_read(o, NULL, o->options->instance_extension_count, &o->of_instance);
    if (!result)
        result = create_instance(o, &o->of_instance);
    if (result)
        return result;
    result = load_function(o, o->vulkan->own_instance, "vkDestroyInstance", &destroy);
    o->vulkan->destroy_instance = (PFN_vkDestroyInstance)destroy;
    if (!result && o->has_messages)
        create_messenger(o);
    return result;
}

/* ---- the physical device ------------------------------------------------------------------ */

enum { MAX_DEVICES = 64, NONE = -1 };

/* Ranks the device types. A lower rank is better. */
static int rank_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return 2;
    default:
        return 3;
    }
}

/* Fails with a list of the devices that exist. */
static quire_result refuse(const opening *o, const VkPhysicalDevice *devices, uint32_t count)
{
    char list[512] = "none";
    size_t length = 0;
    for (uint32_t i = 0; i < count && length < sizeof list; i++) {
        VkPhysicalDeviceProperties p;
        o->get_properties(devices[i], &p);
        int more = snprintf(list + length, sizeof list - length, "%s%u '%s' (Vulkan %u.%u)",
                            length ? ", " : "", i, p.deviceName, VK_API_VERSION_MAJOR(p.apiVersion),
                            VK_API_VERSION_MINOR(p.apiVersion));
        length += more > 0 ? (size_t)more : 0;
    }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "no device with Vulkan 1.1 and with memory matches '%s'; available: %s",
                        o->wanted ? o->wanted : "", list);
}

/* Some drivers list devices whose hardware is absent. These have no memory types. */
static bool has_memory(const opening *o, VkPhysicalDevice device)
{
    PFN_vkGetPhysicalDeviceMemoryProperties get =
        (PFN_vkGetPhysicalDeviceMemoryProperties)o->get_instance(
            o->vulkan->own_instance, "vkGetPhysicalDeviceMemoryProperties");
    VkPhysicalDeviceMemoryProperties memory = {.memoryTypeCount = 0};
    if (get)
        get(device, &memory);
    return memory.memoryTypeCount && memory.memoryHeapCount;
}

/* The first device of the best type among those that the caller wants. UNSUPPORTED lists the
   devices that exist. */
static quire_result select_device(opening *o)
{
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t count = MAX_DEVICES;
    VkResult code = o->list_devices(o->vulkan->own_instance, &count, devices);
    if (code && code != VK_INCOMPLETE)
        return qi_vulkan_fail(code, "vkEnumeratePhysicalDevices");
    int best = NONE, best_rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties p;
        o->get_properties(devices[i], &p);
        int rank = rank_of(p.deviceType);
        bool is_better = best == NONE || rank < best_rank;
        if (p.apiVersion < VK_API_VERSION_1_1 || !qi_is_wanted(o->wanted, i, p.deviceName) ||
            !is_better || !has_memory(o, devices[i]))
            continue;
        best = (int)i;
        best_rank = rank;
    }
    if (best == NONE)
        return refuse(o, devices, count);
    o->physical_device = devices[best];
    return QUIRE_SUCCESS;
}

/* ---- extensions of the device ------------------------------------------------------------- */

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

/* ---- the device --------------------------------------------------------------------------- */

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
        result = select_device(o);
    if (result)
        return result;
    o->get_properties(o->physical_device, &properties);
    o->device_version = properties.apiVersion < o->version ? properties.apiVersion : o->version;
    result = choose(o, properties.deviceName);
    return result ? result : create_device(o, properties.deviceName);
}
