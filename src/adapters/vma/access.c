/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - quire maps an allocation once, until it is freed, and the other maps of a program only
 * count. Also information, flush and invalidate, and copies.
 */
#include <string.h>

#include "quire/quire_vma.h"
#include "src/adapters/vma/allocation.h"

/* ---- information -------------------------------------------------------------------------- */

void quire_vma_get_allocation_info(VmaAllocator allocator, VmaAllocation handle,
                                   VmaAllocationInfo *info)
{
    if (info)
        *info = (VmaAllocationInfo){0};
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (a && info)
        qi_vma_describe(a, info);
    else
        qi_vma_print("vmaGetAllocationInfo");
}

void quire_vma_get_allocation_info2(VmaAllocator allocator, VmaAllocation handle,
                                    VmaAllocationInfo2 *info)
{
    quire_allocation_info place;
    quire_page_info page;
    if (info)
        *info = (VmaAllocationInfo2){.blockSize = 0};
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (!a || !info || quire_allocation_get_info(a->memory, a->quire, &place) ||
        quire_page_get_info(a->memory, place.page, &page)) {
        qi_vma_print("vmaGetAllocationInfo2");
        return;
    }
    qi_vma_describe(a, &info->allocationInfo);
    /* VMA promises it of dedicated memory, which quire rounds up */
    info->blockSize = place.dedicated ? info->allocationInfo.size : page.size;
    info->dedicatedMemory = place.dedicated;
}

void quire_vma_set_allocation_user_data(VmaAllocator allocator, VmaAllocation handle,
                                        void *user_data)
{
    qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (a)
        a->user_data = user_data;
    else
        qi_vma_print("vmaSetAllocationUserData");
}

/* quire gets as much of the name as it takes, for its reports. */
void quire_vma_set_allocation_name(VmaAllocator allocator, VmaAllocation handle, const char *name)
{
    char text[QUIRE_MAX_NAME + 1] = "";
    qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (name)
        strncat(text, name, QUIRE_MAX_NAME);
    if (!a || quire_allocation_set_name(a->memory, a->quire, name ? text : NULL) ||
        !qi_vma_name_set(&allocator->host, &a->name, name))
        qi_vma_print("vmaSetAllocationName");
}

void quire_vma_get_allocation_memory_properties(VmaAllocator allocator, VmaAllocation handle,
                                                VkMemoryPropertyFlags *flags)
{
    if (flags)
        *flags = 0;
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (a && flags)
        *flags = qi_vma_flags_of_type(allocator, a->type);
    else
        qi_vma_print("vmaGetAllocationMemoryProperties");
}

/* ---- maps --------------------------------------------------------------------------------- */

static bool is_host_visible(VmaAllocator allocator, const qi_vma_allocation *a)
{
    return qi_vma_flags_of_type(allocator, a->type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
}

/* Only the first map reaches quire: the page of the allocation stays mapped anyway. */
VkResult quire_vma_map_memory(VmaAllocator allocator, VmaAllocation handle, void **data)
{
    if (data)
        *data = NULL;
    qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (!a)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!data)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "vmaMapMemory: ppData is null");
    if (!a->persistent && !a->mapped) {
        quire_result result = quire_map(a->memory, a->quire, &a->mapped);
        if (result)
            return qi_vma_result(result);
    }
    a->map_count++;
    *data = a->persistent ? a->persistent : a->mapped;
    return VK_SUCCESS;
}

void quire_vma_unmap_memory(VmaAllocator allocator, VmaAllocation handle)
{
    qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (a && a->map_count) {
        a->map_count--;
        return;
    }
    if (a)
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the allocation is not mapped");
    qi_vma_print("vmaUnmapMemory");
}

/* ---- flush and invalidate ----------------------------------------------------------------- */

typedef quire_result sync_function(quire_memory *memory, quire_allocation allocation,
                                   uint64_t offset, uint64_t size);

/* Nothing is to be done for 0 bytes, nor for memory that the host cannot map. */
static VkResult sync(VmaAllocator allocator, VmaAllocation handle, VkDeviceSize offset,
                     VkDeviceSize size, sync_function *function)
{
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (!a)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!size || !is_host_visible(allocator, a) || (size == VK_WHOLE_SIZE && offset == a->size))
        return VK_SUCCESS;
    quire_result result = function(a->memory, a->quire, offset, size == VK_WHOLE_SIZE ? 0 : size);
    return result == QUIRE_ERROR_OUT_OF_RANGE ? VK_ERROR_VALIDATION_FAILED_EXT
                                              : qi_vma_result(result);
}

/* Every handle is checked before the first range is flushed. */
static VkResult sync_all(VmaAllocator allocator, uint32_t count, const VmaAllocation *handles,
                         const VkDeviceSize *offsets, const VkDeviceSize *sizes,
                         sync_function *function)
{
    VkResult result = VK_SUCCESS;
    if (count && !handles)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the array of allocations is null");
    for (uint32_t i = 0; i < count; i++)
        if (!qi_vma_allocation_of(allocator, handles[i]))
            return VK_ERROR_VALIDATION_FAILED_EXT;
    for (uint32_t i = 0; i < count && !result; i++)
        result = sync(allocator, handles[i], offsets ? offsets[i] : 0,
                      sizes ? sizes[i] : VK_WHOLE_SIZE, function);
    return result;
}

VkResult quire_vma_flush_allocation(VmaAllocator allocator, VmaAllocation handle,
                                    VkDeviceSize offset, VkDeviceSize size)
{
    return sync(allocator, handle, offset, size, quire_flush);
}

VkResult quire_vma_invalidate_allocation(VmaAllocator allocator, VmaAllocation handle,
                                         VkDeviceSize offset, VkDeviceSize size)
{
    return sync(allocator, handle, offset, size, quire_invalidate);
}

VkResult quire_vma_flush_allocations(VmaAllocator allocator, uint32_t count,
                                     const VmaAllocation *handles, const VkDeviceSize *offsets,
                                     const VkDeviceSize *sizes)
{
    return sync_all(allocator, count, handles, offsets, sizes, quire_flush);
}

VkResult quire_vma_invalidate_allocations(VmaAllocator allocator, uint32_t count,
                                          const VmaAllocation *handles, const VkDeviceSize *offsets,
                                          const VkDeviceSize *sizes)
{
    return sync_all(allocator, count, handles, offsets, sizes, quire_invalidate);
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Checks what quire_write and quire_read would do in another way than VMA: on memory that cannot be
   mapped they would submit a copy. */
static VkResult check_copy(VmaAllocator allocator, const qi_vma_allocation *a, const void *host,
                           VkDeviceSize offset, VkDeviceSize size)
{
    if (!a)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!host || offset > a->size || size > a->size - offset)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "a copy of %llu bytes at %llu: the host pointer is null, or the "
                           "allocation of %llu bytes ends before",
                           (unsigned long long)size, (unsigned long long)offset,
                           (unsigned long long)a->size);
    if (!is_host_visible(allocator, a))
        return qi_vma_fail(VK_ERROR_MEMORY_MAP_FAILED, "memory type %u cannot be mapped", a->type);
    return VK_SUCCESS;
}

VkResult quire_vma_copy_memory_to_allocation(VmaAllocator allocator, const void *source,
                                             VmaAllocation handle, VkDeviceSize offset,
                                             VkDeviceSize size)
{
    if (!size)
        return VK_SUCCESS;
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    VkResult result = check_copy(allocator, a, source, offset, size);
    return result ? result : qi_vma_result(quire_write(a->memory, a->quire, offset, source, size));
}

VkResult quire_vma_copy_allocation_to_memory(VmaAllocator allocator, VmaAllocation handle,
                                             VkDeviceSize offset, void *target, VkDeviceSize size)
{
    if (!size)
        return VK_SUCCESS;
    const qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    VkResult result = check_copy(allocator, a, target, offset, size);
    return result ? result : qi_vma_result(quire_read(a->memory, a->quire, offset, target, size));
}
