/*
 * memory.c - see memory.h.
 */
#include "src/adapters/vma/memory.h"

#include <stdio.h>

#include "src/adapters/vma/pool.h"

/* ---- options -------------------------------------------------------------------------------- */

float qi_vma_priority(VmaAllocator allocator, float priority)
{
    if (!(allocator->flags & VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT))
        return 0;
    return priority > 0 ? priority : QUIRE_PRIORITY_LOWEST;
}

/* quire selects an exportable memory by an intent, which every type meets that the host can map or
   that is local to the device. */
quire_kind_request qi_vma_kind(VmaAllocator allocator, uint32_t type, bool is_exportable)
{
    quire_kind_request request = {.mask = UINT32_C(1) << type};
    bool is_mappable = qi_vma_flags_of_type(allocator, type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    if (is_exportable)
        request.intent = QUIRE_INTENT_EXPORT | (is_mappable ? QUIRE_INTENT_HOST_WRITE : 0);
    return request;
}

/* One above the number of granules of a memory: see quire_fit_options.granule. */
static const uint64_t MOST_GRANULES = UINT64_C(1) << 32;

/* Buffers can need as little as 16 bytes. Four times the heap must have room, because regions of
   small pages lie apart. */
uint64_t qi_vma_granule(VmaAllocator allocator, uint32_t type)
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

void qi_vma_describe_pages(VmaAllocator allocator, quire_page_policy *pages)
{
    *pages = (quire_page_policy){.retention_nanoseconds = RETENTION};
    if (!allocator->block_size)
        return;
    pages->page_size = allocator->block_size;
    pages->dedicated_threshold = allocator->block_size / 2 + 1;
}

/* Requires the mutex. */
static VkResult make(VmaAllocator allocator, uint32_t type, float priority, quire_memory **memory)
{
    char name[40];
    snprintf(name, sizeof name, "memory type %u", type);
    quire_memory_options options = {
        .name = name,
        .kind = qi_vma_kind(allocator, type, allocator->exporting_types >> type & 1),
        .priority = priority,
    };
    qi_vma_describe_pages(allocator, &options.pages);
    options.fit.granule = qi_vma_granule(allocator, type);
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

/* ---- the allocator's own -------------------------------------------------------------------- */

static VkResult find_or_make(VmaAllocator allocator, uint32_t type, float priority,
                             quire_memory **memory)
{
    for (qi_vma_memory *at = allocator->memories; at; at = at->next)
        if (at->type == type && at->priority == priority) {
            *memory = at->memory;
            return VK_SUCCESS;
        }
    VkResult result = make(allocator, type, priority, memory);
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

/* ---- all ------------------------------------------------------------------------------------ */

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
