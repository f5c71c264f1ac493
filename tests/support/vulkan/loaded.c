/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * loaded.c - devices through the Vulkan loader: see loaded.h.
 */
#include "tests/support/vulkan/loaded.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/valgrind.h"

#define LAYER "VK_LAYER_KHRONOS_validation"

static PFN_vkGetInstanceProcAddr get;
static bool has_layer;
static char report[] = "/tmp/fake-vulkan-report-XXXXXX";

PFN_vkVoidFunction loaded_function(const loaded *l, const char *name)
{
    PFN_vkVoidFunction found = get(l->instance, name);
    if (!found)
        check_failed(__FILE__, __LINE__, "there is no %s", name);
    return found;
}

/* ---- opening ------------------------------------------------------------------------------ */

static VkBool32 VKAPI_PTR hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                               VkDebugUtilsMessageTypeFlagsEXT types,
                               const VkDebugUtilsMessengerCallbackDataEXT *data, void *state)
{
    loaded *l = state;
    (void)severity, (void)types;
    if (!l->said++) /* newer layers do not repeat the id in the text */
        snprintf(l->first, sizeof l->first, "%s: %s",
                 data->pMessageIdName ? data->pMessageIdName : "", data->pMessage);
    return VK_FALSE;
}

static void open_instance(loaded *l)
{
    const char *layer = LAYER, *debug = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = hear,
        .pUserData = l};
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application,
                                 .enabledLayerCount = has_layer,
                                 .ppEnabledLayerNames = &layer,
                                 .enabledExtensionCount = 1,
                                 .ppEnabledExtensionNames = &debug};
    uint32_t one = 1;
    CHECK_VK(CALL(l, vkCreateInstance)(&info, NULL, &l->instance));
    CHECK_VK(CALL(l, vkCreateDebugUtilsMessengerEXT)(l->instance, &messenger, NULL, &l->messenger));
    CHECK_VK(CALL(l, vkEnumeratePhysicalDevices)(l->instance, &one, &l->physical));
    CHECK_EQ(one, 1);
}

void loaded_open(loaded *l, const char *layout)
{
    *l = (loaded){0};
    CHECK(!setenv("QUIRE_FAKE_LAYOUT", layout, 1));
    open_instance(l);
    VkPhysicalDeviceProperties properties;
    char name[64];
    snprintf(name, sizeof name, "fake %s", layout);
    CALL(l, vkGetPhysicalDeviceProperties)(l->physical, &properties);
    CHECK_STR(properties.deviceName, name);
    float priority = 1;
    const char *portability = "VK_KHR_portability_subset";
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = !strcmp(layout, "moltenvk"),
                               .ppEnabledExtensionNames = &portability};
    CHECK_VK(CALL(l, vkCreateDevice)(l->physical, &info, NULL, &l->device));
    CALL(l, vkGetDeviceQueue)(l->device, 0, 0, &l->queue);
}

void loaded_close(loaded *l)
{
    CALL(l, vkDestroyDevice)(l->device, NULL);
    CALL(l, vkDestroyDebugUtilsMessengerEXT)(l->instance, l->messenger, NULL);
    CALL(l, vkDestroyInstance)(l->instance, NULL);
}

/* ---- the report --------------------------------------------------------------------------- */

static bool find_line(const char *text, bool at_beginning)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen(report, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        found |= at_beginning ? !strncmp(line, text, strlen(text)) : strstr(line, text) != NULL;
    fclose(file);
    return found;
}

bool loaded_reported(const char *beginning)
{
    return find_line(beginning, true);
}

bool loaded_reported_with(const char *part)
{
    return find_line(part, false);
}

void loaded_end(void)
{
    unlink(report);
}

/* ---- finding the loader ------------------------------------------------------------------- */

static bool find_layer(void)
{
    VkLayerProperties all[64];
    uint32_t count = 64;
    loaded none = {0};
    (void)CALL(&none, vkEnumerateInstanceLayerProperties)(&count, all);
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(all[i].layerName, LAYER))
            return true;
    return false;
}

bool loaded_has_layer(void)
{
    return has_layer;
}

/* Only the fake driver, without layers that the machine enables implicitly. */
static void set_environment(const char *manifest)
{
    int fd = mkstemp(report);
    CHECK(fd >= 0 && !close(fd));
    CHECK(!setenv("VK_ICD_FILENAMES", manifest, 1));
    CHECK(!setenv("VK_DRIVER_FILES", manifest, 1));
    CHECK(!setenv("NODEVICE_SELECT", "1", 1));
    CHECK(!setenv("QUIRE_FAKE_REPORT", report, 1));
}

const char *loaded_prepare(const char *manifest)
{
    if (under_valgrind())
        return "valgrind counts the leaks of loader and layer";
    void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!loader)
        return "there is no libvulkan.so.1";
    void *symbol = dlsym(loader, "vkGetInstanceProcAddr");
    memcpy(&get, &symbol, sizeof get); /* C has no cast from object to function pointers */
    CHECK(get);
    set_environment(manifest);
    has_layer = find_layer();
    return NULL;
}
