/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * debug.c - VK_EXT_debug_utils of the fake driver: names of objects, and messengers, which receive
 * only the messages that the application submits.
 */
#include <stdio.h>

#include "tests/support/vulkan/device.h"
#include "tests/support/vulkan/table.h"

typedef struct fv_messenger {
    fv_object object; /* its device is the instance */
    VkDebugUtilsMessengerCreateInfoEXT info;
} fv_messenger;

/* The kinds that Vulkan has a type for. */
static const struct {
    VkObjectType type;
    fv_kind kind;
} KINDS[] = {
#define KIND(type, kind)                                                                           \
    {                                                                                              \
        VK_OBJECT_TYPE_##type, FV_##kind                                                           \
    }
    KIND(INSTANCE, INSTANCE),
    KIND(PHYSICAL_DEVICE, PHYSICAL_DEVICE),
    KIND(DEVICE, DEVICE),
    KIND(QUEUE, QUEUE),
    KIND(COMMAND_BUFFER, COMMAND_BUFFER),
    KIND(COMMAND_POOL, COMMAND_POOL),
    KIND(DEVICE_MEMORY, MEMORY),
    KIND(BUFFER, BUFFER),
    KIND(IMAGE, IMAGE),
    KIND(IMAGE_VIEW, IMAGE_VIEW),
    KIND(SAMPLER, SAMPLER),
    KIND(FENCE, FENCE),
    KIND(SEMAPHORE, SEMAPHORE),
#undef KIND
};

static fv_kind kind_of(VkObjectType type)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i].type == type)
            return KINDS[i].kind;
    return FV_KINDS;
}

/* Physical devices and queues are members of other objects and not in the table. */
static fv_object *find(fv_device *device, fv_kind kind, uint64_t handle)
{
    if (kind == FV_QUEUE || kind == FV_PHYSICAL_DEVICE)
        return (fv_object *)(uintptr_t)handle;
    if (kind <= FV_DEVICE)
        return fv_object_peek(fv_driver_of(device), kind, handle);
    return fv_object_find(device, FV_CALL_vkSetDebugUtilsObjectNameEXT, kind, handle);
}

VkResult fv_vkSetDebugUtilsObjectNameEXT(VkDevice handle, const VkDebugUtilsObjectNameInfoEXT *info)
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkSetDebugUtilsObjectNameEXT);
    fv_kind kind = kind_of(info->objectType);
    fv_object *object = result || kind == FV_KINDS ? NULL : find(device, kind, info->objectHandle);
    if (object)
        snprintf(object->name, sizeof object->name, "%s",
                 info->pObjectName ? info->pObjectName : "");
    fv_leave(fv_driver_of(device));
    return result;
}

VkResult fv_vkSetDebugUtilsObjectTagEXT(VkDevice handle, const VkDebugUtilsObjectTagInfoEXT *info)
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkSetDebugUtilsObjectTagEXT);
    if (!info->tagSize || !info->pTag)
        FV_WRONG(fv_driver_of(device), "VUID-VkDebugUtilsObjectTagInfoEXT-tagSize-arraylength",
                 vkSetDebugUtilsObjectTagEXT, "an empty tag");
    fv_leave(fv_driver_of(device));
    return result;
}

VkResult fv_vkCreateDebugUtilsMessengerEXT(VkInstance handle,
                                           const VkDebugUtilsMessengerCreateInfoEXT *info,
                                           const VkAllocationCallbacks *callbacks,
                                           VkDebugUtilsMessengerEXT *out)
{
    fv_driver *driver = ((fv_instance *)handle)->object.driver;
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateDebugUtilsMessengerEXT);
    if (!result) {
        fv_messenger *messenger =
            fv_object_new(driver, (fv_device *)handle, FV_MESSENGER, sizeof *messenger);
        messenger->info = *info;
        *out = FV_HANDLE(VkDebugUtilsMessengerEXT, &messenger->object);
    } else
        *out = (VkDebugUtilsMessengerEXT)FV_GARBAGE;
    fv_leave(driver);
    return result;
}

void fv_vkDestroyDebugUtilsMessengerEXT(VkInstance handle, VkDebugUtilsMessengerEXT messenger,
                                        const VkAllocationCallbacks *callbacks)
{
    fv_driver *driver = ((fv_instance *)handle)->object.driver;
    (void)callbacks;
    (void)fv_enter(driver, FV_CALL_vkDestroyDebugUtilsMessengerEXT);
    fv_object *object = fv_object_peek(driver, FV_MESSENGER, (uint64_t)messenger);
    if (object)
        fv_object_end(object);
    else if (messenger)
        FV_WRONG(driver, "fv-handle", vkDestroyDebugUtilsMessengerEXT, "no messenger");
    fv_leave(driver);
}

void fv_vkSubmitDebugUtilsMessageEXT(VkInstance handle,
                                     VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                     VkDebugUtilsMessageTypeFlagsEXT types,
                                     const VkDebugUtilsMessengerCallbackDataEXT *data)
{
    fv_driver *driver = ((fv_instance *)handle)->object.driver;
    VkDebugUtilsMessengerCreateInfoEXT takers[8];
    uint32_t count = 0;
    uint64_t index = 0;
    (void)fv_enter(driver, FV_CALL_vkSubmitDebugUtilsMessageEXT);
    for (fv_object *each = fv_object_next(driver, &index); each && count < 8;
         each = fv_object_next(driver, &index)) {
        const fv_messenger *messenger = (const fv_messenger *)each;
        if (each->kind == FV_MESSENGER && each->device == (fv_device *)handle &&
            messenger->info.messageSeverity & severity && messenger->info.messageType & types)
            takers[count++] = messenger->info;
    }
    fv_leave(driver); /* callbacks may call Vulkan */
    for (uint32_t i = 0; i < count; i++)
        takers[i].pfnUserCallback(severity, types, data, takers[i].pUserData);
}
