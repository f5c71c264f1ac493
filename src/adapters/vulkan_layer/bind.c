/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bind.c - binds resources with translated memory and offset, and notes the alignments in queried
 * requirements (store.c).
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"

/* ---- binding ------------------------------------------------------------------------------ */

/* Up to so many binds of a call are translated on the stack, more in host memory. */
enum { BINDS = 16 };

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

/* ---- sparse binding ----------------------------------------------------------------------- */

/*
 * The arrays of the program are const, so that they are copied, all into one block. The same code
 * runs twice: the first run computes the size of the block, the second one copies.
 */

typedef struct block {
    layer_device *device;
    char *bytes; /* NULL: only the size is computed */
    uint64_t used;
} block;

/* Copies an array into the block. Returns NULL in the first run, and for an empty array. */
static void *copy(block *b, const void *array, uint64_t count, size_t size)
{
    enum { ALIGNMENT = 16 };
    uint64_t at = b->used;
    b->used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!b->bytes || !count)
        return NULL;
    return memcpy(b->bytes + at, array, count * size);
}

static const VkSparseMemoryBind *copy_binds(block *b, const VkSparseMemoryBind *binds,
                                            uint32_t count)
{
    VkSparseMemoryBind *made = copy(b, binds, count, sizeof *binds);
    for (uint32_t i = 0; made && i < count; i++)
        layer_translate(b->device, &made[i].memory, &made[i].memoryOffset);
    return made;
}

static const VkSparseImageMemoryBind *copy_image_binds(block *b,
                                                       const VkSparseImageMemoryBind *binds,
                                                       uint32_t count)
{
    VkSparseImageMemoryBind *made = copy(b, binds, count, sizeof *binds);
    for (uint32_t i = 0; made && i < count; i++)
        layer_translate(b->device, &made[i].memory, &made[i].memoryOffset);
    return made;
}

/* Copies the binds of buffers, of opaque parts of images and of images. `to` is NULL in the first
   run. */
static void copy_info(block *b, const VkBindSparseInfo *from, VkBindSparseInfo *to)
{
    VkSparseBufferMemoryBindInfo *buffers =
        copy(b, from->pBufferBinds, from->bufferBindCount, sizeof *buffers);
    for (uint32_t i = 0; i < from->bufferBindCount; i++) {
        const VkSparseBufferMemoryBindInfo *one = &from->pBufferBinds[i];
        const VkSparseMemoryBind *binds = copy_binds(b, one->pBinds, one->bindCount);
        if (buffers)
            buffers[i].pBinds = binds;
    }
    VkSparseImageOpaqueMemoryBindInfo *opaque =
        copy(b, from->pImageOpaqueBinds, from->imageOpaqueBindCount, sizeof *opaque);
    for (uint32_t i = 0; i < from->imageOpaqueBindCount; i++) {
        const VkSparseImageOpaqueMemoryBindInfo *one = &from->pImageOpaqueBinds[i];
        const VkSparseMemoryBind *binds = copy_binds(b, one->pBinds, one->bindCount);
        if (opaque)
            opaque[i].pBinds = binds;
    }
    VkSparseImageMemoryBindInfo *images =
        copy(b, from->pImageBinds, from->imageBindCount, sizeof *images);
    for (uint32_t i = 0; i < from->imageBindCount; i++) {
        const VkSparseImageMemoryBindInfo *one = &from->pImageBinds[i];
        const VkSparseImageMemoryBind *binds = copy_image_binds(b, one->pBinds, one->bindCount);
        if (images)
            images[i].pBinds = binds;
    }
    if (to) {
        to->pBufferBinds = buffers;
        to->pImageOpaqueBinds = opaque;
        to->pImageBinds = images;
    }
}

static VkBindSparseInfo *copy_all(block *b, const VkBindSparseInfo *infos, uint32_t total)
{
    VkBindSparseInfo *made = copy(b, infos, total, sizeof *infos);
    for (uint32_t i = 0; i < total; i++)
        copy_info(b, &infos[i], made ? &made[i] : NULL);
    return made;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_QueueBindSparse(VkQueue queue, uint32_t total,
                                                     const VkBindSparseInfo *infos, VkFence fence)
{
    layer_device *device = layer_device_of(queue);
    block b = {.device = device};
    if (!total)
        return device->next.QueueBindSparse(queue, total, infos, fence);
    copy_all(&b, infos, total);
    uint64_t size = b.used;
    b.bytes = qi_host_allocate(&device->host, size, 1);
    if (!b.bytes)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    b.used = 0;
    VkResult code = device->next.QueueBindSparse(queue, total, copy_all(&b, infos, total), fence);
    qi_host_release(&device->host, b.bytes, size, 1);
    return code;
}

/* ---- requirements ------------------------------------------------------------------------- */

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
