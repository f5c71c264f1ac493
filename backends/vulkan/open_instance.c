/*
 * open_instance.c - an instance of quire's own, and the messenger that forwards the messages of
 * layers and drivers to the device's log.
 */
#include <string.h>

#include "backends/vulkan/loader.h"
#include "backends/vulkan/open.h"
#include "backends/vulkan/result.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* The backend uses nothing of later versions; the program may use the features of 1.4. */
static uint32_t newest_version(const opening *o)
{
    for (const VkBaseInStructure *link = o->options->chain; link; link = link->pNext)
        if (link->sType == QI_VULKAN_FEATURES_1_4)
            return QI_VULKAN_VERSION_1_4;
    return VK_API_VERSION_1_3;
}

/* ---- messages -------------------------------------------------------------------------------- */

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

/* ---- the instance ---------------------------------------------------------------------------- */

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
    quire_result result = qi_vulkan_load_instance_function(o, NULL, "vkCreateInstance", &create);
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
        result = qi_vulkan_load_instance_function(o, NULL, "vkEnumerateInstanceExtensionProperties",
                                                  &list);
    if (result)
        return result;
    o->list_instance_extensions = (PFN_vkEnumerateInstanceExtensionProperties)list;
    result =
        qi_vulkan_extensions_read(o, NULL, o->options->instance_extension_count, &o->of_instance);
    if (!result)
        result = create_instance(o, &o->of_instance);
    if (result)
        return result;
    result =
        qi_vulkan_load_instance_function(o, o->vulkan->own_instance, "vkDestroyInstance", &destroy);
    o->vulkan->destroy_instance = (PFN_vkDestroyInstance)destroy;
    if (!result && o->has_messages)
        create_messenger(o);
    return result;
}
