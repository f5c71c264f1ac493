/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource.c - buffers and images with their memory, dedicated memory, binding, aliases. The
 * objects belong to the program.
 */
#include "quire/quire_vma.h"
#include "src/adapters/vma/allocation.h"

static VkResult refuse_null(const char *function)
{
    return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "%s: an argument is null", function);
}

/* ---- creation ----------------------------------------------------------------------------- */

static void zero_outputs(VmaAllocation *handle, VmaAllocationInfo *info)
{
    if (handle)
        *handle = NULL;
    if (info)
        *info = (VmaAllocationInfo){0};
}

static VkResult create_buffer(VmaAllocator allocator, const VkBufferCreateInfo *info,
                              VkBuffer *buffer)
{
    if (!info->size)
        return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED, "a buffer of 0 bytes");
    if (info->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT &&
        !(allocator->flags & VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT))
        return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED,
                           "a buffer with a device address: the allocator was created without "
                           "VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT");
    const VkAllocationCallbacks *callbacks = qi_vma_host_callbacks(&allocator->host);
    VkResult result = allocator->f.CreateBuffer(allocator->device, info, callbacks, buffer);
    return result ? qi_vma_fail(result, "vkCreateBuffer returned %d", result) : VK_SUCCESS;
}

static VkResult create_image(VmaAllocator allocator, const VkImageCreateInfo *info, VkImage *image)
{
    if (!info->extent.width || !info->extent.height || !info->extent.depth || !info->mipLevels ||
        !info->arrayLayers)
        return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED, "an image without texels");
    const VkAllocationCallbacks *callbacks = qi_vma_host_callbacks(&allocator->host);
    VkResult result = allocator->f.CreateImage(allocator->device, info, callbacks, image);
    return result ? qi_vma_fail(result, "vkCreateImage returned %d", result) : VK_SUCCESS;
}

static void destroy_buffer(VmaAllocator allocator, VkBuffer buffer)
{
    allocator->f.DestroyBuffer(allocator->device, buffer, qi_vma_host_callbacks(&allocator->host));
}

static void destroy_image(VmaAllocator allocator, VkImage image)
{
    allocator->f.DestroyImage(allocator->device, image, qi_vma_host_callbacks(&allocator->host));
}

VkResult quire_vma_create_buffer_with_alignment(VmaAllocator allocator,
                                                const VkBufferCreateInfo *info,
                                                const VmaAllocationCreateInfo *options,
                                                VkDeviceSize alignment, VkBuffer *buffer,
                                                VmaAllocation *handle,
                                                VmaAllocationInfo *allocation_info)
{
    VkBuffer created = VK_NULL_HANDLE;
    zero_outputs(handle, allocation_info);
    if (buffer)
        *buffer = VK_NULL_HANDLE;
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || !options || !buffer || !handle)
        return refuse_null("vmaCreateBuffer");
    VkResult result = create_buffer(allocator, info, &created);
    if (result)
        return result;
    bool has_maintenance5 = allocator->flags & VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE5_BIT;
    qi_vma_request request = {
        .is_bound = !(options->flags & VMA_ALLOCATION_CREATE_DONT_BIND_BIT),
        .access = qi_vma_access_of_buffer(info, has_maintenance5),
        .create_info = info,
        .min_alignment = alignment,
        .options = options,
    };
    qi_vma_query_buffer(allocator, created, &request);
    result = qi_vma_allocate(allocator, &request, handle, allocation_info);
    if (result)
        destroy_buffer(allocator, created);
    else
        *buffer = created;
    return result;
}

VkResult quire_vma_create_buffer(VmaAllocator allocator, const VkBufferCreateInfo *info,
                                 const VmaAllocationCreateInfo *options, VkBuffer *buffer,
                                 VmaAllocation *handle, VmaAllocationInfo *allocation_info)
{
    return quire_vma_create_buffer_with_alignment(allocator, info, options, 1, buffer, handle,
                                                  allocation_info);
}

VkResult quire_vma_create_image(VmaAllocator allocator, const VkImageCreateInfo *info,
                                const VmaAllocationCreateInfo *options, VkImage *image,
                                VmaAllocation *handle, VmaAllocationInfo *allocation_info)
{
    VkImage created = VK_NULL_HANDLE;
    zero_outputs(handle, allocation_info);
    if (image)
        *image = VK_NULL_HANDLE;
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || !options || !image || !handle)
        return refuse_null("vmaCreateImage");
    VkResult result = create_image(allocator, info, &created);
    if (result)
        return result;
    qi_vma_request request = {
        .is_linear = info->tiling == VK_IMAGE_TILING_LINEAR,
        .is_bound = !(options->flags & VMA_ALLOCATION_CREATE_DONT_BIND_BIT),
        .access = qi_vma_access_of_image(info),
        .create_info = info,
        .options = options,
    };
    qi_vma_query_image(allocator, created, &request);
    result = qi_vma_allocate(allocator, &request, handle, allocation_info);
    if (result)
        destroy_image(allocator, created);
    else
        *image = created;
    return result;
}

/* ---- dedicated memory --------------------------------------------------------------------- */

/*
 * A chain of VkMemoryAllocateInfo belongs to memories in quire, so that an allocation can only ask
 * for what its memory has.
 */

/* The memory types whose memory has what the chain asks for. */
static VkResult read_chain(VmaAllocator allocator, const VkBaseInStructure *next, uint32_t *types)
{
    const VkExportMemoryAllocateInfo *exported = (const void *)next;
    *types = UINT32_MAX;
    if (!next)
        return VK_SUCCESS;
    if (next->sType != VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO || next->pNext)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "pMemoryAllocateNext: only a VkExportMemoryAllocateInfo is supported, "
                           "not sType %u",
                           next->pNext ? next->pNext->sType : next->sType);
    if (!allocator->exported || exported->handleTypes != allocator->exported)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "pMemoryAllocateNext: handle types 0x%x: this allocator exports 0x%x",
                           exported->handleTypes, allocator->exported);
    *types = allocator->exporting_types;
    return VK_SUCCESS;
}

/* Writes the options of the program with what a dedicated allocation adds. */
static VkResult describe(VmaAllocator allocator, const VmaAllocationCreateInfo *options,
                         const void *next, VmaAllocationCreateInfo *own)
{
    uint32_t types;
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!options)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "pAllocationCreateInfo is null");
    if (next && options->pool)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "pMemoryAllocateNext with a pool, which has a chain of its own");
    VkResult result = read_chain(allocator, next, &types);
    *own = *options;
    own->flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    if (!result && next && !own->memoryTypeBits)
        own->memoryTypeBits = UINT32_MAX;
    if (!result && next && !(own->memoryTypeBits &= types))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "no memory type of the mask exports");
    return result;
}

VkResult quire_vma_allocate_dedicated_memory(VmaAllocator allocator,
                                             const VkMemoryRequirements *needs,
                                             const VmaAllocationCreateInfo *options,
                                             const void *next, VmaAllocation *handle,
                                             VmaAllocationInfo *info)
{
    VmaAllocationCreateInfo own;
    zero_outputs(handle, info);
    VkResult result = describe(allocator, options, next, &own);
    return result ? result : quire_vma_allocate_memory(allocator, needs, &own, handle, info);
}

VkResult quire_vma_create_dedicated_buffer(VmaAllocator allocator,
                                           const VkBufferCreateInfo *create_info,
                                           const VmaAllocationCreateInfo *options, const void *next,
                                           VkBuffer *buffer, VmaAllocation *handle,
                                           VmaAllocationInfo *info)
{
    VmaAllocationCreateInfo own;
    zero_outputs(handle, info);
    if (buffer)
        *buffer = VK_NULL_HANDLE;
    VkResult result = describe(allocator, options, next, &own);
    return result ? result
                  : quire_vma_create_buffer(allocator, create_info, &own, buffer, handle, info);
}

VkResult quire_vma_create_dedicated_image(VmaAllocator allocator,
                                          const VkImageCreateInfo *create_info,
                                          const VmaAllocationCreateInfo *options, const void *next,
                                          VkImage *image, VmaAllocation *handle,
                                          VmaAllocationInfo *info)
{
    VmaAllocationCreateInfo own;
    zero_outputs(handle, info);
    if (image)
        *image = VK_NULL_HANDLE;
    VkResult result = describe(allocator, options, next, &own);
    return result ? result
                  : quire_vma_create_image(allocator, create_info, &own, image, handle, info);
}

/* ---- destruction -------------------------------------------------------------------------- */

/* A bad handle is found before the object is destroyed: the object may be that of another one. */
void quire_vma_destroy_buffer(VmaAllocator allocator, VkBuffer buffer, VmaAllocation handle)
{
    if (!buffer && !handle)
        return;
    if (!qi_vma_is_allocator(allocator) || (handle && !qi_vma_allocation_of(allocator, handle))) {
        qi_vma_print("vmaDestroyBuffer");
        return;
    }
    if (buffer)
        destroy_buffer(allocator, buffer);
    if (handle && !qi_vma_free(allocator, handle))
        qi_vma_print("vmaDestroyBuffer");
}

void quire_vma_destroy_image(VmaAllocator allocator, VkImage image, VmaAllocation handle)
{
    if (!image && !handle)
        return;
    if (!qi_vma_is_allocator(allocator) || (handle && !qi_vma_allocation_of(allocator, handle))) {
        qi_vma_print("vmaDestroyImage");
        return;
    }
    if (image)
        destroy_image(allocator, image);
    if (handle && !qi_vma_free(allocator, handle))
        qi_vma_print("vmaDestroyImage");
}

/* ---- binding ------------------------------------------------------------------------------ */

/* Returns the record if the offset lies in the allocation. */
static const qi_vma_allocation *find(VmaAllocator allocator, VmaAllocation handle,
                                     VkDeviceSize offset)
{
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (!a || offset < a->size)
        return a;
    qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                "allocationLocalOffset is %llu, and the allocation has %llu bytes",
                (unsigned long long)offset, (unsigned long long)a->size);
    return NULL;
}

/* Only a chain needs the second form of the function. */
VkResult quire_vma_bind_buffer_memory2(VmaAllocator allocator, VmaAllocation handle,
                                       VkDeviceSize offset, VkBuffer buffer, const void *next)
{
    const qi_vma_allocation *a = find(allocator, handle, offset);
    if (!a)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!buffer)
        return refuse_null("vmaBindBufferMemory");
    const VkBindBufferMemoryInfo info = {.sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO,
                                         .pNext = next,
                                         .buffer = buffer,
                                         .memory = a->device_memory,
                                         .memoryOffset = a->offset + offset};
    VkResult result = next ? allocator->f.BindBufferMemory2(allocator->device, 1, &info)
                           : allocator->f.BindBufferMemory(allocator->device, buffer, info.memory,
                                                           info.memoryOffset);
    return result ? qi_vma_fail(result, "vkBindBufferMemory returned %d", result) : VK_SUCCESS;
}

VkResult quire_vma_bind_image_memory2(VmaAllocator allocator, VmaAllocation handle,
                                      VkDeviceSize offset, VkImage image, const void *next)
{
    const qi_vma_allocation *a = find(allocator, handle, offset);
    if (!a)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!image)
        return refuse_null("vmaBindImageMemory");
    const VkBindImageMemoryInfo info = {.sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO,
                                        .pNext = next,
                                        .image = image,
                                        .memory = a->device_memory,
                                        .memoryOffset = a->offset + offset};
    VkResult result = next ? allocator->f.BindImageMemory2(allocator->device, 1, &info)
                           : allocator->f.BindImageMemory(allocator->device, image, info.memory,
                                                          info.memoryOffset);
    return result ? qi_vma_fail(result, "vkBindImageMemory returned %d", result) : VK_SUCCESS;
}

VkResult quire_vma_bind_buffer_memory(VmaAllocator allocator, VmaAllocation handle, VkBuffer buffer)
{
    return quire_vma_bind_buffer_memory2(allocator, handle, 0, buffer, NULL);
}

VkResult quire_vma_bind_image_memory(VmaAllocator allocator, VmaAllocation handle, VkImage image)
{
    return quire_vma_bind_image_memory2(allocator, handle, 0, image, NULL);
}

/* ---- aliases ------------------------------------------------------------------------------ */

VkResult quire_vma_create_aliasing_buffer2(VmaAllocator allocator, VmaAllocation handle,
                                           VkDeviceSize offset, const VkBufferCreateInfo *info,
                                           VkBuffer *buffer)
{
    if (buffer)
        *buffer = VK_NULL_HANDLE;
    const qi_vma_allocation *a = find(allocator, handle, offset);
    if (!a)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || !buffer)
        return refuse_null("vmaCreateAliasingBuffer");
    if (info->size > a->size - offset)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "a buffer of %llu bytes at %llu of an allocation of %llu bytes",
                           (unsigned long long)info->size, (unsigned long long)offset,
                           (unsigned long long)a->size);
    VkBuffer created = VK_NULL_HANDLE;
    VkResult result = create_buffer(allocator, info, &created);
    if (result)
        return result;
    result = quire_vma_bind_buffer_memory2(allocator, handle, offset, created, NULL);
    if (result)
        destroy_buffer(allocator, created);
    else
        *buffer = created;
    return result;
}

VkResult quire_vma_create_aliasing_image2(VmaAllocator allocator, VmaAllocation handle,
                                          VkDeviceSize offset, const VkImageCreateInfo *info,
                                          VkImage *image)
{
    if (image)
        *image = VK_NULL_HANDLE;
    if (!find(allocator, handle, offset))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || !image)
        return refuse_null("vmaCreateAliasingImage");
    VkImage created = VK_NULL_HANDLE;
    VkResult result = create_image(allocator, info, &created);
    if (result)
        return result;
    result = quire_vma_bind_image_memory2(allocator, handle, offset, created, NULL);
    if (result)
        destroy_image(allocator, created);
    else
        *image = created;
    return result;
}

VkResult quire_vma_create_aliasing_buffer(VmaAllocator allocator, VmaAllocation handle,
                                          const VkBufferCreateInfo *info, VkBuffer *buffer)
{
    return quire_vma_create_aliasing_buffer2(allocator, handle, 0, info, buffer);
}

VkResult quire_vma_create_aliasing_image(VmaAllocator allocator, VmaAllocation handle,
                                         const VkImageCreateInfo *info, VkImage *image)
{
    return quire_vma_create_aliasing_image2(allocator, handle, 0, info, image);
}
