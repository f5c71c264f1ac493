/*
 * name.c - what programs attach to memory objects: debug names, tags, private data. Of objects that
 * are ranges the driver must not hear.
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/result.h"

/* ---- names and tags -------------------------------------------------------------------------- */

/* The number of a memory object as the layer's own record. */
static layer_memory *named(layer_device *device, bool is_memory, uint64_t number)
{
    return is_memory ? layer_find(device, LAYER_MEMORY(number)) : NULL;
}

/* The name of the allocation; a longer one is cut. */
static VkResult set_name(const layer_memory *memory, const char *name)
{
    char cut[QUIRE_MAX_NAME + 1];
    size_t length = name ? strlen(name) : 0;
    length = length < sizeof cut ? length : sizeof cut - 1;
    if (length)
        memcpy(cut, name, length);
    cut[length] = 0;
    return quire_allocation_set_name(memory->store->memory, memory->allocation, length ? cut : NULL)
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

/* ---- private data: a list, for few programs use it and fewer on memory ----------------------- */

/* With the mutex. */
static layer_private *find_private(layer_device *device, uint64_t slot, uint64_t handle)
{
    for (uint64_t i = 0; i < device->private_count; i++)
        if (device->privates[i].slot == slot && device->privates[i].handle == handle)
            return &device->privates[i];
    return NULL;
}

/* With the mutex; NULL: no host memory. */
static layer_private *add_private(layer_device *device, uint64_t slot, uint64_t handle)
{
    if (device->private_count == device->private_room) {
        enum { FIRST_ROOM = 16 };
        uint64_t room = device->private_room ? 2 * device->private_room : FIRST_ROOM;
        layer_private *larger = qi_host_resize(&device->host, device->privates,
                                               device->private_room, room, sizeof *larger);
        if (!larger)
            return NULL;
        device->privates = larger;
        device->private_room = room;
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
