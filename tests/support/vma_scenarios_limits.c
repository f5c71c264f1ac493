/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_scenarios_limits.c - full heaps, budgets, pools, and requests that fail: see vma_scenarios.h.
 */
#include "tests/support/vma_scenarios.h"

enum { MIB = 1 << 20, MANY = 200 };

static const object STORAGE = {"storage", VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, BUFFER};
static const object UPLOAD = {"upload", VK_BUFFER_USAGE_TRANSFER_SRC_BIT, BUFFER};

typedef struct buffers {
    VkBuffer buffers[MANY];
    VmaAllocation allocations[MANY];
    VmaAllocationInfo infos[MANY];
    uint32_t count;
} buffers;

static VkResult create(VmaAllocator allocator, const object *of, VkDeviceSize size,
                       const VmaAllocationCreateInfo *options, buffers *b)
{
    VkBufferCreateInfo info = OF_SUBJECT(vma_buffer_info)(of, size);
    VkResult result = vmaCreateBuffer(allocator, &info, options, &b->buffers[b->count],
                                      &b->allocations[b->count], &b->infos[b->count]);
    b->count += !result;
    return result;
}

static void destroy(VmaAllocator allocator, buffers *b)
{
    while (b->count-- > 0)
        vmaDestroyBuffer(allocator, b->buffers[b->count], b->allocations[b->count]);
    b->count = 0;
}

/* ---- full heaps ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    const object *of;
    VmaAllocationCreateInfo options;
} FILLS[] = {
    {"device", &STORAGE, {.usage = VMA_MEMORY_USAGE_AUTO}},
    {"host", &STORAGE, {.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST}},
    {"upload", &UPLOAD, {.usage = VMA_MEMORY_USAGE_AUTO, .flags = WRITE}},
    {"dynamic", &STORAGE, {.usage = VMA_MEMORY_USAGE_AUTO, .flags = WRITE | INSTEAD}},
    {"cpu only", &UPLOAD, {.usage = VMA_MEMORY_USAGE_CPU_ONLY}},
    {"budget", &STORAGE, {.usage = VMA_MEMORY_USAGE_AUTO, .flags = WITHIN}},
    {"one type", &STORAGE, {.usage = VMA_MEMORY_USAGE_AUTO, .memoryTypeBits = 1}},
};

static VmaAllocator open_limited(const vma_scene *scene, VkDeviceSize limit)
{
    VkDeviceSize limits[VK_MAX_MEMORY_HEAPS];
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++)
        limits[i] = limit;
    return OF_SUBJECT(vma_open)(scene, limits);
}

/* Dedicated memory of one size leaves no choice: each buffer must be where VMA has it. */
static void fill_with_dedicated(const vma_scene *scene, size_t fill, vma_notes *notes)
{
    buffers b = {.count = 0};
    VkResult result = VK_SUCCESS;
    VmaAllocationCreateInfo options = FILLS[fill].options;
    VmaAllocator allocator = open_limited(scene, 4 * MIB);
    options.flags |= DEDICATED;
    while (!result && b.count < MANY) {
        vma_scenario(notes, "fill with dedicated: '%s', buffer %u", FILLS[fill].name, b.count);
        result = create(allocator, FILLS[fill].of, MIB, &options, &b);
        NOTE("result", result);
        NOTE("memoryType", result ? 0 : b.infos[b.count - 1].memoryType);
    }
    destroy(allocator, &b);
    vma_scenario(notes, "fill with dedicated: '%s', after all", FILLS[fill].name);
    NOTE("result", create(allocator, FILLS[fill].of, MIB, &options, &b));
    destroy(allocator, &b);
    vmaDestroyAllocator(allocator);
}

/* How many fit depends on the sizes of blocks. Which types they fall back to does not. */
static void fill_with_ranges(const vma_scene *scene, size_t fill, vma_notes *notes)
{
    buffers b = {.count = 0};
    VkResult result = VK_SUCCESS;
    uint32_t order = 0, last = UINT32_MAX;
    VmaAllocator allocator = open_limited(scene, 2 * MIB);
    while (!result && b.count < MANY)
        result = create(allocator, FILLS[fill].of, 64 << 10, &FILLS[fill].options, &b);
    vma_scenario(notes, "fill: '%s'", FILLS[fill].name);
    NOTE("result", result);
    NOTE("count", b.count);
    for (uint32_t i = 0; i < b.count; i++) {
        if (b.infos[i].memoryType == last)
            continue;
        last = b.infos[i].memoryType;
        vma_scenario(notes, "fill: '%s', type %u of those used", FILLS[fill].name, order++);
        NOTE("memoryType", last);
    }
    destroy(allocator, &b);
    vmaDestroyAllocator(allocator);
}

/* What one type gave back can be used by another type of the heap. */
static void refill_heap(const vma_scene *scene, VmaAllocationCreateFlags flags, vma_notes *notes)
{
    buffers b = {.count = 0};
    VmaAllocator allocator = open_limited(scene, 2 * MIB);
    for (uint32_t i = 0; i < scene->memory.memoryTypeCount; i++) {
        VmaAllocationCreateInfo options = {.flags = flags, .memoryTypeBits = UINT32_C(1) << i};
        VkResult result = VK_SUCCESS;
        vma_scenario(notes, "refill heap %u with type %u, flags 0x%x",
                     scene->memory.memoryTypes[i].heapIndex, i, flags);
        while (!result && b.count < MANY)
            result = create(allocator, &STORAGE, 256 << 10, &options, &b);
        NOTE("result", result);
        NOTE("count", b.count);
        destroy(allocator, &b);
    }
    vmaDestroyAllocator(allocator);
}

/* Only existing memory. */
static void never_allocate(const vma_scene *scene, vma_notes *notes)
{
    buffers b = {.count = 0};
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    const VmaAllocationCreateInfo never = {.usage = VMA_MEMORY_USAGE_AUTO, .flags = NEVER};
    vma_scenario(notes, "never allocate");
    NOTE("result without memory", create(allocator, &STORAGE, 1000, &never, &b));
    NOTE("result with the flag", create(allocator, &STORAGE, 1000, &options, &b));
    NOTE("result with memory", create(allocator, &STORAGE, 1000, &never, &b));
    NOTE("memoryType", b.count ? b.infos[b.count - 1].memoryType : 0);
    NOTE("result above all memory", create(allocator, &STORAGE, 1 << 30, &never, &b));
    destroy(allocator, &b);
    vmaDestroyAllocator(allocator);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void note_pool(VmaAllocator allocator, VmaPool pool, vma_notes *notes)
{
    VmaStatistics statistics;
    vmaGetPoolStatistics(allocator, pool, &statistics);
    NOTE("blockCount", statistics.blockCount);
    NOTE("blockBytes", statistics.blockBytes);
    NOTE("allocationCount", statistics.allocationCount);
    NOTE("allocationBytes", statistics.allocationBytes);
}

static const VmaPoolCreateInfo POOLS[] = {
    {.blockSize = MIB, .maxBlockCount = 2},
    {.blockSize = MIB, .minBlockCount = 2, .maxBlockCount = 3, .minAllocationAlignment = 4096},
    {.blockSize = MIB, .maxBlockCount = 1, .flags = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT},
    {.blockSize = 8 * MIB},
};

/* Fills a pool of blocks of one size. */
static void use_pool(VmaAllocator allocator, size_t number, const VmaPoolCreateInfo *info,
                     vma_notes *notes)
{
    VmaPool pool = NULL;
    vma_scenario(notes, "pool %zu of type %u", number, info->memoryTypeIndex);
    VkResult result = vmaCreatePool(allocator, info, &pool);
    NOTE("result", result);
    if (result)
        return;
    note_pool(allocator, pool, notes);
    buffers b = {.count = 0};
    const VmaAllocationCreateInfo options = {.pool = pool, .flags = MAPPED};
    while (!result && b.count < MANY - 1)
        result = create(allocator, &STORAGE, 128 << 10, &options, &b);
    NOTE("result when it is full", result);
    NOTE("result above a block", create(allocator, &STORAGE, info->blockSize + 1, &options, &b));
    NOTE("count", b.count);
    for (uint32_t i = 0; i < b.count; i++) {
        NOTE("size", b.infos[i].size);
        NOTE("memoryType", b.infos[i].memoryType);
        NOTE("has pMappedData", b.infos[i].pMappedData != NULL);
        NOTE("offset", b.infos[i].offset);
    }
    note_pool(allocator, pool, notes);
    destroy(allocator, &b);
    vma_scenario(notes, "emptied pool %zu of type %u", number, info->memoryTypeIndex);
    note_pool(allocator, pool, notes);
    vmaDestroyPool(allocator, pool);
}

/* Pools of the memory types that hold the buffers. */
static void use_pools(const vma_scene *scene, vma_notes *notes)
{
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    const VkBufferCreateInfo info = OF_SUBJECT(vma_buffer_info)(&STORAGE, 128 << 10);
    for (uint32_t i = 0; i < scene->memory.memoryTypeCount; i++) {
        const VmaAllocationCreateInfo options = {.memoryTypeBits = UINT32_C(1) << i};
        uint32_t type;
        if (vmaFindMemoryTypeIndexForBufferInfo(allocator, &info, &options, &type))
            continue;
        for (size_t k = 0; k < COUNT_OF(POOLS); k++) {
            VmaPoolCreateInfo pool = POOLS[k];
            pool.memoryTypeIndex = i;
            use_pool(allocator, k, &pool, notes);
        }
    }
    vmaDestroyAllocator(allocator);
}

/* ---- requests that fail ---------------------------------------------------------------------- */

static void refuse_pools(const vma_scene *scene, VmaAllocator allocator, vma_notes *notes)
{
    VmaPool pool = NULL;
    VmaPoolCreateInfo info = {.memoryTypeIndex = scene->memory.memoryTypeCount};
    vma_scenario(notes, "pool of no type");
    NOTE("result", vmaCreatePool(allocator, &info, &pool));
    info = (VmaPoolCreateInfo){.minBlockCount = 2, .maxBlockCount = 1};
    vma_scenario(notes, "pool with more blocks at least than at most");
    NOTE("result", vmaCreatePool(allocator, &info, &pool));
}

static void refuse(const vma_scene *scene, vma_notes *notes)
{
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    buffers b = {.count = 0};
    VmaAllocation allocation = NULL;
    const VmaAllocationCreateInfo plain = {.usage = VMA_MEMORY_USAGE_AUTO};
    const VmaAllocationCreateInfo impossible = {
        .requiredFlags = VK_MEMORY_PROPERTY_HOST_CACHED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT};
    const VmaAllocationCreateInfo no_type = {.memoryTypeBits = UINT32_C(1) << 31};
    const VkMemoryRequirements nothing = {.size = 0, .alignment = 1, .memoryTypeBits = 1};
    const VkMemoryRequirements nowhere = {.size = 64, .alignment = 1, .memoryTypeBits = 0};
    vma_scenario(notes, "refuse");
    NOTE("buffer of 0 bytes", create(allocator, &STORAGE, 0, &plain, &b));
    NOTE("impossible flags", create(allocator, &STORAGE, 64, &impossible, &b));
    NOTE("no memory type", create(allocator, &STORAGE, 64, &no_type, &b));
    NOTE("raw memory of 0 bytes",
         vmaAllocateMemory(allocator, &nothing, &no_type, &allocation, NULL));
    NOTE("raw memory of no type",
         vmaAllocateMemory(allocator, &nowhere, &impossible, &allocation, NULL));
    NOTE("no allocation", allocation == NULL && b.count == 0);
    NOTE("vmaCheckCorruption", vmaCheckCorruption(allocator, UINT32_MAX));
    refuse_pools(scene, allocator, notes);
    vmaDestroyAllocator(allocator);
}

void OF_SUBJECT(vma_use_limits)(const vma_scene *scene, vma_notes *notes)
{
    for (size_t i = 0; i < COUNT_OF(FILLS); i++) {
        fill_with_dedicated(scene, i, notes);
        fill_with_ranges(scene, i, notes);
    }
    refill_heap(scene, DEDICATED, notes);
    refill_heap(scene, 0, notes);
    refuse(scene, notes);
    if (scene->driver_decides)
        return; /* no memory is left for a second buffer, and no pool may hold one */
    never_allocate(scene, notes);
    use_pools(scene, notes);
}
