/*
 * pool.c - see pool.h, and the functions of pools.
 */
#include "src/adapters/vma/pool.h"

#include "quire/quire_vma.h"
#include "quire/vulkan.h"
#include "src/adapters/vma/memory.h"
#include "src/adapters/vma/name.h"

qi_vma_pool *qi_vma_pool_of(VmaAllocator allocator, VmaPool handle)
{
    return qi_vma_is_allocator(allocator) ? qi_vma_table_find(&allocator->pools, (uintptr_t)handle)
                                          : NULL;
}

/* ---- creation ------------------------------------------------------------------------------- */

static const VmaPoolCreateFlags KNOWN_FLAGS =
    VMA_POOL_CREATE_IGNORE_BUFFER_IMAGE_GRANULARITY_BIT | VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT;

static VkResult check(VmaAllocator allocator, const VmaPoolCreateInfo *info)
{
    VkDeviceSize alignment = info->minAllocationAlignment;
    if (info->flags & ~KNOWN_FLAGS)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "vmaCreatePool: flags 0x%x",
                           info->flags & ~KNOWN_FLAGS);
    if (info->memoryTypeIndex >= allocator->memory.memoryTypeCount ||
        !(allocator->usable_types >> info->memoryTypeIndex & 1))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "vmaCreatePool: memory type %u",
                           info->memoryTypeIndex);
    if (info->maxBlockCount && info->minBlockCount > info->maxBlockCount)
        return qi_vma_fail(VK_ERROR_INITIALIZATION_FAILED,
                           "vmaCreatePool: minBlockCount exceeds maxBlockCount");
    if (alignment & (alignment - 1))
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaCreatePool: minAllocationAlignment is no power of two");
    if (info->flags & VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT && info->maxBlockCount != 1)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaCreatePool: the linear algorithm has one block; set maxBlockCount "
                           "to 1");
    return VK_SUCCESS;
}

/* The chain of a pool without VkExportMemoryAllocateInfo, which quire chains itself. It is allowed
   at the start only, because the program's structs must not be changed. */
static VkResult split_chain(VmaAllocator allocator, const VmaPoolCreateInfo *info,
                            bool *is_exportable, const void **next)
{
    const VkExportMemoryAllocateInfo *first = info->pMemoryAllocateNext;
    VkExternalMemoryHandleTypeFlags exported =
        allocator->exported ? allocator->exported : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    *next = first;
    *is_exportable = allocator->exporting_types >> info->memoryTypeIndex & 1;
    if (!first || first->sType != VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO)
        return VK_SUCCESS;
    if (first->handleTypes != exported)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaCreatePool: handle types 0x%x: this allocator exports 0x%x",
                           first->handleTypes, exported);
    *next = first->pNext;
    *is_exportable = true;
    return VK_SUCCESS;
}

/* The bytes of one block and of no second one. A page has a multiple of the device's unit. */
static uint64_t one_block(VmaAllocator allocator, VkDeviceSize size)
{
    quire_device_info info;
    if (quire_device_get_info(allocator->quire, &info))
        return size;
    VkDeviceSize page = qi_vma_rounded(size, info.limits.page_granularity);
    return page <= UINT64_MAX / 2 ? 2 * page - 1 : page;
}

/*
 * Blocks of an explicit size are as in VMA: there are no dedicated pages beside them, and one stays
 * when it becomes empty. Each shard would keep its own, so that there is one shard, as VMA has one
 * lock. Without a size the pool has the pages of the allocator's own memories; VMA has dedicated
 * memory beyond maxBlockCount then.
 */
static void describe_pages(VmaAllocator allocator, const VmaPoolCreateInfo *info,
                           quire_memory_options *options)
{
    if (!info->blockSize) {
        qi_vma_describe_pages(allocator, &options->pages);
        return;
    }
    options->shards = 1;
    options->pages =
        (quire_page_policy){.page_size = info->blockSize,
                            .dedicated = QUIRE_DEDICATED_NEVER,
                            .retained_empty_bytes = one_block(allocator, info->blockSize)};
    if (info->maxBlockCount <= UINT32_MAX)
        options->pages.max_pages = (uint32_t)info->maxBlockCount;
}

static quire_result make_blocks(quire_memory *memory, size_t count)
{
    quire_memory_info info;
    if (!count)
        return QUIRE_SUCCESS;
    quire_result result = quire_memory_get_info(memory, &info);
    if (result)
        return result;
    /* More bytes than a number can hold are more than the heap has. */
    uint64_t bytes = count > UINT64_MAX / info.page_size ? UINT64_MAX : count * info.page_size;
    return quire_memory_preallocate(memory, bytes);
}

static VkResult make_memory(VmaAllocator allocator, const VmaPoolCreateInfo *info,
                            quire_memory **memory)
{
    bool is_exportable = false;
    quire_vulkan_memory_options own = {.next = NULL};
    quire_memory_options options = {.name = "pool",
                                    .priority = qi_vma_priority(allocator, info->priority)};
    VkResult result = split_chain(allocator, info, &is_exportable, &own.next);
    if (result)
        return result;
    options.kind = qi_vma_kind(allocator, info->memoryTypeIndex, is_exportable);
    describe_pages(allocator, info, &options);
    if (info->flags & VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT)
        options.fit.algorithm = QUIRE_FIT_LINEAR;
    else
        options.fit.granule = qi_vma_granule(allocator, info->memoryTypeIndex);
    quire_result made = quire_vulkan_memory_create(allocator->quire, &options, &own, memory);
    if (!made)
        made = make_blocks(*memory, info->minBlockCount);
    if (made && *memory)
        quire_memory_destroy_all(memory);
    return qi_vma_result(made);
}

VkResult quire_vma_create_pool(VmaAllocator allocator, const VmaPoolCreateInfo *info,
                               VmaPool *handle)
{
    if (handle)
        *handle = NULL;
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || !handle)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaCreatePool: pCreateInfo or pPool is null");
    quire_memory *memory = NULL;
    VkResult result = check(allocator, info);
    if (!result)
        result = make_memory(allocator, info, &memory);
    if (result)
        return result;
    uintptr_t number;
    pthread_mutex_lock(&allocator->mutex);
    qi_vma_pool *pool = qi_vma_table_take(&allocator->pools, &number);
    if (pool) {
        pool->memory = memory;
        pool->type = info->memoryTypeIndex;
        pool->is_linear = info->flags & VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT;
        pool->block_size = info->blockSize;
        pool->keeps_blocks = info->minBlockCount != 0;
        pool->min_alignment = info->minAllocationAlignment;
        pool->name = NULL;
        *handle = (VmaPool)number;
    }
    pthread_mutex_unlock(&allocator->mutex);
    if (!pool)
        quire_memory_destroy_all(&memory);
    return pool ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

/* ---- destruction and information ------------------------------------------------------------ */

/* Requires the mutex, so that one of several threads destroys. */
static bool destroy(VmaAllocator allocator, VmaPool handle)
{
    qi_vma_pool *pool = qi_vma_pool_of(allocator, handle);
    if (!pool || qi_vma_destroy_memory(&pool->memory))
        return false;
    qi_vma_name_set(&allocator->host, &pool->name, NULL);
    qi_vma_table_give(&allocator->pools, (uintptr_t)handle);
    return true;
}

void quire_vma_destroy_pool(VmaAllocator allocator, VmaPool handle, quire_vma_leak_log log)
{
    if (!handle)
        return;
    if (!qi_vma_is_allocator(allocator)) {
        qi_vma_print("vmaDestroyPool");
        return;
    }
    qi_vma_send_lines(log);
    pthread_mutex_lock(&allocator->mutex);
    bool is_destroyed = destroy(allocator, handle);
    pthread_mutex_unlock(&allocator->mutex);
    if (!is_destroyed)
        qi_vma_print("vmaDestroyPool");
    qi_vma_send_lines(NULL);
}

void quire_vma_get_pool_name(VmaAllocator allocator, VmaPool handle, const char **name)
{
    qi_vma_pool *pool = qi_vma_pool_of(allocator, handle);
    if (!pool)
        qi_vma_print("vmaGetPoolName");
    if (name)
        *name = pool ? pool->name : NULL;
}

void quire_vma_set_pool_name(VmaAllocator allocator, VmaPool handle, const char *name)
{
    qi_vma_pool *pool = qi_vma_pool_of(allocator, handle);
    if (!pool || !qi_vma_name_set(&allocator->host, &pool->name, name))
        qi_vma_print("vmaSetPoolName");
}
