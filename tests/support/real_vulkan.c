/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * real_vulkan.c - see real_vulkan.h.
 */
#include "tests/support/real_vulkan.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/vulkan/functions.h"
#include "tests/support/valgrind.h"

static const char *const LAYER = "VK_LAYER_KHRONOS_validation";

static const char *const INSTANCE_EXTENSIONS[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                                  VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
/* Enabled if the driver has them; a test that needs one calls real_require first. */
static const char *const DEVICE_EXTENSIONS[REAL_MOST_EXTENSIONS] = {
    VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
    VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
    VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME,
    "VK_KHR_portability_subset", /* must be enabled if it exists */
};

PFN_vkVoidFunction real_function(const real_vulkan *r, const char *name)
{
    PFN_vkVoidFunction found = r->get(r->instance, name);
    if (!found)
        check_failed(__FILE__, __LINE__, "the loader has no %s", name);
    return found;
}

/* Best practices that quire does not follow, each with its reason. */
static const char *const ALLOWED[] = {
    /* the layer does not know the caller's commands before and after a copy */
    "BestPractices-pipeline-stage-flags",
    /* version 1.4.309 reports this for every device with pEnabledFeatures, even after the right
       calls */
    "BestPractices-vkCreateDevice-physical-device-features-not-retrieved",
};

static VKAPI_ATTR VkBool32 VKAPI_CALL hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                           VkDebugUtilsMessageTypeFlagsEXT types,
                                           const VkDebugUtilsMessengerCallbackDataEXT *data,
                                           void *user)
{
    real_vulkan *r = user;
    (void)severity;
    (void)types;
    const char *id = data->pMessageIdName ? data->pMessageIdName : "";
    for (size_t i = 0; r->best_practices && i < sizeof ALLOWED / sizeof *ALLOWED; i++)
        if (strstr(id, ALLOWED[i]))
            return VK_FALSE;
    if (!r->messages++) /* newer layers put the id only next to the text */
        snprintf(r->first, sizeof r->first, "%s: %s", id, data->pMessage);
    return VK_FALSE;
}

static void lock_queue(void *user)
{
    real_vulkan *r = user;
    pthread_mutex_lock(&r->queue_mutex);
    r->locked++;
}

static void unlock_queue(void *user)
{
    real_vulkan *r = user;
    pthread_mutex_unlock(&r->queue_mutex);
}

static bool has_layer(const real_vulkan *r)
{
    VkLayerProperties layers[32];
    uint32_t count = 32;
    PFN_vkEnumerateInstanceLayerProperties list =
        (PFN_vkEnumerateInstanceLayerProperties)r->get(NULL, "vkEnumerateInstanceLayerProperties");
    if (!list || list(&count, layers) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(layers[i].layerName, LAYER))
            return true;
    return false;
}

static void make_instance(real_vulkan *r)
{
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
        VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
    const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = r->best_practices ? 2 : 1,
        .pEnabledValidationFeatures = enables,
    };
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)r->get(NULL, "vkCreateInstance");
    r->application = (VkApplicationInfo){.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .apiVersion = VK_API_VERSION_1_3};
    r->instance_info = (VkInstanceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = &features,
        .pApplicationInfo = &r->application,
        .enabledLayerCount = 1,
        .ppEnabledLayerNames = &LAYER,
        .enabledExtensionCount = 2,
        .ppEnabledExtensionNames = INSTANCE_EXTENSIONS,
    };
    if (!create || create(&r->instance_info, NULL, &r->instance)) {
        const char *manifest = getenv("VK_ICD_FILENAMES");
        unit_skip("no Vulkan instance can be created from %s",
                  manifest ? manifest : "the default drivers");
    }
    r->instance_info.pNext = NULL;
    const VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = hear,
        .pUserData = r,
    };
    CHECK_EQ(REAL(r, vkCreateDebugUtilsMessengerEXT)(r->instance, &info, NULL, &r->messenger), 0);
}

/* A feature of a core version is enabled as an extension only on older versions. */
static bool is_core(const real_vulkan *r, const char *extension)
{
    return VK_API_VERSION_MINOR(r->properties.apiVersion) >= 2 &&
           !strcmp(extension, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
}

static void choose_extensions(real_vulkan *r)
{
    uint32_t count = 0;
    PFN_vkEnumerateDeviceExtensionProperties list = REAL(r, vkEnumerateDeviceExtensionProperties);
    CHECK_EQ(list(r->physical_device, NULL, &count, NULL), 0);
    VkExtensionProperties *has = calloc(count, sizeof *has);
    CHECK(has || !count);
    CHECK_EQ(list(r->physical_device, NULL, &count, has), 0);
    for (int i = 0; i < REAL_MOST_EXTENSIONS; i++)
        for (uint32_t j = 0; j < count; j++)
            if (!strcmp(DEVICE_EXTENSIONS[i], has[j].extensionName) &&
                !is_core(r, DEVICE_EXTENSIONS[i]))
                r->extensions[r->device_info.enabledExtensionCount++] = DEVICE_EXTENSIONS[i];
    free(has);
}

void real_require(const real_vulkan *r, const char *extension)
{
    for (uint32_t i = 0; i < r->device_info.enabledExtensionCount; i++)
        if (!strcmp(r->extensions[i], extension))
            return;
    unit_skip("%s has no %s", r->properties.deviceName, extension);
}

/* Returns the family for sparse objects: 0 if it can bind them or no family can. */
static uint32_t find_sparse_family(const real_vulkan *r)
{
    VkQueueFamilyProperties families[16];
    uint32_t count = 0;
    REAL(r, vkGetPhysicalDeviceQueueFamilyProperties)(r->physical_device, &count, NULL);
    count = count < 16 ? count : 16;
    REAL(r, vkGetPhysicalDeviceQueueFamilyProperties)(r->physical_device, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT)
            return i;
    return 0;
}

static void make_device(real_vulkan *r)
{
    static const float priority = 1;
    const uint32_t sparse_family = find_sparse_family(r);
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    VkDeviceQueueCreateInfo queues[] = {queue, queue};
    queues[1].queueFamilyIndex = sparse_family;
    r->timeline = (VkPhysicalDeviceTimelineSemaphoreFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    r->maintenance4 = (VkPhysicalDeviceMaintenance4Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES,
        .pNext = &r->timeline,
    };
    r->address = (VkPhysicalDeviceBufferDeviceAddressFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .pNext = &r->maintenance4,
    };
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &r->address};
    REAL(r, vkGetPhysicalDeviceFeatures2)(r->physical_device, &features);
    r->address.bufferDeviceAddressCaptureReplay = VK_FALSE;
    r->features = (VkPhysicalDeviceFeatures){
        .sparseBinding = features.features.sparseBinding,
        .sparseResidencyBuffer = features.features.sparseResidencyBuffer,
        .sparseResidencyImage2D = features.features.sparseResidencyImage2D,
    };
    r->device_info = (VkDeviceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &r->address,
        .queueCreateInfoCount = sparse_family ? 2 : 1,
        .pQueueCreateInfos = queues,
        .ppEnabledExtensionNames = r->extensions,
        .pEnabledFeatures = &r->features,
    };
    choose_extensions(r);
    CHECK_EQ(REAL(r, vkCreateDevice)(r->physical_device, &r->device_info, NULL, &r->device), 0);
    r->device_info.queueCreateInfoCount = 0; /* `queues` ends here; quire does not read them */
    r->device_info.pQueueCreateInfos = NULL;
    REAL(r, vkGetDeviceQueue)(r->device, 0, 0, &r->queue);
    if (!sparse_family)
        return;
    r->sparse_queue = (quire_vulkan_queue){
        .family = sparse_family, .lock = lock_queue, .unlock = unlock_queue, .user = r};
    REAL(r, vkGetDeviceQueue)(r->device, sparse_family, 0, &r->sparse_queue.queue);
}

static void begin(real_vulkan *r, bool best_practices)
{
    uint32_t count = 0;
    memset(r, 0, sizeof *r);
    r->best_practices = best_practices;
    pthread_mutex_init(&r->queue_mutex, NULL);
    if (under_valgrind())
        unit_skip("valgrind finds what drivers and layers leak");
    r->get = qi_vulkan_find_loader();
    if (!r->get)
        unit_skip("there is no Vulkan loader");
    if (!has_layer(r))
        unit_skip("there is no validation layer");
    make_instance(r);
    VkResult code = REAL(r, vkEnumeratePhysicalDevices)(r->instance, &count, NULL);
    count = count > 1 ? 1 : count;
    if (!code && count)
        code = REAL(r, vkEnumeratePhysicalDevices)(r->instance, &count, &r->physical_device);
    if (code < 0 || !count) {
        REAL(r, vkDestroyDebugUtilsMessengerEXT)(r->instance, r->messenger, NULL);
        REAL(r, vkDestroyInstance)(r->instance, NULL);
        unit_skip("there is no Vulkan device");
    }
    REAL(r, vkGetPhysicalDeviceProperties)(r->physical_device, &r->properties);
    make_device(r);
    r->wrap = (quire_vulkan_wrap_options){
        .instance = r->instance,
        .physical_device = r->physical_device,
        .device = r->device,
        .get_instance_proc_addr = r->get,
        .instance_info = &r->instance_info,
        .device_info = &r->device_info,
        .queue = {.queue = r->queue, .lock = lock_queue, .unlock = unlock_queue, .user = r},
        .sparse_queue = r->sparse_queue,
        .settings = {.device = {.host_memory = unit_memory()}},
    };
}

void real_begin(real_vulkan *r)
{
    begin(r, false);
}

void real_begin_strict(real_vulkan *r)
{
    begin(r, true);
}

void real_wrap(real_vulkan *r)
{
    CHECK_OK(quire_vulkan_wrap(&r->wrap, &r->quire));
}

void real_begin_wrapped(real_vulkan *r)
{
    real_begin(r);
    real_wrap(r);
}

void real_end(real_vulkan *r)
{
    CHECK_OK(quire_device_destroy(&r->quire));
    REAL(r, vkDestroyDevice)(r->device, NULL);
    REAL(r, vkDestroyDebugUtilsMessengerEXT)(r->instance, r->messenger, NULL);
    REAL(r, vkDestroyInstance)(r->instance, NULL);
    pthread_mutex_destroy(&r->queue_mutex);
    if (r->messages)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " messages, the first: %s", r->messages,
                     r->first);
}

quire_memory *real_memory(real_vulkan *r, const quire_memory_options *options)
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(r->quire, options, &memory));
    return memory;
}

void real_memory_end(quire_memory *memory)
{
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_destroy(&memory));
}
