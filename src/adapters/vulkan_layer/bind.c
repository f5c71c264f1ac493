/*
 * bind.c - binds resources with translated memory and offset, and notes the alignments in queried
 * requirements (store.c).
 */
#include "src/adapters/vulkan_layer/layer.h"

/* Up to so many binds of a call are translated on the stack, more in host memory. */
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

/* VkBindMemoryStatus of VK_KHR_maintenance6, which headers before 1.3.274 lack. */
static const VkStructureType BIND_STATUS = (VkStructureType)1000545002;
typedef struct bind_status {
    VkStructureType sType;
    const void *pNext;
    VkResult *result;
} bind_status;

/* Writes the status of a bind that the driver does not see. */
static void write_status(const void *chain, VkResult result)
{
    for (const VkBaseInStructure *link = chain; link; link = link->pNext)
        if (link->sType == BIND_STATUS)
            *((const bind_status *)link)->result = result;
}

/*
 * The array forms differ only in their structs. The pNext chain stays as it is, so that the driver
 * writes the status of each bind. So does a null memory, which the bind of an image of a swapchain
 * has. All binds are one call of the driver: only it knows which of them were made if one fails.
 */
#define DEFINE_ARRAY_BIND(name, info_type)                                                         \
    VKAPI_ATTR VkResult VKAPI_CALL layer_##name(VkDevice handle, uint32_t total,                   \
                                                const info_type *infos)                            \
    {                                                                                              \
        layer_device *device = layer_device_of(handle);                                            \
        info_type few[BINDS], *many = NULL;                                                        \
        if (total > BINDS && !(many = qi_host_allocate(&device->host, total, sizeof *many))) {     \
            for (uint32_t i = 0; i < total; i++)                                                   \
                write_status(infos[i].pNext, VK_ERROR_OUT_OF_HOST_MEMORY);                         \
            return VK_ERROR_OUT_OF_HOST_MEMORY;                                                    \
        }                                                                                          \
        info_type *translated = many ? many : few;                                                 \
        for (uint32_t i = 0; i < total; i++) {                                                     \
            translated[i] = infos[i];                                                              \
            layer_translate(device, &translated[i].memory, &translated[i].memoryOffset);           \
        }                                                                                          \
        VkResult code = device->next.name(handle, total, translated);                              \
        qi_host_release(&device->host, many, total, sizeof *many);                                 \
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
