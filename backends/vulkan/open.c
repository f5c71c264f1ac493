/*
 * open.c - a device of quire's own: the loader, an instance, the device that the options name, one
 * queue. What it made is kept in the state and ended with it.
 */
#include "backends/vulkan/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/loader.h"
#include "src/base/log.h"
#include "src/base/result.h"

static const char *const DEVICE_VARIABLE = "QUIRE_VULKAN_DEVICE";

/* Newer than this nothing is used of. */
static const uint32_t NEWEST_VERSION = VK_API_VERSION_1_3;

/* ---- names -------------------------------------------------------------------------------- */

/* What a driver or the loader offers, and what is taken of it. */
typedef struct names {
    VkExtensionProperties *offered;
    uint32_t offered_count;
    const char *taken[QI_VULKAN_MOST_EXTENSIONS];
    uint32_t taken_count;
} names;

static bool offers(const names *n, const char *name)
{
    for (uint32_t i = 0; i < n->offered_count; i++)
        if (!strcmp(n->offered[i].extensionName, name))
            return true;
    return false;
}

static bool take(names *n, const char *name)
{
    if (!offers(n, name))
        return false;
    n->taken[n->taken_count++] = name;
    return true;
}

static void release_names(opening *o, names *n, uint32_t room)
{
    qi_host_release(&o->vulkan->host, n->offered, room, sizeof *n->offered);
    n->offered = NULL;
}

/* One of the two functions that list extensions: of the loader, or of a device. */
static VkResult list_extensions(const opening *o, VkPhysicalDevice device, uint32_t *count,
                                VkExtensionProperties *out)
{
    return device ? o->list_device_extensions(device, NULL, count, out)
                  : o->list_instance_extensions(NULL, count, out);
}

/* Fills in what is offered; `room` elements are to be released. */
static quire_result read_names(opening *o, VkPhysicalDevice device, names *n, uint32_t *room)
{
    VkResult code = list_extensions(o, device, room, NULL);
    if (code)
        return qi_vulkan_fail(code, "listing the extensions of Vulkan");
    if (!*room)
        return QUIRE_SUCCESS;
    n->offered = qi_host_allocate(&o->vulkan->host, *room, sizeof *n->offered);
    if (!n->offered)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a list of extensions");
    n->offered_count = *room;
    code = list_extensions(o, device, &n->offered_count, n->offered);
    if (!code || code == VK_INCOMPLETE) /* more came meanwhile */
        return QUIRE_SUCCESS;
    release_names(o, n, *room);
    return qi_vulkan_fail(code, "listing the extensions of Vulkan");
}

/* ---- the instance ------------------------------------------------------------------------- */

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
    /* the texts of newer validation layers do not contain it */
    const char *missing = strstr(text, id) ? "" : id;
    qi_log_message(user, level, "vulkan", missing, text);
    return VK_FALSE;
}

/* Errors and warnings go to the device's log. Where that cannot be had nothing is lost but they. */
static void listen(opening *o)
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

static quire_result find_version(opening *o)
{
    PFN_vkEnumerateInstanceVersion ask =
        (PFN_vkEnumerateInstanceVersion)o->get_instance(NULL, "vkEnumerateInstanceVersion");
    uint32_t version = VK_API_VERSION_1_0;
    if (ask && ask(&version))
        version = VK_API_VERSION_1_0;
    if (version < VK_API_VERSION_1_1)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the Vulkan loader is of version 1.0: 1.1 is the "
                                                "least");
    o->version = version < NEWEST_VERSION ? version : NEWEST_VERSION;
    return QUIRE_SUCCESS;
}

/* Of the functions that need no device. */
static quire_result load(opening *o, VkInstance instance, const char *name, PFN_vkVoidFunction *out)
{
    *out = o->get_instance(instance, name);
    return *out ? QUIRE_SUCCESS
                : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "the Vulkan loader has no %s", name);
}

static quire_result create_instance(opening *o, names *n)
{
    PFN_vkVoidFunction create = NULL;
    quire_result result = load(o, NULL, "vkCreateInstance", &create);
    if (result)
        return result;
    o->has_messages = o->log.write && take(n, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    bool is_portable = take(n, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    o->application = (VkApplicationInfo){
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "quire",
        .apiVersion = o->version,
    };
    memcpy(o->instance_extensions, n->taken, sizeof n->taken);
    o->instance_info = (VkInstanceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .flags = is_portable ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
        .pApplicationInfo = &o->application,
        .enabledExtensionCount = n->taken_count,
        .ppEnabledExtensionNames = o->instance_extensions,
    };
    VkInstance instance = NULL; /* not to be looked at after a failure */
    VkResult code =
        ((PFN_vkCreateInstance)create)(&o->instance_info, o->vulkan->callbacks, &instance);
    if (code)
        return qi_vulkan_fail(code, "vkCreateInstance");
    o->vulkan->own_instance = instance;
    return QUIRE_SUCCESS;
}

static quire_result make_instance(opening *o)
{
    PFN_vkVoidFunction list = NULL, destroy = NULL;
    names n = {.offered = NULL};
    uint32_t room = 0;
    quire_result result = find_version(o);
    if (!result)
        result = load(o, NULL, "vkEnumerateInstanceExtensionProperties", &list);
    if (result)
        return result;
    o->list_instance_extensions = (PFN_vkEnumerateInstanceExtensionProperties)list;
    result = read_names(o, NULL, &n, &room);
    if (result)
        return result;
    result = create_instance(o, &n);
    release_names(o, &n, room);
    if (result)
        return result;
    result = load(o, o->vulkan->own_instance, "vkDestroyInstance", &destroy);
    o->vulkan->destroy_instance = (PFN_vkDestroyInstance)destroy;
    if (!result && o->has_messages)
        listen(o);
    return result;
}

/* ---- the device --------------------------------------------------------------------------- */

static quire_result load_of_instance(opening *o)
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
        result = load(o, o->vulkan->own_instance, table[i].name, table[i].target);
    return result;
}

quire_result qi_vulkan_find_family(const opening *o, uint32_t *family)
{
    VkQueueFamilyProperties families[QI_VULKAN_MOST_FAMILIES];
    uint32_t count = 0;
    o->get_families(o->physical_device, &count, NULL);
    count = count < QI_VULKAN_MOST_FAMILIES ? count : QI_VULKAN_MOST_FAMILIES;
    o->get_families(o->physical_device, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT && families[i].queueCount) {
            *family = i;
            return QUIRE_SUCCESS;
        }
    return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the device has no queue for computing");
}

/* Which of what this backend uses is offered; each is enabled by its own struct. */
static void take_extensions(names *n, uint32_t version)
{
    static const char *const plain[] = {
        VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
        VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
        "VK_KHR_external_memory_win32",
        "VK_KHR_portability_subset",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        take(n, plain[i]);
    if (offers(n, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
        take(n, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    if (take(n, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        take(n, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
    if (version < VK_API_VERSION_1_2) {
        take(n, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
        take(n, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    }
    if (version < VK_API_VERSION_1_3)
        take(n, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
}

static bool is_taken(const names *n, const char *name)
{
    for (uint32_t i = 0; i < n->taken_count; i++)
        if (!strcmp(n->taken[i], name))
            return true;
    return false;
}

static void chain(opening *o, void *link, VkStructureType type)
{
    VkBaseOutStructure *added = link;
    added->sType = type;
    added->pNext = o->features.pNext;
    o->features.pNext = added;
}

/* What the device has of what this backend uses. The same structs enable it afterwards. */
static void choose_features(opening *o, const names *n, uint32_t version)
{
    o->features =
        (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    if (version >= VK_API_VERSION_1_2 || is_taken(n, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME))
        chain(o, &o->address, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
    if (version >= VK_API_VERSION_1_2 || is_taken(n, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
        chain(o, &o->timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
    if (version >= VK_API_VERSION_1_3 || is_taken(n, VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
        chain(o, &o->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
    if (is_taken(n, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        chain(o, &o->priority, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
    if (is_taken(n, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME))
        chain(o, &o->pageable,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT);
    o->get_features(o->physical_device, &o->features);
    o->features.features.robustBufferAccess = VK_FALSE;
    o->address.bufferDeviceAddressCaptureReplay = VK_FALSE;
    o->address.bufferDeviceAddressMultiDevice = VK_FALSE;
}

static quire_result create_device(opening *o, names *n)
{
    static const float priority = 1;
    VkPhysicalDeviceProperties properties;
    o->get_properties(o->physical_device, &properties);
    uint32_t version = properties.apiVersion < o->version ? properties.apiVersion : o->version;
    take_extensions(n, version);
    choose_features(o, n, version);
    memcpy(o->device_extensions, n->taken, sizeof n->taken);
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
        .enabledExtensionCount = n->taken_count,
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

static quire_result make_device(opening *o)
{
    names n = {.offered = NULL};
    uint32_t room = 0;
    quire_result result = qi_vulkan_find_family(o, &o->family);
    if (!result)
        result = read_names(o, o->physical_device, &n, &room);
    if (result)
        return result;
    result = create_device(o, &n);
    release_names(o, &n, room);
    return result;
}

/* ---- opening ------------------------------------------------------------------------------ */

static quire_result make(opening *o, quire_device **device)
{
    quire_result result = make_instance(o);
    if (!result)
        result = load_of_instance(o);
    if (!result)
        result = qi_vulkan_select(o);
    if (!result)
        result = make_device(o);
    if (result)
        return result;
    quire_vulkan_wrap_options options = {
        .instance = o->vulkan->own_instance,
        .physical_device = o->physical_device,
        .device = o->vulkan->own_device,
        .get_instance_proc_addr = o->get_instance,
        .instance_info = &o->instance_info,
        .device_info = &o->device_info,
        .queue = {.family = o->family},
        .settings = *o->settings,
    };
    o->get_queue(o->vulkan->own_device, o->family, 0, &options.queue.queue);
    return qi_vulkan_make(o->vulkan, &options, device);
}

void qi_vulkan_end(qi_vulkan *vulkan)
{
    if (vulkan->own_device)
        vulkan->destroy_device(vulkan->own_device, vulkan->callbacks);
    if (vulkan->messenger)
        vulkan->destroy_messenger(vulkan->own_instance, vulkan->messenger, vulkan->callbacks);
    if (vulkan->own_instance && vulkan->destroy_instance)
        vulkan->destroy_instance(vulkan->own_instance, vulkan->callbacks);
    qi_host host = vulkan->host;
    qi_host_release(&host, vulkan->log, 1, sizeof *vulkan->log);
    qi_host_release(&host, vulkan, 1, sizeof *vulkan);
}

static quire_result open_with(const quire_vulkan_options *options,
                              PFN_vkGetInstanceProcAddr get_instance, quire_device **device)
{
    qi_host host;
    quire_result result = qi_host_init(&host, options->settings.device.host_memory);
    if (result)
        return result;
    qi_vulkan *vulkan = qi_host_allocate(&host, 1, sizeof *vulkan);
    if (!vulkan)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a Vulkan device");
    vulkan->host = host;
    if (options->settings.callbacks) {
        vulkan->callbacks_copy = *options->settings.callbacks;
        vulkan->callbacks = &vulkan->callbacks_copy;
    }
    opening o = {
        .vulkan = vulkan,
        .settings = &options->settings,
        .log = options->settings.device.log,
        .get_instance = get_instance,
        .wanted = options->device ? options->device : getenv(DEVICE_VARIABLE),
    };
    result = make(&o, device);
    if (result)
        qi_vulkan_end(vulkan);
    return result;
}

quire_result quire_vulkan_open(const quire_vulkan_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_open: device is null");
    const quire_vulkan_options resolved =
        options ? *options : (quire_vulkan_options){.device = NULL};
    quire_result result = qi_check_unused(&resolved, "quire_vulkan_options");
    if (!result)
        result = qi_vulkan_check_settings(&resolved.settings);
    if (result)
        return result;
    PFN_vkGetInstanceProcAddr get_instance = resolved.get_instance_proc_addr;
    if (!get_instance)
        get_instance = qi_vulkan_find_loader();
    if (!get_instance)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the system has no Vulkan loader (libvulkan.so.1 or its like)");
    return open_with(&resolved, get_instance, device);
}
