/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * choice.c - tables turn the usage and flags of a program into a wish; the memory type that departs
 * from it in the fewest flags is chosen, for allocations and for vmaFindMemoryTypeIndex.
 */
#include "src/adapters/vma/choice.h"

#include "quire/quire_vma.h"
#include "quire/vulkan.h"

/* ---- access ------------------------------------------------------------------------------- */

static qi_vma_access access_of(uint64_t usage)
{
    /* These bits are the same for buffers and images. */
    const uint64_t transfer = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (usage == 0)
        return QI_VMA_ACCESS_UNKNOWN;
    return usage & ~transfer ? QI_VMA_ACCESS_DEVICE : QI_VMA_ACCESS_TRANSFER;
}

/* VkBufferUsageFlags2CreateInfo of Vulkan 1.4, which older headers lack. */
typedef struct usage2 {
    VkStructureType sType;
    const void *pNext;
    uint64_t usage;
} usage2;

#define USAGE2 ((VkStructureType)1000470006)

qi_vma_access qi_vma_access_of_buffer(const VkBufferCreateInfo *info, bool has_maintenance5)
{
    const VkBaseInStructure *link = has_maintenance5 ? info->pNext : NULL;
    while (link && link->sType != USAGE2)
        link = link->pNext;
    return access_of(link ? ((const usage2 *)(const void *)link)->usage : info->usage);
}

qi_vma_access qi_vma_access_of_image(const VkImageCreateInfo *info)
{
    return access_of(info->usage);
}

/* ---- options ------------------------------------------------------------------------------ */

enum {
    DEDICATED = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT,
    NEVER_ALLOCATE = VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT,
    MAPPED = VMA_ALLOCATION_CREATE_MAPPED_BIT,
    SEQUENTIAL = VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT,
    RANDOM = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT,
    INSTEAD = VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT
};

static bool is_auto(VmaMemoryUsage usage)
{
    return usage == VMA_MEMORY_USAGE_AUTO || usage == VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE ||
           usage == VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
}

bool qi_vma_is_dedicated(const VmaAllocationCreateInfo *options)
{
    return options->flags & DEDICATED || options->usage == VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED;
}

VkResult qi_vma_check_options(const VmaAllocationCreateInfo *options)
{
    const VmaAllocationCreateFlags flags = options->flags;
    const bool has_host_access = flags & (SEQUENTIAL | RANDOM);
    if (flags & SEQUENTIAL && flags & RANDOM)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "flags has both HOST_ACCESS_SEQUENTIAL_WRITE and HOST_ACCESS_RANDOM");
    if (flags & INSTEAD && !has_host_access)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "HOST_ACCESS_ALLOW_TRANSFER_INSTEAD needs "
                           "HOST_ACCESS_SEQUENTIAL_WRITE or HOST_ACCESS_RANDOM");
    if (flags & MAPPED && is_auto(options->usage) && !has_host_access)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "MAPPED with an AUTO usage needs "
                           "HOST_ACCESS_SEQUENTIAL_WRITE or HOST_ACCESS_RANDOM");
    if (flags & NEVER_ALLOCATE && qi_vma_is_dedicated(options))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "NEVER_ALLOCATE contradicts %s, which is always a new VkDeviceMemory",
                           flags & DEDICATED ? "DEDICATED_MEMORY" : "GPU_LAZILY_ALLOCATED");
    return VK_SUCCESS;
}

/* ---- wish --------------------------------------------------------------------------------- */

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
    COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    LAZY = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT,
    AMD_COHERENT = VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD,
    AMD_UNCACHED = VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD
};

/* The wishes of the usages before AUTO, by usage. */
static const qi_vma_wish FIXED[] = {
    [VMA_MEMORY_USAGE_UNKNOWN] = {.required = 0},
    [VMA_MEMORY_USAGE_GPU_ONLY] = {.preferred = LOCAL},
    [VMA_MEMORY_USAGE_CPU_ONLY] = {.required = VISIBLE | COHERENT},
    [VMA_MEMORY_USAGE_CPU_TO_GPU] = {.required = VISIBLE, .preferred = LOCAL},
    [VMA_MEMORY_USAGE_GPU_TO_CPU] = {.required = VISIBLE, .preferred = CACHED},
    [VMA_MEMORY_USAGE_CPU_COPY] = {.avoided = LOCAL},
    [VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED] = {.required = LAZY},
};

/* If the caller prefers visible memory, an integrated GPU needs no device-local one. */
static qi_vma_wish fixed_wish(const VmaAllocationCreateInfo *options, bool is_integrated)
{
    qi_vma_wish wish = FIXED[options->usage];
    if (is_integrated && options->preferredFlags & VISIBLE)
        wish.preferred &= ~(VkMemoryPropertyFlags)LOCAL;
    return wish;
}

/* The HOST_ACCESS flags of an AUTO usage. RANDOM includes SEQUENTIAL_WRITE. */
typedef enum host_access { ACCESS_NONE, ACCESS_SEQUENTIAL, ACCESS_RANDOM } host_access;

/* The wishes of AUTO but for the side, by host access and by whether a copy may replace it. */
static const qi_vma_wish BY_ACCESS[][2] = {
    [ACCESS_NONE] = {{.required = 0}, {.required = 0}},
    [ACCESS_SEQUENTIAL] = {{.required = VISIBLE, .avoided = CACHED},
                           {.preferred = VISIBLE, .avoided = CACHED}},
    [ACCESS_RANDOM] = {{.required = VISIBLE, .preferred = CACHED}, {.preferred = CACHED}},
};

static qi_vma_wish auto_wish(const VmaAllocationCreateInfo *options, qi_vma_access access,
                             bool is_integrated)
{
    const bool prefers_host = options->usage == VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
    const bool prefers_device = options->usage == VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
    const host_access host = options->flags & RANDOM       ? ACCESS_RANDOM
                             : options->flags & SEQUENTIAL ? ACCESS_SEQUENTIAL
                                                           : ACCESS_NONE;
    const bool may_copy = options->flags & INSTEAD && access == QI_VMA_ACCESS_DEVICE &&
                          !is_integrated && !prefers_host;
    qi_vma_wish wish = BY_ACCESS[host][may_copy];

    /* Without copies, memory for reads of the host has no side: cached memory alone counts. */
    if (host == ACCESS_RANDOM && !may_copy)
        return wish;
    /* A buffer that the host fills and the device only copies is staging: not device-local. */
    const bool is_staging = host == ACCESS_SEQUENTIAL && access == QI_VMA_ACCESS_TRANSFER;
    const bool is_local = is_staging ? prefers_device : !prefers_host;
    *(is_local ? &wish.preferred : &wish.avoided) |= LOCAL;
    return wish;
}

VkResult qi_vma_wish_of(const VmaAllocationCreateInfo *options, qi_vma_access access,
                        bool is_integrated, qi_vma_wish *wish)
{
    const VmaMemoryUsage usage = options->usage;
    if (is_auto(usage) && access == QI_VMA_ACCESS_UNKNOWN)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "an AUTO usage needs the usage of a buffer or an image");
    if (is_auto(usage))
        *wish = auto_wish(options, access, is_integrated);
    else if ((size_t)usage < sizeof FIXED / sizeof FIXED[0])
        *wish = fixed_wish(options, is_integrated);
    else
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "usage %u does not exist",
                           (unsigned)usage);

    wish->required |= options->requiredFlags;
    wish->preferred |= options->preferredFlags;
    /* Without the caches of the device, which is slow: only if the caller names either flag. */
    if (!((options->requiredFlags | options->preferredFlags) & (AMD_COHERENT | AMD_UNCACHED)))
        wish->avoided |= AMD_UNCACHED;
    return VK_SUCCESS;
}

/* ---- choice ------------------------------------------------------------------------------- */

static uint32_t count_bits(VkMemoryPropertyFlags flags)
{
    uint32_t count = 0;
    for (; flags; flags &= flags - 1)
        count++;
    return count;
}

bool qi_vma_choose(const VkPhysicalDeviceMemoryProperties *memory, const qi_vma_wish *wish,
                   uint32_t mask, uint32_t *type)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        if (!(mask >> i & 1) || wish->required & ~flags)
            continue;
        uint32_t cost = count_bits(wish->preferred & ~flags) + count_bits(wish->avoided & flags);
        if (cost >= least)
            continue;
        least = cost;
        *type = i;
    }
    return least != UINT32_MAX;
}

/* ---- types of an allocator ---------------------------------------------------------------- */

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

/* ---- the functions of the interface ------------------------------------------------------- */

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
