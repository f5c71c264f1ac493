/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - a memory is made when its memory type and priority are first used, and with each pool;
 * it is trimmed, and destroyed with the allocator or the pool. Also the functions of pools.
 */
#include "src/adapters/vma/memory.h"

#include <stdio.h>

#include "quire/quire_vma.h"
#include "quire/vulkan.h"

/* ---- options ------------------------------------------------------------------------------ */

float qi_vma_priority(VmaAllocator allocator, float priority)
{
    if (!(allocator->flags & VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT))
        return 0;
    return priority > 0 ? priority : QUIRE_PRIORITY_LOWEST;
}

/*
 * The request for a memory of one type. quire selects an exportable memory by an intent, which
 * every type meets that the host can map or that is local to the device.
 */
static quire_kind_request kind_of(VmaAllocator allocator, uint32_t type, bool is_exportable)
{
    quire_kind_request request = {.mask = UINT32_C(1) << type};
    bool is_mappable = qi_vma_flags_of_type(allocator, type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    if (is_exportable)
        request.intent = QUIRE_INTENT_EXPORT | (is_mappable ? QUIRE_INTENT_HOST_WRITE : 0);
    return request;
}

/* One above the number of granules of a memory: see quire_fit_options.granule. */
static const uint64_t MOST_GRANULES = UINT64_C(1) << 32;

/*
 * Returns the unit of sizes in a memory of the type, in bytes: a power of two from 16 to 256.
 * Buffers can need as little as 16 bytes. Four times the heap must have room, because regions of
 * small pages lie apart.
 */
static uint64_t granule_of(VmaAllocator allocator, uint32_t type)
{
    uint32_t heap = allocator->memory.memoryTypes[type].heapIndex;
    uint64_t granule = 16;
    while (granule < 256 && allocator->memory.memoryHeaps[heap].size > MOST_GRANULES / 4 * granule)
        granule *= 2;
    return granule;
}

/* How long an empty page is kept. Memory of a frame is needed again by then; that of a level that
   ended goes back. */
static const uint64_t RETENTION = 1000000000;

/* Writes the page policy of the allocator's own memories: pages of the preferred size, or pages
   that follow use. */
static void describe_pages(VmaAllocator allocator, quire_page_policy *pages)
{
    *pages = (quire_page_policy){.retention_nanoseconds = RETENTION};
    if (!allocator->block_size)
        return;
    pages->page_size = allocator->block_size;
    pages->dedicated_threshold = allocator->block_size / 2 + 1;
}

/* Requires the mutex. */
static VkResult make_own(VmaAllocator allocator, uint32_t type, float priority,
                         quire_memory **memory)
{
    char name[40];
    snprintf(name, sizeof name, "memory type %u", type);
    quire_memory_options options = {
        .name = name,
        .kind = kind_of(allocator, type, allocator->exporting_types >> type & 1),
        .priority = priority,
    };
    describe_pages(allocator, &options.pages);
    options.fit.granule = granule_of(allocator, type);
    qi_vma_memory *record = qi_vma_host_allocate(&allocator->host, sizeof *record);
    if (!record)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    quire_result made = quire_memory_create(allocator->quire, &options, &record->memory);
    if (made) {
        qi_vma_host_release(&allocator->host, record);
        return qi_vma_result(made);
    }
    record->type = type;
    record->priority = priority;
    record->next = allocator->memories;
    allocator->memories = record;
    *memory = record->memory;
    return VK_SUCCESS;
}

/* ---- the allocator's own ------------------------------------------------------------------ */

static VkResult find_or_make(VmaAllocator allocator, uint32_t type, float priority,
                             quire_memory **memory)
{
    for (qi_vma_memory *at = allocator->memories; at; at = at->next)
        if (at->type == type && at->priority == priority) {
            *memory = at->memory;
            return VK_SUCCESS;
        }
    VkResult result = make_own(allocator, type, priority, memory);
    if (!result && priority == 0)
        atomic_store_explicit(&allocator->of_type[type], *memory, memory_order_release);
    return result;
}

VkResult qi_vma_memory_of_type(VmaAllocator allocator, uint32_t type, float priority,
                               quire_memory **memory)
{
    if (priority == 0) {
        *memory = atomic_load_explicit(&allocator->of_type[type], memory_order_acquire);
        if (*memory)
            return VK_SUCCESS;
    }
    pthread_mutex_lock(&allocator->mutex);
    VkResult result = find_or_make(allocator, type, priority, memory);
    pthread_mutex_unlock(&allocator->mutex);
    return result;
}

/* ---- pools: creation ---------------------------------------------------------------------- */

qi_vma_pool *qi_vma_pool_of(VmaAllocator allocator, VmaPool handle)
{
    return qi_vma_is_allocator(allocator) ? qi_vma_table_find(&allocator->pools, (uintptr_t)handle)
                                          : NULL;
}

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
static void describe_blocks(VmaAllocator allocator, const VmaPoolCreateInfo *info,
                            quire_memory_options *options)
{
    if (!info->blockSize) {
        describe_pages(allocator, &options->pages);
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
    options.kind = kind_of(allocator, info->memoryTypeIndex, is_exportable);
    describe_blocks(allocator, info, &options);
    if (info->flags & VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT)
        options.fit.algorithm = QUIRE_FIT_LINEAR;
    else
        options.fit.granule = granule_of(allocator, info->memoryTypeIndex);
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

/* ---- pools: destruction and names --------------------------------------------------------- */

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

/* ---- all memories ------------------------------------------------------------------------- */

/* Requires the mutex, or that no other call runs. Returns the next live pool from an index on and
   moves the index past it, or NULL. */
static qi_vma_pool *next_pool(VmaAllocator allocator, uint32_t *index)
{
    qi_vma_pool *pool = NULL;
    while (!pool && *index < atomic_load(&allocator->pools.count))
        pool = qi_vma_table_at(&allocator->pools, (*index)++);
    return pool;
}

void qi_vma_each_memory(VmaAllocator allocator,
                        void (*visit)(void *user, quire_memory *memory, uint32_t type), void *user)
{
    pthread_mutex_lock(&allocator->mutex);
    for (qi_vma_memory *at = allocator->memories; at; at = at->next)
        visit(user, at->memory, at->type);
    uint32_t index = 0;
    for (qi_vma_pool *pool; (pool = next_pool(allocator, &index));)
        visit(user, pool->memory, pool->type);
    pthread_mutex_unlock(&allocator->mutex);
}

quire_memory **qi_vma_own_memories(VmaAllocator allocator, uint32_t *count)
{
    *count = 0;
    pthread_mutex_lock(&allocator->mutex);
    uint32_t room = 1; /* so that the list exists if there are none */
    for (qi_vma_memory *at = allocator->memories; at; at = at->next)
        room++;
    quire_memory **memories = qi_vma_host_allocate(&allocator->host, room * sizeof(quire_memory *));
    for (qi_vma_memory *at = allocator->memories; at && memories; at = at->next)
        memories[(*count)++] = at->memory;
    pthread_mutex_unlock(&allocator->mutex);
    return memories;
}

/* Releases empty pages until each memory keeps at most `target` bytes of them. Returns the bytes.
   Pools with a minBlockCount are left out: a trim would end what quire_memory_preallocate keeps. */
static uint64_t trim_all(VmaAllocator allocator, uint64_t target)
{
    uint64_t total = 0, released = 0;
    pthread_mutex_lock(&allocator->mutex);
    for (qi_vma_memory *at = allocator->memories; at; at = at->next)
        total += quire_memory_trim(at->memory, target, &released) ? 0 : released;
    uint32_t index = 0;
    for (qi_vma_pool *pool; (pool = next_pool(allocator, &index));)
        if (!pool->keeps_blocks)
            total += quire_memory_trim(pool->memory, target, &released) ? 0 : released;
    pthread_mutex_unlock(&allocator->mutex);
    return total;
}

void qi_vma_trim(VmaAllocator allocator)
{
    trim_all(allocator, UINT64_MAX);
}

bool qi_vma_release_empty(VmaAllocator allocator)
{
    return trim_all(allocator, 0) > 0;
}

static void count_allocations(void *user, quire_memory *memory, uint32_t type)
{
    quire_memory_stats stats;
    uint64_t *count = user;
    (void)type;
    if (!quire_memory_get_stats(memory, &stats))
        *count += stats.allocation_count;
}

/* A memory with live allocations is not destroyed: lines name them. */
static void name_allocations(void *user, quire_memory *memory, uint32_t type)
{
    uint64_t count = 0;
    (void)user;
    count_allocations(&count, memory, type);
    if (count && qi_vma_destroy_memory(&memory))
        return;
}

bool qi_vma_memories_are_empty(VmaAllocator allocator)
{
    uint64_t count = 0;
    uint32_t pools = 0, index = 0;
    while (next_pool(allocator, &index))
        pools++;
    qi_vma_each_memory(allocator, count_allocations, &count);
    if (!count && !pools)
        return true;
    qi_vma_each_memory(allocator, name_allocations, NULL);
    qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                "the allocator stays; live allocations: %llu, pools: %u", (unsigned long long)count,
                pools);
    return false;
}

void qi_vma_memories_destroy(VmaAllocator allocator)
{
    for (qi_vma_memory *at = allocator->memories; at; at = allocator->memories) {
        allocator->memories = at->next;
        quire_memory_destroy_all(&at->memory);
        qi_vma_host_release(&allocator->host, at);
    }
}
