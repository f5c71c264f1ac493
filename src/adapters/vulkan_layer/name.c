/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * name.c - debug names, tags and private data of memory objects. The driver does not know the
 * handles of ranges, so that such calls must not reach it.
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/result.h"

/* ---- names and tags -------------------------------------------------------------------------- */

/* Returns the layer's record of an object. NULL: it is not a memory object of the layer. */
static layer_memory *named(layer_device *device, bool is_memory, uint64_t number)
{
    return is_memory ? layer_find(device, LAYER_MEMORY(number)) : NULL;
}

/* Names the quire allocation. A name that is too long is truncated. */
static VkResult set_name(const layer_memory *memory, const char *name)
{
    char truncated[QUIRE_MAX_NAME + 1];
    size_t length = name ? strlen(name) : 0;
    length = length < sizeof truncated ? length : sizeof truncated - 1;
    if (length)
        memcpy(truncated, name, length);
    truncated[length] = 0;
    return quire_allocation_set_name(memory->store->memory, memory->allocation,
                                     length ? truncated : NULL)
               ? VK_ERROR_OUT_OF_HOST_MEMORY
               : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_SetDebugUtilsObjectNameEXT(VkDevice handle, const VkDebugUtilsObjectNameInfoEXT *info)
{
    layer_device *device = layer_device_of(handle);
    const layer_memory *memory =
        named(device, info->objectType == VK_OBJECT_TYPE_DEVICE_MEMORY, info->objectHandle);
    return memory ? set_name(memory, info->pObjectName)
                  : device->next.SetDebugUtilsObjectNameEXT(handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_SetDebugUtilsObjectTagEXT(VkDevice handle, const VkDebugUtilsObjectTagInfoEXT *info)
{
    layer_device *device = layer_device_of(handle);
    return named(device, info->objectType == VK_OBJECT_TYPE_DEVICE_MEMORY, info->objectHandle)
               ? VK_SUCCESS
               : device->next.SetDebugUtilsObjectTagEXT(handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_DebugMarkerSetObjectNameEXT(VkDevice handle, const VkDebugMarkerObjectNameInfoEXT *info)
{
    layer_device *device = layer_device_of(handle);
    const layer_memory *memory = named(
        device, info->objectType == VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_MEMORY_EXT, info->object);
    return memory ? set_name(memory, info->pObjectName)
                  : device->next.DebugMarkerSetObjectNameEXT(handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL
layer_DebugMarkerSetObjectTagEXT(VkDevice handle, const VkDebugMarkerObjectTagInfoEXT *info)
{
    layer_device *device = layer_device_of(handle);
    return named(device, info->objectType == VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_MEMORY_EXT,
                 info->object)
               ? VK_SUCCESS
               : device->next.DebugMarkerSetObjectTagEXT(handle, info);
}

/* ---- private data: a list, because few programs attach private data to memory ---------------- */

/* Requires the mutex. */
static layer_private *find_private(layer_device *device, uint64_t slot, uint64_t handle)
{
    for (uint64_t i = 0; i < device->private_count; i++)
        if (device->privates[i].slot == slot && device->privates[i].handle == handle)
            return &device->privates[i];
    return NULL;
}

/* Requires the mutex. Returns NULL if host memory is exhausted. */
static layer_private *add_private(layer_device *device, uint64_t slot, uint64_t handle)
{
    if (device->private_count == device->private_capacity) {
        enum { FIRST_CAPACITY = 16 };
        uint64_t capacity =
            device->private_capacity ? 2 * device->private_capacity : FIRST_CAPACITY;
        layer_private *larger = qi_host_resize(&device->host, device->privates,
                                               device->private_capacity, capacity, sizeof *larger);
        if (!larger)
            return NULL;
        device->privates = larger;
        device->private_capacity = capacity;
    }
    layer_private *added = &device->privates[device->private_count++];
    *added = (layer_private){.slot = slot, .handle = handle};
    return added;
}

void layer_forget_private(layer_device *device, uint64_t slot, uint64_t handle)
{
    pthread_mutex_lock(&device->mutex);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < device->private_count; i++) {
        const layer_private *one = &device->privates[i];
        if ((slot && one->slot != slot) || (handle && one->handle != handle))
            device->privates[kept++] = *one;
    }
    device->private_count = kept;
    pthread_mutex_unlock(&device->mutex);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_SetPrivateData(VkDevice handle, VkObjectType type,
                                                    uint64_t object, VkPrivateDataSlot slot,
                                                    uint64_t value)
{
    layer_device *device = layer_device_of(handle);
    if (!named(device, type == VK_OBJECT_TYPE_DEVICE_MEMORY, object))
        return device->next.SetPrivateData(handle, type, object, slot, value);
    pthread_mutex_lock(&device->mutex);
    layer_private *entry = find_private(device, LAYER_NUMBER(slot), object);
    if (!entry)
        entry = add_private(device, LAYER_NUMBER(slot), object);
    if (entry)
        entry->value = value;
    pthread_mutex_unlock(&device->mutex);
    return entry ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

VKAPI_ATTR void VKAPI_CALL layer_GetPrivateData(VkDevice handle, VkObjectType type, uint64_t object,
                                                VkPrivateDataSlot slot, uint64_t *value)
{
    layer_device *device = layer_device_of(handle);
    if (!named(device, type == VK_OBJECT_TYPE_DEVICE_MEMORY, object)) {
        device->next.GetPrivateData(handle, type, object, slot, value);
        return;
    }
    pthread_mutex_lock(&device->mutex);
    const layer_private *entry = find_private(device, LAYER_NUMBER(slot), object);
    *value = entry ? entry->value : 0;
    pthread_mutex_unlock(&device->mutex);
}

VKAPI_ATTR void VKAPI_CALL layer_DestroyPrivateDataSlot(VkDevice handle, VkPrivateDataSlot slot,
                                                        const VkAllocationCallbacks *callbacks)
{
    layer_device *device = layer_device_of(handle);
    if (slot)
        layer_forget_private(device, LAYER_NUMBER(slot), 0);
    device->next.DestroyPrivateDataSlot(handle, slot, callbacks);
}
