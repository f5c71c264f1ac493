/*
 * allocate.c - the functions that allocate and free memory without an object of their own.
 */
#include "quire/quire_vma.h"
#include "src/adapters/vma/allocation.h"

/* Begins each function that allocates: empties the outputs and checks the inputs. */
static VkResult begin(const char *function, VmaAllocator allocator, const void *needed,
                      const VmaAllocationCreateInfo *options, VmaAllocation *handle,
                      VmaAllocationInfo *info)
{
    if (handle)
        *handle = NULL;
    if (info)
        *info = (VmaAllocationInfo){0};
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (needed && options && handle)
        return VK_SUCCESS;
    return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "%s: an argument is null", function);
}

VkResult quire_vma_allocate_memory(VmaAllocator allocator, const VkMemoryRequirements *needs,
                                   const VmaAllocationCreateInfo *options, VmaAllocation *handle,
                                   VmaAllocationInfo *info)
{
    VkResult result = begin("vmaAllocateMemory", allocator, needs, options, handle, info);
    if (result)
        return result;
    const qi_vma_request request = {.needs = *needs, .options = options};
    return qi_vma_allocate(allocator, &request, handle, info);
}

/* One of the two objects is null. The tiling of an image is unknown: the range is good for both. */
static VkResult allocate_for(const char *function, VmaAllocator allocator, VkBuffer buffer,
                             VkImage image, const VmaAllocationCreateInfo *options,
                             VmaAllocation *handle, VmaAllocationInfo *info)
{
    qi_vma_request request = {.options = options};
    VkResult result =
        begin(function, allocator, buffer || image ? &request : NULL, options, handle, info);
    if (result)
        return result;
    if (buffer)
        qi_vma_query_buffer(allocator, buffer, &request);
    else
        qi_vma_query_image(allocator, image, &request);
    return qi_vma_allocate(allocator, &request, handle, info);
}

VkResult quire_vma_allocate_memory_for_buffer(VmaAllocator allocator, VkBuffer buffer,
                                              const VmaAllocationCreateInfo *options,
                                              VmaAllocation *handle, VmaAllocationInfo *info)
{
    return allocate_for("vmaAllocateMemoryForBuffer", allocator, buffer, VK_NULL_HANDLE, options,
                        handle, info);
}

VkResult quire_vma_allocate_memory_for_image(VmaAllocator allocator, VkImage image,
                                             const VmaAllocationCreateInfo *options,
                                             VmaAllocation *handle, VmaAllocationInfo *info)
{
    return allocate_for("vmaAllocateMemoryForImage", allocator, VK_NULL_HANDLE, image, options,
                        handle, info);
}

/* As in VMA, one request describes all pages. */
VkResult quire_vma_allocate_memory_pages(VmaAllocator allocator, const VkMemoryRequirements *needs,
                                         const VmaAllocationCreateInfo *options, size_t count,
                                         VmaAllocation *handles, VmaAllocationInfo *infos)
{
    if (!count)
        return VK_SUCCESS;
    VkResult result = begin("vmaAllocateMemoryPages", allocator, needs, options, handles, NULL);
    for (size_t i = 0; i < count && handles; i++)
        handles[i] = NULL;
    for (size_t i = 0; i < count && infos; i++)
        infos[i] = (VmaAllocationInfo){0};
    for (size_t i = 0; i < count && !result; i++) {
        const qi_vma_request request = {.needs = *needs, .options = options};
        result = qi_vma_allocate(allocator, &request, &handles[i], infos ? &infos[i] : NULL);
    }
    for (size_t i = 0; i < count && handles && result; i++) {
        if (handles[i] && !qi_vma_free(allocator, handles[i]))
            qi_vma_print("vmaAllocateMemoryPages");
        handles[i] = NULL;
        if (infos)
            infos[i] = (VmaAllocationInfo){0};
    }
    return result;
}

void quire_vma_free_memory(VmaAllocator allocator, VmaAllocation handle)
{
    if (handle && !qi_vma_free(allocator, handle))
        qi_vma_print("vmaFreeMemory");
}

void quire_vma_free_memory_pages(VmaAllocator allocator, size_t count, const VmaAllocation *handles)
{
    for (size_t i = 0; i < count && handles; i++)
        if (handles[i] && !qi_vma_free(allocator, handles[i]))
            qi_vma_print("vmaFreeMemoryPages");
}
