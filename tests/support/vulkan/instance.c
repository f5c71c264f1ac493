/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * instance.c - instances of the fake driver, and the queries that need no instance.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/device.h"
#include "tests/support/vulkan/table.h"

static uint32_t offered(const fv_driver *driver)
{
    return ~driver->options.no_instance_extensions;
}

/* Returns the result of an enumeration of `count` elements of which *room were written. */
static VkResult answer(uint32_t count, uint32_t *room, const void *list)
{
    bool complete = !list || *room >= count;
    *room = list && *room < count ? *room : count;
    return complete ? VK_SUCCESS : VK_INCOMPLETE;
}

VkResult fv_vkEnumerateInstanceVersion(uint32_t *version)
{
    fv_driver *driver = fv_current();
    VkResult result = fv_enter(driver, FV_CALL_vkEnumerateInstanceVersion);
    *version = driver->options.instance_version;
    fv_leave(driver);
    return result;
}

VkResult fv_vkEnumerateInstanceExtensionProperties(const char *layer, uint32_t *count,
                                                   VkExtensionProperties *list)
{
    fv_driver *driver = fv_current();
    VkResult result = fv_enter(driver, FV_CALL_vkEnumerateInstanceExtensionProperties);
    if (!result && layer)
        result = VK_ERROR_LAYER_NOT_PRESENT;
    if (!result)
        result = answer(fv_extensions_list(true, offered(driver), list, *count), count, list);
    fv_leave(driver);
    return result;
}

VkResult fv_vkEnumerateInstanceLayerProperties(uint32_t *count, VkLayerProperties *list)
{
    fv_driver *driver = fv_current();
    VkResult result = fv_enter(driver, FV_CALL_vkEnumerateInstanceLayerProperties);
    (void)list;
    *count = 0;
    fv_leave(driver);
    return result;
}

static VkResult take_extensions(fv_instance *instance, const VkInstanceCreateInfo *info)
{
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        uint32_t bit = fv_extension_bit(info->ppEnabledExtensionNames[i], true,
                                        offered(instance->object.driver));
        if (bit == UINT32_MAX)
            return VK_ERROR_EXTENSION_NOT_PRESENT;
        instance->extensions |= bit;
    }
    return VK_SUCCESS;
}

static VkResult create(fv_driver *driver, const VkInstanceCreateInfo *info, VkInstance *out)
{
    fv_instance *instance = fv_object_new(driver, NULL, FV_INSTANCE, sizeof *instance);
    const VkApplicationInfo *application = info->pApplicationInfo;
    instance->version = application && application->apiVersion
                            ? VK_MAKE_API_VERSION(0, VK_API_VERSION_MAJOR(application->apiVersion),
                                                  VK_API_VERSION_MINOR(application->apiVersion), 0)
                            : VK_API_VERSION_1_0;
    if (instance->version > driver->options.instance_version)
        instance->version = driver->options.instance_version;
    FV_CHECK_CHAIN(driver, vkCreateInstance, info->pNext,
                   VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                   VK_STRUCTURE_TYPE_DEBUG_REPORT_CALLBACK_CREATE_INFO_EXT,
                   VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
    VkResult result =
        info->enabledLayerCount ? VK_ERROR_LAYER_NOT_PRESENT : take_extensions(instance, info);
    if (result) {
        fv_object_end(&instance->object);
        return result;
    }
    for (uint32_t i = 0; i < driver->device_count; i++) {
        fv_physical_device *device = &instance->devices[i];
        fv_object_init(&device->object, driver, NULL, FV_PHYSICAL_DEVICE);
        device->layout = driver->layouts[i];
        device->index = i;
        device->instance = instance;
    }
    *out = (VkInstance)instance;
    return VK_SUCCESS;
}

VkResult fv_vkCreateInstance(const VkInstanceCreateInfo *info,
                             const VkAllocationCallbacks *callbacks, VkInstance *out)
{
    fv_driver *driver = fv_current();
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateInstance);
    if (!result)
        result = create(driver, info, out);
    if (result)
        *out = (VkInstance)(uintptr_t)FV_GARBAGE;
    fv_leave(driver);
    return result;
}

static bool belongs_to(const fv_object *object, const fv_instance *instance)
{
    if (object->kind == FV_MESSENGER)
        return object->device == (const fv_device *)instance;
    return object->kind == FV_DEVICE && ((const fv_device *)object)->instance == instance;
}

/* Reports and destroys the objects that still exist in the instance. */
static void end_leaks(fv_instance *instance)
{
    fv_driver *driver = instance->object.driver;
    uint64_t index = 0;
    fv_object *left;
    while ((left = fv_object_next(driver, &index))) {
        if (!belongs_to(left, instance))
            continue;
        FV_WRONG(driver, "VUID-vkDestroyInstance-instance-00629", vkDestroyInstance,
                 "a %s is still alive", fv_kind_name(left->kind));
        if (left->kind == FV_DEVICE)
            fv_device_end((fv_device *)left);
        else
            fv_object_end(left);
        index = 0; /* the table changed */
    }
}

void fv_vkDestroyInstance(VkInstance handle, const VkAllocationCallbacks *callbacks)
{
    fv_instance *instance = (fv_instance *)handle;
    (void)callbacks;
    if (!instance)
        return;
    fv_driver *driver = instance->object.driver;
    (void)fv_enter(driver, FV_CALL_vkDestroyInstance);
    if (fv_object_check(&instance->object, FV_CALL_vkDestroyInstance, FV_INSTANCE)) {
        end_leaks(instance);
        fv_object_end(&instance->object);
    }
    fv_leave(driver);
}

VkResult fv_vkEnumeratePhysicalDevices(VkInstance handle, uint32_t *count, VkPhysicalDevice *list)
{
    fv_instance *instance = (fv_instance *)handle;
    fv_driver *driver = instance->object.driver;
    VkResult result = fv_enter(driver, FV_CALL_vkEnumeratePhysicalDevices);
    if (!result) {
        for (uint32_t i = 0; list && i < *count && i < driver->device_count; i++)
            list[i] = (VkPhysicalDevice)&instance->devices[i];
        result = answer(driver->device_count, count, list);
    }
    fv_leave(driver);
    return result;
}

/* ---- extensions of physical devices, for they are listed like the instance's -------------- */

VkResult fv_vkEnumerateDeviceExtensionProperties(VkPhysicalDevice handle, const char *layer,
                                                 uint32_t *count, VkExtensionProperties *list)
{
    fv_physical_device *device = (fv_physical_device *)handle;
    fv_driver *driver = device->object.driver;
    VkResult result = fv_enter(driver, FV_CALL_vkEnumerateDeviceExtensionProperties);
    if (!result && layer)
        result = VK_ERROR_LAYER_NOT_PRESENT;
    if (!result)
        result =
            answer(fv_extensions_list(false, device->layout.extensions, list, *count), count, list);
    fv_leave(driver);
    return result;
}
