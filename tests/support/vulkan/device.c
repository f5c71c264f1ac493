/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - logical devices of the fake driver and their queues.
 */
#include <string.h>

#include "tests/support/vulkan/device.h"
#include "tests/support/vulkan/leak.h"
#include "tests/support/vulkan/queue.h"
#include "tests/support/vulkan/table.h"

/* ---- creation ----------------------------------------------------------------------------- */

static VkResult take_extensions(fv_device *device, const VkDeviceCreateInfo *info)
{
    uint32_t offered = fv_layout_of(device)->extensions;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        uint32_t bit = fv_extension_bit(info->ppEnabledExtensionNames[i], false, offered);
        if (bit == UINT32_MAX)
            return VK_ERROR_EXTENSION_NOT_PRESENT;
        device->extensions |= bit;
    }
    if (offered & FV_BIT(PORTABILITY) && !(device->extensions & FV_BIT(PORTABILITY)))
        FV_WRONG(fv_driver_of(device), "VUID-VkDeviceCreateInfo-pProperties-04451", vkCreateDevice,
                 "VK_KHR_portability_subset is offered and not enabled");
    return VK_SUCCESS;
}

/* Extensions that require others. */
static void check_needs(const fv_device *device)
{
    static const struct {
        uint32_t extension, needs;
    } NEEDS[] = {
        {FV_BIT(PAGEABLE), FV_BIT(PRIORITY)},
        {FV_BIT(DMA_BUF), FV_BIT(FD)},
        {FV_BIT(FD), FV_BIT(EXTERNAL)},
        {FV_BIT(HOST_POINTER), FV_BIT(EXTERNAL)},
    };
    uint32_t has = device->extensions;
    if (device->version >= VK_API_VERSION_1_1)
        has |= FV_BIT(EXTERNAL);
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        if (has & NEEDS[i].extension && !(has & NEEDS[i].needs))
            FV_WRONG(fv_driver_of(device), "VUID-vkCreateDevice-ppEnabledExtensionNames-01387",
                     vkCreateDevice, "extension bit 0x%x needs bit 0x%x", NEEDS[i].extension,
                     NEEDS[i].needs);
}

/* The extension that VK_KHR_buffer_device_address replaced. */
static void check_conflicts(const fv_device *device)
{
    if (!(device->extensions & FV_BIT(ADDRESS_EXT)))
        return;
    if (device->extensions & FV_BIT(ADDRESS))
        FV_WRONG(fv_driver_of(device), "VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-03328",
                 vkCreateDevice, "both extensions of buffer device addresses are enabled");
    else if (device->features & FV_ADDRESS)
        FV_WRONG(fv_driver_of(device), "VUID-VkDeviceCreateInfo-pNext-04748", vkCreateDevice,
                 "bufferDeviceAddress beside VK_EXT_buffer_device_address");
}

static void take_queues(fv_device *device, const VkDeviceCreateInfo *info)
{
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++) {
        const VkDeviceQueueCreateInfo *wanted = &info->pQueueCreateInfos[i];
        if (wanted->queueFamilyIndex >= fv_family_count(device->physical) || !wanted->queueCount ||
            wanted->queueCount > FV_FAMILY_QUEUES) {
            FV_WRONG(fv_driver_of(device), "VUID-VkDeviceQueueCreateInfo-queueCount-00382",
                     vkCreateDevice, "family %u has not %u queues", wanted->queueFamilyIndex,
                     wanted->queueCount);
            continue;
        }
        for (uint32_t k = 0; k < wanted->queueCount; k++)
            device->queues[wanted->queueFamilyIndex][k].used = true;
    }
}

static void make_queues(fv_device *device)
{
    for (uint32_t family = 0; family < FV_FAMILIES; family++)
        for (uint32_t i = 0; i < FV_FAMILY_QUEUES; i++) {
            fv_queue *queue = &device->queues[family][i];
            fv_object_init(&queue->object, fv_driver_of(device), device, FV_QUEUE);
            queue->family = family;
        }
}

static VkResult create(fv_physical_device *physical, const VkDeviceCreateInfo *info, VkDevice *out)
{
    fv_driver *driver = physical->object.driver;
    fv_device *device = fv_object_new(driver, NULL, FV_DEVICE, sizeof *device);
    uint32_t lower = physical->instance->version < physical->layout.api_version
                         ? physical->instance->version
                         : physical->layout.api_version;
    device->instance = physical->instance;
    device->physical = physical;
    device->version = lower;
    device->next_address = UINT64_C(1) << 40;
    make_queues(device);
    VkResult result = take_extensions(device, info);
    if (!result && !fv_features_asked(physical, info, &device->features))
        result = VK_ERROR_FEATURE_NOT_PRESENT;
    if (result) {
        fv_object_end(&device->object);
        return result;
    }
    check_needs(device);
    check_conflicts(device);
    take_queues(device, info);
    *out = (VkDevice)device;
    return VK_SUCCESS;
}

VkResult fv_vkCreateDevice(VkPhysicalDevice handle, const VkDeviceCreateInfo *info,
                           const VkAllocationCallbacks *callbacks, VkDevice *out)
{
    fv_physical_device *physical = (fv_physical_device *)handle;
    fv_driver *driver = physical->object.driver;
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateDevice);
    if (!result)
        result = create(physical, info, out);
    if (result)
        *out = (VkDevice)(uintptr_t)FV_GARBAGE;
    fv_leave(driver);
    return result;
}

uint32_t fv_features_of(VkDevice device)
{
    return ((fv_device *)device)->features;
}

void fv_object_destroy(VkDevice handle, fv_call call, fv_kind kind, uint64_t object_handle,
                       const char *pending)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_claim_handle(driver, call, object_handle);
    (void)fv_enter(driver, call);
    fv_object *object = object_handle ? fv_object_find(device, call, kind, object_handle) : NULL;
    if (object && object->pending && pending)
        fv_say(driver, FV_ERROR, pending, call, "work that is not done uses it");
    if (object)
        fv_object_end(object);
    fv_leave(driver);
    fv_release_handle(driver, object_handle);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Removes the leaked objects of a destroyed device, so that no object is left when the driver is
   destroyed. */
static void end_leaks(fv_device *device)
{
    fv_driver *driver = fv_driver_of(device);
    uint64_t index = 0;
    fv_object *left = fv_object_next(driver, &index);
    while (left) {
        if (left->device != device || left->kind == FV_MESSENGER) {
            left = fv_object_next(driver, &index);
            continue;
        }
        if (left->kind != FV_COMMAND_BUFFER) /* its pool destroys it */
            FV_WRONG(driver, "VUID-vkDestroyDevice-device-00378", vkDestroyDevice,
                     "a %s is still alive: 0x%" PRIx64 " '%s'", fv_kind_name(left->kind),
                     left->handle, left->name);
        fv_leaked(left);
        index = 0; /* the table changed */
        left = fv_object_next(driver, &index);
    }
}

void fv_device_end(fv_device *device)
{
    if (fv_has_work(device) && !fv_driver_of(device)->lost)
        FV_WRONG(fv_driver_of(device), "fv-destroy-pending", vkDestroyDevice,
                 "there is work that is not done");
    fv_drop_work(device);
    end_leaks(device);
    fv_object_end(&device->object);
}

void fv_vkDestroyDevice(VkDevice handle, const VkAllocationCallbacks *callbacks)
{
    fv_device *device = (fv_device *)handle;
    (void)callbacks;
    if (!device)
        return;
    fv_driver *driver = fv_driver_of(device);
    (void)fv_enter(driver, FV_CALL_vkDestroyDevice);
    if (fv_object_check(&device->object, FV_CALL_vkDestroyDevice, FV_DEVICE)) {
        fv_device_end(device);
    }
    fv_leave(driver);
}

/* ---- queues ------------------------------------------------------------------------------- */

static VkQueue queue_at(fv_device *device, fv_call call, uint32_t family, uint32_t index)
{
    if (family < FV_FAMILIES && index < FV_FAMILY_QUEUES && device->queues[family][index].used)
        return (VkQueue)&device->queues[family][index];
    fv_say(fv_driver_of(device), FV_ERROR, "VUID-vkGetDeviceQueue-queueIndex-00385", call,
           "the device was made without queue %u of family %u", index, family);
    return VK_NULL_HANDLE;
}

void fv_vkGetDeviceQueue(VkDevice handle, uint32_t family, uint32_t index, VkQueue *out)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetDeviceQueue);
    *out = queue_at(device, FV_CALL_vkGetDeviceQueue, family, index);
    fv_leave(fv_driver_of(device));
}
