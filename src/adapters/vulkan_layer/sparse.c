/*
 * sparse.c - vkQueueBindSparse with translated memory and offset.
 *
 * The arrays of the program are const, so that they are copied, all into one block. The same code
 * runs twice: the first run computes the size of the block, the second one copies.
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"

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
