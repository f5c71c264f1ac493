/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation.c - allocates and frees; the functions without an object of their own.
 *
 * An allocation is a raw range of a memory, which the adapter binds. quire places an object that
 * gets dedicated memory, because its page is made for it, and an image that can have a page among
 * images alone.
 */
#include "src/adapters/vma/allocation.h"

#include "quire/quire_vma.h"
#include "quire/vulkan.h"
#include "src/adapters/vma/memory.h"

/* ---- requests ----------------------------------------------------------------------------- */

static const VmaAllocationCreateFlags KNOWN_FLAGS =
    VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT | VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT |
    VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT |
    VMA_ALLOCATION_CREATE_DONT_BIND_BIT | VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT |
    VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
    VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT |
    VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT |
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT | VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT |
    VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;

static const char NO_UPPER_END[] = "UPPER_ADDRESS_BIT requires a linear pool";

static VkResult check(const qi_vma_request *request)
{
    const VmaAllocationCreateInfo *options = request->options;
    VmaAllocationCreateFlags flags = options->flags;
    VkDeviceSize alignment = request->needs.alignment;
    if (flags & VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "STRATEGY_MIN_OFFSET_BIT serves virtual blocks only");
    if (flags & ~KNOWN_FLAGS)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "allocation flags 0x%x",
                           flags & ~KNOWN_FLAGS);
    if (flags & VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT && !options->pool)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "%s", NO_UPPER_END);
    if (request->requires_dedicated && flags & VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT)
        return qi_vma_fail(
            VK_ERROR_FEATURE_NOT_PRESENT,
            "the driver requires dedicated memory, which NEVER_ALLOCATE_BIT excludes");
    if (!request->needs.size)
        return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED, "an allocation of 0 bytes");
    if ((alignment & (alignment - 1)) || (request->min_alignment & (request->min_alignment - 1)) ||
        (options->minAlignment & (options->minAlignment - 1)))
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the alignment is no power of two");
    return qi_vma_check_options(options);
}

/* The chain of requirements that an object has. */
typedef struct requirements {
    VkMemoryDedicatedRequirements dedicated;
    VkMemoryRequirements2 needed;
} requirements;

static void begin_query(requirements *n)
{
    *n = (requirements){.dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS},
                        .needed = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2}};
    n->needed.pNext = &n->dedicated;
}

static void end_query(const requirements *n, qi_vma_request *request)
{
    request->needs = n->needed.memoryRequirements;
    request->requires_dedicated = n->dedicated.requiresDedicatedAllocation;
    request->prefers_dedicated = n->dedicated.prefersDedicatedAllocation;
}

void qi_vma_query_buffer(VmaAllocator allocator, VkBuffer buffer, qi_vma_request *request)
{
    requirements n;
    const VkBufferMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = buffer};
    begin_query(&n);
    allocator->f.GetBufferMemoryRequirements2(allocator->device, &info, &n.needed);
    end_query(&n, request);
    request->buffer = buffer;
    request->is_linear = true;
}

void qi_vma_query_image(VmaAllocator allocator, VkImage image, qi_vma_request *request)
{
    requirements n;
    const VkImageMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    begin_query(&n);
    allocator->f.GetImageMemoryRequirements2(allocator->device, &info, &n.needed);
    end_query(&n, request);
    request->image = image;
}

/* ---- in one memory ------------------------------------------------------------------------ */

static VkDeviceSize larger(VkDeviceSize a, VkDeviceSize b)
{
    return a > b ? a : b;
}

static VkResult bind(VmaAllocator allocator, const qi_vma_request *request,
                     const qi_vma_allocation *a)
{
    if (!request->is_bound)
        return VK_SUCCESS;
    VkResult result = request->buffer
                          ? allocator->f.BindBufferMemory(allocator->device, request->buffer,
                                                          a->device_memory, a->offset)
                          : allocator->f.BindImageMemory(allocator->device, request->image,
                                                         a->device_memory, a->offset);
    return result ? qi_vma_fail(result, "vkBindBufferMemory or vkBindImageMemory") : VK_SUCCESS;
}

/* Writes the position of an allocation of quire into the record, and binds the object unless quire
   has. On failure the allocation is freed. */
static VkResult locate(VmaAllocator allocator, const qi_vma_request *request, bool is_bound,
                       qi_vma_allocation *a)
{
    quire_vulkan_range range;
    VkResult result = qi_vma_result(quire_vulkan_get_range(a->memory, a->quire, &range));
    a->device_memory = range.memory;
    a->offset = range.memory_offset;
    if (!result && !is_bound)
        result = bind(allocator, request, a);
    if (result && quire_free(a->memory, a->quire))
        return VK_ERROR_UNKNOWN;
    return result;
}

/* Whether a page of the size is beyond the budget that vmaGetHeapBudgets states. */
static bool is_beyond(VmaAllocator allocator, uint32_t heap, VkDeviceSize size)
{
    quire_budget_info info;
    return !quire_device_get_budget(allocator->quire, heap, &info) &&
           size + info.reserved > qi_vma_usual_budget(allocator, heap);
}

/* Whether WITHIN_BUDGET forbids a page for the request. quire decides it if the driver reports a
   budget. */
static bool is_over_budget(VmaAllocator allocator, const qi_vma_request *request, uint32_t type)
{
    uint32_t heap = allocator->memory.memoryTypes[type].heapIndex;
    VkDeviceSize size = request->needs.size;
    return request->options->flags & VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT &&
           !(allocator->flags & VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT) &&
           is_beyond(allocator, heap, size) &&
           !(qi_vma_release_empty(allocator) && !is_beyond(allocator, heap, size));
}

/* A raw range, for the objects of one tiling. `existing` : of a page that exists. */
static VkResult allocate_range(VmaAllocator allocator, const qi_vma_request *request,
                               VkDeviceSize alignment, bool is_mapped, bool existing,
                               qi_vma_allocation *a)
{
    VkDeviceSize granularity = request->is_linear ? 1 : qi_vma_granularity(allocator);
    quire_allocation_info info;
    const quire_allocation_options options = {
        .size = qi_vma_rounded(request->needs.size, granularity),
        .alignment = larger(alignment, granularity),
        .dedicated = qi_vma_is_dedicated(request->options),
        .mapped = is_mapped,
        .existing_pages = existing,
        .within_budget = request->options->flags & VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT,
        .upper = request->options->flags & VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT,
        .movable = true,
        .user_data = a->handle,
        .info = is_mapped ? &info : NULL,
    };
    quire_result result = quire_allocate(a->memory, &options, &a->quire);
    if (result)
        return qi_vma_result(result);
    a->persistent = is_mapped ? info.host : NULL;
    return locate(allocator, request, false, a);
}

/* An object with dedicated memory, or an image in a page of images. `existing` as above. */
static VkResult place_object(VmaAllocator allocator, const qi_vma_request *request,
                             VkDeviceSize alignment, bool is_mapped, bool existing,
                             qi_vma_allocation *a)
{
    quire_allocation_info info;
    const quire_vulkan_object_options options = {
        .alignment = alignment,
        .dedicated = qi_vma_is_dedicated(request->options),
        .mapped = is_mapped,
        .existing_pages = existing,
        .within_budget = request->options->flags & VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT,
        .unbound = !request->is_bound,
        .info = &info,
        .create_info = request->create_info,
        .tiling =
            request->is_linear && !request->buffer ? QUIRE_TILING_LINEAR : QUIRE_TILING_OPTIMAL,
    };
    quire_buffer buffer;
    quire_image image;
    quire_result result =
        request->buffer ? quire_vulkan_buffer_place(a->memory, request->buffer, &options, &buffer)
                        : quire_vulkan_image_place(a->memory, request->image, &options, &image);
    if (result)
        return qi_vma_result(result);
    a->quire = request->buffer ? buffer.allocation : image.allocation;
    a->persistent = info.host;
    return locate(allocator, request, true, a);
}

/* Up to this bufferImageGranularity quire rounds images in pages that they share with others. */
enum { LARGE_GRANULARITY = 1024 };

/*
 * Whether quire places an image of optimal tiling without granules: if they are large, in pages of
 * such images. Only images may share its memory there, so that the program must neither alias it
 * nor choose the end of a linear pool. If they are small, a raw range costs no more bytes and fewer
 * calls.
 */
static bool has_no_granules(VmaAllocator allocator, const qi_vma_request *request)
{
    const VmaAllocationCreateFlags excluded =
        VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT | VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    return request->image && !request->is_linear && request->create_info &&
           qi_vma_granularity(allocator) > LARGE_GRANULARITY &&
           !(request->options->flags & excluded);
}

/* Allocates in a->memory, of a->type: dedicated if it must be, or if it can be and is better.
   `pool_alignment` is that of the pool; 0: none. */
static VkResult allocate_in(VmaAllocator allocator, const qi_vma_request *request,
                            VkDeviceSize pool_alignment, qi_vma_allocation *a)
{
    VmaAllocationCreateFlags flags = request->options->flags;
    VkDeviceSize alignment = larger(larger(pool_alignment, request->options->minAlignment),
                                    larger(request->needs.alignment, request->min_alignment));
    bool never = flags & VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT;
    bool can_be = (request->buffer || request->image) && !never;
    bool must_be = qi_vma_is_dedicated(request->options) || request->requires_dedicated;
    bool is_over = is_over_budget(allocator, request, a->type);
    bool is_mapped = flags & VMA_ALLOCATION_CREATE_MAPPED_BIT &&
                     qi_vma_flags_of_type(allocator, a->type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    a->size = request->needs.size;
    if (must_be && is_over)
        return qi_vma_fail(VK_ERROR_OUT_OF_DEVICE_MEMORY,
                           "WITHIN_BUDGET: memory of %llu bytes exceeds four fifths of the heap",
                           (unsigned long long)request->needs.size);
    bool is_dedicated = (must_be || (request->prefers_dedicated && !is_over)) && can_be;
    bool existing = never || is_over;
    return is_dedicated || has_no_granules(allocator, request)
               ? place_object(allocator, request, alignment, is_mapped, existing, a)
               : allocate_range(allocator, request, alignment, is_mapped, existing, a);
}

/* ---- in a pool, or in the best memory type ------------------------------------------------ */

static VkResult allocate_in_pool(VmaAllocator allocator, const qi_vma_request *request,
                                 qi_vma_allocation *a)
{
    const qi_vma_pool *pool = qi_vma_pool_of(allocator, request->options->pool);
    if (!pool)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!(request->needs.memoryTypeBits >> pool->type & 1))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "the pool has memory type %u, which cannot hold the object", pool->type);
    if (request->options->flags & VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT && !pool->is_linear)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "%s", NO_UPPER_END);
    if (pool->block_size && (request->requires_dedicated || qi_vma_is_dedicated(request->options)))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "a pool with a blockSize has no dedicated memory");
    if (pool->block_size && request->needs.size > pool->block_size)
        return qi_vma_fail(
            VK_ERROR_OUT_OF_DEVICE_MEMORY, "%llu bytes in a pool whose blockSize is %llu",
            (unsigned long long)request->needs.size, (unsigned long long)pool->block_size);
    a->memory = pool->memory;
    a->type = pool->type;
    VkResult result = allocate_in(allocator, request, pool->min_alignment, a);
    /* a pool with all its blocks */
    return result == VK_ERROR_TOO_MANY_OBJECTS ? VK_ERROR_OUT_OF_DEVICE_MEMORY : result;
}

static bool is_out_of_memory(VkResult result)
{
    return result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_TOO_MANY_OBJECTS ||
           result == VK_ERROR_FEATURE_NOT_PRESENT;
}

static VkResult allocate_of_type(VmaAllocator allocator, const qi_vma_request *request,
                                 qi_vma_allocation *a)
{
    const VmaAllocationCreateInfo *options = request->options;
    bool is_dedicated = qi_vma_is_dedicated(options);
    float priority = is_dedicated ? qi_vma_priority(allocator, options->priority) : 0;
    VkResult result = qi_vma_memory_of_type(allocator, a->type, priority, &a->memory);
    return result ? result : allocate_in(allocator, request, 0, a);
}

/* Tries the types from the best one on. */
static VkResult allocate_anywhere(VmaAllocator allocator, const qi_vma_request *request,
                                  qi_vma_allocation *a)
{
    qi_vma_search search;
    VkResult result = qi_vma_first_type(allocator, request->needs.memoryTypeBits, request->options,
                                        request->access, &search, &a->type);
    if (result)
        return result;
    do
        result = allocate_of_type(allocator, request, a);
    while (is_out_of_memory(result) && qi_vma_next_type(allocator, &search, &a->type));
    return is_out_of_memory(result) ? VK_ERROR_OUT_OF_DEVICE_MEMORY : result;
}

/* ---- making, finding and freeing ---------------------------------------------------------- */

/* What the program attaches. */
static VkResult attach(VmaAllocator allocator, const VmaAllocationCreateInfo *options,
                       qi_vma_allocation *a)
{
    bool is_name = options->flags & VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT;
    a->map_count = 0;
    a->mapped = NULL;
    a->name = NULL;
    a->user_data = is_name ? NULL : options->pUserData;
    if (!is_name || qi_vma_name_set(&allocator->host, &a->name, options->pUserData))
        return VK_SUCCESS;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

VkResult qi_vma_allocate(VmaAllocator allocator, const qi_vma_request *request,
                         VmaAllocation *handle, VmaAllocationInfo *info)
{
    uintptr_t number;
    VkResult result = check(request);
    if (result)
        return result;
    qi_vma_allocation *a = qi_vma_table_take(&allocator->allocations, &number);
    if (!a)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    a->handle = number;
    result = attach(allocator, request->options, a);
    if (!result)
        result = request->options->pool ? allocate_in_pool(allocator, request, a)
                                        : allocate_anywhere(allocator, request, a);
    if (result) {
        qi_vma_name_set(&allocator->host, &a->name, NULL);
        qi_vma_table_give(&allocator->allocations, number);
        return result;
    }
    if (info)
        qi_vma_describe(a, info);
    *handle = (VmaAllocation)number;
    return VK_SUCCESS;
}

qi_vma_allocation *qi_vma_allocation_of(VmaAllocator allocator, VmaAllocation handle)
{
    return qi_vma_is_allocator(allocator)
               ? qi_vma_table_find(&allocator->allocations, (uintptr_t)handle)
               : NULL;
}

/* Ends the maps of an allocation that is freed. A program that forgets to unmap works with VMA,
   whose assertion is not in release builds. It gets a line, and nothing is lost. */
static bool end_maps(qi_vma_allocation *a)
{
    if (a->map_count) {
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                    "the freed allocation was mapped: %u call%s of vmaUnmapMemory %s missing",
                    a->map_count, a->map_count == 1 ? "" : "s", a->map_count == 1 ? "is" : "are");
        qi_vma_print("vmaFreeMemory");
        a->map_count = 0;
    }
    if (!a->mapped)
        return true;
    a->mapped = NULL;
    return !quire_unmap(a->memory, a->quire);
}

/*
 * quire lets exactly one of several threads free an allocation. The handle is checked again after
 * the record was read: another thread may have freed the allocation, and a third one taken the
 * record, in between.
 */
bool qi_vma_free(VmaAllocator allocator, VmaAllocation handle)
{
    qi_vma_allocation *a = qi_vma_allocation_of(allocator, handle);
    if (!a || !end_maps(a))
        return false;
    quire_memory *memory = a->memory;
    quire_allocation quire = a->quire;
    if (!qi_vma_table_still_has(&allocator->allocations, (uintptr_t)handle) ||
        quire_free(memory, quire))
        return false;
    qi_vma_name_set(&allocator->host, &a->name, NULL);
    qi_vma_table_give(&allocator->allocations, (uintptr_t)handle);
    return true;
}

void qi_vma_describe(const qi_vma_allocation *a, VmaAllocationInfo *info)
{
    *info = (VmaAllocationInfo){.memoryType = a->type,
                                .deviceMemory = a->device_memory,
                                .offset = a->offset,
                                .size = a->size,
                                .pMappedData = a->persistent  ? a->persistent
                                               : a->map_count ? a->mapped
                                                              : NULL,
                                .pUserData = a->user_data,
                                .pName = a->name};
}

/* ---- targets of moves --------------------------------------------------------------------- */

VkResult qi_vma_take_target(VmaAllocator allocator, const qi_vma_allocation *source,
                            quire_allocation quire, qi_vma_allocation **target)
{
    uintptr_t number;
    quire_allocation_info info;
    quire_vulkan_range range;
    qi_vma_allocation *a = qi_vma_table_take(&allocator->allocations, &number);
    if (!a)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    a->handle = number;
    a->type = source->type;
    a->map_count = source->map_count;
    a->memory = source->memory;
    a->quire = quire;
    a->size = source->size;
    a->mapped = a->persistent = a->user_data = NULL;
    a->name = NULL;
    quire_result result = quire_vulkan_get_range(a->memory, quire, &range);
    if (!result)
        result = quire_allocation_get_info(a->memory, quire, &info);
    if (!result && source->map_count && !source->persistent)
        result = quire_map(a->memory, quire, &a->mapped);
    if (result) {
        qi_vma_table_give(&allocator->allocations, number);
        return qi_vma_result(result);
    }
    a->device_memory = range.memory;
    a->offset = range.memory_offset;
    a->persistent = info.host;
    *target = a;
    return VK_SUCCESS;
}

bool qi_vma_end_target_map(qi_vma_allocation *target)
{
    const bool is_mapped = target->mapped;
    target->mapped = NULL;
    return !is_mapped || !quire_unmap(target->memory, target->quire);
}

VkResult qi_vma_take_place(qi_vma_allocation *source, const qi_vma_allocation *target)
{
    void *pointer;
    source->device_memory = target->device_memory;
    source->offset = target->offset;
    source->persistent = target->persistent;
    if (!source->mapped)
        return VK_SUCCESS;
    quire_result result = quire_map(source->memory, source->quire, &pointer);
    if (!result) {
        source->mapped = pointer;
        result = quire_unmap(source->memory, source->quire);
    }
    return qi_vma_result(result);
}

/* ---- the functions of the interface ------------------------------------------------------- */

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
