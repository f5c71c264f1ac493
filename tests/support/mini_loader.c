/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mini_loader.c - see mini_loader.h.
 *
 * A program calls the functions of the upper half, which call the layer with the chained structs of
 * a loader. The layer calls the lower half, which is the driver and sets the dispatch keys.
 */
#include "tests/support/mini_loader.h"

#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "tests/support/check.h"

static PFN_vkGetInstanceProcAddr driver_get;
static PFN_vkGetDeviceProcAddr driver_get_of_device;
static VkInstance driver_instance;
static bool is_creating; /* vkCreateInstance has not returned */

/* The test never reads what a key points to. */
static int instance_key, device_keys[8];
static unsigned device_count;

static void set_key(void *dispatchable, void *key)
{
    *(void **)dispatchable = key;
}

/* ---- below the layer ------------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL lower_CreateInstance(const VkInstanceCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks,
                                                           VkInstance *instance)
{
    VkResult code =
        ((PFN_vkCreateInstance)driver_get(NULL, "vkCreateInstance"))(info, callbacks, instance);
    if (!code) {
        set_key(*instance, &instance_key);
        driver_instance = *instance;
    }
    return code;
}

static VKAPI_ATTR VkResult VKAPI_CALL lower_EnumeratePhysicalDevices(VkInstance instance,
                                                                     uint32_t *count,
                                                                     VkPhysicalDevice *devices)
{
    VkResult code = ((PFN_vkEnumeratePhysicalDevices)driver_get(
        instance, "vkEnumeratePhysicalDevices"))(instance, count, devices);
    for (uint32_t i = 0; devices && i < *count; i++)
        set_key(devices[i], &instance_key);
    return code;
}

static VKAPI_ATTR VkResult VKAPI_CALL lower_CreateDevice(VkPhysicalDevice physical,
                                                         const VkDeviceCreateInfo *info,
                                                         const VkAllocationCallbacks *callbacks,
                                                         VkDevice *device)
{
    VkResult code = ((PFN_vkCreateDevice)driver_get(driver_instance, "vkCreateDevice"))(
        physical, info, callbacks, device);
    if (!code)
        set_key(*device, &device_keys[device_count++ % 8]);
    return code;
}

static VKAPI_ATTR void VKAPI_CALL lower_GetDeviceQueue(VkDevice device, uint32_t family,
                                                       uint32_t index, VkQueue *queue)
{
    ((PFN_vkGetDeviceQueue)driver_get_of_device(device, "vkGetDeviceQueue"))(device, family, index,
                                                                             queue);
    set_key(*queue, layer_key(device));
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL lower_GetDeviceProcAddr(VkDevice device,
                                                                        const char *name)
{
    if (!strcmp(name, "vkGetDeviceQueue"))
        return (PFN_vkVoidFunction)lower_GetDeviceQueue;
    return driver_get_of_device(device, name);
}

static bool is_physical(const char *name)
{
    return strncmp(name, "vkGetPhysicalDevice", strlen("vkGetPhysicalDevice")) == 0;
}

/* A function of the topmost layer, which a layer below must not call. */
static VKAPI_ATTR void VKAPI_CALL topmost(void)
{
    check_failed(__FILE__, __LINE__, "the layer called a function of a layer above it");
}

/* After vkCreateInstance the loader's lookup below the layers returns functions of the topmost
   layer. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL lower_GetInstanceProcAddr(VkInstance instance,
                                                                          const char *name)
{
    if (!strcmp(name, "vkCreateInstance"))
        return (PFN_vkVoidFunction)lower_CreateInstance;
    if (!strcmp(name, "vkEnumeratePhysicalDevices"))
        return (PFN_vkVoidFunction)lower_EnumeratePhysicalDevices;
    if (!strcmp(name, "vkCreateDevice"))
        return (PFN_vkVoidFunction)lower_CreateDevice;
    if (is_physical(name) && !is_creating)
        return topmost;
    return driver_get(instance, name);
}

/* ---- above the layer ------------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL upper_CreateInstance(const VkInstanceCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks,
                                                           VkInstance *instance)
{
    VkLayerInstanceLink link = {.pfnNextGetInstanceProcAddr = lower_GetInstanceProcAddr};
    VkLayerInstanceCreateInfo chained = {
        .sType = VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO,
        .pNext = info->pNext,
        .function = VK_LAYER_LINK_INFO,
        .u = {.pLayerInfo = &link},
    };
    VkInstanceCreateInfo with_link = *info;
    with_link.pNext = &chained;
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)layer_GetInstanceProcAddr(NULL, "vkCreateInstance");
    is_creating = true;
    VkResult code = create(&with_link, callbacks, instance);
    is_creating = false;
    return code;
}

static VKAPI_ATTR VkResult VKAPI_CALL upper_CreateDevice(VkPhysicalDevice physical,
                                                         const VkDeviceCreateInfo *info,
                                                         const VkAllocationCallbacks *callbacks,
                                                         VkDevice *device)
{
    VkLayerDeviceLink link = {.pfnNextGetInstanceProcAddr = lower_GetInstanceProcAddr,
                              .pfnNextGetDeviceProcAddr = lower_GetDeviceProcAddr};
    VkLayerDeviceCreateInfo chained = {
        .sType = VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO,
        .pNext = info->pNext,
        .function = VK_LAYER_LINK_INFO,
        .u = {.pLayerInfo = &link},
    };
    VkDeviceCreateInfo with_link = *info;
    with_link.pNext = &chained;
    driver_get_of_device =
        (PFN_vkGetDeviceProcAddr)driver_get(driver_instance, "vkGetDeviceProcAddr");
    PFN_vkCreateDevice create =
        (PFN_vkCreateDevice)layer_GetInstanceProcAddr(driver_instance, "vkCreateDevice");
    return create(physical, &with_link, callbacks, device);
}

/* Functions that no layer implements belong to the loader: the queries before an instance exists,
   and those of physical devices. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL upper_GetInstanceProcAddr(VkInstance instance,
                                                                          const char *name)
{
    if (!strcmp(name, "vkCreateInstance"))
        return (PFN_vkVoidFunction)upper_CreateInstance;
    if (!strcmp(name, "vkCreateDevice"))
        return (PFN_vkVoidFunction)upper_CreateDevice;
    return instance && !is_physical(name) ? layer_GetInstanceProcAddr(instance, name)
                                          : driver_get(instance, name);
}

PFN_vkGetInstanceProcAddr mini_loader_over(PFN_vkGetInstanceProcAddr driver)
{
    driver_get = driver;
    return upper_GetInstanceProcAddr;
}
