/*
 * memory_type.c - the functions that find a memory type.
 */
#include "quire/quire_vma.h"
#include "quire/vulkan.h"
#include "src/adapters/vma/allocation.h"

static VkResult find(VmaAllocator allocator, uint32_t mask, const VmaAllocationCreateInfo *options,
                     qi_vma_access access, uint32_t *type)
{
    qi_vma_wish wish;
    bool is_integrated = allocator->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    VkResult result = qi_vma_wish_of(options, access, is_integrated, &wish);
    if (result)
        return result;
    mask &= allocator->usable_types;
    if (options->memoryTypeBits)
        mask &= options->memoryTypeBits;
    if (qi_vma_choose(&allocator->memory, &wish, mask, type))
        return VK_SUCCESS;
    return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                       "none of the memory types 0x%x has the flags 0x%x", mask, wish.required);
}

static VkResult begin(VmaAllocator allocator, const void *info,
                      const VmaAllocationCreateInfo *options, uint32_t *type)
{
    if (type)
        *type = UINT32_MAX;
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (info && options && type)
        return VK_SUCCESS;
    return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                       "vmaFindMemoryTypeIndex: an argument is null");
}

VkResult quire_vma_find_memory_type_index(VmaAllocator allocator, uint32_t mask,
                                          const VmaAllocationCreateInfo *options, uint32_t *type)
{
    VkResult result = begin(allocator, options, options, type);
    return result ? result : find(allocator, mask, options, QI_VMA_ACCESS_UNKNOWN, type);
}

/* quire asks the driver without an object if it can, and otherwise creates one for the question. */
VkResult quire_vma_find_memory_type_index_for_buffer_info(VmaAllocator allocator,
                                                          const VkBufferCreateInfo *info,
                                                          const VmaAllocationCreateInfo *options,
                                                          uint32_t *type)
{
    quire_requirements needed;
    VkResult result = begin(allocator, info, options, type);
    if (!result)
        result = qi_vma_result(quire_vulkan_buffer_requirements(allocator->quire, info, &needed));
    if (result)
        return result;
    bool has_maintenance5 = allocator->flags & VMA_ALLOCATOR_CREATE_KHR_MAINTENANCE5_BIT;
    return find(allocator, needed.kind_mask, options,
                qi_vma_access_of_buffer(info, has_maintenance5), type);
}

VkResult quire_vma_find_memory_type_index_for_image_info(VmaAllocator allocator,
                                                         const VkImageCreateInfo *info,
                                                         const VmaAllocationCreateInfo *options,
                                                         uint32_t *type)
{
    quire_requirements needed;
    VkResult result = begin(allocator, info, options, type);
    if (!result)
        result = qi_vma_result(quire_vulkan_image_requirements(allocator->quire, info, &needed));
    return result ? result
                  : find(allocator, needed.kind_mask, options, qi_vma_access_of_image(info), type);
}
