/*
 * memory_type.c - see memory_type.h, and the functions that find a memory type.
 */
#include "src/adapters/vma/memory_type.h"

#include "quire/quire_vma.h"
#include "quire/vulkan.h"

bool qi_vma_next_type(VmaAllocator allocator, qi_vma_search *search, uint32_t *type)
{
    if (!qi_vma_choose(&allocator->memory, &search->wish, search->mask, type))
        return false;
    search->mask &= ~(UINT32_C(1) << *type);
    return true;
}

VkResult qi_vma_first_type(VmaAllocator allocator, uint32_t mask,
                           const VmaAllocationCreateInfo *options, qi_vma_access access,
                           qi_vma_search *search, uint32_t *type)
{
    bool is_integrated = allocator->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    VkResult result = qi_vma_wish_of(options, access, is_integrated, &search->wish);
    if (result)
        return result;
    search->mask = mask & allocator->usable_types;
    if (options->memoryTypeBits)
        search->mask &= options->memoryTypeBits;
    if (qi_vma_next_type(allocator, search, type))
        return VK_SUCCESS;
    return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                       "none of the memory types 0x%x has the flags 0x%x", search->mask,
                       search->wish.required);
}

static VkResult find(VmaAllocator allocator, uint32_t mask, const VmaAllocationCreateInfo *options,
                     qi_vma_access access, uint32_t *type)
{
    qi_vma_search search;
    return qi_vma_first_type(allocator, mask, options, access, &search, type);
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
