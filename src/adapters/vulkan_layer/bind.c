/*
 * bind.c - binds resources with translated memory and offset, and notes the alignments in queried
 * requirements (store.c).
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"

/* Binds translated at once; the array is on the stack. */
enum { BINDS = 16 };

/* ---- binding --------------------------------------------------------------------------------- */

VKAPI_ATTR VkResult VKAPI_CALL layer_BindBufferMemory(VkDevice handle, VkBuffer buffer,
                                                      VkDeviceMemory memory, VkDeviceSize offset)
{
    layer_device *device = layer_device_of(handle);
    layer_translate(device, &memory, &offset);
    return device->next.BindBufferMemory(handle, buffer, memory, offset);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_BindImageMemory(VkDevice handle, VkImage image,
                                                     VkDeviceMemory memory, VkDeviceSize offset)
{
    layer_device *device = layer_device_of(handle);
    layer_translate(device, &memory, &offset);
    return device->next.BindImageMemory(handle, image, memory, offset);
}

/*
 * The array forms differ only in their structs. The pNext chain stays as it is. So does a null
 * memory, which the bind of an image of a swapchain has. The arrays are passed on in pieces;
 * after a failure Vulkan leaves it open which of the binds were made.
 */
#define DEFINE_ARRAY_BIND(name, info_type)                                                         \
    VKAPI_ATTR VkResult VKAPI_CALL layer_##name(VkDevice handle, uint32_t total,                   \
                                                const info_type *infos)                            \
    {                                                                                              \
        layer_device *device = layer_device_of(handle);                                            \
        info_type translated[BINDS];                                                               \
        VkResult code = VK_SUCCESS;                                                                \
        for (uint32_t done = 0; done < total && !code;) {                                          \
            uint32_t now = total - done < BINDS ? total - done : BINDS;                            \
            memcpy(translated, infos + done, now * sizeof *infos);                                 \
            for (uint32_t i = 0; i < now; i++)                                                     \
                layer_translate(device, &translated[i].memory, &translated[i].memoryOffset);       \
            code = device->next.name(handle, now, translated);                                     \
            done += now;                                                                           \
        }                                                                                          \
        return code;                                                                               \
    }

DEFINE_ARRAY_BIND(BindBufferMemory2, VkBindBufferMemoryInfo)
DEFINE_ARRAY_BIND(BindImageMemory2, VkBindImageMemoryInfo)
DEFINE_ARRAY_BIND(BindAccelerationStructureMemoryNV, VkBindAccelerationStructureMemoryInfoNV)

VKAPI_ATTR VkResult VKAPI_CALL
layer_BindVideoSessionMemoryKHR(VkDevice handle, VkVideoSessionKHR session, uint32_t total,
                                const VkBindVideoSessionMemoryInfoKHR *infos)
{
    layer_device *device = layer_device_of(handle);
    uint64_t count = total;
    VkBindVideoSessionMemoryInfoKHR *translated =
        qi_host_allocate(&device->host, count, sizeof *translated);
    if (total && !translated)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < total; i++) {
        translated[i] = infos[i];
        layer_translate(device, &translated[i].memory, &translated[i].memoryOffset);
    }
    VkResult code = device->next.BindVideoSessionMemoryKHR(handle, session, total, translated);
    qi_host_release(&device->host, translated, count, sizeof *translated);
    return code;
}

/* ---- requirements --------------------------------------------------------------------- */

VKAPI_ATTR void VKAPI_CALL layer_GetBufferMemoryRequirements(VkDevice handle, VkBuffer buffer,
                                                             VkMemoryRequirements *needs)
{
    layer_device *device = layer_device_of(handle);
    device->next.GetBufferMemoryRequirements(handle, buffer, needs);
    layer_learn(device, needs);
}

VKAPI_ATTR void VKAPI_CALL layer_GetImageMemoryRequirements(VkDevice handle, VkImage image,
                                                            VkMemoryRequirements *needs)
{
    layer_device *device = layer_device_of(handle);
    device->next.GetImageMemoryRequirements(handle, image, needs);
    layer_learn(device, needs);
}

#define DEFINE_REQUIREMENTS(name, info_type)                                                       \
    VKAPI_ATTR void VKAPI_CALL layer_##name(VkDevice handle, const info_type *info,                \
                                            VkMemoryRequirements2 *needs)                          \
    {                                                                                              \
        layer_device *device = layer_device_of(handle);                                            \
        device->next.name(handle, info, needs);                                                    \
        layer_learn(device, &needs->memoryRequirements);                                           \
    }

DEFINE_REQUIREMENTS(GetBufferMemoryRequirements2, VkBufferMemoryRequirementsInfo2)
DEFINE_REQUIREMENTS(GetImageMemoryRequirements2, VkImageMemoryRequirementsInfo2)
DEFINE_REQUIREMENTS(GetDeviceBufferMemoryRequirements, VkDeviceBufferMemoryRequirements)
DEFINE_REQUIREMENTS(GetDeviceImageMemoryRequirements, VkDeviceImageMemoryRequirements)
