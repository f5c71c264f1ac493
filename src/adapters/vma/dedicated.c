/*
 * dedicated.c - the functions that always allocate dedicated memory. A chain of
 * VkMemoryAllocateInfo belongs to memories in quire, so that an allocation can only ask for what
 * its memory has.
 */
#include "quire/quire_vma.h"
#include "src/adapters/vma/error.h"
#include "src/adapters/vma/allocator.h"

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

static void zero_outputs(VmaAllocation *handle, VmaAllocationInfo *info)
{
    if (handle)
        *handle = NULL;
    if (info)
        *info = (VmaAllocationInfo){0};
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
