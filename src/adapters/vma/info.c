/*
 * info.c - what is known about allocations and the physical device.
 */
#include <string.h>

#include "quire/quire_vma.h"
#include "src/adapters/vma/allocation.h"
#include "src/adapters/vma/memory.h"
#include "src/adapters/vma/name.h"

/* ---- allocations ---------------------------------------------------------------------------- */

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

/* ---- the physical device -------------------------------------------------------------------- */

/* Begins each function that writes one output; prints what is wrong. */
static bool has_output(const char *function, VmaAllocator allocator, const void *output)
{
    bool is_good = qi_vma_is_allocator(allocator);
    if (is_good && !output) {
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the output is null");
        is_good = false;
    }
    if (!is_good)
        qi_vma_print(function);
    return is_good;
}

void quire_vma_get_allocator_info(VmaAllocator allocator, VmaAllocatorInfo *info)
{
    if (has_output("vmaGetAllocatorInfo", allocator, info))
        *info = (VmaAllocatorInfo){.instance = allocator->instance,
                                   .physicalDevice = allocator->physical_device,
                                   .device = allocator->device};
}

void quire_vma_get_physical_device_properties(VmaAllocator allocator,
                                              const VkPhysicalDeviceProperties **properties)
{
    if (has_output("vmaGetPhysicalDeviceProperties", allocator, properties))
        *properties = &allocator->properties;
}

void quire_vma_get_memory_properties(VmaAllocator allocator,
                                     const VkPhysicalDeviceMemoryProperties **properties)
{
    if (has_output("vmaGetMemoryProperties", allocator, properties))
        *properties = &allocator->memory;
}

void quire_vma_get_memory_type_properties(VmaAllocator allocator, uint32_t type,
                                          VkMemoryPropertyFlags *flags)
{
    if (has_output("vmaGetMemoryTypeProperties", allocator, flags))
        *flags =
            type < allocator->memory.memoryTypeCount ? qi_vma_flags_of_type(allocator, type) : 0;
}

/* The number itself says nothing to quire, which asks for the budget whenever it makes a page. */
void quire_vma_set_current_frame_index(VmaAllocator allocator, uint32_t frame)
{
    (void)frame;
    if (qi_vma_is_allocator(allocator))
        qi_vma_trim(allocator);
    else
        qi_vma_print("vmaSetCurrentFrameIndex");
}
